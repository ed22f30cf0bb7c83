/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_equality.c - equality deletes of a group of files, one ANTI JOIN for each set of columns.
 *
 * A delete applies to some of the group's files only (those older than it, in its partition). The
 * lists of deletes that apply to the files are mostly tails of one another: such lists form a
 * chain c, a delete has a place j in it, and a file starts at some place, so that "applies" is
 * `c = c AND start <= j`. Of deletes with the same key the last place is enough. So the join stays
 * a hash join on the key however many delete files there are.
 *
 * Keys compare as Java does: NULL equals NULL, NaN equals NaN, but 0.0 is not -0.0: the engine
 * takes the zeros as equal, so a second key column tells them apart. Delete files are projected by
 * field id to the table's newest type of the field, as data files are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/read_internal.h"

typedef struct Chain {
    size_t n;
    const size_t *numbers; /* of delete files */
} Chain;

typedef struct Loader {
    KnRead *read;
    KnReadGroup *group;
    KnEqualityJoin *join;
    KnMap *files;                            /* path -> 1 + its number */
    KN_VEC(const KnManifestEntry *) entries; /* distinct delete files of this set of columns */
    KN_VEC(Chain) chains;
    const char *stage; /* table */
} Loader;

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

const int32_t *kn_read_sorted_ids(KnArena *arena, const KnDataFile *file)
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
    if (file->content != KN_CONTENT_EQUALITY_DELETES || file->n_equality_ids != l->join->n_ids)
        return false;
    const int32_t *ids = kn_read_sorted_ids(l->read->arena, file);
    return memcmp(ids, l->join->ids, l->join->n_ids * sizeof(*ids)) == 0;
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

typedef struct Listed {
    Chain list;
    size_t file; /* in the group */
} Listed;

static int compare_longest(const void *a, const void *b)
{
    const Listed *x = a;
    const Listed *y = b;
    if (x->list.n != y->list.n)
        return x->list.n > y->list.n ? -1 : 1;
    return x->file < y->file ? -1 : 1;
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
    KnArena *arena = l->read->arena;
    size_t n = l->group->n_files;
    Listed *listed = kn_arena_alloc(arena, n * sizeof(*listed));
    for (size_t i = 0; i < n; i++)
        listed[i] = (Listed){list_of(l, l->group->files[i]->task), i};
    qsort(listed, n, sizeof(*listed), compare_longest);
    const char **chains = kn_arena_alloc(arena, n * sizeof(*chains));
    const char **starts = kn_arena_alloc(arena, n * sizeof(*starts));
    for (size_t i = 0; i < n; i++) {
        size_t c = chain_of(l, &listed[i].list);
        chains[listed[i].file] = kn_arena_printf(arena, "%zu", c);
        starts[listed[i].file] =
            kn_arena_printf(arena, "%zu", l->chains.items[c].n - listed[i].list.n);
    }
    l->join->chains = chains;
    l->join->starts = starts;
}

/* ---- keys ---- */

static bool is_floating(const KnRead *read, int32_t id)
{
    const KnField *field = kn_metadata_find_field(read->tbl->md, id);
    return field && (field->type->kind == KN_TYPE_FLOAT || field->type->kind == KN_TYPE_DOUBLE);
}

KnCode kn_read_key_columns_sql(const KnProject *project, const KnEqualityJoin *join,
                               const char *prefix, KnBuf *buf, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 30);
    for (size_t i = 0; i < join->n_ids; i++) {
        kn_buf_reset(&key);
        KN_TRY(kn_read_field_sql(project, join->ids[i], &key, err));
        KN_TRY(kn_buf_check(&key, err));
        kn_buf_printf(buf, "%s%s AS %sk%zu", i ? ", " : "", key.data, prefix, i);
        if (is_floating(project->read, join->ids[i]))
            kn_buf_printf(buf, ", COALESCE(%s = 0 AND signbit(%s), FALSE) AS %ss%zu", key.data,
                          key.data, prefix, i);
    }
    return KN_OK;
}

/* ---- loading ---- */

static const char *make_places(Loader *l, KnReadFile *const *files, size_t n, KnErr *err,
                               KnCode *rc)
{
    const char *table = kn_read_new_table(l->read, "m");
    size_t *numbers = kn_arena_alloc(l->read->arena, (l->entries.len + 1) * sizeof(*numbers));
    for (size_t i = 0; i < l->entries.len; i++)
        numbers[i] = n;
    for (size_t i = 0; i < n; i++)
        numbers[files[i]->index] = i;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_printf(&sql,
                  "CREATE TEMP TABLE %s AS SELECT CAST(d AS BIGINT) AS d, CAST(c AS BIGINT) "
                  "AS c, CAST(j AS BIGINT) AS j FROM (VALUES ",
                  table);
    size_t rows = 0;
    for (size_t c = 0; c < l->chains.len; c++)
        for (size_t j = 0; j < l->chains.items[c].n; j++)
            if (numbers[l->chains.items[c].numbers[j]] < n)
                kn_buf_printf(&sql, "%s(%zu, %zu, %zu)", rows++ ? ", " : "",
                              numbers[l->chains.items[c].numbers[j]], c, j);
    kn_buf_text(&sql, ") AS m(d, c, j)");
    *rc = kn_buf_check(&sql, err);
    if (*rc == KN_OK)
        *rc = kn_session_exec(l->read->ses, sql.data, NULL, err);
    return table;
}

static KnCode load_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Loader *l = arg;
    KnCode rc = KN_OK;
    const char *places = make_places(l, files, n, err, &rc);
    KN_TRY(rc);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    if (l->stage)
        kn_buf_printf(&sql, "INSERT INTO %s ", l->stage);
    else
        kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS ", l->stage = kn_read_new_table(l->read, "s"));
    kn_buf_text(&sql, "SELECT m.c, m.j, b.* EXCLUDE (d) FROM (SELECT CAST(file_index AS BIGINT) "
                      "AS d, ");
    KnProject project = {
        .read = l->read, .root = files[0]->root, .n_files = n, .files = files, .as_key = true};
    KN_TRY(kn_read_key_columns_sql(&project, l->join, "", &sql, err));
    kn_buf_text(&sql, " FROM ");
    kn_read_source_sql(l->read->arena, files[0]->root, files, n, &sql);
    kn_buf_printf(&sql, ") AS b JOIN %s AS m ON b.d = m.d; DROP TABLE %s", places, places);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(l->read->ses, sql.data, NULL, err);
}

static KnCode load(Loader *l, KnErr *err)
{
    make_chains(l);
    KnReadFile *files = NULL;
    KN_TRY(kn_read_look(l->read, l->entries.items, l->entries.len, &files, err));
    KN_TRY(kn_read_each_shape(files, l->entries.len, load_shape, l, err));
    l->join->table = kn_read_new_table(l->read, "e");
    const char *sql = kn_arena_printf(
        l->read->arena,
        "CREATE TEMP TABLE %s AS SELECT c, max(j) AS j, * EXCLUDE (c, j) FROM %s GROUP BY ALL; "
        "DROP TABLE %s",
        l->join->table, l->stage, l->stage);
    return kn_session_exec(l->read->ses, sql, NULL, err);
}

KnCode kn_read_load_equality(KnRead *read, KnReadGroup *group, KnErr *err)
{
    for (size_t i = 0; i < group->n_equality; i++) {
        Loader l = {
            .read = read, .group = group, .join = &group->equality[i], .files = kn_map_new()};
        KnCode rc = load(&l, err);
        kn_map_free(l.files);
        kn_vec_done(&l.entries);
        kn_vec_done(&l.chains);
        KN_TRY(rc);
    }
    return KN_OK;
}
