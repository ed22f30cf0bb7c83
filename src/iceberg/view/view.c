/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - view metadata documents from JSON, and back; see view.h.
 *
 * A document's handle lives in its own arena beside the JSON that texts are borrowed from; the last
 * unref, by whichever thread, frees all of it. What is written is the JSON that was read: the
 * builder (view_apply.c) makes documents as JSON, and unknown keys stay.
 */
#include "iceberg/view/view.h"

#include <stdatomic.h>
#include <string.h>

#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/view/view_internal.h"

#define TEXT_MAX ((size_t)256 << 20)

typedef struct Handle {
    KnView view; /* first: the public pointer is the handle's */
    atomic_size_t refs;
    KnArena *arena;
    json_t *doc;
} Handle;

KnView *kn_view_ref(const KnView *view)
{
    Handle *handle = (Handle *)(uintptr_t)view;
    atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
    return &handle->view;
}

KnView *kn_view_unref(KnView *view)
{
    Handle *handle = (Handle *)view;
    if (handle && atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1) {
        json_t *doc = handle->doc;
        kn_arena_free(handle->arena); /* handle is in there */
        json_decref(doc);
    }
    return NULL;
}

const KnViewVersion *kn_view_find_version(const KnView *view, int32_t version_id)
{
    for (size_t i = 0; i < view->n_versions; i++)
        if (view->versions[i].version_id == version_id)
            return &view->versions[i];
    return NULL;
}

const KnViewVersion *kn_view_version(const KnView *view)
{
    return kn_view_find_version(view, view->current_version_id);
}

const KnSchema *kn_view_find_schema(const KnView *view, int32_t schema_id)
{
    for (size_t i = 0; i < view->n_schemas; i++)
        if (view->schemas[i]->schema_id == schema_id)
            return view->schemas[i];
    return NULL;
}

/* ---- a version ---- */

static KnCode check_representation(const json_t *json, KnErr *err)
{
    const char *type, *text;
    KN_TRY(kn_json_get_str(json, "type", &type, err));
    if (strcmp(type, "sql") != 0) /* another engine's: kept as it is */
        return KN_OK;
    KN_TRY(kn_json_get_str(json, "sql", &text, err));
    return kn_json_get_str(json, "dialect", &text, err);
}

static KnCode check_strings(const json_t *array, const char *key, KnErr *err)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!json_is_string(json_array_get(array, i)))
            return kn_err_set(err, KN_E_CORRUPT, "field '%s': expected strings", key);
    return KN_OK;
}

static KnCode check_map(const json_t *object, const char *key, KnErr *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!json_is_string(value))
            return kn_err_set(err, KN_E_CORRUPT, "field '%s': '%s' is not a string", key, name);
    }
    return KN_OK;
}

KnCode kn_view_version_parse(const json_t *json, KnViewVersion *ret, KnErr *err)
{
    KnViewVersion version = {.json = json};
    json_t *list, *summary;
    const char *catalog;
    KN_TRY(kn_json_get_i32(json, "version-id", &version.version_id, err));
    KN_TRY(kn_json_get_i32(json, "schema-id", &version.schema_id, err));
    KN_TRY(kn_json_get_i64(json, "timestamp-ms", &version.timestamp_ms, err));
    KN_TRY(kn_json_get_object(json, "summary", &summary, err));
    KN_TRY(check_map(summary, "summary", err));
    KN_TRY(kn_json_opt_str(json, "default-catalog", &catalog, err));
    KN_TRY(kn_json_get_array(json, "default-namespace", &list, err));
    KN_TRY(check_strings(list, "default-namespace", err));
    KN_TRY(kn_json_get_array(json, "representations", &list, err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        KnCode rc = check_representation(json_array_get(list, i), err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "representations[%zu]", i);
    }
    *ret = version;
    return KN_OK;
}

/* ---- the document ---- */

typedef struct Parser {
    KnArena *arena;
    const json_t *doc;
    KnView view;
} Parser;

static KnCode parse_versions(Parser *p, KnErr *err)
{
    json_t *array;
    KN_TRY(kn_json_get_array(p->doc, "versions", &array, err));
    size_t n = json_array_size(array);
    KnViewVersion *versions = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*versions));
    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_view_version_parse(json_array_get(array, i), &versions[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "versions[%zu]", i);
        for (size_t j = 0; j < i; j++)
            if (versions[j].version_id == versions[i].version_id)
                return kn_err_set(err, KN_E_CORRUPT,
                                  "field 'versions': version-id %d is there twice",
                                  versions[i].version_id);
    }
    p->view.versions = versions;
    p->view.n_versions = n;
    if (!kn_view_version(&p->view))
        return kn_err_set(err, KN_E_CORRUPT, "Cannot find current version %d in view versions",
                          p->view.current_version_id);
    return KN_OK;
}

static KnCode parse_schemas(Parser *p, KnErr *err)
{
    json_t *array;
    KN_TRY(kn_json_get_array(p->doc, "schemas", &array, err));
    size_t n = json_array_size(array);
    KnSchema **schemas = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*schemas));
    for (size_t i = 0; i < n; i++) {
        KnCode rc = kn_schema_parse(p->arena, json_array_get(array, i), &schemas[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "schemas[%zu]", i);
    }
    p->view.schemas = schemas;
    p->view.n_schemas = n;
    for (size_t i = 0; i < p->view.n_versions; i++)
        if (!kn_view_find_schema(&p->view, p->view.versions[i].schema_id))
            return kn_err_set(err, KN_E_CORRUPT, "versions[%zu]: schema %d is not in 'schemas'", i,
                              p->view.versions[i].schema_id);
    return KN_OK;
}

static KnCode parse_log(Parser *p, KnErr *err)
{
    json_t *array;
    KN_TRY(kn_json_get_array(p->doc, "version-log", &array, err));
    size_t n = json_array_size(array);
    KnViewLogEntry *log = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*log));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        KnCode rc = kn_json_get_i64(item, "timestamp-ms", &log[i].timestamp_ms, err);
        if (rc == KN_OK)
            rc = kn_json_get_i32(item, "version-id", &log[i].version_id, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "version-log[%zu]", i);
    }
    p->view.log = log;
    p->view.n_log = n;
    return KN_OK;
}

static void drop_json(void *arg)
{
    json_decref(arg);
}

static KnCode parse_document(Parser *p, KnErr *err)
{
    json_t *properties = NULL;
    const char *location;
    if (!json_is_object(p->doc))
        return kn_err_set(err, KN_E_CORRUPT, "view metadata is a JSON object");
    KN_TRY(kn_json_get_i32(p->doc, "format-version", &p->view.format_version, err));
    if (p->view.format_version < 1 || p->view.format_version > KN_VIEW_FORMAT_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED, "Unsupported format version: %d (supported: %d)",
                          p->view.format_version, KN_VIEW_FORMAT_MAX);
    KN_TRY(kn_json_get_str(p->doc, "view-uuid", &p->view.uuid, err));
    KN_TRY(kn_json_get_str(p->doc, "location", &location, err));
    p->view.location = kn_location_strip(p->arena, location);
    KN_TRY(kn_json_opt_object(p->doc, "properties", &properties, err));
    KN_TRY(check_map(properties, "properties", err));
    if (!properties) {
        properties = json_object();
        kn_arena_defer(p->arena, drop_json, properties);
    }
    p->view.properties = properties;
    KN_TRY(kn_json_get_i32(p->doc, "current-version-id", &p->view.current_version_id, err));
    KN_TRY(parse_versions(p, err));
    KN_TRY(parse_schemas(p, err));
    KN_TRY(parse_log(p, err));
    p->view.extra = p->doc;
    return KN_OK;
}

KnCode kn_view_parse_json(json_t *doc, const char *source, KnView **ret, KnErr *err)
{
    Parser p = {.arena = kn_arena_new(1024), .doc = doc};
    KnCode rc = parse_document(&p, err);
    if (rc != KN_OK) {
        kn_arena_free(p.arena);
        return kn_err_wrap(err, rc, "%s", source);
    }
    Handle *handle = kn_arena_alloc(p.arena, sizeof(*handle));
    handle->view = p.view;
    handle->arena = p.arena;
    handle->doc = json_incref(doc);
    atomic_init(&handle->refs, 1);
    *ret = &handle->view;
    return KN_OK;
}

KnCode kn_view_parse(KnStr bytes, const char *source, KnView **ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KN_TRY(kn_metadata_read_json(bytes, TEXT_MAX, source, &doc, err));
    return kn_view_parse_json(doc, source, ret, err);
}

KnCode kn_view_to_json(const KnView *view, KnBuf *ret, KnErr *err)
{
    kn_json_dump(ret, view->extra);
    return kn_buf_check(ret, err);
}
