/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes_dirty.c - which rows of a rewrite can have changed at all: a first pass over
 * fingerprints.
 *
 * Comparing two sides by whole rows costs memory for every row, though a rewrite carries most of
 * them over unchanged. So the first pass keeps 16 bytes a row: two hashes that are independent of
 * one another (columns in the other order, texts read backwards). Fingerprints that come as often
 * before as after belong to rows that stayed; the rest, the "dirty" ones, go to a temporary table,
 * and only their rows are compared by value. Two different rows with one fingerprint would have to
 * agree in 128 bits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "iceberg/row_sql.h"
#include "iceberg/spool_internal.h"

/* The second hash's form of a column: what the first one does not see the same way. */
static void put_backwards(KnBuf *buf, const KnType *type, KnStr column)
{
    if (type->kind == KN_TYPE_STRING) {
        kn_buf_text(buf, "reverse(");
        kn_buf_str(buf, column);
        kn_buf_char(buf, ')');
    } else if (type->kind == KN_TYPE_BINARY || type->kind == KN_TYPE_FIXED) {
        kn_buf_text(buf, "md5_number_lower(hex(");
        kn_buf_str(buf, column);
        kn_buf_text(buf, "))");
    } else if (kn_type_is_nested(type) || type->kind == KN_TYPE_UUID ||
               (type->kind == KN_TYPE_DECIMAL && type->precision > 18)) {
        kn_buf_text(buf, "md5_number_lower(CAST(");
        kn_row_identity_sql(buf, type, column);
        kn_buf_text(buf, " AS VARCHAR))");
    } else {
        kn_row_identity_sql(buf, type, column);
    }
}

void kn_changes_put_fingerprint(KnBuf *buf, const KnSchema *schema, int which)
{
    size_t n = schema->root.n_fields;
    kn_buf_text(buf, "hash(");
    for (size_t i = 0; i < n; i++) {
        size_t at = which == 0 ? i : n - 1 - i;
        char name[24];
        int len = snprintf(name, sizeof(name), "c%zu", at);
        KnStr column = {name, (size_t)len};
        kn_buf_text(buf, i > 0 ? ", " : "");
        if (which == 0)
            kn_row_identity_sql(buf, schema->root.fields[at].type, column);
        else
            put_backwards(buf, schema->root.fields[at].type, column);
    }
    kn_buf_text(buf, n == 0 ? "0)" : ")");
}

KnCode kn_changes_keep_dirty(KnSession *ses, const KnSchema *schema, KnStr both, char ret_table[32],
                             KnErr *err)
{
    char table[32];
    if (snprintf(table, sizeof(table), "kn_dirty_%" PRIx64, (uint64_t)kn_random_id()) < 0)
        abort();
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS SELECT h0, h1 FROM (SELECT op, ", table);
    kn_changes_put_fingerprint(&sql, schema, 0);
    kn_buf_text(&sql, " AS h0, ");
    kn_changes_put_fingerprint(&sql, schema, 1);
    kn_buf_text(&sql, " AS h1 FROM (");
    kn_buf_str(&sql, both);
    kn_buf_text(&sql, ") AS u) AS f GROUP BY h0, h1 "
                      "HAVING sum(CASE WHEN op = 0 THEN 1 ELSE -1 END) <> 0");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_exec(ses, sql.data, NULL, err));
    memcpy(ret_table, table, sizeof(table));
    return KN_OK;
}

void kn_changes_drop_dirty(KnSession *ses, const char *table)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 256);
    kn_buf_printf(&sql, "DROP TABLE IF EXISTS %s", table);
    /* A table that stays goes with the session. */
    KN_IGNORE(kn_session_exec(ses, sql.data, NULL, NULL));
}
