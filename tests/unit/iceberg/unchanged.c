/* SPDX-License-Identifier: Apache-2.0 */
/* unchanged.c - see unchanged.h. */
#include "unit/iceberg/unchanged.h"

#include <stdlib.h>
#include <string.h>

/* All rows, in v3 with their lineage, as they are at a snapshot; the caller frees. */
static char *rows_at(Lake *lake, const KnSnapshot *snap)
{
    bool lineage = lake->tbl->md->format_version >= 3;
    KnPlan *plan = NULL;
    KnPlanOptions plan_opts = {.snapshot = snap};
    lake_ok(lake, kn_plan_scan(lake->tbl, &plan_opts, &plan, &lake->err));
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake->tbl->md), .with_lineage = lineage};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, (KnScanTasks){plan->tasks, plan->n_tasks},
                               &opts, &read, &lake->err));
    KN_BUF_AUTO sql;
    KN_BUF_AUTO out;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_init(&out, (size_t)64 << 20);
    kn_buf_printf(&sql,
                  "SELECT count(*) || ' ' || coalesce(string_agg(CAST(s AS VARCHAR), ' ' ORDER BY "
                  "CAST(s AS VARCHAR)), '') FROM (%s) AS s",
                  kn_read_sql(read));
    lake_ok(lake, kn_session_query_text(lake->ses, sql.data, &out, &lake->err));
    kn_read_close(read);
    kn_plan_free(plan);
    return kn_buf_steal(&out, NULL);
}

void unchanged_window(Lake *lake, int64_t from_id, const KnSnapshot *to)
{
    const KnSnapshot *from = kn_metadata_find_snapshot(lake->tbl->md, from_id);
    KnWindow *win = NULL;
    lake_ok(lake, kn_window_plan(lake->tbl, from, to, &win, &lake->err));
    KnChangeRows *rows = NULL;
    KnChangeRowsOptions opts = {.schema = kn_metadata_schema(lake->tbl->md)};
    lake_ok(lake, kn_window_change_rows(win, lake->ses, &opts, &rows, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "SELECT count(*) FROM (%s)", kn_change_rows_sql(rows));
    int64_t n = -1;
    lake_ok(lake, kn_session_query_i64(lake->ses, sql.data, &n, &lake->err));
    assert_int_equal(n, 0);
    kn_change_rows_close(rows);
    kn_window_free(win);
}

/* The first, the last and one between: each is read several times. */
static bool is_looked_at(size_t i, size_t n)
{
    return i == 0 || i == n / 2 || i + 1 == n;
}

UnchangedTable unchanged_look(Lake *lake)
{
    UnchangedTable b = {.md = kn_metadata_ref(lake->tbl->md)};
    b.rows = calloc(b.md->n_snapshots + 1, sizeof(*b.rows));
    assert_non_null(b.rows);
    for (size_t i = 0; i < b.md->n_snapshots; i++) {
        if (is_looked_at(i, b.md->n_snapshots))
            b.rows[i] = rows_at(lake, &b.md->snapshots[i]);
    }
    b.now = rows_at(lake, kn_metadata_snapshot(lake->tbl->md));
    return b;
}

static void check_refs(const KnMetadata *was, const KnMetadata *is)
{
    assert_int_equal(was->n_refs, is->n_refs);
    for (size_t i = 0; i < was->n_refs; i++) {
        const KnRef *ref = kn_metadata_find_ref(is, kn_str(was->refs[i].name));
        assert_non_null(ref);
        assert_int_equal(ref->is_branch, was->refs[i].is_branch);
        if (strcmp(ref->name, "main") != 0)
            assert_int_equal(ref->snapshot_id, was->refs[i].snapshot_id);
    }
}

void unchanged_check(Lake *lake, UnchangedTable *was)
{
    const KnMetadata *md = lake->tbl->md;
    assert_string_equal(md->uuid, was->md->uuid);
    assert_string_equal(md->location, was->md->location);
    check_refs(was->md, md);
    for (size_t i = 0; i < was->md->n_snapshots; i++) {
        const KnSnapshot *old = kn_metadata_find_snapshot(md, was->md->snapshots[i].snapshot_id);
        assert_non_null(old);
        if (!is_looked_at(i, was->md->n_snapshots))
            continue;
        char *rows = rows_at(lake, old);
        assert_string_equal(rows, was->rows[i]);
        free(rows);
        free(was->rows[i]);
    }
    char *now = rows_at(lake, kn_metadata_snapshot(lake->tbl->md));
    assert_string_equal(now, was->now);
    free(now);
    for (const KnSnapshot *s = kn_metadata_snapshot(lake->tbl->md);
         s->snapshot_id != was->md->current_snapshot_id;
         s = kn_metadata_find_snapshot(md, s->parent_id)) {
        assert_non_null(s);
        assert_string_equal(s->operation, "replace");
        unchanged_window(lake, s->parent_id, s);
    }
    free(was->rows);
    free(was->now);
    kn_metadata_unref(was->md);
}

void lake_make_ref(Lake *lake, const char *name, bool is_branch)
{
    KnRef ref = {.name = name,
                 .snapshot_id = kn_metadata_snapshot(lake->tbl->md)->snapshot_id,
                 .is_branch = is_branch,
                 .min_snapshots_to_keep = -1,
                 .max_snapshot_age_ms = -1,
                 .max_ref_age_ms = -1};
    KnUpdate update = {.kind = KN_UPDATE_SET_SNAPSHOT_REF, .text = name, .ref = ref};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &commit, &lake->err));
}
