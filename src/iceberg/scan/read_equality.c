/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_equality.c - equality deletes: for each set of columns, the rows whose keys were deleted.
 *
 * A delete applies to some of the files only (those older than it, in its partition). The lists of
 * deletes that apply to the files are mostly tails of one another: such lists form a chain c, a
 * delete has a place j in it, and a file starts at some place o, so that "applies" is `c = c AND
 * o <= j`. Of deletes with the same key the last place is enough. So one hash join on the key finds
 * the rows, however many delete files there are; it reads the key columns only, and is asked only
 * for rows that get through a filter of the keys (read_keys.c).
 *
 * Keys compare as Java does: NULL equals NULL, NaN equals NaN, but 0.0 is not -0.0: the engine
 * takes the zeros as equal, so a second key column tells them apart. Delete files are projected by
 * field id to the table's newest type of the field, as data files are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/scan/read_internal.h"

typedef struct Chain {
    size_t n;
    const size_t *numbers; /* of delete files */
} Chain;

/* A data file, and the deletes that apply to it. */
typedef struct Listed {
    KnReadFile *file;
    Chain list;
    size_t chain, start;
} Listed;

/* All deletes over one set of columns. */
typedef struct Loader {
    KnRead *read;
    size_t n_ids;
    const int32_t *ids;                      /* ascending */
    KnMap *files;                            /* path -> 1 + its number */
    KN_VEC(const KnManifestEntry *) entries; /* distinct delete files */
    KN_VEC(Chain) chains;
    size_t n_listed;
    Listed *listed;      /* longest list first */
    Listed **by_index;   /* of the file in the read; NULL = no delete applies */
    const char *stage;   /* table of keys as they are in the delete files */
    const char *table;   /* (c, j, k0, s0, k1, …) */
    KnKeyFilter *filter; /* of its keys */
} Loader;

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static const int32_t *sorted_ids(KnArena *arena, const KnDataFile *file)
{
    int32_t *ids = kn_arena_alloc(arena, (file->n_equality_ids + 1) * sizeof(*ids));
    if (file->n_equality_ids > 0) {
        memcpy(ids, file->equality_ids, file->n_equality_ids * sizeof(*ids));
        qsort(ids, file->n_equality_ids, sizeof(*ids), compare_ids);
    }
    return ids;
}

static bool belongs(const Loader *l, const KnManifestEntry *entry)
{
    const KnDataFile *file = &entry->file;
    if (file->content != KN_CONTENT_EQUALITY_DELETES || file->n_equality_ids != l->n_ids)
        return false;
    const int32_t *ids = sorted_ids(l->read->arena, file);
    return memcmp(ids, l->ids, l->n_ids * sizeof(*ids)) == 0;
}

/* ---- chains ---- */

static size_t number_of(Loader *l, const KnManifestEntry *entry)
{
    bool made;
    void **slot = kn_map_get_or_add(l->files, kn_str(entry->file.path), &made);
    if (made) {
        *kn_vec_push(&l->entries) = entry;
        *slot = (void *)(uintptr_t)l->entries.len; /* NOLINT(performance-no-int-to-ptr) */
    }
    return (uintptr_t)*slot - 1;
}

static Chain list_of(Loader *l, const KnScanTask *task)
{
    size_t *numbers = kn_arena_alloc(l->read->arena, (task->n_deletes + 1) * sizeof(*numbers));
    size_t n = 0;
    for (size_t i = 0; i < task->n_deletes; i++)
        if (belongs(l, task->deletes[i]))
            numbers[n++] = number_of(l, task->deletes[i]);
    return (Chain){n, numbers};
}

static bool is_tail(const Chain *tail, const Chain *chain)
{
    return tail->n <= chain->n && memcmp(tail->numbers, chain->numbers + (chain->n - tail->n),
                                         tail->n * sizeof(*tail->numbers)) == 0;
}

static int compare_longest(const void *a, const void *b)
{
    const Listed *x = a;
    const Listed *y = b;
    if (x->list.n != y->list.n)
        return x->list.n > y->list.n ? -1 : 1;
    return x->file->index < y->file->index ? -1 : 1;
}

static size_t chain_of(Loader *l, const Chain *list)
{
    for (size_t c = 0; c < l->chains.len; c++)
        if (is_tail(list, &l->chains.items[c]))
            return c;
    *kn_vec_push(&l->chains) = *list;
    return l->chains.len - 1;
}

static void make_chains(Loader *l)
{
    KnRead *read = l->read;
    l->listed = kn_arena_zalloc(read->arena, read->n_files * sizeof(*l->listed));
    l->by_index = kn_arena_zalloc(read->arena, read->n_files * sizeof(Listed *));
    for (size_t i = 0; i < read->n_files; i++) {
        Chain list = list_of(l, read->files[i].task);
        if (list.n > 0)
            l->listed[l->n_listed++] = (Listed){.file = &read->files[i], .list = list};
    }
    qsort(l->listed, l->n_listed, sizeof(*l->listed), compare_longest);
    for (size_t i = 0; i < l->n_listed; i++) {
        Listed *listed = &l->listed[i];
        listed->chain = chain_of(l, &listed->list);
        listed->start = l->chains.items[listed->chain].n - listed->list.n;
        l->by_index[listed->file->index] = listed;
    }
}

/* ---- keys ---- */

static bool is_floating(const KnRead *read, int32_t id)
{
    const KnField *field = kn_metadata_find_field(read->tbl->md, id);
    return field && (field->type->kind == KN_TYPE_FLOAT || field->type->kind == KN_TYPE_DOUBLE);
}

/* `expr AS k0, … AS s0, …, ` */
static KnCode write_keys(const Loader *l, const KnProject *project, KnBuf *buf, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 30);
    for (size_t i = 0; i < l->n_ids; i++) {
        kn_buf_reset(&key);
        KN_TRY(kn_read_field_sql(project, l->ids[i], &key, err));
        KN_TRY(kn_buf_check(&key, err));
        kn_buf_printf(buf, "%s AS k%zu, ", key.data, i);
        if (is_floating(l->read, l->ids[i]))
            kn_buf_printf(buf, "COALESCE(%s = 0 AND signbit(%s), FALSE) AS s%zu, ", key.data,
                          key.data, i);
    }
    return KN_OK;
}

/* ---- delete files to a table of keys ---- */

/* (d, c, j): where delete file d of this shape stands. */
static KnCode make_places(Loader *l, const char *table, KnReadFile *const *files, size_t n,
                          KnErr *err)
{
    size_t *numbers = kn_arena_alloc(l->read->arena, (l->entries.len + 1) * sizeof(*numbers));
    for (size_t i = 0; i < l->entries.len; i++)
        numbers[i] = n;
    for (size_t i = 0; i < n; i++)
        numbers[files[i]->index] = i;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_printf(&sql,
                  "CREATE TEMP TABLE %s AS SELECT CAST(d AS BIGINT) AS d, CAST(c AS BIGINT) AS c, "
                  "CAST(j AS BIGINT) AS j FROM (VALUES ",
                  table);
    size_t rows = 0;
    for (size_t c = 0; c < l->chains.len; c++)
        for (size_t j = 0; j < l->chains.items[c].n; j++)
            if (numbers[l->chains.items[c].numbers[j]] < n)
                kn_buf_printf(&sql, "%s(%zu, %zu, %zu)", rows++ ? ", " : "",
                              numbers[l->chains.items[c].numbers[j]], c, j);
    kn_buf_text(&sql, ") AS m(d, c, j)");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(l->read->ses, sql.data, NULL, err);
}

static KnCode load_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Loader *l = arg;
    const char *places = kn_read_new_table(l->read, "m");
    KN_TRY(make_places(l, places, files, n, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    if (l->stage)
        kn_buf_printf(&sql, "INSERT INTO %s ", l->stage);
    else
        kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS ", l->stage = kn_read_new_table(l->read, "s"));
    kn_buf_text(&sql, "SELECT m.c, m.j, b.* EXCLUDE (d) FROM (SELECT ");
    KnProject project = {.read = l->read, .n_files = n, .files = files, .as_key = true};
    KN_TRY(write_keys(l, &project, &sql, err));
    kn_buf_text(&sql, "CAST(file_index AS BIGINT) AS d FROM ");
    kn_read_source_sql(l->read, files, n, &sql);
    kn_buf_printf(&sql, ") AS b JOIN %s AS m ON b.d = m.d; DROP TABLE %s", places, places);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(l->read->ses, sql.data, NULL, err);
}

static KnCode load_keys(Loader *l, KnErr *err)
{
    KnArena *arena = l->read->arena;
    KnReadFile *files = NULL;
    KN_TRY(kn_read_look(l->read, l->entries.items, l->entries.len, &files, err));
    KnReadFile **list = kn_arena_alloc(arena, l->entries.len * sizeof(*list));
    for (size_t i = 0; i < l->entries.len; i++)
        list[i] = &files[i];
    KN_TRY(kn_read_each_shape(list, l->entries.len, load_shape, l, err));
    if (l->entries.len == 1) {
        l->table = l->stage; /* one place for each key */
        return KN_OK;
    }
    l->table = kn_read_new_table(l->read, "e");
    const char *sql =
        kn_arena_printf(arena,
                        "CREATE TEMP TABLE %s AS SELECT c, max(j) AS j, * EXCLUDE (c, j) FROM %s "
                        "GROUP BY ALL; DROP TABLE %s",
                        l->table, l->stage, l->stage);
    return kn_session_exec(l->read->ses, sql, NULL, err);
}

/* ---- rows of data files with these keys ---- */

static void write_conditions(const Loader *l, KnBuf *buf)
{
    kn_buf_text(buf, " ON b.c = e.c AND b.o <= e.j");
    for (size_t i = 0; i < l->n_ids; i++) {
        kn_buf_printf(buf, " AND b.k%zu IS NOT DISTINCT FROM e.k%zu", i, i);
        if (is_floating(l->read, l->ids[i]))
            kn_buf_printf(buf, " AND b.s%zu = e.s%zu", i, i);
    }
}

static void write_places(const Loader *l, KnReadFile *const *files, size_t n, KnBuf *buf)
{
    KnArena *arena = l->read->arena;
    const char **chains = kn_arena_alloc(arena, n * sizeof(*chains));
    const char **starts = kn_arena_alloc(arena, n * sizeof(*starts));
    for (size_t i = 0; i < n; i++) {
        const Listed *listed = l->by_index[files[i]->index];
        chains[i] = kn_arena_printf(arena, "%zu", listed->chain);
        starts[i] = kn_arena_printf(arena, "%zu", listed->start);
    }
    kn_read_lookup_sql(buf, chains, n, "BIGINT");
    kn_buf_text(buf, " AS c, ");
    kn_read_lookup_sql(buf, starts, n, "BIGINT");
    kn_buf_text(buf, " AS o, ");
}

/* Only rows that the read's filter lets through are asked about. */
static KnCode write_match(const Loader *l, const KnOutputs *out, const KnProject *project,
                          KnBuf *buf, KnErr *err)
{
    kn_buf_text(buf, "SELECT b.f, b.p FROM (SELECT * FROM (SELECT ");
    KN_TRY(kn_read_outputs_sql(out, project, buf, err));
    KN_TRY(write_keys(l, project, buf, err));
    write_places(l, project->files, project->n_files, buf);
    kn_buf_text(buf, "CAST(file_index AS BIGINT) AS f, CAST(file_row_number AS BIGINT) AS p FROM ");
    kn_read_source_sql(l->read, project->files, project->n_files, buf);
    kn_buf_text(buf, ") AS a WHERE ");
    kn_key_filter_sql(l->filter, l->n_ids, buf);
    kn_buf_printf(buf, ") AS b SEMI JOIN %s AS e", l->table);
    write_conditions(l, buf);
    KN_TRY(kn_read_where_sql(out, &l->read->opts, buf, err));
    return kn_buf_check(buf, err);
}

static KnCode match_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Loader *l = arg;
    KnProject project = {.read = l->read, .n_files = n, .files = files, .as_key = true};
    KnOutputs out = {0};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_read_outputs_fill(&out, &l->read->opts, true);
    KnCode rc = write_match(l, &out, &project, &sql, err);
    kn_vec_done(&out.fields);
    KN_TRY(rc);
    return kn_read_mark_query(l->read, files, n, sql.data, err);
}

static KnCode match_files(Loader *l, KnErr *err)
{
    KnReadFile **files = kn_arena_alloc(l->read->arena, l->n_listed * sizeof(*files));
    size_t n = 0;
    for (size_t i = 0; i < l->read->n_files; i++)
        if (l->by_index[i])
            files[n++] = &l->read->files[i];
    return kn_read_each_shape(files, n, match_shape, l, err);
}

static KnCode load_set(KnRead *read, const int32_t *ids, size_t n_ids, KnErr *err)
{
    Loader l = {.read = read, .ids = ids, .n_ids = n_ids, .files = kn_map_new()};
    make_chains(&l);
    KnCode rc = load_keys(&l, err);
    if (rc == KN_OK)
        rc = kn_key_filter_open(read->ses, l.table, n_ids, &l.filter, err);
    if (rc == KN_OK)
        rc = match_files(&l, err);
    kn_key_filter_close(l.filter);
    kn_map_free(l.files);
    kn_vec_done(&l.entries);
    kn_vec_done(&l.chains);
    return rc;
}

KnCode kn_read_load_equality(KnRead *read, KnErr *err)
{
    KN_MAP_AUTO sets = kn_map_new();
    for (size_t i = 0; i < read->n_files; i++) {
        const KnScanTask *task = read->files[i].task;
        for (size_t j = 0; j < task->n_deletes; j++) {
            const KnDataFile *file = &task->deletes[j]->file;
            if (file->content != KN_CONTENT_EQUALITY_DELETES)
                continue;
            const int32_t *ids = sorted_ids(read->arena, file);
            KnStr key = {(const char *)ids, file->n_equality_ids * sizeof(*ids)};
            bool made;
            void **slot = kn_map_get_or_add(sets, key, &made);
            if (made)
                *slot = (void *)(uintptr_t)ids;
        }
    }
    for (size_t i = 0; i < kn_map_count(sets); i++) {
        KnStr key;
        void *ids;
        if (kn_map_entry(sets, i, &key, &ids))
            KN_TRY(load_set(read, ids, key.len / sizeof(int32_t), err));
    }
    return KN_OK;
}
