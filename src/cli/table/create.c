/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c - `knut table create`: a schema from text, JSON or a Parquet file becomes an empty
 * table.
 */
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/table_args.h"

typedef struct CreateOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *schema, *schema_json, *like;
    KnOptList identifier;
    const char *partition, *sort, *location;
    int64_t format_version;
    KnOptList properties;
    bool if_not_exists;
} CreateOptions;

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(CreateOptions, f), .value = (v), .doc = (d)   \
    }
static const KnOption rows[] = {
    ROW("schema", KN_OPT_TEXT, schema, "TEXT",
        "Columns: \"id long required, name string, st struct<a int, b list<string>>\""),
    ROW("schema-json", KN_OPT_TEXT, schema_json, "FILE",
        "Columns from a file with Iceberg's schema JSON"),
    ROW("like", KN_OPT_TEXT, like, "FILE",
        "Columns as in this Parquet, CSV or JSON file, all optional"),
    ROW("identifier", KN_OPT_LIST, identifier, "COL,...",
        "Identifier fields: the key of a row; they become required"),
    ROW("partition", KN_OPT_TEXT, partition, "TEXT",
        "Partitioning: \"day(ts), bucket(16, id), truncate(4, name)\""),
    ROW("sort", KN_OPT_TEXT, sort, "TEXT", "Sort order: \"id, ts desc nulls last\""),
    ROW("location", KN_OPT_TEXT, location, "URI",
        "Where the table's files go (default: WAREHOUSE/NS/NAME)"),
    {.name = "format-version",
     .type = KN_OPT_INT,
     .offset = offsetof(CreateOptions, format_version),
     .value = "N",
     .dflt = "2",
     .min = 1,
     .max = 3,
     .doc = "Version of the Iceberg format: 2, 3 with row lineage, or the old 1"},
    ROW("property", KN_OPT_REPEAT, properties, "KEY=VALUE", "Table property"),
    ROW("if-not-exists", KN_OPT_FLAG, if_not_exists, NULL,
        "An existing table is no failure (it is left as it is)"),
};

static KnCode read_schema(const KnCall *call, const CreateOptions *opts, KnSchema **ret, KnErr *err)
{
    if (!opts->schema + !opts->schema_json + !opts->like != 2)
        return kn_err_set(err, KN_E_INVAL,
                          "give the columns by exactly one of --schema, --schema-json, --like");
    if (opts->schema)
        return kn_schema_parse_text(call->arena, kn_str(opts->schema), ret, err);
    if (opts->schema_json)
        return kn_args_schema_file(call->arena, opts->schema_json, ret, err);
    return kn_args_schema_like(call, opts->like, ret, err);
}

/* A key can not be NULL: identifier fields are made required, as the specification asks. */
static KnCode set_identifier(KnArena *arena, KnSchema *schema, const KnOptList *names, KnErr *err)
{
    if (!names->len)
        return KN_OK;
    KnField *fields = kn_arena_alloc(arena, schema->root.n_fields * sizeof(*fields));
    memcpy(fields, schema->root.fields, schema->root.n_fields * sizeof(*fields));
    int32_t *ids = kn_arena_alloc(arena, names->len * sizeof(*ids));
    for (size_t i = 0; i < names->len; i++) {
        KnField *found = NULL;
        for (size_t f = 0; f < schema->root.n_fields; f++) {
            if (!strcmp(fields[f].name, names->items[i]))
                found = &fields[f];
        }
        if (!found)
            return kn_err_set(err, KN_E_INVAL, "--identifier %s: the schema has no such column",
                              names->items[i]);
        found->required = true;
        ids[i] = found->id;
    }
    schema->root.fields = fields;
    schema->identifier_ids = ids;
    schema->n_identifier_ids = names->len;
    return KN_OK;
}

static KnCode read_properties(const KnOptList *pairs, json_t **ret, KnErr *err)
{
    KN_JSON_AUTO obj = json_object();
    for (size_t i = 0; i < pairs->len; i++) {
        const char *pair = pairs->items[i], *eq = strchr(pair, '=');
        if (!eq || eq == pair)
            return kn_err_set(err, KN_E_INVAL, "--property %s: expected KEY=VALUE", pair);
        char key[256];
        if ((size_t)(eq - pair) >= sizeof(key))
            return kn_err_set(err, KN_E_INVAL, "--property: a key may have 255 bytes");
        memcpy(key, pair, (size_t)(eq - pair));
        key[eq - pair] = '\0';
        if (json_object_set_new(obj, key, json_string(eq + 1)) != 0)
            return kn_err_set(err, KN_E_INVAL, "--property %s: not valid UTF-8", key);
    }
    *ret = obj;
    obj = NULL;
    return KN_OK;
}

static KnCode create_in(KnCall *call, KnCatalog *cat, const KnCreateTable *create, KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false},
                                          {"location", false},
                                          {"metadata", false},
                                          {"format_version", true},
                                          {"created", false}};
    const CreateOptions *opts = call->options;
    KnTableIdent ident;
    KN_TRY(kn_table_ident_parse(call->arena, kn_str(opts->loc.table), &ident, err));
    KnTable *tbl = NULL;
    KnCode rc = kn_table_create(cat, &ident, create, &tbl, err);
    bool created = rc == KN_OK;
    if (rc == KN_E_EXISTS && opts->if_not_exists)
        rc = kn_table_load(cat, &ident, &tbl, err);
    KN_TRY(rc);
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 5);
    kn_out_text(out, tbl->name);
    kn_out_text(out, tbl->md->location);
    kn_out_text(out, tbl->metadata_location);
    kn_out_int(out, tbl->md->format_version);
    kn_out_bool(out, created);
    kn_table_free(tbl);
    return kn_out_close(out, err);
}

static KnCode run_create(KnCall *call, KnErr *err)
{
    const CreateOptions *opts = call->options;
    if (!opts->loc.table)
        return kn_err_set(err, KN_E_INVAL, "which table? give --warehouse DIR --table NS.NAME");
    KnCreateTable create = {.format_version = (int32_t)opts->format_version,
                            .location = opts->location};
    KnSchema *schema = NULL;
    KN_TRY(read_schema(call, opts, &schema, err));
    KN_TRY(set_identifier(call->arena, schema, &opts->identifier, err));
    create.schema = schema;
    if (opts->partition) {
        KnPartitionSpec *spec = NULL;
        KN_TRY(
            kn_partition_spec_parse_text(call->arena, schema, kn_str(opts->partition), &spec, err));
        create.spec = spec;
    }
    if (opts->sort) {
        KnSortOrder *order = NULL;
        KN_TRY(kn_sort_order_parse_text(call->arena, schema, kn_str(opts->sort), &order, err));
        create.sort_order = order;
    }
    KN_JSON_AUTO properties = NULL;
    KN_TRY(read_properties(&opts->properties, &properties, err));
    create.properties = properties;
    KnCatalog *cat = NULL;
    KN_TRY(kn_catalog_open(&opts->loc, true, &cat, err));
    KnCode rc = create_in(call, cat, &create, err);
    kn_catalog_close(cat);
    return rc;
}

const KnCommand kn_cmd_table_create = {
    .group = "table",
    .name = "create",
    .summary = "Create an empty table (and the warehouse's catalog, when it is not there)",
    .about = "  knut table create --warehouse /data/wh --table shop.orders --identifier id \\\n"
             "      --schema 'id long required, at timestamptz, amount decimal(9,2)' --partition "
             "'day(at)'",
    .options_size = sizeof(CreateOptions),
    .locator = offsetof(CreateOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run_create,
};
