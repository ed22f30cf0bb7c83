/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* store_internal.h - what the files of the store share: its connections. */
#include <pthread.h>

#include "catalog/store/sql.h"

struct KnStore {
    KnSqlDriver *driver;
    char *catalog;
    char *id;
    bool sqlite;
    int64_t keep_events; /* in the log; 0 = all */
    KnSqlConn *writer;   /* of whoever commits; NULL = to be made */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    KnSqlConn **idle; /* connections for reading, lent to one thread at a time */
    int n_idle, n_made, max_made;
};

/** A connection for reading; give it back. */
KN_NODISCARD KnCode kn_store_lend(KnStore *store, KnSqlConn **ret, KnErr *err);
void kn_store_give_back(KnStore *store, KnSqlConn *conn);
/** Lends a connection for one statement; once more on a new one when the first turned out broken.
 * What fn has gathered is gathered twice then: it is told by a call with values NULL. */
KN_NODISCARD KnCode kn_store_ask(KnStore *store, KnSqlCall *call, KnErr *err);
