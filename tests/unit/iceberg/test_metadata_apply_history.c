/* SPDX-License-Identifier: Apache-2.0 */
/* test_metadata_apply_history.c - updates of snapshots, refs and the snapshot log. */
#include "unit/iceberg/meta_support.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void commits_move_main_and_write_the_log(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    int64_t t0 = md->last_updated_ms;

    md = meta_commit(m, md, 11, t0 + 5);
    md = meta_commit(m, md, 12, t0 + 9);
    assert_int_equal(md->current_snapshot_id, 12);
    assert_int_equal(md->last_sequence_number, 2);
    assert_int_equal(md->last_updated_ms, t0 + 9);
    assert_int_equal(md->n_snapshot_log, 2);
    assert_int_equal(md->snapshot_log[0].timestamp_ms, t0 + 5);
    assert_int_equal(md->snapshot_log[1].snapshot_id, 12);
    assert_int_equal(kn_metadata_find_snapshot(md, 12)->parent_id, 11);
    assert_string_equal(kn_metadata_snapshot(md)->operation, "append");
    assert_string_equal(
        json_string_value(json_object_get(kn_metadata_snapshot(md)->summary, "operation")),
        "append");
}

static void a_clock_that_is_behind_does_not_turn_time_back(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    int64_t t0 = md->last_updated_ms;

    md = meta_commit(m, md, 11, t0 + 500000);
    md = meta_commit(m, md, 12, t0);
    assert_int_equal(md->last_updated_ms, t0 + 500000);
    assert_int_equal(md->snapshot_log[1].timestamp_ms, t0 + 500000);
    assert_int_equal(kn_metadata_snapshot(md)->timestamp_ms, t0);
}

static void a_stale_snapshot_is_a_conflict(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO v2 = meta_commit(m, meta_create(m, 2), 11, 1000);
    KN_METADATA_AUTO v3 = meta_commit(m, meta_create(m, 3), 11, 1000);
    KnUpdate old_sequence = meta_add_snapshot(v2, 12, 2000);
    KnUpdate old_rows = meta_add_snapshot(v3, 12, 2000);
    KnMetadata *md = NULL;

    old_sequence.snapshot.sequence_number = 1;
    old_rows.snapshot.first_row_id = 9;
    assert_int_equal(kn_metadata_apply(v2, &old_sequence, 1, NULL, &md, &m->err), KN_E_CONFLICT);
    assert_string_equal(m->err.msg, "Cannot add snapshot with sequence number 1 older than last "
                                    "sequence number 1");
    assert_true(m->err.retriable);
    assert_int_equal(kn_metadata_apply(v3, &old_rows, 1, NULL, &md, &m->err), KN_E_CONFLICT);
    assert_string_equal(m->err.msg,
                        "Cannot add a snapshot, first-row-id is behind table next-row-id: 9 < 10");
    assert_true(m->err.retriable);
    assert_null(md);
}

static void row_ids_advance_by_the_rows_added(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 3);

    assert_int_equal(md->next_row_id, 0);
    md = meta_commit(m, md, 11, 1000);
    assert_int_equal(md->next_row_id, 10);
    md = meta_commit(m, md, 12, 2000);
    assert_int_equal(md->next_row_id, 20);
    assert_int_equal(kn_metadata_snapshot(md)->first_row_id, 10);
    KnUpdate no_rows = meta_add_snapshot(md, 13, 3000);
    no_rows.snapshot.first_row_id = -1;
    meta_refused(m, md, &no_rows, 1, "Cannot add a snapshot: first-row-id is null");
    no_rows.snapshot.first_row_id = 20;
    no_rows.snapshot.added_rows = -1;
    meta_refused(m, md, &no_rows, 1, "Cannot add a snapshot: added-rows is null");
    no_rows.snapshot.added_rows = INT64_MAX;
    meta_refused(m, md, &no_rows, 1, "Cannot add a snapshot: row ids overflow");
}

static void wrong_snapshots_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 11, 1000);
    KN_METADATA_AUTO v1 = meta_create(m, 1);
    KnUpdate update = meta_add_snapshot(md, 11, 2000);

    meta_refused(m, md, &update, 1, "Snapshot already exists for id: 11");
    update.snapshot.snapshot_id = -5;
    meta_refused(m, md, &update, 1, "snapshot id -5 is negative");
    update.snapshot.snapshot_id = 12;
    update.snapshot.manifest_list = NULL;
    meta_refused(m, md, &update, 1, "snapshot 12 has no manifest-list");
    update = meta_add_snapshot(v1, 12, 2000);
    update.snapshot.sequence_number = 1;
    meta_refused(m, v1, &update, 1, "Sequence number must be 0 in v1: 1");
}

static void refs_are_set_kept_and_removed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_commit(m, meta_create(m, 2), 11, 1000), 12, 2000);
    KnUpdate branch = meta_set_ref("dev", 11, true), tag = meta_set_ref("v1", 11, false);

    branch.ref.min_snapshots_to_keep = 3;
    branch.ref.max_ref_age_ms = 1000;
    const KnUpdate both[] = {branch, tag};
    md = meta_apply(m, md, both, 2);
    assert_int_equal(md->n_refs, 3);
    assert_int_equal(kn_metadata_find_ref(md, KN_STR_LIT("dev"))->min_snapshots_to_keep, 3);
    assert_false(kn_metadata_find_ref(md, KN_STR_LIT("v1"))->is_branch);
    assert_int_equal(md->n_snapshot_log, 2); /* only main is logged */
    const KnUpdate rollback = meta_set_ref("main", 11, true);
    md = meta_apply(m, md, &rollback, 1);
    assert_int_equal(md->current_snapshot_id, 11);
    assert_int_equal(md->n_snapshot_log, 3);
    const KnUpdate removes[] = {{.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "dev"},
                                {.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "never"},
                                {.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "main"}};
    md = meta_apply(m, md, removes, 3);
    assert_int_equal(md->n_refs, 1);
    assert_int_equal(md->current_snapshot_id, -1);
    assert_int_equal(md->n_snapshots, 2);
}

static void wrong_refs_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 11, 1000);
    KnUpdate update = meta_set_ref("dev", 99, true);

    meta_refused(m, md, &update, 1, "Cannot set dev to unknown snapshot: 99");
    update = meta_set_ref("v", 11, false);
    update.ref.min_snapshots_to_keep = 1;
    meta_refused(m, md, &update, 1, "Tags do not support setting minSnapshotsToKeep");
    update.ref.min_snapshots_to_keep = 0;
    meta_refused(m, md, &update, 1, "Min snapshots to keep must be greater than 0");
    update = meta_set_ref("v", 11, true);
    update.ref.max_snapshot_age_ms = 0;
    meta_refused(m, md, &update, 1, "Max snapshot age must be greater than 0 ms");
    update.ref.max_snapshot_age_ms = -1;
    update.ref.max_ref_age_ms = 0;
    meta_refused(m, md, &update, 1, "Max reference age must be greater than 0");
    update = meta_set_ref("main", 11, false);
    meta_refused(m, md, &update, 1, "Cannot set main: it is a branch, not a tag");
    update = meta_set_ref("", 11, true);
    meta_refused(m, md, &update, 1, "a ref needs a name");
}

static void a_snapshot_that_only_passed_through_leaves_no_log_entry(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 11, 1000);
    KnUpdate second = meta_add_snapshot(md, 12, 2000), third = meta_add_snapshot(md, 13, 3000);

    third.snapshot.parent_id = 12;
    third.snapshot.sequence_number = 3;
    const KnUpdate updates[] = {second, meta_set_ref("main", 12, true), third,
                                meta_set_ref("main", 13, true)};
    md = meta_apply(m, md, updates, 4);
    assert_int_equal(md->n_snapshots, 3);
    assert_int_equal(md->n_snapshot_log, 2);
    assert_int_equal(md->snapshot_log[0].snapshot_id, 11);
    assert_int_equal(md->snapshot_log[1].snapshot_id, 13);
}

static void removed_snapshots_take_refs_statistics_and_log_with_them(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    const int64_t ids[] = {12, 99};

    for (int64_t id = 11; id <= 13; id++)
        md = meta_commit(m, md, id, md->last_updated_ms + 1000);
    const KnUpdate before[] = {meta_set_ref("old", 12, true),
                               meta_set_ref("keep", 11, false),
                               {.kind = KN_UPDATE_SET_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':12,'statistics-path':'a'}")},
                               {.kind = KN_UPDATE_SET_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':13,'statistics-path':'b'}")},
                               {.kind = KN_UPDATE_SET_PARTITION_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':12,'statistics-path':'c'}")}};
    md = meta_apply(m, md, before, N(before));
    assert_int_equal(json_array_size(md->statistics), 2);
    const KnUpdate remove = {.kind = KN_UPDATE_REMOVE_SNAPSHOTS, .ids = ids, .n_ids = 2};
    md = meta_apply(m, md, &remove, 1);
    assert_int_equal(md->n_snapshots, 2);
    assert_null(kn_metadata_find_ref(md, KN_STR_LIT("old")));
    assert_non_null(kn_metadata_find_ref(md, KN_STR_LIT("keep")));
    assert_int_equal(json_array_size(md->statistics), 1);
    assert_int_equal(json_array_size(md->partition_statistics), 0);
    assert_int_equal(md->n_snapshot_log, 1); /* what was before the gap is cut */
    assert_int_equal(md->snapshot_log[0].snapshot_id, 13);
}

/* ---- what is shared with the document before ---- */

static const char *text_of(Meta *m, const KnMetadata *md)
{
    KN_BUF_AUTO text = {0};

    kn_buf_init(&text, (size_t)1 << 24);
    meta_ok(m, kn_metadata_to_json(md, &text, &m->err));
    return kn_arena_strndup(m->arena, text.data, text.len);
}

/* md as somebody reads it who has only the text: nothing is known to be in our words. */
static KnMetadata *read_again(Meta *m, const KnMetadata *md)
{
    KnMetadata *again = NULL;

    meta_ok(m, kn_metadata_parse(kn_str(text_of(m, md)), "again", &again, &m->err));
    return again;
}

/* The same updates on what we have made and on what we have read give the same text, which reads
 * and writes as itself. Takes over md. */
static KnMetadata *apply_both(Meta *m, KnMetadata *md, const KnUpdate *updates, size_t n)
{
    KN_METADATA_AUTO read = read_again(m, md);
    KN_METADATA_AUTO from_read = NULL;
    KN_METADATA_AUTO next_read = NULL;
    KnMetadata *next = NULL;
    const char *file = kn_arena_printf(m->arena, "file:///m/%zu", md->n_metadata_log);

    meta_ok(m, kn_metadata_apply(read, updates, n, file, &from_read, &m->err));
    meta_ok(m, kn_metadata_apply(md, updates, n, file, &next, &m->err));
    assert_string_equal(text_of(m, next), text_of(m, from_read));
    next_read = read_again(m, next);
    assert_string_equal(text_of(m, next), text_of(m, next_read));
    kn_metadata_unref(md);
    return next;
}

static void what_is_taken_over_reads_as_what_is_written_anew(void **state)
{
    Meta *m = *state;
    for (int32_t version = 1; version <= 3; version++) {
        KN_METADATA_AUTO md = meta_create(m, version);
        int64_t at = md->last_updated_ms;
        const KnUpdate few = {.kind = KN_UPDATE_SET_PROPERTIES,
                              .properties =
                                  meta_json(m, "{'write.metadata.previous-versions-max':'3'}")};
        const KnUpdate wider = {.kind = KN_UPDATE_ADD_SCHEMA,
                                .schema = meta_schema(m, "id long required, extra int")};
        for (int64_t id = 1; id <= 6; id++) {
            const KnUpdate updates[] = {meta_add_snapshot(md, id, at + id),
                                        meta_set_ref("main", id, true), few, wider};
            md = apply_both(m, md, updates, id == 3 ? 4 : id == 2 ? 3 : 2);
        }
        const int64_t old[] = {2, 4};
        const KnUpdate expire[] = {
            {.kind = KN_UPDATE_REMOVE_SNAPSHOTS, .ids = old, .n_ids = 2},
            meta_add_snapshot(md, 7, at + 7),
        };
        md = apply_both(m, md, expire, 2);
        assert_int_equal(md->n_snapshots, 5);
        assert_int_equal(md->n_metadata_log, 3);
        assert_int_equal(md->n_schemas, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(commits_move_main_and_write_the_log),
        CASE(a_clock_that_is_behind_does_not_turn_time_back),
        CASE(a_stale_snapshot_is_a_conflict),
        CASE(row_ids_advance_by_the_rows_added),
        CASE(wrong_snapshots_are_refused),
        CASE(refs_are_set_kept_and_removed),
        CASE(wrong_refs_are_refused),
        CASE(a_snapshot_that_only_passed_through_leaves_no_log_entry),
        CASE(removed_snapshots_take_refs_statistics_and_log_with_them),
        CASE(what_is_taken_over_reads_as_what_is_written_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
