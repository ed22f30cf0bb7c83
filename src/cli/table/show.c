/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - `knut table show` and `knut table history`: what the metadata says. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct ShowOptions {
    KnCommonOptions common;
    KnLocator loc;
} ShowOptions;

static json_t *refs_json(const KnMetadata *md)
{
    json_t *refs = json_object();
    for (size_t i = 0; i < md->n_refs; i++) {
        json_t *ref = json_pack("{s:s, s:I}", "type", md->refs[i].is_branch ? "branch" : "tag",
                                "snapshot", (json_int_t)md->refs[i].snapshot_id);
        (void)json_object_set_new(refs, md->refs[i].name, ref);
    }
    return refs;
}

static void set_text(json_t *obj, const char *key, const char *text)
{
    (void)json_object_set_new(obj, key, text ? json_string(text) : json_null());
}

static void set_list(json_t *obj, const char *key, const json_t *list)
{
    (void)json_object_set_new(obj, key,
                              list ? json_incref((json_t *)(uintptr_t)list) : json_array());
}

static KnCode show_json(const KnTable *tbl, KnErr *err)
{
    const KnMetadata *md = tbl->md;
    KN_JSON_AUTO obj = json_object();
    set_text(obj, "table", tbl->name);
    set_text(obj, "location", md->location);
    set_text(obj, "metadata", tbl->metadata_location);
    set_text(obj, "uuid", md->uuid);
    (void)json_object_set_new(obj, "format_version", json_integer(md->format_version));
    (void)json_object_set_new(obj, "last_updated_ms", json_integer(md->last_updated_ms));
    (void)json_object_set_new(obj, "current_snapshot",
                              md->current_snapshot_id < 0 ? json_null()
                                                          : json_integer(md->current_snapshot_id));
    (void)json_object_set_new(obj, "snapshots", json_integer((json_int_t)md->n_snapshots));
    (void)json_object_set_new(obj, "schema", kn_schema_to_json(kn_metadata_schema(md)));
    (void)json_object_set_new(obj, "partition_spec",
                              kn_partition_spec_to_json(kn_metadata_spec(md)));
    const KnSortOrder *order = kn_metadata_sort_order(md);
    (void)json_object_set_new(obj, "sort_order",
                              order ? kn_sort_order_to_json(order) : json_null());
    (void)json_object_set_new(obj, "refs", refs_json(md));
    set_list(obj, "statistics", md->statistics);
    set_list(obj, "partition_statistics", md->partition_statistics);
    (void)json_object_set(obj, "properties", (json_t *)(uintptr_t)md->properties);
    KN_BUF_AUTO line = {0};
    kn_buf_init(&line, 64 << 20);
    kn_json_dump(&line, obj);
    KN_TRY(kn_buf_check(&line, err));
    return kn_out_line((KnStr){line.data, line.len}, err);
}

static void show_partitioning(KnBuf *out, const KnMetadata *md)
{
    const KnPartitionSpec *spec = kn_metadata_spec(md);
    const KnSchema *schema = kn_metadata_schema(md);
    kn_buf_text(out, "partitioning     ");
    if (!spec || !spec->n_fields)
        kn_buf_text(out, "none");
    for (size_t i = 0; spec && i < spec->n_fields; i++) {
        kn_buf_printf(out, "%s%s(", i ? ", " : "", spec->fields[i].transform.text);
        if (!kn_schema_full_name(schema, spec->fields[i].source_id, out))
            kn_buf_text(out, "a dropped column");
        kn_buf_char(out, ')');
    }
    kn_buf_char(out, '\n');
}

static void show_refs(KnBuf *out, const KnMetadata *md)
{
    for (size_t i = 0; i < md->n_refs; i++)
        kn_buf_printf(out, "%-16s %s -> %" PRId64 "\n", md->refs[i].is_branch ? "branch" : "tag",
                      md->refs[i].name, md->refs[i].snapshot_id);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)md->properties, key, value)
        kn_buf_printf(out, "property         %s = %s\n", key, json_string_value(value));
}

/* "statistics       snapshot 7: id ~ 100, name ~ 3" */
static void show_blobs(KnBuf *out, const KnMetadata *md, const json_t *file)
{
    const json_t *blobs = json_object_get(file, "blob-metadata");
    for (size_t i = 0; i < json_array_size(blobs); i++) {
        const json_t *blob = json_array_get(blobs, i);
        const json_t *id = json_array_get(json_object_get(blob, "fields"), 0);
        const char *ndv =
            json_string_value(json_object_get(json_object_get(blob, "properties"), "ndv"));
        if (!ndv || !json_is_integer(id))
            continue;
        const KnField *field = kn_metadata_find_field(md, (int32_t)json_integer_value(id));
        kn_buf_printf(out, "%s %s ~ %s", i ? "," : ":", field ? field->name : "a dropped column",
                      ndv);
    }
}

static void show_statistics(KnBuf *out, const KnMetadata *md)
{
    const struct {
        const char *what;
        const json_t *list;
    } lists[] = {{"statistics", md->statistics}, {"partition stats", md->partition_statistics}};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < json_array_size(lists[k].list); i++) {
            const json_t *file = json_array_get(lists[k].list, i);
            kn_buf_printf(out, "%-16s snapshot %" PRId64, lists[k].what,
                          (int64_t)json_integer_value(json_object_get(file, "snapshot-id")));
            show_blobs(out, md, file);
            kn_buf_char(out, '\n');
        }
    }
}

static KnCode show_columns(const KnSchema *schema, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"id", true}, {"column", false}, {"type", false}, {"required", false}, {"key", false}};
    KnOut *out = kn_out_open(KN_OUTPUT_TEXT, columns, 5);
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        const KnField *field = &schema->root.fields[i];
        KN_BUF_AUTO type = {0};
        kn_buf_init(&type, 1 << 20);
        kn_type_format(&type, field->type);
        bool key = false;
        for (size_t k = 0; k < schema->n_identifier_ids; k++)
            key |= schema->identifier_ids[k] == field->id;
        kn_out_int(out, field->id);
        kn_out_text(out, field->name);
        kn_out_str(out, (KnStr){type.data, type.len});
        kn_out_bool(out, field->required);
        kn_out_bool(out, key);
    }
    return kn_out_close(out, err);
}

static KnCode show_text(const KnTable *tbl, KnErr *err)
{
    const KnMetadata *md = tbl->md;
    char when[32];
    KN_BUF_AUTO out = {0};
    kn_buf_init(&out, 16 << 20);
    kn_buf_printf(&out, "table            %s\nlocation         %s\nmetadata         %s\n",
                  tbl->name, md->location, tbl->metadata_location);
    kn_buf_printf(&out, "uuid             %s\nformat version   %d\nlast updated     %s\n",
                  md->uuid ? md->uuid : "-", md->format_version,
                  kn_clock_format_ms(md->last_updated_ms, when));
    if (md->current_snapshot_id >= 0)
        kn_buf_printf(&out, "snapshot         %" PRId64 " (of %zu)\n", md->current_snapshot_id,
                      md->n_snapshots);
    else
        kn_buf_text(&out, "snapshot         none: the table is empty\n");
    show_partitioning(&out, md);
    show_refs(&out, md);
    show_statistics(&out, md);
    KN_TRY(kn_buf_check(&out, err));
    KN_TRY(kn_out_line((KnStr){out.data, out.len}, err));
    return show_columns(kn_metadata_schema(md), err);
}

static KnCode run_show(KnCall *call, KnErr *err)
{
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    return call->common->output == KN_OUTPUT_JSON ? show_json(ct.table, err)
                                                  : show_text(ct.table, err);
}

const KnCommand kn_cmd_table_show = {
    .group = "table",
    .name = "show",
    .summary = "Show a table's schema, partitioning, references and properties",
    .about = "  knut table show --metadata /data/wh/shop/orders/metadata/00003-….metadata.json "
             "--output json",
    .options_size = sizeof(ShowOptions),
    .locator = offsetof(ShowOptions, loc),
    .run = run_show,
};

static int64_t summary_count(const KnSnapshot *snap, const char *key)
{
    const char *text =
        snap->summary ? json_string_value(json_object_get(snap->summary, key)) : NULL;
    int64_t n = -1;
    return text && kn_str_to_i64(kn_str(text), &n) ? n : -1;
}

static bool is_ancestor(const KnMetadata *md, int64_t snapshot_id)
{
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    for (size_t steps = 0; snap && steps <= md->n_snapshots; steps++) {
        if (snap->snapshot_id == snapshot_id)
            return true;
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return false;
}

static KnCode run_history(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"snapshot", true},      {"parent", true},     {"sequence", true},
        {"committed_at", false}, {"operation", false}, {"added_rows", true},
        {"deleted_rows", true},  {"total_rows", true}, {"added_files", true},
        {"deleted_files", true}, {"schema", true},     {"current", false},
    };
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    const KnMetadata *md = ct.table->md;
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 12);
    for (size_t i = 0; i < md->n_snapshots; i++) {
        const KnSnapshot *snap = &md->snapshots[i];
        char when[32];
        kn_out_int(out, snap->snapshot_id);
        kn_out_opt_int(out, snap->parent_id);
        kn_out_int(out, snap->sequence_number);
        kn_out_text(out, kn_clock_format_ms(snap->timestamp_ms, when));
        kn_out_text(out, snap->operation);
        kn_out_opt_int(out, summary_count(snap, "added-records"));
        kn_out_opt_int(out, summary_count(snap, "deleted-records"));
        kn_out_opt_int(out, summary_count(snap, "total-records"));
        kn_out_opt_int(out, summary_count(snap, "added-data-files"));
        kn_out_opt_int(out, summary_count(snap, "deleted-data-files"));
        kn_out_opt_int(out, snap->schema_id);
        kn_out_bool(out, is_ancestor(md, snap->snapshot_id));
    }
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_table_history = {
    .group = "table",
    .name = "history",
    .summary =
        "List the snapshots of a table, oldest first; current: an ancestor of the current one",
    .about = "  knut table history --warehouse /data/wh --table shop.orders",
    .options_size = sizeof(ShowOptions),
    .locator = offsetof(ShowOptions, loc),
    .run = run_history,
};
