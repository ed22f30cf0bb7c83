/* SPDX-License-Identifier: Apache-2.0 */
/* Planning, over manifests in memory: which deletes reach which file, and what is pruned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/scan/plan.h"

/* Spec 0 has no field, 1 is identity(cat), 2 is identity(cat) again, 3 is void(cat). */
static const char metadata[] =
    "{\"format-version\":3,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
    "\"location\":\"mem://t\",\"last-sequence-number\":99,\"last-updated-ms\":1,"
    "\"last-column-id\":3,\"next-row-id\":1000,\"current-schema-id\":0,\"schemas\":[{\"type\":"
    "\"struct\",\"schema-id\":0,\"fields\":["
    "{\"id\":1,\"name\":\"id\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":2,\"name\":\"cat\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":3,\"name\":\"d\",\"required\":false,\"type\":\"double\"}]}],\"default-spec-id\":1,"
    "\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},{\"spec-id\":1,\"fields\":["
    "{\"name\":\"cat\",\"transform\":\"identity\",\"source-id\":2,\"field-id\":1000}]},"
    "{\"spec-id\":2,\"fields\":["
    "{\"name\":\"cat2\",\"transform\":\"identity\",\"source-id\":2,\"field-id\":1001}]},"
    "{\"spec-id\":3,\"fields\":["
    "{\"name\":\"v\",\"transform\":\"void\",\"source-id\":2,\"field-id\":1002}]}],"
    "\"last-partition-id\":1002,\"default-sort-order-id\":0,"
    "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{},"
    "\"current-snapshot-id\":5,\"snapshots\":[{\"snapshot-id\":5,\"sequence-number\":99,"
    "\"timestamp-ms\":1,\"manifest-list\":\"mem://t/list.avro\",\"summary\":{\"operation\":"
    "\"append\"},\"schema-id\":0,\"first-row-id\":0,\"added-rows\":0}],"
    "\"refs\":{\"main\":{\"snapshot-id\":5,\"type\":\"branch\"}},\"snapshot-log\":[],"
    "\"metadata-log\":[]}";

typedef struct File {
    const char *path;
    KnContent content;
    int32_t spec;
    const char *cat; /* partition value; NULL = null */
    int64_t seq;
    const char *referenced; /* data file of a position delete or vector */
    int32_t equality;       /* field id */
    int64_t low, high;      /* bounds of id; 0, 0 = none */
    bool vector;
} File;

typedef struct Fixture {
    KnArena *arena;
    KnFileIO *io;
    KnTable *tbl;
    KnErr err;
    KnManifestFile manifests[16];
    size_t n_manifests;
} Fixture;

static int setup(void **state)
{
    static Fixture fix;
    fix = (Fixture){.arena = kn_arena_new(0)};
    KnMetadata *md = NULL;
    assert_int_equal(kn_io_memory_open(&fix.io, &fix.err), KN_OK);
    if (kn_metadata_parse(kn_str(metadata), "test", &md, &fix.err) != KN_OK)
        fail_msg("%s", fix.err.msg);
    fix.tbl = kn_table_new(NULL, NULL, fix.io, md, "mem://t/m.json");
    *state = &fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_table_free(fix->tbl);
    kn_io_close(fix->io);
    kn_arena_free(fix->arena);
    return 0;
}

static KnStr long_bytes(Fixture *fix, int64_t value)
{
    char *bytes = kn_arena_alloc(fix->arena, sizeof(value));
    memcpy(bytes, &value, sizeof(value));
    return (KnStr){bytes, sizeof(value)};
}

static KnManifestEntry *make_entry(Fixture *fix, const File *f, const KnPartitionSpec *spec)
{
    KnManifestEntry *entry = kn_arena_zalloc(fix->arena, sizeof(*entry));
    *entry = (KnManifestEntry){.status = KN_ENTRY_EXISTING,
                               .snapshot_id = 5,
                               .sequence_number = f->seq,
                               .file_sequence_number = f->seq};
    KnValue *cat = kn_arena_zalloc(fix->arena, sizeof(*cat));
    *cat = (KnValue){
        .null = !f->cat || spec->spec_id == 3, .kind = KN_TYPE_STRING, .bytes = kn_str(f->cat)};
    entry->file = (KnDataFile){.content = f->content,
                               .path = f->path,
                               .format = f->vector ? KN_FORMAT_PUFFIN : KN_FORMAT_PARQUET,
                               .spec_id = f->spec,
                               .n_partition = spec->n_fields,
                               .partition = cat,
                               .record_count = 10,
                               .size_bytes = 100,
                               .sort_order_id = -1,
                               .first_row_id = f->content == KN_CONTENT_DATA ? 0 : -1,
                               .referenced_data_file = f->referenced,
                               .content_offset = f->vector ? 4 : -1,
                               .content_size = f->vector ? 40 : -1};
    if (f->equality) {
        int32_t *id = kn_arena_alloc(fix->arena, sizeof(*id));
        *id = f->equality;
        entry->file.equality_ids = id;
        entry->file.n_equality_ids = 1;
    }
    if (f->low || f->high) {
        KnIdBound *bounds = kn_arena_alloc(fix->arena, 2 * sizeof(*bounds));
        KnIdCount *counts = kn_arena_alloc(fix->arena, 2 * sizeof(*counts));
        bounds[0] = (KnIdBound){1, long_bytes(fix, f->low)};
        bounds[1] = (KnIdBound){1, long_bytes(fix, f->high)};
        counts[0] = (KnIdCount){1, 0};
        counts[1] = (KnIdCount){1, 10};
        entry->file.lower = &bounds[0];
        entry->file.upper = &bounds[1];
        entry->file.null_counts = &counts[0];
        entry->file.value_counts = &counts[1];
        entry->file.n_lower = entry->file.n_upper = 1;
        entry->file.n_null_counts = entry->file.n_value_counts = 1;
    }
    return entry;
}

/* A manifest for each run of files of one spec and kind. */
static void put_manifest(Fixture *fix, const File *files, size_t n)
{
    const KnMetadata *md = fix->tbl->md;
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, files[0].spec);
    const KnType *type = NULL;
    assert_int_equal(kn_partition_type(fix->arena, spec, kn_metadata_schema(md), &type, &fix->err),
                     KN_OK);
    const KnManifestEntry *entries[16];
    for (size_t i = 0; i < n; i++)
        entries[i] = make_entry(fix, &files[i], spec);
    KnManifestWrite w = {.format_version = 3,
                         .schema = kn_metadata_schema(md),
                         .spec = spec,
                         .partition_type = type,
                         .deletes = files[0].content != KN_CONTENT_DATA,
                         .snapshot_id = 5,
                         .entries = entries,
                         .n_entries = n,
                         .path =
                             kn_arena_printf(fix->arena, "mem://t/m%zu.avro", fix->n_manifests)};
    KnManifestFile *mf = &fix->manifests[fix->n_manifests++];
    if (kn_manifest_write(fix->io, fix->arena, &w, mf, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    mf->sequence_number = 99;
    mf->min_sequence_number = 1;
}

static void put_files(Fixture *fix, const File *files, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && files[end].spec == files[i].spec &&
               (files[end].content == KN_CONTENT_DATA) == (files[i].content == KN_CONTENT_DATA))
            end++;
        put_manifest(fix, files + i, end - i);
        i = end;
    }
    KnManifestListWrite list = {.format_version = 3,
                                .snapshot_id = 5,
                                .parent_id = -1,
                                .sequence_number = 99,
                                .first_row_id = 0,
                                .manifests = fix->manifests,
                                .n_manifests = fix->n_manifests,
                                .path = "mem://t/list.avro"};
    int64_t next = 0;
    if (kn_manifest_list_write(fix->io, &list, &next, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
}

static KnCode plan(Fixture *fix, const char *where, KnPlan **ret)
{
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(fix->tbl->md)};
    if (where && kn_expr_parse(fix->arena, kn_str(where), kn_metadata_schema(fix->tbl->md),
                               &opts.filter, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    return kn_plan_scan(fix->tbl, &opts, ret, &fix->err);
}

/* "a[d1 d2] b[]" */
static const char *text_of(Fixture *fix, const char *where)
{
    KnPlan *p = NULL;
    if (plan(fix, where, &p) != KN_OK)
        fail_msg("%s", fix->err.msg);
    const char *text = "";
    for (size_t i = 0; i < p->n_tasks; i++) {
        text =
            kn_arena_printf(fix->arena, "%s%s%s[", text, i ? " " : "", p->tasks[i].data->file.path);
        for (size_t j = 0; j < p->tasks[i].n_deletes; j++)
            text = kn_arena_printf(fix->arena, "%s%s%s", text, j ? " " : "",
                                   p->tasks[i].deletes[j]->file.path);
        text = kn_arena_printf(fix->arena, "%s]", text);
    }
    kn_plan_free(p);
    return text;
}

#define DATA(p, s, c, q)                                                                           \
    {                                                                                              \
        .path = (p), .content = KN_CONTENT_DATA, .spec = (s), .cat = (c), .seq = (q)               \
    }
#define EQUALITY(p, s, c, q)                                                                       \
    {                                                                                              \
        .path = (p), .content = KN_CONTENT_EQUALITY_DELETES, .spec = (s), .cat = (c), .seq = (q),  \
        .equality = 1                                                                              \
    }
#define POSITION(p, s, c, q, r)                                                                    \
    {                                                                                              \
        .path = (p), .content = KN_CONTENT_POSITION_DELETES, .spec = (s), .cat = (c), .seq = (q),  \
        .referenced = (r)                                                                          \
    }
#define VECTOR(p, s, c, q, r)                                                                      \
    {                                                                                              \
        .path = (p), .content = KN_CONTENT_POSITION_DELETES, .spec = (s), .cat = (c), .seq = (q),  \
        .referenced = (r), .vector = true                                                          \
    }
#define PUT(fix, files) put_files((fix), (files), sizeof(files) / sizeof(*(files)))

static void equality_deletes_reach_strictly_older_files(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), DATA("b", 1, "x", 2), DATA("c", 1, "x", 3),
                          EQUALITY("e2", 1, "x", 2)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "a[e2] b[] c[]");
}

static void position_deletes_reach_files_of_their_own_sequence_too(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), DATA("b", 1, "x", 2), DATA("c", 1, "x", 3),
                          POSITION("p2", 1, "x", 2, NULL)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "a[p2] b[p2] c[]");
}

static void deletes_stay_in_their_partition(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("x", 1, "x", 1),          DATA("y", 1, "y", 1),
                          DATA("null", 1, NULL, 1),      EQUALITY("ey", 1, "y", 2),
                          EQUALITY("enull", 1, NULL, 2), POSITION("px", 1, "x", 2, NULL)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "x[px] y[ey] null[enull]");
}

static void the_same_value_under_another_spec_is_another_partition(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("one", 1, "x", 1), DATA("two", 2, "x", 1), EQUALITY("e1", 1, "x", 2),
                          POSITION("p2", 2, "x", 2, NULL)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "one[e1] two[p2]");
}

static void equality_deletes_of_an_unpartitioned_spec_are_global(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("one", 1, "x", 1), DATA("two", 2, "y", 1), DATA("zero", 0, NULL, 1),
                          EQUALITY("void", 3, NULL, 2), EQUALITY("none", 0, NULL, 3)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "one[void none] two[void none] zero[void none]");
}

static void position_deletes_of_an_unpartitioned_spec_are_not_global(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("one", 1, "x", 1), DATA("zero", 0, NULL, 1),
                          POSITION("p0", 0, NULL, 2, NULL)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "one[] zero[p0]");
}

static void a_position_delete_that_names_its_file_reaches_only_that(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), DATA("b", 1, "x", 1),
                          POSITION("pb", 1, "x", 2, "b")};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "a[] b[pb]");
}

static void a_vector_replaces_position_deletes_and_keeps_equality_deletes(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), DATA("b", 1, "x", 1),
                          POSITION("p", 1, "x", 2, NULL), VECTOR("v", 1, "x", 3, "a"),
                          EQUALITY("e", 1, "x", 4)};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "a[v e] b[p e]");
}

static void two_vectors_for_one_file_are_corrupt(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), VECTOR("v1", 1, "x", 2, "a"),
                          VECTOR("v2", 1, "x", 3, "a")};
    PUT(fix, files);
    KnPlan *p = NULL;
    assert_int_equal(plan(fix, NULL, &p), KN_E_CORRUPT);
    assert_non_null(strstr(fix->err.msg, "two deletion vectors"));
}

static void a_vector_older_than_its_file_is_corrupt(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 5), VECTOR("v1", 1, "x", 2, "a")};
    PUT(fix, files);
    KnPlan *p = NULL;
    assert_int_equal(plan(fix, NULL, &p), KN_E_CORRUPT);
}

static void equality_deletes_without_possible_keys_are_left_out(void **state)
{
    Fixture *fix = *state;
    File files[] = {DATA("low", 1, "x", 1), DATA("high", 1, "x", 1), DATA("unknown", 1, "x", 1),
                    EQUALITY("e", 1, "x", 2)};
    files[0].low = 1;
    files[0].high = 10;
    files[1].low = 11;
    files[1].high = 20;
    files[3].low = 15;
    files[3].high = 15;
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "low[] high[e] unknown[e]");
}

static void deletes_come_in_order_of_sequence(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), EQUALITY("e9", 1, "x", 9),
                          POSITION("p3", 1, "x", 3, NULL), EQUALITY("e5", 1, "x", 5),
                          POSITION("p7", 1, "x", 7, "a")};
    PUT(fix, files);
    assert_string_equal(text_of(fix, NULL), "a[p3 e5 p7 e9]");
}

static void filters_prune_by_partition_and_bounds(void **state)
{
    Fixture *fix = *state;
    File files[] = {DATA("x1", 1, "x", 1), DATA("x2", 1, "x", 1), DATA("y1", 1, "y", 1),
                    DATA("none", 0, NULL, 1)};
    files[0].low = 1;
    files[0].high = 10;
    files[1].low = 11;
    files[1].high = 20;
    PUT(fix, files);
    assert_string_equal(text_of(fix, "cat = 'x'"), "x1[] x2[] none[]");
    assert_string_equal(text_of(fix, "cat = 'y'"), "y1[] none[]");
    assert_string_equal(text_of(fix, "cat = 'x' AND id > 10"), "x2[] none[]");
    assert_string_equal(text_of(fix, "cat IS NULL"), "none[]");
    KnPlan *p = NULL;
    assert_int_equal(plan(fix, "cat = 'z'", &p), KN_OK);
    assert_int_equal(p->n_tasks, 1);
    assert_int_equal(p->manifests_skipped, 1);
    assert_int_equal(p->manifests_read, 1);
    kn_plan_free(p);
}

static void a_plan_counts_rows_bytes_and_the_deletes_it_uses(void **state)
{
    Fixture *fix = *state;
    const File files[] = {DATA("a", 1, "x", 1), DATA("b", 1, "x", 1),
                          POSITION("p", 1, "x", 2, NULL), EQUALITY("unused", 1, "z", 2)};
    PUT(fix, files);
    KnPlan *p = NULL;
    assert_int_equal(plan(fix, NULL, &p), KN_OK);
    assert_int_equal(p->n_rows, 20);
    assert_int_equal(p->n_bytes, 200);
    assert_int_equal(p->n_delete_files, 1);
    assert_int_equal(p->delete_bytes, 100);
    kn_plan_free(p);
}

static void no_snapshot_is_an_empty_plan(void **state)
{
    Fixture *fix = *state;
    KnPlanOptions opts = {0};
    KnPlan *p = NULL;
    assert_int_equal(kn_plan_scan(fix->tbl, &opts, &p, &fix->err), KN_OK);
    assert_int_equal(p->n_tasks, 0);
    kn_plan_free(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(equality_deletes_reach_strictly_older_files),
        CASE(position_deletes_reach_files_of_their_own_sequence_too),
        CASE(deletes_stay_in_their_partition),
        CASE(the_same_value_under_another_spec_is_another_partition),
        CASE(equality_deletes_of_an_unpartitioned_spec_are_global),
        CASE(position_deletes_of_an_unpartitioned_spec_are_not_global),
        CASE(a_position_delete_that_names_its_file_reaches_only_that),
        CASE(a_vector_replaces_position_deletes_and_keeps_equality_deletes),
        CASE(two_vectors_for_one_file_are_corrupt),
        CASE(a_vector_older_than_its_file_is_corrupt),
        CASE(equality_deletes_without_possible_keys_are_left_out),
        CASE(deletes_come_in_order_of_sequence),
        CASE(filters_prune_by_partition_and_bounds),
        CASE(a_plan_counts_rows_bytes_and_the_deletes_it_uses),
        CASE(no_snapshot_is_an_empty_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
