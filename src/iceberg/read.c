/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - tasks to SELECTs.
 *
 * Files with the same physical schema and the same sets of equality delete columns are one group,
 * read by one read_parquet(); what differs from file to file (partition constants, row id bases,
 * where its deletes start) is looked up by file_index. A group's SELECT is
 *
 *     SELECT o0 AS "a", … FROM (SELECT <projection> AS o0, … , <keys>, file_index AS f,
 *         file_row_number AS p FROM read_parquet([…]) AS t(c0, …)) AS b
 *     ANTI JOIN <positions> AS d ON b.f = d.f AND b.p = d.p
 *     ANTI JOIN <equality deletes> AS e0 ON b.e0k0 IS NOT DISTINCT FROM e0.k0 AND …
 *     WHERE <filter over o0, …>
 *
 * with the parts that a group does not need left out; joins have conditions between both sides
 * only, which keeps them hash joins. A KnRead and its session belong to one thread.
 */
#include "iceberg/read.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/read_internal.h"

/* ---- grouping ---- */

static void key_of_deletes(KnRead *read, const KnScanTask *task, KnBuf *key)
{
    bool positions = false;
    for (size_t i = 0; i < task->n_deletes; i++)
        positions = positions || task->deletes[i]->file.content == KN_CONTENT_POSITION_DELETES;
    kn_buf_char(key, positions ? 'p' : '-');
    KN_MAP_AUTO seen = kn_map_new();
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        if (file->content != KN_CONTENT_EQUALITY_DELETES)
            continue;
        const int32_t *ids = kn_read_sorted_ids(read->arena, file);
        bool made;
        (void)kn_map_get_or_add(
            seen, (KnStr){(const char *)ids, file->n_equality_ids * sizeof(*ids)}, &made);
    }
    for (size_t i = 0; i < kn_map_count(seen); i++) {
        KnStr ids;
        void *value;
        if (kn_map_entry(seen, i, &ids, &value)) {
            kn_buf_printf(key, "/%zu:", ids.len);
            kn_buf_str(key, ids);
        }
    }
}

typedef struct Draft {
    KN_VEC(KnReadFile *) files;
} Draft;

/* The sets of equality columns of a group, from its first file: all files have the same. */
static void fill_equality(KnRead *read, KnReadGroup *group)
{
    const KnScanTask *task = group->files[0]->task;
    group->equality =
        kn_arena_zalloc(read->arena, (task->n_deletes + 1) * sizeof(*group->equality));
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        if (file->content != KN_CONTENT_EQUALITY_DELETES)
            continue;
        const int32_t *ids = kn_read_sorted_ids(read->arena, file);
        bool known = false;
        for (size_t j = 0; j < group->n_equality && !known; j++)
            known = group->equality[j].n_ids == file->n_equality_ids &&
                    memcmp(group->equality[j].ids, ids, file->n_equality_ids * sizeof(*ids)) == 0;
        if (!known)
            group->equality[group->n_equality++] =
                (KnEqualityJoin){.n_ids = file->n_equality_ids, .ids = ids};
    }
}

static void fill_groups(KnRead *read, const KnMap *drafts)
{
    size_t n = kn_map_count(drafts);
    read->groups = kn_arena_zalloc(read->arena, (n + 1) * sizeof(*read->groups));
    for (size_t i = 0; i < n; i++) {
        KnStr key;
        void *value;
        if (!kn_map_entry(drafts, i, &key, &value))
            continue;
        Draft *draft = value;
        KnReadGroup *group = &read->groups[read->n_groups++];
        KnReadFile **files = kn_arena_alloc(read->arena, draft->files.len * sizeof(*files));
        memcpy(files, draft->files.items, draft->files.len * sizeof(*files));
        group->root = files[0]->root;
        group->n_files = draft->files.len;
        group->files = files;
        fill_equality(read, group);
        kn_vec_done(&draft->files);
    }
}

static void make_groups(KnRead *read, KnReadFile *files, size_t n)
{
    KN_MAP_AUTO drafts = kn_map_new();
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 30);
    for (size_t i = 0; i < n; i++) {
        kn_buf_reset(&key);
        key_of_deletes(read, files[i].task, &key);
        kn_buf_char(&key, '|');
        kn_buf_text(&key, files[i].shape);
        bool made;
        void **slot = kn_map_get_or_add(drafts, (KnStr){key.data, key.len}, &made);
        if (made)
            *slot = kn_arena_zalloc(read->arena, sizeof(Draft));
        *kn_vec_push(&((Draft *)*slot)->files) = &files[i];
    }
    fill_groups(read, drafts);
}

/* ---- columns of a group's SELECT ---- */

/* The wanted columns, then those that only the filter needs. */
typedef struct Outputs {
    KnRead *read;
    KN_VEC(const KnField *) fields;
} Outputs;

static void add_filter_column(void *arg, const KnField *column)
{
    Outputs *out = arg;
    kn_vec_foreach (&out->fields, field)
        if (*field == column ||
            ((*field)->id == column->id && kn_type_equal((*field)->type, column->type)))
            return;
    *kn_vec_push(&out->fields) = column;
}

static void collect_outputs(Outputs *out)
{
    const KnReadOptions *opts = &out->read->opts;
    for (size_t i = 0; i < opts->schema->root.n_fields; i++)
        *kn_vec_push(&out->fields) = &opts->schema->root.fields[i];
    if (opts->filter)
        kn_expr_columns(opts->filter, add_filter_column, out);
}

static void write_filter_column(void *arg, KnBuf *buf, const KnField *column)
{
    const Outputs *out = arg;
    for (size_t i = 0; i < out->fields.len; i++) {
        const KnField *field = out->fields.items[i];
        if (field == column ||
            (field->id == column->id && kn_type_equal(field->type, column->type))) {
            kn_buf_printf(buf, "o%zu", i);
            return;
        }
    }
}

static void write_file_lookup(KnRead *read, const KnReadGroup *group, KnBuf *buf,
                              const char *(*value)(KnArena *, const KnReadFile *))
{
    const char **values = kn_arena_alloc(read->arena, group->n_files * sizeof(*values));
    for (size_t i = 0; i < group->n_files; i++)
        values[i] = value(read->arena, group->files[i]);
    kn_read_lookup_sql(buf, values, group->n_files, "BIGINT");
}

static const char *file_index_text(KnArena *arena, const KnReadFile *file)
{
    return kn_arena_printf(arena, "%zu", file->index);
}

static const char *first_row_id_text(KnArena *arena, const KnReadFile *file)
{
    int64_t first = file->task->data->file.first_row_id;
    return first < 0 ? "NULL" : kn_arena_printf(arena, "%" PRId64, first);
}

static const char *sequence_text(KnArena *arena, const KnReadFile *file)
{
    return file->task->data->file.first_row_id < 0
               ? "NULL"
               : kn_arena_printf(arena, "%" PRId64, file->task->data->sequence_number);
}

static void write_lineage_part(const KnReadGroup *group, KnBuf *buf, int32_t id)
{
    size_t at = 0;
    const KnPqNode *node = kn_read_child_by_id(group->root, id, &at);
    if (node && node->kind == KN_PQ_LEAF)
        kn_buf_printf(buf, "COALESCE(CAST(c%zu AS BIGINT), ", at);
    else
        kn_buf_text(buf, "(");
}

/* v3: the file's own values where it has them, else by the file's base (spec: "Row Lineage"). */
static void write_lineage(KnRead *read, const KnReadGroup *group, KnBuf *buf)
{
    kn_buf_text(buf, ", ");
    write_lineage_part(group, buf, KN_FIELD_ID_ROW_ID);
    write_file_lookup(read, group, buf, first_row_id_text);
    kn_buf_text(buf, " + file_row_number) AS l0, ");
    write_lineage_part(group, buf, KN_FIELD_ID_LAST_UPDATED_SEQUENCE);
    write_file_lookup(read, group, buf, sequence_text);
    kn_buf_text(buf, ") AS l1");
}

static KnCode write_keys(KnRead *read, const KnReadGroup *group, KnBuf *buf, KnErr *err)
{
    KnProject project = {.read = read,
                         .root = group->root,
                         .n_files = group->n_files,
                         .files = group->files,
                         .as_key = true};
    for (size_t i = 0; i < group->n_equality; i++) {
        const KnEqualityJoin *join = &group->equality[i];
        kn_buf_text(buf, ", ");
        KN_TRY(kn_read_key_columns_sql(&project, join, kn_arena_printf(read->arena, "e%zu", i), buf,
                                       err));
        kn_buf_text(buf, ", ");
        kn_read_lookup_sql(buf, join->chains, group->n_files, "BIGINT");
        kn_buf_printf(buf, " AS e%zuc, ", i);
        kn_read_lookup_sql(buf, join->starts, group->n_files, "BIGINT");
        kn_buf_printf(buf, " AS e%zuo", i);
    }
    return KN_OK;
}

static KnCode write_inner(const Outputs *out, const KnReadGroup *group, KnBuf *buf, KnErr *err)
{
    KnRead *read = out->read;
    KnProject project = {
        .read = read, .root = group->root, .n_files = group->n_files, .files = group->files};
    kn_buf_text(buf, "SELECT ");
    for (size_t i = 0; i < out->fields.len; i++) {
        KN_TRY(kn_read_column_sql(&project, out->fields.items[i], buf, err));
        kn_buf_printf(buf, " AS o%zu, ", i);
    }
    kn_buf_text(buf, "file_index AS f, file_row_number AS p");
    if (read->opts.with_lineage)
        write_lineage(read, group, buf);
    if (read->opts.with_position) {
        kn_buf_text(buf, ", ");
        write_file_lookup(read, group, buf, file_index_text);
        kn_buf_text(buf, " AS l2");
    }
    KN_TRY(write_keys(read, group, buf, err));
    kn_buf_text(buf, " FROM ");
    kn_read_source_sql(read->arena, group->root, group->files, group->n_files, buf);
    return KN_OK;
}

/* ---- the SELECT around it ---- */

static bool all_same(const char *const *values, size_t n, const char *value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(values[i], value) != 0)
            return false;
    return true;
}

static void write_equality_join(const KnRead *read, const KnReadGroup *group, size_t number,
                                KnBuf *buf)
{
    const KnEqualityJoin *join = &group->equality[number];
    kn_buf_printf(buf, " ANTI JOIN %s AS e%zu ON ", join->table, number);
    for (size_t i = 0; i < join->n_ids; i++) {
        const KnField *field = kn_metadata_find_field(read->tbl->md, join->ids[i]);
        kn_buf_printf(buf, "%sb.e%zuk%zu IS NOT DISTINCT FROM e%zu.k%zu", i ? " AND " : "", number,
                      i, number, i);
        if (field && (field->type->kind == KN_TYPE_FLOAT || field->type->kind == KN_TYPE_DOUBLE))
            kn_buf_printf(buf, " AND b.e%zus%zu = e%zu.s%zu", number, i, number, i);
    }
    if (!all_same(join->chains, group->n_files, "0"))
        kn_buf_printf(buf, " AND b.e%zuc = e%zu.c", number, number);
    if (!all_same(join->starts, group->n_files, "0"))
        kn_buf_printf(buf, " AND b.e%zuo <= e%zu.j", number, number);
}

static void write_outer_columns(const KnReadOptions *opts, KnBuf *buf)
{
    size_t n = opts->schema->root.n_fields;
    for (size_t i = 0; i < n; i++) {
        kn_buf_printf(buf, "%so%zu AS ", i ? ", " : "", i);
        kn_sql_ident(buf, kn_str(opts->schema->root.fields[i].name));
    }
    if (opts->with_lineage)
        kn_buf_printf(buf, "%sl0 AS _row_id, l1 AS _last_updated_sequence_number", n ? ", " : "");
    if (opts->with_position)
        kn_buf_printf(buf, "%sl2 AS _task, p AS _pos", n || opts->with_lineage ? ", " : "");
    if (n == 0 && !opts->with_lineage && !opts->with_position)
        kn_buf_text(buf, "NULL AS _");
}

static KnCode write_group(Outputs *out, const KnReadGroup *group, KnBuf *buf, KnErr *err)
{
    KnRead *read = out->read;
    kn_buf_text(buf, "SELECT ");
    write_outer_columns(&read->opts, buf);
    kn_buf_text(buf, " FROM (");
    KN_TRY(write_inner(out, group, buf, err));
    kn_buf_text(buf, ") AS b");
    if (group->position_table)
        kn_buf_printf(buf, " ANTI JOIN %s AS d ON b.f = d.f AND b.p = d.p", group->position_table);
    for (size_t i = 0; i < group->n_equality; i++)
        write_equality_join(read, group, i, buf);
    if (read->opts.filter) {
        kn_buf_text(buf, " WHERE ");
        KN_TRY(kn_expr_sql_with(buf, read->opts.filter, write_filter_column, out, err));
    }
    return KN_OK;
}

static KnCode write_empty(const KnRead *read, KnBuf *buf, KnErr *err)
{
    const KnSchema *schema = read->opts.schema;
    kn_buf_text(buf, "SELECT ");
    write_outer_columns(&read->opts, buf);
    kn_buf_text(buf, " FROM (SELECT ");
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        kn_buf_text(buf, "CAST(NULL AS ");
        KnCode rc = kn_type_sql(buf, schema->root.fields[i].type, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "table %s: column '%.100s'", read->tbl->name,
                               schema->root.fields[i].name);
        kn_buf_printf(buf, ") AS o%zu, ", i);
    }
    kn_buf_text(buf, "0::BIGINT AS l0, 0::BIGINT AS l1, 0::BIGINT AS l2, 0::BIGINT AS p) WHERE "
                     "FALSE");
    return KN_OK;
}

/* ---- opening ---- */

const char *kn_read_new_table(KnRead *read, const char *kind)
{
    return kn_arena_printf(read->arena, "kn_read_%" PRIu64 "_%s%zu", read->id, kind,
                           read->n_tables++);
}

static KnCode look_at_data(KnRead *read, const KnScanTask *tasks, size_t n, KnReadFile **ret,
                           KnErr *err)
{
    const KnManifestEntry **entries = kn_arena_alloc(read->arena, (n + 1) * sizeof(*entries));
    KnScanTask *copies = kn_arena_alloc(read->arena, (n + 1) * sizeof(*copies));
    for (size_t i = 0; i < n; i++) {
        entries[i] = tasks[i].data;
        copies[i] = tasks[i];
        if (read->opts.ignore_deletes)
            copies[i].n_deletes = 0;
    }
    KN_TRY(kn_read_look(read, entries, n, ret, err));
    for (size_t i = 0; i < n; i++)
        (*ret)[i].task = &copies[i];
    return KN_OK;
}

static KnCode write_all(KnRead *read, Outputs *out, KnErr *err)
{
    KN_BUF_AUTO all;
    KN_BUF_AUTO one;
    kn_buf_init(&all, (size_t)1 << 30);
    kn_buf_init(&one, (size_t)1 << 30);
    collect_outputs(out);
    read->group_sql = kn_arena_alloc(read->arena, (read->n_groups + 1) * sizeof(*read->group_sql));
    for (size_t i = 0; i < read->n_groups; i++) {
        kn_buf_reset(&one);
        KN_TRY(write_group(out, &read->groups[i], &one, err));
        KN_TRY(kn_buf_check(&one, err));
        read->group_sql[i] = kn_arena_strndup(read->arena, one.data, one.len);
        kn_buf_text(&all, i ? " UNION ALL " : "");
        kn_buf_text(&all, one.data);
    }
    if (read->n_groups == 0)
        KN_TRY(write_empty(read, &all, err));
    KN_TRY(kn_buf_check(&all, err));
    read->sql = kn_arena_strndup(read->arena, all.data, all.len);
    return KN_OK;
}

static KnCode open_read(KnRead *read, const KnScanTask *tasks, size_t n, KnErr *err)
{
    if (n > 0) {
        KnReadFile *files = NULL;
        KN_TRY(look_at_data(read, tasks, n, &files, err));
        make_groups(read, files, n);
    }
    for (size_t i = 0; i < read->n_groups; i++) {
        KN_TRY(kn_read_load_positions(read, &read->groups[i], err));
        KN_TRY(kn_read_load_equality(read, &read->groups[i], err));
    }
    Outputs out = {.read = read};
    KnCode rc = write_all(read, &out, err);
    kn_vec_done(&out.fields);
    return rc;
}

KnCode kn_read_open(const KnTable *tbl, KnSession *ses, const KnScanTask *tasks, size_t n_tasks,
                    const KnReadOptions *opts, KnRead **ret, KnErr *err)
{
    static atomic_uint_fast64_t next_id;
    KnArena *arena = kn_arena_new(0);
    KnRead *read = kn_arena_zalloc(arena, sizeof(*read));
    *read = (KnRead){.arena = arena, .tbl = tbl, .ses = ses, .opts = *opts};
    read->id = atomic_fetch_add(&next_id, 1);
    KnCode rc = open_read(read, tasks, n_tasks, err);
    if (rc == KN_OK)
        *ret = read;
    else
        kn_read_close(read);
    return rc;
}

/* Tables of a failed load may be there or not. */
static void drop_tables(KnRead *read)
{
    static const char kinds[] = "pwmse";
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 20);
    for (size_t i = 0; i < read->n_tables; i++)
        for (const char *kind = kinds; *kind; kind++)
            kn_buf_printf(&sql, "DROP TABLE IF EXISTS kn_read_%" PRIu64 "_%c%zu; ", read->id, *kind,
                          i);
    if (read->n_tables > 0 && !sql.failed)
        (void)!kn_session_exec(read->ses, sql.data, NULL, NULL);
}

KnRead *kn_read_close(KnRead *read)
{
    if (!read)
        return NULL;
    drop_tables(read);
    kn_arena_free(read->arena);
    return NULL;
}

const char *kn_read_sql(const KnRead *read)
{
    return read->sql;
}

size_t kn_read_n_groups(const KnRead *read)
{
    return read->n_groups;
}

const char *kn_read_group_sql(const KnRead *read, size_t group)
{
    return read->group_sql[group];
}
