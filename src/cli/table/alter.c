/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter.c - `knut table alter`: changes of a table's shape, as one commit; prints what is different
 * now, a line each.
 */
#include "iceberg/alter/alter.h"

#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct AlterCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    bool allow_incompatible;
    bool dry_run;
} AlterCommandOptions;

static const KnOption rows[] = {
    {.name = "allow-incompatible",
     .type = KN_OPT_FLAG,
     .offset = offsetof(AlterCommandOptions, allow_incompatible),
     .doc = "Required columns without a default, and SET NOT NULL, whatever the rows are"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(AlterCommandOptions, dry_run),
     .doc = "Print what would be different, commit nothing"},
};

/* ---- what is different ---- */

typedef struct Diff {
    KnOut *out;
    const KnMetadata *before, *after;
} Diff;

static void print(const Diff *d, const char *what, const char *from, const char *to)
{
    kn_out_text(d->out, what);
    kn_out_text(d->out, from);
    kn_out_text(d->out, to);
}

static const char *text_of(KnBuf *buf)
{
    kn_buf_char(buf, '\0');
    return buf->data ? buf->data : "";
}

static void diff_text(const Diff *d, const char *what, const char *from, const char *to)
{
    if (from != to && (!from || !to || strcmp(from, to) != 0))
        print(d, what, from, to);
}

static void diff_number(const Diff *d, const char *what, int32_t from, int32_t to)
{
    char a[16], b[16];

    if (from == to)
        return;
    (void)snprintf(a, sizeof(a), "%d", from);
    (void)snprintf(b, sizeof(b), "%d", to);
    print(d, what, from < 0 ? NULL : a, b);
}

static void put_default(KnBuf *buf, const char *what, const json_t *value)
{
    if (!value)
        return;
    kn_buf_text(buf, what);
    kn_json_dump(buf, value);
}

/* "st.a long required", with defaults and comment; nothing for a column that is not there. */
static const char *column_text(KnBuf *buf, const KnSchema *schema, int32_t id)
{
    const KnField *field = kn_schema_find_id(schema, id);

    kn_buf_init(buf, (size_t)1 << 20);
    if (!field)
        return NULL;
    (void)kn_schema_full_name(schema, id, buf);
    kn_buf_char(buf, ' ');
    if (kn_type_is_nested(field->type))
        kn_buf_text(buf, field->type->kind == KN_TYPE_STRUCT ? "struct"
                         : field->type->kind == KN_TYPE_LIST ? "list"
                                                             : "map");
    else
        kn_type_format(buf, field->type);
    kn_buf_text(buf, field->required ? " required" : "");
    put_default(buf, " initial-default ", field->initial_default);
    put_default(buf, " write-default ", field->write_default);
    if (field->doc) {
        kn_buf_text(buf, " comment ");
        kn_json_quote(buf, kn_str(field->doc));
    }
    return text_of(buf);
}

static void names_text(KnBuf *buf, const KnSchema *schema, bool identifiers)
{
    size_t n = identifiers ? schema->n_identifier_ids : schema->root.n_fields;

    kn_buf_init(buf, (size_t)16 << 20);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            kn_buf_text(buf, ", ");
        (void)kn_schema_full_name(
            schema, identifiers ? schema->identifier_ids[i] : schema->root.fields[i].id, buf);
    }
}

static void diff_names(const Diff *d, const char *what, bool identifiers)
{
    KN_BUF_AUTO from = {0};
    KN_BUF_AUTO to = {0};

    names_text(&from, kn_metadata_schema(d->before), identifiers);
    names_text(&to, kn_metadata_schema(d->after), identifiers);
    diff_text(d, what, text_of(&from), text_of(&to));
}

static void diff_columns(const Diff *d)
{
    const KnSchema *before = kn_metadata_schema(d->before), *after = kn_metadata_schema(d->after);
    int32_t last = d->after->last_column_id;
    char what[32];

    diff_number(d, "schema", before->schema_id, after->schema_id);
    for (int32_t id = 1; id <= last && before->schema_id != after->schema_id; id++) {
        KN_BUF_AUTO from = {0};
        KN_BUF_AUTO to = {0};
        (void)snprintf(what, sizeof(what), "column %d", id);
        diff_text(d, what, column_text(&from, before, id), column_text(&to, after, id));
    }
    diff_names(d, "columns", false);
    diff_names(d, "identifier fields", true);
}

static void source_text(KnBuf *buf, const KnSchema *schema, const KnTransform *transform,
                        int32_t source_id)
{
    kn_buf_printf(buf, "%s(", transform->text);
    if (!kn_schema_full_name(schema, source_id, buf))
        kn_buf_printf(buf, "%d", source_id);
    kn_buf_char(buf, ')');
}

static const char *spec_text(KnBuf *buf, const KnMetadata *md)
{
    const KnPartitionSpec *spec = kn_metadata_spec(md);

    kn_buf_init(buf, (size_t)1 << 20);
    for (size_t i = 0; i < spec->n_fields; i++) {
        kn_buf_text(buf, i > 0 ? ", " : "");
        source_text(buf, kn_metadata_schema(md), &spec->fields[i].transform,
                    spec->fields[i].source_id);
        kn_buf_printf(buf, " as %s", spec->fields[i].name);
    }
    return text_of(buf);
}

static const char *order_text(KnBuf *buf, const KnMetadata *md)
{
    const KnSortOrder *order = kn_metadata_sort_order(md);

    kn_buf_init(buf, (size_t)1 << 20);
    for (size_t i = 0; order && i < order->n_fields; i++) {
        kn_buf_text(buf, i > 0 ? ", " : "");
        source_text(buf, kn_metadata_schema(md), &order->fields[i].transform,
                    order->fields[i].source_id);
        kn_buf_printf(buf, " %s nulls %s", order->fields[i].descending ? "desc" : "asc",
                      order->fields[i].nulls_last ? "last" : "first");
    }
    return text_of(buf);
}

static void diff_layout(const Diff *d)
{
    KN_BUF_AUTO from = {0};
    KN_BUF_AUTO to = {0};
    KN_BUF_AUTO order_from = {0};
    KN_BUF_AUTO order_to = {0};

    diff_number(d, "partition spec", d->before->default_spec_id, d->after->default_spec_id);
    if (d->before->default_spec_id != d->after->default_spec_id)
        diff_text(d, "partitioning", spec_text(&from, d->before), spec_text(&to, d->after));
    diff_number(d, "sort order", d->before->default_sort_order_id, d->after->default_sort_order_id);
    if (d->before->default_sort_order_id != d->after->default_sort_order_id)
        diff_text(d, "order", order_text(&order_from, d->before), order_text(&order_to, d->after));
}

static void diff_properties(const Diff *d, KnArena *arena)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)d->before->properties, key, value)
        diff_text(d, kn_arena_printf(arena, "property %s", key), json_string_value(value),
                  kn_metadata_property(d->after, key, NULL));
    json_object_foreach((json_t *)d->after->properties, key, value)
    {
        if (!kn_metadata_property(d->before, key, NULL))
            print(d, kn_arena_printf(arena, "property %s", key), NULL, json_string_value(value));
    }
}

static KnCode print_diff(const KnCall *call, const KnMetadata *before, const KnMetadata *after,
                         KnErr *err)
{
    static const KnOutColumn columns[] = {{"what", false}, {"from", false}, {"to", false}};
    Diff d = {.before = before, .after = after};

    d.out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    diff_number(&d, "format version", before->format_version, after->format_version);
    diff_text(&d, "location", before->location, after->location);
    diff_columns(&d);
    diff_layout(&d);
    diff_properties(&d, call->arena);
    return kn_out_close(d.out, err);
}

/* ---- the command ---- */

static KnCode read_changes(const KnCall *call, KnChanges *ret, KnErr *err)
{
    KnChanges all = {0};

    if (call->args.len == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "which changes? give some, such as 'ADD COLUMN note string'");
    for (size_t i = 0; i < call->args.len; i++) {
        KnChanges some;
        KnCode rc = kn_changes_parse(call->arena, kn_str(call->args.items[i]), &some, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "'%.100s'", call->args.items[i]);
        KnChange *items = kn_arena_alloc(call->arena, (all.n + some.n) * sizeof(*items));
        if (all.n > 0)
            memcpy(items, all.items, all.n * sizeof(*items));
        memcpy(items + all.n, some.items, some.n * sizeof(*items));
        all = (KnChanges){all.n + some.n, items};
    }
    *ret = all;
    return KN_OK;
}

static KnCode run_alter(KnCall *call, KnErr *err)
{
    const AlterCommandOptions *opts = call->options;
    const KnAlterOptions alter = {opts->allow_incompatible, opts->dry_run};
    KN_CALL_TABLE_AUTO ct = {0};
    KN_METADATA_AUTO before = NULL;
    KN_METADATA_AUTO after = NULL;
    KnChanges changes = {0};

    KN_TRY(read_changes(call, &changes, err));
    KN_TRY(kn_call_table_open(call, &ct, err));
    if (ct.catalog->ops->read_only && !opts->dry_run)
        return kn_err_set(
            err, KN_E_INVAL,
            "a bare table is read-only; changing needs --warehouse DIR --table NS.NAME");
    KN_TRY(kn_table_alter(ct.table, &changes, &alter, &before, &after, err));
    return print_diff(call, before, after, err);
}

const KnCommand kn_cmd_table_alter = {
    .group = "table",
    .name = "alter",
    .summary = "Change columns, partitioning, write order, properties: all in one commit",
    .about =
        "  knut table alter --warehouse /data/wh --table shop.orders \\\n"
        "      \"ADD COLUMN note string DEFAULT 'none' COMMENT 'free text' AFTER id\" \\\n"
        "      'ALTER COLUMN amount TYPE decimal(12,2)' 'REPLACE PARTITION FIELD at_day WITH "
        "hour(at)'\n"
        "\n"
        "Changes, each what stands behind ALTER TABLE in Spark (several: arguments, or ';'):\n"
        "  ADD COLUMN c TYPE [NOT NULL] [DEFAULT literal] [COMMENT 'text'] [FIRST | AFTER x | "
        "BEFORE x]\n"
        "  DROP COLUMN c          RENAME COLUMN a TO b        ALTER COLUMN c TYPE bigint\n"
        "  ALTER COLUMN c {SET | DROP} NOT NULL               ALTER COLUMN c COMMENT 'text'\n"
        "  ALTER COLUMN c {FIRST | AFTER x | BEFORE x}        ALTER COLUMN c SET DEFAULT literal\n"
        "  SET IDENTIFIER FIELDS a, b                         DROP IDENTIFIER FIELDS a\n"
        "  ADD PARTITION FIELD bucket(16, id) [AS name]       DROP PARTITION FIELD x\n"
        "  REPLACE PARTITION FIELD x WITH hour(ts) [AS name]  RENAME PARTITION FIELD x TO y\n"
        "  WRITE [LOCALLY] ORDERED BY a, b DESC NULLS LAST    WRITE UNORDERED\n"
        "  SET TBLPROPERTIES ('k' = 'v', ...)                 UNSET TBLPROPERTIES ('k', ...)\n"
        "  SET FORMAT VERSION 3                               SET LOCATION 'uri'\n"
        "\n"
        "Columns inside others are st.c, list.element.c, map.value.c. Types are those of `table "
        "create`.\n"
        "Data files stay as they are; after SET LOCATION the old folder needs --allow-path.",
    .options_size = sizeof(AlterCommandOptions),
    .locator = offsetof(AlterCommandOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .positional = "CHANGE...",
    .run = run_alter,
};
