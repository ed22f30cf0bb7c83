/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - tasks to SELECTs.
 *
 * Tasks that follow one another and whose files have the same physical schema are one group, read
 * by one read_parquet(); what differs from file to file (partition constants, row id bases) is
 * looked up by file_index. Deletes are resolved to rows of files while opening (read_live.c). A
 * group's SELECT is
 *
 *     SELECT o0 AS "a", … FROM (SELECT <projection> AS o0, … , file_index AS f, file_row_number AS
 * p FROM read_parquet([…]) AS t(c0, …) [WHERE kn_live(<read>, <first> + f, p)]) AS b WHERE <filter
 * over o0, …>
 *
 * which the engine runs as one scan: in order, streaming, on all threads. A KnRead and its session
 * belong to one thread.
 */
#include "iceberg/scan/read.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "iceberg/scan/read_internal.h"

/* ---- columns of a group's SELECT ---- */

static void write_file_lookup(KnRead *read, const KnReadGroup *group, KnBuf *buf,
                              const char *(*value)(KnArena *, const KnReadFile *))
{
    const char **values = kn_arena_alloc(read->arena, group->n_files * sizeof(*values));
    for (size_t i = 0; i < group->n_files; i++)
        values[i] = value(read->arena, group->files[i]);
    kn_read_lookup_sql(buf, values, group->n_files, "BIGINT");
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
    const KnPqNode *node = kn_read_child_by_id(group->files[0]->root, id, &at);
    if (node && node->kind == KN_PQ_LEAF)
        kn_buf_printf(buf, "COALESCE(CAST(c%zu AS BIGINT), ", at);
    else
        kn_buf_text(buf, "(");
}

/* v3: the file's own values where it has them, else by the file's base (spec: "Row Lineage"). */
static void write_lineage(KnRead *read, const KnReadGroup *group, KnBuf *buf)
{
    write_lineage_part(group, buf, KN_FIELD_ID_ROW_ID);
    write_file_lookup(read, group, buf, first_row_id_text);
    kn_buf_text(buf, " + file_row_number) AS l0, ");
    write_lineage_part(group, buf, KN_FIELD_ID_LAST_UPDATED_SEQUENCE);
    write_file_lookup(read, group, buf, sequence_text);
    kn_buf_text(buf, ") AS l1, ");
}

static bool has_dead_rows(const KnReadGroup *group)
{
    for (size_t i = 0; i < group->n_files; i++)
        if (group->files[i]->dead)
            return true;
    return false;
}

static void write_row_filter(const KnRead *read, const KnReadGroup *group, KnBuf *buf)
{
    if (!read->is_narrow && !has_dead_rows(group))
        return;
    kn_buf_text(buf, " WHERE ");
    if (group->to > 0)
        kn_buf_printf(buf, "file_row_number BETWEEN %" PRId64 " AND %" PRId64 " AND ", group->from,
                      group->to - 1);
    kn_buf_printf(buf, "%s(%" PRId64 "::BIGINT, %zu + CAST(file_index AS BIGINT), file_row_number)",
                  read->is_narrow ? "kn_wanted" : "kn_live", read->id, group->first);
}

static KnCode write_inner(KnRead *read, const KnOutputs *out, const KnReadGroup *group, KnBuf *buf,
                          KnErr *err)
{
    KnProject project = {.read = read, .n_files = group->n_files, .files = group->files};
    kn_buf_text(buf, "SELECT ");
    KN_TRY(kn_read_outputs_sql(out, &project, buf, err));
    if (read->opts.with_lineage)
        write_lineage(read, group, buf);
    kn_buf_printf(buf, "%zu + CAST(file_index AS BIGINT) AS l2, file_row_number AS l3 FROM ",
                  group->first);
    kn_read_source_sql(read, group->files, group->n_files, buf);
    write_row_filter(read, group, buf);
    return KN_OK;
}

/* ---- the SELECT around it ---- */

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
        kn_buf_printf(buf, "%sl2 AS _task, l3 AS _pos", n || opts->with_lineage ? ", " : "");
    if (n == 0 && !opts->with_lineage && !opts->with_position)
        kn_buf_text(buf, "NULL AS _");
}

static KnCode write_group(KnRead *read, const KnOutputs *out, const KnReadGroup *group, KnBuf *buf,
                          KnErr *err)
{
    kn_buf_text(buf, "SELECT ");
    write_outer_columns(&read->opts, buf);
    kn_buf_text(buf, " FROM (");
    KN_TRY(write_inner(read, out, group, buf, err));
    kn_buf_text(buf, ") AS b");
    KN_TRY(kn_read_where_sql(out, &read->opts, buf, err));
    return kn_buf_check(buf, err);
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
    kn_buf_text(buf, "0::BIGINT AS l0, 0::BIGINT AS l1, 0::BIGINT AS l2, 0::BIGINT AS l3) WHERE "
                     "FALSE");
    return kn_buf_check(buf, err);
}

/* ---- opening ---- */

const char *kn_read_new_table(KnRead *read, const char *kind)
{
    return kn_arena_printf(read->arena, "kn_read_%" PRId64 "_%s%zu", read->id, kind,
                           read->n_tables++);
}

static KnCode look_at_data(KnRead *read, KnScanTasks tasks, KnErr *err)
{
    size_t n = tasks.n;
    const KnManifestEntry **entries = kn_arena_alloc(read->arena, (n + 1) * sizeof(*entries));
    KnScanTask *copies = kn_arena_alloc(read->arena, (n + 1) * sizeof(*copies));
    for (size_t i = 0; i < n; i++) {
        entries[i] = tasks.items[i].data;
        copies[i] = tasks.items[i];
        if (read->opts.ignore_deletes)
            copies[i].n_deletes = 0;
    }
    read->tasks = copies;
    read->n_tasks = n;
    KN_TRY(kn_read_look(read, entries, n, &read->files, err));
    for (size_t i = 0; i < n; i++)
        read->files[i].task = &copies[i];
    read->n_files = n;
    return KN_OK;
}

void kn_read_add_groups(KnRead *read, size_t first, size_t end)
{
    KnReadFile **list = kn_arena_alloc(read->arena, (end - first + 1) * sizeof(*list));
    KnReadGroup *group = NULL;
    for (size_t i = first; i < end; i++) {
        list[i - first] = &read->files[i];
        if (!group || strcmp(group->files[0]->shape, read->files[i].shape) != 0) {
            group = &read->groups[read->n_groups++];
            *group = (KnReadGroup){.first = i, .files = &list[i - first]};
        }
        group->n_files++;
    }
}

static void make_groups(KnRead *read)
{
    read->groups = kn_arena_zalloc(read->arena, (read->n_files + 1) * sizeof(*read->groups));
    kn_read_add_groups(read, 0, read->n_files);
}

static bool has_deletes(const KnRead *read)
{
    if (read->opts.except_sql)
        return true;
    for (size_t i = 0; i < read->n_files; i++)
        if (read->files[i].task->n_deletes > 0)
            return true;
    return false;
}

static KnCode load_exceptions(KnRead *read, KnErr *err)
{
    if (!read->opts.except_sql)
        return KN_OK;
    KnReadFile **files = kn_arena_alloc(read->arena, (read->n_files + 1) * sizeof(*files));
    for (size_t i = 0; i < read->n_files; i++)
        files[i] = &read->files[i];
    return kn_read_mark_query(read, files, read->n_files, read->opts.except_sql, err);
}

static KnCode load_deletes(KnRead *read, KnErr *err)
{
    if (!has_deletes(read))
        return KN_OK;
    KN_TRY(kn_read_load_positions(read, err));
    KN_TRY(kn_read_load_vectors(read, err));
    if (read->opts.keep_positions)
        KN_TRY(kn_read_keep_positions(read, err));
    KN_TRY(kn_read_load_equality(read, err));
    KN_TRY(load_exceptions(read, err));
    return kn_read_live_open(read, err);
}

static KnCode write_all(KnRead *read, const KnOutputs *out, KnErr *err)
{
    KN_BUF_AUTO all;
    KN_BUF_AUTO one;
    kn_buf_init(&all, (size_t)1 << 30);
    kn_buf_init(&one, (size_t)1 << 30);
    read->group_sql = kn_arena_alloc(read->arena, (read->n_groups + 1) * sizeof(*read->group_sql));
    for (size_t i = 0; i < read->n_groups; i++) {
        kn_buf_reset(&one);
        KN_TRY(write_group(read, out, &read->groups[i], &one, err));
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

KnCode kn_read_write_groups(KnRead *read, KnErr *err)
{
    KnOutputs out = {0};
    kn_read_outputs_fill(&out, &read->opts, false);
    KnCode rc = write_all(read, &out, err);
    kn_vec_done(&out.fields);
    return rc;
}

static KnCode open_read(KnRead *read, KnScanTasks tasks, KnErr *err)
{
    if (tasks.n > 0) {
        KN_TRY(look_at_data(read, tasks, err));
        make_groups(read);
        KN_TRY(load_deletes(read, err));
    }
    return kn_read_write_groups(read, err);
}

/* Tables of a load that failed, or whose last join is over. */
static void drop_tables(KnRead *read)
{
    static const char kinds[] = "wmse";
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 24);
    for (size_t i = 0; i < read->n_tables; i++)
        for (const char *kind = kinds; *kind; kind++)
            kn_buf_printf(&sql, "DROP TABLE IF EXISTS kn_read_%" PRId64 "_%c%zu; ", read->id, *kind,
                          i);
    if (read->n_tables > 0 && !sql.failed)
        (void)!kn_session_exec(read->ses, sql.data, NULL, NULL);
    read->n_tables = 0;
}

KnCode kn_read_open(const KnTable *tbl, KnSession *ses, KnScanTasks tasks,
                    const KnReadOptions *opts, KnRead **ret, KnErr *err)
{
    static atomic_int_fast64_t next_id;
    KnArena *arena = kn_arena_new(0);
    KnRead *read = kn_arena_zalloc(arena, sizeof(*read));
    *read = (KnRead){.arena = arena, .tbl = tbl, .ses = ses, .opts = *opts};
    read->id = atomic_fetch_add(&next_id, 1);
    KnCode rc = open_read(read, tasks, err);
    drop_tables(read);
    if (rc == KN_OK)
        *ret = read;
    else
        kn_read_close(read);
    return rc;
}

KnRead *kn_read_close(KnRead *read)
{
    if (!read)
        return NULL;
    kn_read_live_close(read);
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
