/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_files.c - what the files of a read look like: formats refused by name, footers against
 * manifests, and field ids by name mapping where a file has none (spec: "Column Projection").
 */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/scan/reach.h"
#include "iceberg/scan/read_avro.h"

/* ---- what can be read ---- */

static const char *format_name(KnFileFormat format)
{
    return format == KN_FORMAT_ORC ? "ORC" : "Puffin";
}

static KnCode check_entry(const KnTable *tbl, const KnDataFile *file, KnErr *err)
{
    const char *kind = file->content == KN_CONTENT_DATA ? "data" : "delete";
    if (file->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: %s file '%.300s' is encrypted: encryption is not supported",
                          tbl->name, kind, file->path);
    if (file->format != KN_FORMAT_PARQUET && file->format != KN_FORMAT_AVRO)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: %s file '%.300s': %s %s files are not supported", tbl->name,
                          kind, file->path, format_name(file->format), kind);
    return KN_OK;
}

KnCode kn_read_check_formats(const KnTable *tbl, KnScanTasks tasks, KnErr *err)
{
    for (size_t i = 0; i < tasks.n; i++) {
        const KnScanTask *task = &tasks.items[i];
        KN_TRY(check_entry(tbl, &task->data->file, err));
        for (size_t k = 0; k < task->n_deletes; k++) {
            const KnDataFile *file = &task->deletes[k]->file;
            bool vector = file->content == KN_CONTENT_POSITION_DELETES &&
                          file->format == KN_FORMAT_PUFFIN && !file->key_metadata.len;
            if (!vector)
                KN_TRY(check_entry(tbl, file, err));
        }
    }
    return KN_OK;
}

/* ---- name mapping ---- */

static const KnNameMapping *mapping_find(const KnNameMapping *mapping, const char *name)
{
    for (size_t i = 0; mapping && i < mapping->n_fields; i++)
        for (size_t j = 0; j < mapping->fields[i].n_names; j++)
            if (strcmp(mapping->fields[i].names[j], name) == 0)
                return &mapping->fields[i];
    return NULL;
}

static KnPqNode *map_children(KnArena *arena, const KnPqNode *node, const KnNameMapping *mapping)
{
    static const char *const list_names[] = {"element"};
    static const char *const map_names[] = {"key", "value"};
    KnPqNode *nodes = kn_arena_alloc(arena, (node->n_children + 1) * sizeof(*nodes));
    for (size_t i = 0; i < node->n_children; i++) {
        const char *name = node->children[i].name;
        if (node->kind == KN_PQ_LIST)
            name = list_names[0];
        else if (node->kind == KN_PQ_MAP && i < 2)
            name = map_names[i];
        const KnNameMapping *child = mapping_find(mapping, name);
        nodes[i] = node->children[i];
        nodes[i].field_id = child ? child->field_id : -1;
        if (nodes[i].n_children > 0)
            nodes[i].children = map_children(arena, &node->children[i], child);
    }
    return nodes;
}

typedef struct Mapper {
    KnRead *read;
    const KnNameMapping *mapping;
    KnMap *by_shape; /* const KnPqNode * */
} Mapper;

static KnCode mapper_load(Mapper *mapper, const KnDataFile *file, KnErr *err)
{
    if (mapper->mapping)
        return KN_OK;
    const KnTable *tbl = mapper->read->tbl;
    const char *json = kn_metadata_property(tbl->md, "schema.name-mapping.default", NULL);
    if (!json)
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: file '%.300s' has no field ids and the table has no property "
                          "schema.name-mapping.default to give it some",
                          tbl->name, file->path);
    KnCode rc = kn_name_mapping_parse(mapper->read->arena, kn_str(json), &mapper->mapping, err);
    return rc == KN_OK ? KN_OK
                       : kn_err_wrap(err, rc, "table %s: schema.name-mapping.default", tbl->name);
}

static KnCode assign_ids(Mapper *mapper, const KnDataFile *file, const KnPqFile *pq,
                         const KnPqNode **ret, KnErr *err)
{
    if (pq->has_field_ids || file->content == KN_CONTENT_POSITION_DELETES) {
        *ret = &pq->root;
        return KN_OK;
    }
    KN_TRY(mapper_load(mapper, file, err));
    bool made;
    void **slot = kn_map_get_or_add(mapper->by_shape, kn_str(pq->shape), &made);
    if (made) {
        KnPqNode *root = kn_arena_alloc(mapper->read->arena, sizeof(*root));
        *root = pq->root;
        root->children = map_children(mapper->read->arena, &pq->root, mapper->mapping);
        *slot = root;
    }
    *ret = *slot;
    return KN_OK;
}

/* ---- looking ---- */

static KnCode check_rows(const KnRead *read, const KnDataFile *file, const KnPqFile *pq, KnErr *err)
{
    if (pq->n_rows == file->record_count)
        return KN_OK;
    return kn_err_set(err, KN_E_CORRUPT,
                      "table %s: file '%.300s' has %" PRId64 " rows, its manifest says %" PRId64,
                      read->tbl->name, file->path, pq->n_rows, file->record_count);
}

/* "s3://bucket" of a location; "" of a local one. */
static KnStr root_of(KnStr location)
{
    const char *colon = memmem(location.ptr, location.len, "://", 3);
    size_t n = colon ? (size_t)(colon - location.ptr) + 3 : 0;
    while (colon && n < location.len && location.ptr[n] != '/')
        n++;
    return (KnStr){location.ptr, n};
}

static KnCode engine_path(const KnRead *read, KnStr location, KnStr *reached, const char **ret,
                          KnErr *err)
{
    KN_TRY(kn_table_engine_path(read->tbl, read->arena, location, ret, err));
    KnStr root = root_of(location);
    if (!kn_str_eq(root, *reached))
        KN_TRY(kn_engine_reach(kn_session_engine(read->ses), read->tbl->io, location, err));
    *reached = root;
    return KN_OK;
}

static KnCode look(Mapper *mapper, const KnManifestEntry *const *entries, size_t n,
                   KnReadFile **ret, KnErr *err)
{
    KnRead *read = mapper->read;
    const char **paths = kn_arena_alloc(read->arena, (n + 1) * sizeof(*paths));
    KnStr reached = {0};
    for (size_t i = 0; i < n; i++) {
        KN_TRY(check_entry(read->tbl, &entries[i]->file, err));
        if (entries[i]->file.format == KN_FORMAT_AVRO)
            KN_TRY(kn_read_avro_copy(read, &entries[i]->file, &paths[i], err));
        else
            KN_TRY(engine_path(read, kn_str(entries[i]->file.path), &reached, &paths[i], err));
    }
    KnPqFile *footers = NULL;
    KnCode rc = kn_parquet_footers(read->ses, read->arena, paths, n, &footers, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s", read->tbl->name);
    KnReadFile *files = kn_arena_zalloc(read->arena, (n + 1) * sizeof(*files));
    for (size_t i = 0; i < n; i++) {
        KN_TRY(check_rows(read, &entries[i]->file, &footers[i], err));
        files[i] = (KnReadFile){.index = i,
                                .name = entries[i]->file.path,
                                .path = paths[i],
                                .shape = footers[i].shape,
                                .n_rows = footers[i].n_rows};
        KN_TRY(assign_ids(mapper, &entries[i]->file, &footers[i], &files[i].root, err));
        KN_TRY(kn_read_mend(read, &entries[i]->file, &footers[i], &files[i], err));
    }
    *ret = files;
    return KN_OK;
}

KnCode kn_read_look(KnRead *read, const KnManifestEntry *const *entries, size_t n, KnReadFile **ret,
                    KnErr *err)
{
    Mapper mapper = {.read = read, .by_shape = kn_map_new()};
    KnCode rc = look(&mapper, entries, n, ret, err);
    kn_map_free(mapper.by_shape);
    return rc;
}

void kn_read_source_sql(KnRead *read, KnReadFile *const *files, size_t n, KnBuf *buf)
{
    const char **paths = kn_arena_alloc(read->arena, (n + 1) * sizeof(*paths));
    for (size_t i = 0; i < n; i++)
        paths[i] = files[i]->path;
    kn_parquet_scan_sql(buf, paths, n);
    kn_buf_text(buf, " AS t(");
    for (size_t i = 0; i < files[0]->root->n_children; i++)
        kn_buf_printf(buf, "%sc%zu", i ? ", " : "", i);
    kn_buf_char(buf, ')');
}

/* ---- shapes ---- */

typedef KN_VEC(KnReadFile *) FileList;

static void shape_add(KnMap *map, KnReadFile *file)
{
    bool made;
    void **slot = kn_map_get_or_add(map, kn_str(file->shape), &made);
    if (made) {
        *slot = calloc(1, sizeof(FileList));
        if (!*slot)
            abort();
    }
    *kn_vec_push((FileList *)*slot) = file;
}

KnCode kn_read_each_shape(KnReadFile *const *files, size_t n, KnReadShapeFn fn, void *arg,
                          KnErr *err)
{
    KnMap *map = kn_map_new();
    for (size_t i = 0; i < n; i++)
        shape_add(map, files[i]);
    KnCode rc = KN_OK;
    for (size_t i = 0; i < kn_map_count(map); i++) {
        KnStr key;
        void *list;
        if (!kn_map_entry(map, i, &key, &list))
            continue;
        FileList *shape = list;
        if (rc == KN_OK)
            rc = fn(arg, shape->items, shape->len, err);
        kn_vec_done(shape);
        free(shape);
    }
    kn_map_free(map);
    return rc;
}
