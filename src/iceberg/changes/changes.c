/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes.c - a window's rows as one SELECT of deletes and inserts.
 *
 * Rows before are those of removed files (as live at `from`) and those that a touched file lost;
 * rows after are those of added files (as live at `to`) and those that a touched file got back.
 * What a touched file lost is found by position, not by value: rows live at `from` whose positions
 * are not live at `to`, in one pass over the file; rows that stayed are not compared.
 *
 * When both sides have rows, the net is the multiset difference by row identity (row_sql.h). A
 * first look finds which rows can differ (changes_sift.c); a GROUP BY over those of both sides
 * keeps the groups whose counts differ and repeats each as often as they differ. A group's ord is
 * that of its last row, so the order of rows does not depend on how the engine ran. Where floats
 * stand below the top level, a window finds the groups instead (put_partitions).
 *
 * A `replace` that comes here could not be settled from manifests: its live rows are counted on
 * both sides, and it is believed when they are as many.
 */
#include <inttypes.h>

#include "iceberg/changes/spool_internal.h"
#include "iceberg/changes/window_internal.h"
#include "iceberg/scan/row_sql.h"

enum { READ_REMOVED, READ_ADDED, READ_FROM, READ_TO, N_READS };

struct KnChanges {
    const KnWindow *win;
    KnSession *ses;
    const KnSchema *schema;
    KnRead *reads[N_READS];
    size_t max_buckets;
    KnSift *sift;
    bool gained; /* a touched file may have rows at `to` that it had not at `from` */
    KnBuf sql;
};

static const KnSchema no_columns = {.root = {.kind = KN_TYPE_STRUCT}};

/* ---- reading ---- */

static bool lost_a_delete(const KnScanTask *before, const KnScanTask *after)
{
    for (size_t i = 0; i < before->n_deletes; i++) {
        KnScanTask one = {.n_deletes = 1, .deletes = &before->deletes[i]};
        bool found = false;
        for (size_t j = 0; !found && j < after->n_deletes; j++)
            found = kn_window_same_deletes(
                &one, &(KnScanTask){.n_deletes = 1, .deletes = &after->deletes[j]});
        if (!found)
            return true;
    }
    return false;
}

static bool may_gain(const KnWindow *win)
{
    for (size_t i = 0; i < win->n_touched; i++) {
        if (lost_a_delete(&win->touched[i], &win->touched_after[i]))
            return true;
    }
    return false;
}

static KnCode open_read(KnChanges *ch, int which, const KnScanTask *tasks, size_t n, KnErr *err)
{
    KnReadOptions opts = {.schema = ch->schema, .with_position = true};
    return kn_read_open(ch->win->tbl, ch->ses, (KnScanTasks){tasks, n}, &opts, &ch->reads[which],
                        err);
}

static KnCode open_reads(KnChanges *ch, KnErr *err)
{
    const KnWindow *win = ch->win;
    KN_TRY(open_read(ch, READ_REMOVED, win->removed, win->n_removed, err));
    KN_TRY(open_read(ch, READ_ADDED, win->added, win->n_added, err));
    if (win->n_touched == 0)
        return KN_OK;
    KN_TRY(open_read(ch, READ_FROM, win->touched, win->n_touched, err));
    ch->gained = may_gain(win);
    return open_read(ch, READ_TO, win->touched_after, win->n_touched, err);
}

/* ---- SQL ---- */

void kn_changes_put_columns(KnBuf *buf, const KnSchema *schema)
{
    for (size_t i = 0; i < schema->root.n_fields; i++)
        kn_buf_printf(buf, "%sc%zu", i > 0 ? ", " : "", i);
}

void kn_changes_put_named(KnBuf *buf, const KnSchema *schema)
{
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        kn_buf_printf(buf, "%sc%zu AS ", i > 0 ? ", " : "", i);
        kn_sql_ident(buf, kn_str(schema->root.fields[i].name));
    }
}

KnCode kn_changes_find_key(const KnSchema *schema, const char *key, size_t *ret, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        if (strcmp(schema->root.fields[i].name, key) == 0) {
            *ret = i;
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_INVAL, "key column %s is not among the columns", key);
}

static void put_identity(KnBuf *buf, const KnSchema *schema, size_t column)
{
    char name[24];
    int len = snprintf(name, sizeof(name), "c%zu", column);
    kn_row_identity_sql(buf, schema->root.fields[column].type, (KnStr){name, (size_t)len});
}

KnCode kn_changes_put_key(KnBuf *buf, const KnSchema *schema, const char *const *keys,
                          size_t n_keys, KnErr *err)
{
    size_t n = n_keys > 0 ? n_keys : schema->root.n_fields;
    for (size_t i = 0; i < n; i++) {
        size_t column = i;
        if (n_keys > 0)
            KN_TRY(kn_changes_find_key(schema, keys[i], &column, err));
        kn_buf_text(buf, i > 0 ? ", " : "");
        put_identity(buf, schema, column);
    }
    return KN_OK;
}

/* "(...) AS name(c0, ..., t, p)" */
static void put_read(KnBuf *buf, const KnRead *read, const KnSchema *schema, const char *name)
{
    kn_buf_printf(buf, "(%s\n) AS %s(", kn_read_sql(read), name);
    kn_changes_put_columns(buf, schema);
    kn_buf_printf(buf, "%st, p)", schema->root.n_fields > 0 ? ", " : "");
}

void kn_changes_put_from(KnBuf *buf, const KnChangesSides *sides, size_t branch)
{
    const KnBranch *of = &sides->branches[branch];
    kn_buf_text(buf, "FROM ");
    put_read(buf, of->read, sides->schema, "r");
    if (of->other) {
        kn_buf_text(buf, " WHERE NOT ");
        kn_read_live_sql(of->other, "t", "p", buf);
    }
}

/* SELECT op, ord, c0, ... FROM one branch. */
static void put_branch(KnBuf *buf, const KnChangesSides *sides, size_t branch)
{
    const KnBranch *of = &sides->branches[branch];
    kn_buf_printf(buf, "SELECT %d AS op, ((t + %zu) << 40) | p AS ord", of->op, of->first_task);
    kn_buf_text(buf, sides->schema->root.n_fields > 0 ? ", " : "");
    kn_changes_put_columns(buf, sides->schema);
    kn_buf_char(buf, ' ');
    kn_changes_put_from(buf, sides, branch);
}

static KnChangesSides sides_of(const KnChanges *ch)
{
    const KnWindow *win = ch->win;
    KnRead *const *reads = ch->reads;
    KnScanTasks removed = {win->removed, win->n_removed};
    KnScanTasks added = {win->added, win->n_added};
    KnScanTasks from = {win->touched, win->n_touched};
    KnScanTasks to = {win->touched_after, win->n_touched};
    KnChangesSides sides = {
        .ses = ch->ses, .arena = win->arena, .schema = ch->schema, .max_buckets = ch->max_buckets};
    sides.branches[sides.n++] = (KnBranch){0, 0, removed, reads[READ_REMOVED], NULL};
    sides.branches[sides.n++] = (KnBranch){1, 0, added, reads[READ_ADDED], NULL};
    if (win->n_touched > 0)
        sides.branches[sides.n++] =
            (KnBranch){0, removed.n, from, reads[READ_FROM], reads[READ_TO]};
    if (ch->gained)
        sides.branches[sides.n++] = (KnBranch){1, added.n, to, reads[READ_TO], reads[READ_FROM]};
    return sides;
}

/* All rows before (op 0) and after (op 1). */
static void put_both(KnChanges *ch)
{
    KnChangesSides sides = sides_of(ch);
    for (size_t b = 0; b < sides.n; b++) {
        kn_buf_text(&ch->sql, b > 0 ? " UNION ALL " : "");
        put_branch(&ch->sql, &sides, b);
    }
}

/* A column of a group: the key itself, or (where the key is a form of it) that of the last row. */
static void put_group_column(KnBuf *buf, const KnType *type, size_t i)
{
    if (kn_row_identity_is_plain(type))
        kn_buf_printf(buf, ", any_value(c%zu) AS c%zu", i, i);
    else
        kn_buf_printf(buf, ", arg_max(c%zu, (ord << 1) | op) AS c%zu", i, i);
}

/* Of FROM: the rows of both sides that can differ, as u. */
static void put_dirty_rows(KnChanges *ch)
{
    kn_buf_text(&ch->sql, " FROM (");
    put_both(ch);
    kn_buf_text(&ch->sql, ") AS u");
}

/* SELECT n0, n1, o0, o1, c0, ...: one row for each group of equal rows whose counts differ. */
static KnCode put_groups(KnChanges *ch, KnErr *err)
{
    KnBuf *buf = &ch->sql;
    const KnSchema *schema = ch->schema;
    kn_buf_text(buf, "SELECT count(*) FILTER (op = 0) AS n0, count(*) FILTER (op = 1) AS n1, "
                     "max(ord) FILTER (op = 0) AS o0, max(ord) FILTER (op = 1) AS o1");
    for (size_t i = 0; i < schema->root.n_fields; i++)
        put_group_column(buf, schema->root.fields[i].type, i);
    put_dirty_rows(ch);
    kn_buf_text(buf, " GROUP BY ");
    KN_TRY(kn_changes_put_key(buf, schema, NULL, 0, err));
    kn_buf_text(buf, " HAVING n0 <> n1");
    return KN_OK;
}

/* The same, by a window: its rows go through whole, where aggregates keep nested values as sort
 * keys, in which -0.0 has become 0.0. */
static KnCode put_partitions(KnChanges *ch, KnErr *err)
{
    KnBuf *buf = &ch->sql;
    kn_buf_text(buf,
                "SELECT count(*) FILTER (op = 0) OVER g AS n0, count(*) FILTER (op = 1) OVER g AS "
                "n1, max(ord) FILTER (op = 0) OVER g AS o0, max(ord) FILTER (op = 1) OVER g AS o1");
    for (size_t i = 0; i < ch->schema->root.n_fields; i++)
        kn_buf_printf(buf, ", c%zu", i);
    put_dirty_rows(ch);
    kn_buf_text(buf, " WINDOW g AS (PARTITION BY ");
    KN_TRY(kn_changes_put_key(buf, ch->schema, NULL, 0, err));
    kn_buf_text(buf, "), l AS (PARTITION BY ");
    KN_TRY(kn_changes_put_key(buf, ch->schema, NULL, 0, err));
    kn_buf_text(buf, " ORDER BY ord DESC, op DESC) QUALIFY row_number() OVER l = 1 AND n0 <> n1");
    return KN_OK;
}

static KnCode put_net(KnChanges *ch, KnErr *err)
{
    KnBuf *buf = &ch->sql;
    const KnSchema *schema = ch->schema;
    KnChangesSides sides = sides_of(ch);
    KN_TRY(kn_changes_sift(&sides, &ch->sift, err));
    kn_buf_text(buf, "SELECT op, ord");
    for (size_t i = 0; i < schema->root.n_fields; i++)
        kn_buf_printf(buf, ", c%zu", i);
    kn_buf_text(buf, " FROM (SELECT CASE WHEN n0 > n1 THEN 0 ELSE 1 END AS op, "
                     "CASE WHEN n0 > n1 THEN o0 ELSE o1 END AS ord, "
                     "unnest(range(abs(n0 - n1))) AS copy");
    for (size_t i = 0; i < schema->root.n_fields; i++)
        kn_buf_printf(buf, ", c%zu", i);
    kn_buf_text(buf, " FROM (");
    KN_TRY(kn_row_has_nested_float(&schema->root) ? put_partitions(ch, err) : put_groups(ch, err));
    kn_buf_text(buf, ") AS g) AS e");
    return KN_OK;
}

/* ---- replace ---- */

static KnCode check_counts(KnChanges *ch, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, ch->sql.max);
    kn_buf_text(&sql,
                "SELECT coalesce(sum(CASE WHEN op = 0 THEN 1 ELSE -1 END), 0)::BIGINT FROM (");
    kn_buf_append(&sql, ch->sql.data, ch->sql.len);
    kn_buf_text(&sql, ") AS u");
    KN_TRY(kn_buf_check(&sql, err));
    int64_t lost = 0;
    KN_TRY(kn_session_query_i64(ch->ses, sql.data, &lost, err));
    if (lost == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "snapshot %" PRId64 " of table %s says replace, but has %" PRId64
                      " live rows %s than before: it is not believed; run `knut cdc reload` to "
                      "deliver the table anew",
                      ch->win->to->snapshot_id, ch->win->tbl->name, lost < 0 ? -lost : lost,
                      lost < 0 ? "more" : "less");
}

static KnCode settle_replace(KnChanges *ch, KnErr *err)
{
    const KnSchema *schema = ch->schema;
    ch->schema = &no_columns;
    put_both(ch);
    KnCode rc = kn_buf_check(&ch->sql, err);
    if (rc == KN_OK)
        rc = check_counts(ch, err);
    kn_buf_reset(&ch->sql);
    ch->schema = schema;
    return rc;
}

/* A SELECT without rows, typed. */
static KnCode put_nothing(KnChanges *ch, KnErr *err)
{
    KnRead *none = NULL;
    KnReadOptions opts = {.schema = ch->schema, .with_position = true};
    KN_TRY(kn_read_open(ch->win->tbl, ch->ses, (KnScanTasks){0}, &opts, &none, err));
    KnChangesSides sides = {.schema = ch->schema, .n = 1, .branches = {{.read = none}}};
    put_branch(&ch->sql, &sides, 0);
    kn_read_close(none);
    return KN_OK;
}

static bool has_both_sides(const KnChanges *ch)
{
    const KnWindow *win = ch->win;
    return (win->n_removed > 0 || win->n_touched > 0) && (win->n_added > 0 || ch->gained);
}

static KnCode fill(KnChanges *ch, bool raw, KnErr *err)
{
    bool replace = strcmp(ch->win->operation, "replace") == 0;
    if (ch->win->kind == KN_WINDOW_EMPTY)
        return put_nothing(ch, err);
    const KnSchema *schema = ch->schema;
    if (replace)
        ch->schema = &no_columns;
    KN_TRY(open_reads(ch, err));
    if (replace) {
        KN_TRY(settle_replace(ch, err));
        ch->schema = schema;
        return put_nothing(ch, err);
    }
    if (!raw && has_both_sides(ch))
        return put_net(ch, err);
    put_both(ch);
    return KN_OK;
}

KnCode kn_changes_open(const KnWindow *win, KnSession *ses, const KnChangesOptions *opts,
                       KnChanges **ret, KnErr *err)
{
    KnChanges *ch = kn_arena_zalloc(win->arena, sizeof(*ch));
    *ch = (KnChanges){
        .win = win, .ses = ses, .schema = opts->schema, .max_buckets = opts->max_buckets};
    kn_buf_init(&ch->sql, (size_t)256 << 20);
    KnCode rc = fill(ch, opts->raw, err);
    if (rc == KN_OK)
        rc = kn_buf_check(&ch->sql, err);
    if (rc != KN_OK) {
        kn_changes_close(ch);
        return kn_err_wrap(err, rc, "snapshot %" PRId64, win->to->snapshot_id);
    }
    *ret = ch;
    return KN_OK;
}

const char *kn_changes_sql(const KnChanges *changes)
{
    return changes->sql.data;
}

KnChanges *kn_changes_close(KnChanges *changes)
{
    if (!changes)
        return NULL;
    for (int i = 0; i < N_READS; i++)
        changes->reads[i] = kn_read_close(changes->reads[i]);
    changes->sift = kn_changes_sift_close(changes->sift);
    kn_buf_done(&changes->sql);
    return NULL;
}
