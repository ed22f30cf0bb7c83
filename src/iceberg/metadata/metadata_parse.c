/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_parse.c - table metadata documents v1, v2 and v3 from JSON (spec: "Table Metadata").
 *
 * What a version needs and what it may leave out follows Java's TableMetadataParser: v1 may have
 * one bare schema and one bare list of partition fields, no sort orders and no UUID; v2 and v3 have
 * lists with ids. "refs" may be missing in all, and then main is the current snapshot. Every
 * message names the document and the field. Texts are borrowed from the JSON document, which the
 * handle keeps.
 */
#include <string.h>
#include <zlib.h>

#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"

/* The largest document seen in bug reports is some hundred megabytes; beyond this it is an attack.
 */
#define TEXT_MAX     ((size_t)1 << 30)
#define INFLATE_STEP ((size_t)256 << 10)

typedef struct Parser {
    KnArena *arena;
    const json_t *doc;
    KnMetadata md;
} Parser;

/* ---- bytes ---- */

static KnCode inflate_all(z_stream *zs, KnBuf *out, KnErr *err)
{
    int rc = Z_OK;

    while (zs->avail_in > 0 || rc == Z_OK) {
        char *room = kn_buf_reserve(out, INFLATE_STEP);
        if (!room)
            return kn_buf_check(out, err);
        zs->next_out = (Bytef *)room;
        zs->avail_out = (uInt)INFLATE_STEP;
        rc = inflate(zs, Z_NO_FLUSH);
        out->len += INFLATE_STEP - zs->avail_out;
        if (rc == Z_STREAM_END && zs->avail_in > 0)
            rc = inflateReset(zs); /* gzip members may follow one another */
        else if (rc != Z_OK && rc != Z_STREAM_END)
            return kn_err_set(err, KN_E_CORRUPT, "gzip data is %s",
                              rc == Z_BUF_ERROR ? "cut short" : "damaged");
        if (rc == Z_STREAM_END)
            return KN_OK;
    }
    return kn_err_set(err, KN_E_CORRUPT, "gzip data is cut short");
}

static KnCode gunzip(KnStr bytes, KnBuf *out, KnErr *err)
{
    z_stream zs = {0};
    KnCode rc;

    if (bytes.len > UINT32_MAX / 2)
        return kn_err_set(err, KN_E_NOMEM, "%zu bytes are too large for a document", bytes.len);
    if (inflateInit2(&zs, MAX_WBITS + 16) != Z_OK)
        return kn_err_set(err, KN_E_NOMEM, "gzip cannot start: memory is out");
    zs.next_in = (Bytef *)(uintptr_t)bytes.ptr;
    zs.avail_in = (uInt)bytes.len;
    rc = inflate_all(&zs, out, err);
    inflateEnd(&zs);
    return rc;
}

/* ---- lists with ids ---- */

static KnCode need(const Parser *p, const char *key, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "field '%s' is missing: format v%d needs it", key,
                      p->md.format_version);
}

static KnCode parse_schema_list(Parser *p, const json_t *array, KnErr *err)
{
    size_t n = json_array_size(array);
    KnSchema **schemas = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*schemas));

    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_schema_parse(p->arena, json_array_get(array, i), &schemas[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "schemas[%zu]", i);
        for (size_t j = 0; j < i; j++)
            if (schemas[j]->schema_id == schemas[i]->schema_id)
                return kn_err_set(err, KN_E_CORRUPT, "field 'schemas': schema-id %d is there twice",
                                  schemas[i]->schema_id);
    }
    p->md.schemas = schemas;
    p->md.n_schemas = n;
    return KN_OK;
}

static KnCode parse_schemas(Parser *p, KnErr *err)
{
    json_t *array = NULL, *single;

    KN_TRY(kn_json_opt_array(p->doc, "schemas", &array, err));
    if (array) {
        KN_TRY(kn_json_get_i32(p->doc, "current-schema-id", &p->md.current_schema_id, err));
        KN_TRY(parse_schema_list(p, array, err));
        if (!kn_metadata_schema(&p->md))
            return kn_err_set(err, KN_E_CORRUPT,
                              "field 'current-schema-id': schema %d is not in 'schemas'",
                              p->md.current_schema_id);
        return KN_OK;
    }
    if (p->md.format_version > 1)
        return need(p, "schemas", err);
    KN_TRY(kn_json_get_object(p->doc, "schema", &single, err));
    KnSchema **schemas = kn_arena_zalloc(p->arena, sizeof(*schemas));
    KnCode rc = kn_schema_parse(p->arena, single, &schemas[0], err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "schema");
    p->md.schemas = schemas;
    p->md.n_schemas = 1;
    p->md.current_schema_id = schemas[0]->schema_id;
    return KN_OK;
}

static KnCode parse_spec_list(Parser *p, const json_t *array, KnErr *err)
{
    size_t n = json_array_size(array);
    KnPartitionSpec **specs = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*specs));

    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_partition_spec_parse(p->arena, json_array_get(array, i), &specs[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "partition-specs[%zu]", i);
        kn_partition_spec_number(specs[i]);
        for (size_t j = 0; j < i; j++)
            if (specs[j]->spec_id == specs[i]->spec_id)
                return kn_err_set(err, KN_E_CORRUPT,
                                  "field 'partition-specs': spec-id %d is there twice",
                                  specs[i]->spec_id);
    }
    p->md.specs = specs;
    p->md.n_specs = n;
    if (!kn_metadata_spec(&p->md))
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'default-spec-id': spec %d is not in 'partition-specs'",
                          p->md.default_spec_id);
    return KN_OK;
}

static KnCode parse_specs(Parser *p, KnErr *err)
{
    json_t *array = NULL;

    KN_TRY(kn_json_opt_array(p->doc, "partition-specs", &array, err));
    if (array) {
        KN_TRY(kn_json_get_i32(p->doc, "default-spec-id", &p->md.default_spec_id, err));
        return parse_spec_list(p, array, err);
    }
    if (p->md.format_version > 1)
        return need(p, "partition-specs", err);
    KN_TRY(kn_json_get_array(p->doc, "partition-spec", &array, err));
    KnPartitionSpec **specs = kn_arena_zalloc(p->arena, sizeof(*specs));
    KnCode rc = kn_partition_fields_parse(p->arena, array, &specs[0], err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "partition-spec");
    p->md.specs = specs;
    p->md.n_specs = 1;
    return KN_OK;
}

static KnCode parse_last_partition_id(Parser *p, KnErr *err)
{
    int32_t last = KN_PARTITION_ID_FIRST - 1;

    if (p->md.format_version > 1)
        return kn_json_get_i32(p->doc, "last-partition-id", &p->md.last_partition_id, err);
    for (size_t i = 0; i < p->md.n_specs; i++)
        if (kn_partition_last_id(p->md.specs[i]) > last)
            last = kn_partition_last_id(p->md.specs[i]);
    p->md.last_partition_id = last;
    return kn_json_opt_i32(p->doc, "last-partition-id", &p->md.last_partition_id, err);
}

static KnCode parse_sort_list(Parser *p, const json_t *array, KnErr *err)
{
    size_t n = json_array_size(array);
    KnSortOrder **orders = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*orders));

    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_sort_order_parse(p->arena, json_array_get(array, i), &orders[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "sort-orders[%zu]", i);
        for (size_t j = 0; j < i; j++)
            if (orders[j]->order_id == orders[i]->order_id)
                return kn_err_set(err, KN_E_CORRUPT,
                                  "field 'sort-orders': order-id %d is there twice",
                                  orders[i]->order_id);
    }
    p->md.sort_orders = orders;
    p->md.n_sort_orders = n;
    if (!kn_metadata_sort_order(&p->md))
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'default-sort-order-id': order %d is not in 'sort-orders'",
                          p->md.default_sort_order_id);
    return KN_OK;
}

static KnCode parse_sort_orders(Parser *p, KnErr *err)
{
    json_t *array = NULL;

    KN_TRY(kn_json_opt_array(p->doc, "sort-orders", &array, err));
    if (array) {
        KN_TRY(kn_json_get_i32(p->doc, "default-sort-order-id", &p->md.default_sort_order_id, err));
        return parse_sort_list(p, array, err);
    }
    if (p->md.format_version > 1)
        return need(p, "sort-orders", err);
    KnSortOrder **orders = kn_arena_zalloc(p->arena, sizeof(*orders));
    orders[0] = kn_arena_zalloc(p->arena, sizeof(**orders)); /* order 0: unsorted */
    p->md.sort_orders = orders;
    p->md.n_sort_orders = 1;
    return KN_OK;
}

/* ---- snapshots and refs ---- */

static KnCode parse_manifests(KnArena *arena, const json_t *json, int32_t version, KnSnapshot *snap,
                              KnErr *err)
{
    json_t *array = NULL;
    const char **manifests;
    size_t n;

    KN_TRY(kn_json_opt_str(json, "manifest-list", &snap->manifest_list, err));
    if (snap->manifest_list)
        return KN_OK;
    KN_TRY(kn_json_opt_array(json, "manifests", &array, err));
    if (!array || version > 1)
        return kn_err_set(err, KN_E_CORRUPT, "field 'manifest-list' is missing");
    n = json_array_size(array);
    manifests = kn_arena_zalloc(arena, (n + 1) * sizeof(*manifests));
    for (size_t i = 0; i < n; i++) {
        manifests[i] = json_string_value(json_array_get(array, i));
        if (!manifests[i])
            return kn_err_set(err, KN_E_CORRUPT, "field 'manifests': expected strings");
    }
    snap->manifests = manifests;
    snap->n_manifests = n;
    return KN_OK;
}

static KnCode parse_summary(const json_t *json, KnSnapshot *snap, KnErr *err)
{
    json_t *summary = NULL, *value;
    const char *key;

    KN_TRY(kn_json_opt_object(json, "summary", &summary, err));
    json_object_foreach(summary, key, value) if (!json_is_string(value)) return kn_err_set(
        err, KN_E_CORRUPT, "field 'summary': '%s' is not a string", key);
    snap->summary = summary;
    snap->operation = json_string_value(json_object_get(summary, "operation"));
    return KN_OK;
}

static KnCode parse_row_ids(const json_t *json, KnSnapshot *snap, KnErr *err)
{
    KN_TRY(kn_json_opt_i64(json, "first-row-id", &snap->first_row_id, err));
    KN_TRY(kn_json_opt_i64(json, "added-rows", &snap->added_rows, err));
    if (snap->first_row_id < -1 || snap->added_rows < -1)
        return kn_err_set(err, KN_E_CORRUPT, "fields 'first-row-id', 'added-rows': negative");
    if (snap->first_row_id >= 0 && snap->added_rows < 0)
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'added-rows' is missing: 'first-row-id' needs it");
    return KN_OK;
}

KnCode kn_snapshot_parse(KnArena *arena, const json_t *json, int32_t version, KnSnapshot *snap,
                         KnErr *err)
{
    *snap = (KnSnapshot){.parent_id = -1, .schema_id = -1, .first_row_id = -1, .added_rows = -1};
    KN_TRY(kn_json_get_i64(json, "snapshot-id", &snap->snapshot_id, err));
    KN_TRY(kn_json_opt_i64(json, "parent-snapshot-id", &snap->parent_id, err));
    KN_TRY(kn_json_opt_i64(json, "sequence-number", &snap->sequence_number, err));
    KN_TRY(kn_json_get_i64(json, "timestamp-ms", &snap->timestamp_ms, err));
    KN_TRY(kn_json_opt_i32(json, "schema-id", &snap->schema_id, err));
    KN_TRY(kn_json_opt_str(json, "key-id", &snap->key_id, err));
    KN_TRY(parse_manifests(arena, json, version, snap, err));
    KN_TRY(parse_summary(json, snap, err));
    KN_TRY(parse_row_ids(json, snap, err));
    snap->extra = json;
    return KN_OK;
}

static KnCode parse_snapshots(Parser *p, KnErr *err)
{
    json_t *array = NULL;
    KnSnapshot *snapshots;
    size_t n;

    KN_TRY(kn_json_opt_array(p->doc, "snapshots", &array, err));
    n = json_array_size(array);
    snapshots = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*snapshots));
    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_snapshot_parse(p->arena, json_array_get(array, i), p->md.format_version,
                                      &snapshots[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "snapshots[%zu]", i);
    }
    p->md.snapshots = snapshots;
    p->md.n_snapshots = n;
    return KN_OK;
}

KnCode kn_ref_parse(const char *name, const json_t *json, KnRef *ref, KnErr *err)
{
    const char *type;

    *ref = (KnRef){
        .name = name, .min_snapshots_to_keep = -1, .max_snapshot_age_ms = -1, .max_ref_age_ms = -1};
    KN_TRY(kn_json_get_i64(json, "snapshot-id", &ref->snapshot_id, err));
    KN_TRY(kn_json_get_str(json, "type", &type, err));
    ref->is_branch = kn_str_eq_nocase(kn_str(type), KN_STR_LIT("branch"));
    if (!ref->is_branch && !kn_str_eq_nocase(kn_str(type), KN_STR_LIT("tag")))
        return kn_err_set(err, KN_E_CORRUPT, "field 'type': expected 'branch' or 'tag', found '%s'",
                          type);
    KN_TRY(kn_json_opt_i64(json, "min-snapshots-to-keep", &ref->min_snapshots_to_keep, err));
    KN_TRY(kn_json_opt_i64(json, "max-snapshot-age-ms", &ref->max_snapshot_age_ms, err));
    KN_TRY(kn_json_opt_i64(json, "max-ref-age-ms", &ref->max_ref_age_ms, err));
    return KN_OK;
}

static KnCode parse_refs(Parser *p, KnErr *err)
{
    json_t *obj = NULL, *value;
    const char *name;
    KnRef *refs;

    KN_TRY(kn_json_opt_object(p->doc, "refs", &obj, err));
    refs = kn_arena_zalloc(p->arena, (json_object_size(obj) + 1) * sizeof(*refs));
    p->md.refs = refs;
    if (!obj && p->md.current_snapshot_id >= 0) {
        refs[0] = (KnRef){KN_MAIN_BRANCH, p->md.current_snapshot_id, true, -1, -1, -1};
        p->md.n_refs = 1;
    }
    json_object_foreach(obj, name, value)
    {
        KnCode rc = kn_ref_parse(name, value, &refs[p->md.n_refs++], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "refs '%s'", name);
    }
    return KN_OK;
}

/* ---- logs and maps ---- */

static KnCode parse_log(Parser *p, const char *key, const KnLogEntry **ret, size_t *ret_n,
                        KnErr *err)
{
    json_t *array = NULL;
    KnLogEntry *log;
    bool snapshots = strcmp(key, "snapshot-log") == 0;
    size_t n;

    KN_TRY(kn_json_opt_array(p->doc, key, &array, err));
    n = json_array_size(array);
    log = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*log));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        KnCode rc = kn_json_get_i64(item, "timestamp-ms", &log[i].timestamp_ms, err);
        if (rc == KN_OK && snapshots)
            rc = kn_json_get_i64(item, "snapshot-id", &log[i].snapshot_id, err);
        else if (rc == KN_OK)
            rc = kn_json_get_str(item, "metadata-file", &log[i].metadata_file, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "%s[%zu]", key, i);
    }
    *ret = log;
    *ret_n = n;
    return KN_OK;
}

static void drop_json(void *arg)
{
    json_decref(arg);
}

static KnCode parse_properties(Parser *p, KnErr *err)
{
    json_t *obj = NULL, *value;
    const char *key;

    KN_TRY(kn_json_opt_object(p->doc, "properties", &obj, err));
    json_object_foreach(obj, key, value) if (!json_is_string(value)) return kn_err_set(
        err, KN_E_CORRUPT, "field 'properties': '%s' is not a string", key);
    if (!obj) {
        obj = json_object();
        kn_arena_defer(p->arena, drop_json, obj);
    }
    p->md.properties = obj;
    return KN_OK;
}

static KnCode parse_arrays(Parser *p, KnErr *err)
{
    json_t *arrays[3] = {NULL};

    KN_TRY(kn_json_opt_array(p->doc, "statistics", &arrays[0], err));
    KN_TRY(kn_json_opt_array(p->doc, "partition-statistics", &arrays[1], err));
    KN_TRY(kn_json_opt_array(p->doc, "encryption-keys", &arrays[2], err));
    p->md.statistics = arrays[0];
    p->md.partition_statistics = arrays[1];
    p->md.encryption_keys = arrays[2];
    return KN_OK;
}

/* ---- the document ---- */

static KnCode parse_version(Parser *p, KnErr *err)
{
    int64_t version;

    KN_TRY(kn_json_get_i64(p->doc, "format-version", &version, err));
    if (version < 1 || version > KN_FORMAT_VERSION_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "field 'format-version': table format v%lld is not known (1 to %d are)",
                          (long long)version, KN_FORMAT_VERSION_MAX);
    p->md.format_version = (int32_t)version;
    return KN_OK;
}

static KnCode parse_head(Parser *p, KnErr *err)
{
    const char *location;

    KN_TRY(parse_version(p, err));
    KN_TRY(kn_json_opt_str(p->doc, "table-uuid", &p->md.uuid, err));
    if (!p->md.uuid && p->md.format_version > 1)
        return need(p, "table-uuid", err);
    KN_TRY(kn_json_get_str(p->doc, "location", &location, err));
    p->md.location = kn_location_strip(p->arena, location);
    if (p->md.format_version > 1)
        KN_TRY(kn_json_get_i64(p->doc, "last-sequence-number", &p->md.last_sequence_number, err));
    KN_TRY(kn_json_get_i32(p->doc, "last-column-id", &p->md.last_column_id, err));
    KN_TRY(kn_json_get_i64(p->doc, "last-updated-ms", &p->md.last_updated_ms, err));
    if (p->md.format_version > 2)
        KN_TRY(kn_json_get_i64(p->doc, "next-row-id", &p->md.next_row_id, err));
    p->md.current_snapshot_id = -1;
    KN_TRY(kn_json_opt_i64(p->doc, "current-snapshot-id", &p->md.current_snapshot_id, err));
    if (p->md.current_snapshot_id < 0)
        p->md.current_snapshot_id = -1;
    return KN_OK;
}

static KnCode parse_document(Parser *p, KnErr *err)
{
    if (!json_is_object(p->doc))
        return kn_err_set(err, KN_E_CORRUPT, "table metadata is a JSON object");
    KN_TRY(parse_head(p, err));
    KN_TRY(parse_schemas(p, err));
    KN_TRY(parse_specs(p, err));
    KN_TRY(parse_last_partition_id(p, err));
    KN_TRY(parse_sort_orders(p, err));
    KN_TRY(parse_properties(p, err));
    KN_TRY(parse_snapshots(p, err));
    KN_TRY(parse_refs(p, err));
    KN_TRY(parse_log(p, "snapshot-log", &p->md.snapshot_log, &p->md.n_snapshot_log, err));
    KN_TRY(parse_log(p, "metadata-log", &p->md.metadata_log, &p->md.n_metadata_log, err));
    KN_TRY(parse_arrays(p, err));
    p->md.extra = p->doc;
    return kn_metadata_validate(&p->md, err);
}

static KnCode parse_json(json_t *doc, bool written, const char *source, KnMetadata **ret,
                         KnErr *err)
{
    Parser p = {.arena = kn_arena_new(4096), .doc = doc, .md.written = written};
    KnCode rc = parse_document(&p, err);

    if (rc != KN_OK) {
        kn_arena_free(p.arena);
        return kn_err_wrap(err, rc, "%s", source);
    }
    *ret = kn_metadata_wrap(&p.md, p.arena, json_incref(doc));
    return KN_OK;
}

KnCode kn_metadata_parse_json(json_t *doc, const char *source, KnMetadata **ret, KnErr *err)
{
    return parse_json(doc, false, source, ret, err);
}

KnCode kn_metadata_parse_written(json_t *doc, const char *source, KnMetadata **ret, KnErr *err)
{
    return parse_json(doc, true, source, ret, err);
}

KnCode kn_metadata_gunzip(KnStr *bytes, KnBuf *plain, KnErr *err)
{
    if (bytes->len >= 2 && memcmp(bytes->ptr, "\x1f\x8b", 2) == 0) {
        KN_TRY(gunzip(*bytes, plain, err));
        *bytes = (KnStr){plain->data, plain->len};
    }
    if (bytes->len > TEXT_MAX)
        return kn_err_set(err, KN_E_NOMEM, "%zu bytes are too large for a document", bytes->len);
    return KN_OK;
}

KnCode kn_metadata_read_json(KnStr bytes, size_t max, const char *source, json_t **ret, KnErr *err)
{
    KN_BUF_AUTO plain = {0};
    kn_buf_init(&plain, max);
    KnCode rc = kn_metadata_gunzip(&bytes, &plain, err);
    if (rc == KN_OK)
        rc = kn_json_parse(bytes.ptr, bytes.len, ret, err);
    return rc == KN_OK ? KN_OK : kn_err_wrap(err, rc, "%s", source);
}

KnCode kn_metadata_parse(KnStr bytes, const char *source, KnMetadata **ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KN_TRY(kn_metadata_read_json(bytes, TEXT_MAX, source, &doc, err));
    return kn_metadata_parse_json(doc, source, ret, err);
}
