/* SPDX-License-Identifier: Apache-2.0 */
/* ferry.c - see ferry.h. */
#include "unit/cdc/ferry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_delivery(Ferry *fy)
{
    if (kn_journal_sqlite_open(fy->state, KN_JOURNAL_WRITE, &fy->jn, &fy->err) != KN_OK)
        fail_msg("journal: %s", fy->err.msg);
    if (kn_delivery_open(fy->lake.tbl, fy->jn, &fy->opts, &fy->dlv, &fy->err) != KN_OK)
        fail_msg("delivery: %s", fy->err.msg);
}

static void close_delivery(Ferry *fy)
{
    fy->dlv = kn_delivery_close(fy->dlv);
    fy->jn = kn_journal_close(fy->jn);
}

void ferry_open(Ferry *fy, const LakeTable *table)
{
    memset(fy, 0, sizeof(*fy));
    lake_open(&fy->lake, table);
    (void)snprintf(fy->state, sizeof(fy->state), "%s/state.db", fy->lake.dir);
    (void)snprintf(fy->dest, sizeof(fy->dest), "%s/dest.duckdb", fy->lake.dir);
    (void)snprintf(fy->sink, sizeof(fy->sink), "duckdb:%s", fy->dest);
    fy->opts = (KnDeliveryOptions){.sink = fy->sink, .target = "t", .threads = 2};
    open_delivery(fy);
}

void ferry_close(Ferry *fy)
{
    close_delivery(fy);
    lake_close(&fy->lake);
}

void ferry_restart(Ferry *fy)
{
    close_delivery(fy);
    open_delivery(fy);
}

const KnDeliveryReport *ferry_round(Ferry *fy)
{
    if (kn_delivery_round(fy->dlv, &fy->err) != KN_OK)
        fail_msg("round: %s", fy->err.msg);
    return kn_delivery_report(fy->dlv);
}

void ferry_round_fails(Ferry *fy, KnCode code, const char *part)
{
    KnCode rc = kn_delivery_round(fy->dlv, &fy->err);
    if (rc != code || !strstr(fy->err.msg, part))
        fail_msg("round gave %s: %s", kn_code_name(rc), rc ? fy->err.msg : "");
    const KnDeliveryReport *report = kn_delivery_report(fy->dlv);
    assert_string_equal(report->message, fy->err.msg);
    assert_int_equal(report->status,
                     code == KN_E_REFUSED ? KN_DELIVERY_REFUSED : KN_DELIVERY_FAILED);
}

static void with_destination(Ferry *fy, const char *sql, KnBuf *out)
{
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    const KnEngineOptions opts = {.database = fy->dest, .threads = 1};
    KnCode rc = kn_engine_open(&opts, &eng, &fy->err);
    if (rc == KN_OK)
        rc = kn_session_open(eng, &ses, &fy->err);
    if (rc == KN_OK)
        rc = out ? kn_session_query_text(ses, sql, out, &fy->err)
                 : kn_session_exec(ses, sql, NULL, &fy->err);
    if (rc == KN_E_NOTFOUND && out)
        kn_buf_text(out, "NULL");
    else if (rc != KN_OK)
        fail_msg("%s: %s", sql, fy->err.msg);
    ses = kn_session_close(ses);
    eng = kn_engine_close(eng);
}

const char *ferry_text(Ferry *fy, const char *sql)
{
    static KnBuf out;
    kn_buf_done(&out);
    kn_buf_init(&out, (size_t)64 << 20);
    with_destination(fy, sql, &out);
    return out.data;
}

void ferry_exec(Ferry *fy, const char *sql)
{
    with_destination(fy, sql, NULL);
}

/* Columns in the source's order: the target's may have come in another. */
static void rows_sql(const Ferry *fy, const char *from, KnBuf *sql)
{
    const KnType *root = &kn_metadata_schema(fy->lake.tbl->md)->root;
    kn_buf_text(sql,
                "SELECT string_agg(CAST(s AS VARCHAR), chr(10) ORDER BY CAST(s AS VARCHAR)) FROM "
                "(SELECT ");
    for (size_t i = 0; i < root->n_fields; ++i) {
        kn_buf_text(sql, i ? ", " : "");
        kn_sql_ident(sql, kn_str(root->fields[i].name));
    }
    kn_buf_printf(sql, " FROM %s) AS s", from);
}

void ferry_same_rows(Ferry *fy)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 20);
    rows_sql(fy, "{scan}", &sql);
    const char *want = lake_text(&fy->lake, sql.data);
    kn_buf_reset(&sql);
    rows_sql(fy, "t", &sql);
    assert_string_equal(ferry_text(fy, sql.data), want);
}
