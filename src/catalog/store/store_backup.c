/* SPDX-License-Identifier: Apache-2.0 */
/* store_backup.c - a consistent copy of the database, while others use it. */
#include <string.h>

#include "catalog/store/store_internal.h"

enum { SQL_MAX = 1 << 16 };

KnCode kn_store_backup(KnStore *store, const char *file, KnErr *err)
{
    if (!store->sqlite)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "%s: copies of PostgreSQL databases are made by pg_dump",
                          kn_store_name(store));
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, SQL_MAX);
    kn_buf_text(&sql, "VACUUM INTO '");
    for (const char *p = file; *p; p++) {
        kn_buf_char(&sql, *p);
        if (*p == '\'')
            kn_buf_char(&sql, '\'');
    }
    kn_buf_char(&sql, '\'');
    KN_TRY(kn_buf_check(&sql, err));
    KnSqlConn *conn = NULL;
    KN_TRY(kn_store_lend(store, &conn, err));
    KnCode rc = conn->ops->exec(conn, sql.data, err);
    kn_store_give_back(store, conn);
    return rc;
}
