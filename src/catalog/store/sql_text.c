/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_text.c - the statements, once for both databases; see sql.h.
 *
 * `@collate@` stands for the byte-order collation, `@lock@` for a row lock, `@type@` for the column
 * iceberg_type, which schema V0 does not have. Prefixes are compared with substr(): LIKE would take
 * '_' and '%' of a name for wildcards.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "catalog/store/sql.h"

#define ENTRY_KEY " WHERE catalog_name=$1 AND table_namespace=$2 AND table_name=$3"

const char kn_sql_schema[] =
    "CREATE TABLE IF NOT EXISTS iceberg_tables ("
    " catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,"
    " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
    " previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),"
    " PRIMARY KEY (catalog_name, table_namespace, table_name));"
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("
    " catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,"
    " property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),"
    " PRIMARY KEY (catalog_name, namespace, property_key))";

#define LOG_SCHEMA(end)                                                                            \
    "CREATE TABLE IF NOT EXISTS knut_commit_seq ("                                                 \
    " catalog_name VARCHAR(255) NOT NULL PRIMARY KEY, last_seq BIGINT NOT NULL)" end               \
    ";CREATE TABLE IF NOT EXISTS knut_commits ("                                                   \
    " catalog_name VARCHAR(255) NOT NULL, seq BIGINT NOT NULL, timestamp_ms BIGINT NOT NULL,"      \
    " kind INTEGER NOT NULL, is_view INTEGER NOT NULL, table_namespace VARCHAR(255) NOT NULL,"     \
    " table_name VARCHAR(255) NOT NULL, from_namespace VARCHAR(255), from_name VARCHAR(255),"      \
    " snapshot_id BIGINT NOT NULL, metadata_location VARCHAR(1000) NOT NULL,"                      \
    " PRIMARY KEY (catalog_name, seq))" end

const char kn_sql_log_schema[] = LOG_SCHEMA("");
/* One tree a table, not a second one for its key: a page less to write with each commit. */
const char kn_sql_log_schema_sqlite[] = LOG_SCHEMA(" WITHOUT ROWID");

static const char *const texts[KN_N_SQL] = {
    [KN_SQL_FIND] = "SELECT metadata_location, @type@ FROM iceberg_tables" ENTRY_KEY,
    [KN_SQL_LIST] = "SELECT table_name FROM iceberg_tables WHERE catalog_name=$1 AND"
                    " table_namespace=$2 AND coalesce(@type@,'TABLE')=$3 AND"
                    " table_name > $4 @collate@ ORDER BY table_name @collate@"
                    " LIMIT CAST($5 AS BIGINT)",
    [KN_SQL_LIST_ALL] = "SELECT table_namespace, table_name FROM iceberg_tables WHERE"
                        " catalog_name=$1 AND coalesce(@type@,'TABLE')='TABLE' ORDER BY"
                        " table_namespace @collate@, table_name @collate@",
    [KN_SQL_NAMESPACES] =
        "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name=$1 AND"
        " substr(namespace,1,length($2))=$2 UNION SELECT table_namespace FROM iceberg_tables WHERE"
        " catalog_name=$1 AND substr(table_namespace,1,length($2))=$2",
    [KN_SQL_NS_EXACT] =
        "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name=$1 AND namespace=$2"
        " UNION ALL SELECT 1 FROM iceberg_tables WHERE catalog_name=$1 AND table_namespace=$2"
        " LIMIT 1",
    [KN_SQL_NS_BELOW] = /* $2 ends with a dot */
    "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name=$1 AND"
    " substr(namespace,1,length($2))=$2 UNION ALL SELECT 1 FROM iceberg_tables WHERE"
    " catalog_name=$1 AND substr(table_namespace,1,length($2))=$2 LIMIT 1",
    [KN_SQL_NS_ENTRIES] =
        "SELECT 1 FROM iceberg_tables WHERE catalog_name=$1 AND table_namespace=$2 LIMIT 1",
    [KN_SQL_NS_GET] = "SELECT property_key, property_value FROM iceberg_namespace_properties WHERE"
                      " catalog_name=$1 AND namespace=$2 ORDER BY property_key @collate@",
    [KN_SQL_NS_ADD] = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace,"
                      " property_key, property_value) VALUES ($1, $2, 'exists', 'true')"
                      " ON CONFLICT DO NOTHING",
    [KN_SQL_NS_PUT] = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace,"
                      " property_key, property_value) VALUES ($1, $2, $3, $4) ON CONFLICT"
                      " (catalog_name, namespace, property_key) DO UPDATE SET"
                      " property_value=excluded.property_value",
    [KN_SQL_NS_UNSET] = "DELETE FROM iceberg_namespace_properties WHERE catalog_name=$1 AND"
                        " namespace=$2 AND property_key=$3",
    [KN_SQL_NS_DELETE] =
        "DELETE FROM iceberg_namespace_properties WHERE catalog_name=$1 AND namespace=$2",
    [KN_SQL_INSERT] = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                      " metadata_location, iceberg_type) VALUES ($1, $2, $3, $4, $5)"
                      " ON CONFLICT DO NOTHING",
    [KN_SQL_SWAP] = "UPDATE iceberg_tables SET previous_metadata_location=metadata_location,"
                    " metadata_location=$5" ENTRY_KEY
                    " AND metadata_location=$4 AND coalesce(@type@,'TABLE')=$6",
    [KN_SQL_REMOVE] = "DELETE FROM iceberg_tables" ENTRY_KEY " AND coalesce(@type@,'TABLE')=$4",
    [KN_SQL_RENAME] = "UPDATE iceberg_tables SET table_namespace=$5, table_name=$6" ENTRY_KEY
                      " AND coalesce(@type@,'TABLE')=$4",
    [KN_SQL_SEQ_LOCK] = "SELECT last_seq FROM knut_commit_seq WHERE catalog_name=$1@lock@",
    [KN_SQL_SEQ_GET] = "SELECT last_seq FROM knut_commit_seq WHERE catalog_name=$1",
    [KN_SQL_SEQ_INIT] = "INSERT INTO knut_commit_seq (catalog_name, last_seq) VALUES ($1, 0)"
                        " ON CONFLICT DO NOTHING",
    [KN_SQL_SEQ_SET] =
        "UPDATE knut_commit_seq SET last_seq=CAST($2 AS BIGINT) WHERE catalog_name=$1",
    [KN_SQL_LOG_ADD] =
        "INSERT INTO knut_commits (catalog_name, seq, timestamp_ms, kind, is_view,"
        " table_namespace, table_name, from_namespace, from_name, snapshot_id, metadata_location)"
        " VALUES ($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS INTEGER),"
        " CAST($5 AS INTEGER), $6, $7, $8, $9, CAST($10 AS BIGINT), $11)",
    [KN_SQL_LOG_SINCE] =
        "SELECT seq, timestamp_ms, kind, is_view, table_namespace, table_name, from_namespace,"
        " from_name, snapshot_id, metadata_location FROM knut_commits WHERE catalog_name=$1 AND"
        " seq > CAST($2 AS BIGINT) ORDER BY seq LIMIT CAST($3 AS BIGINT)",
    [KN_SQL_LOG_PRUNE] =
        "DELETE FROM knut_commits WHERE catalog_name=$1 AND seq IN (SELECT seq FROM knut_commits"
        " WHERE catalog_name=$1 AND seq <= CAST($2 AS BIGINT) ORDER BY seq LIMIT 4096)",
    [KN_SQL_PING] = "SELECT 1",
    [KN_SQL_SAVEPOINT] = "SAVEPOINT knut_unit",
    [KN_SQL_RELEASE] = "RELEASE SAVEPOINT knut_unit",
    [KN_SQL_ROLLBACK_TO] = "ROLLBACK TO SAVEPOINT knut_unit",
};

static const char insert_v0[] =
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
    " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

static const char *mark_text(const KnSqlDialect *dialect, const char *mark, size_t len,
                             const char **ret_prefix)
{
    *ret_prefix = "";
    if (!strncmp(mark, "collate", len)) {
        *ret_prefix = "COLLATE ";
        return dialect->collate;
    }
    if (!strncmp(mark, "lock", len))
        return dialect->lock;
    return dialect->no_type ? "NULL" : "iceberg_type";
}

char *kn_statement_text(KnSqlStatement which, const KnSqlDialect *dialect, int *ret_n_params)
{
    KnBuf out;
    kn_buf_init(&out, 1 << 16);
    const char *text = which == KN_SQL_INSERT && dialect->no_type ? insert_v0 : texts[which];
    int n = 0;
    while (*text) {
        size_t plain = strcspn(text, "@$");
        kn_buf_append(&out, text, plain);
        text += plain;
        if (*text == '$') {
            int number = (int)strtol(text + 1, NULL, 10);
            n = number > n ? number : n;
            kn_buf_char(&out, *text++);
        } else if (*text == '@') {
            size_t len = strcspn(++text, "@");
            const char *prefix;
            const char *word = mark_text(dialect, text, len, &prefix);
            kn_buf_text(&out, prefix);
            kn_buf_text(&out, word);
            text += len + 1;
        }
    }
    *ret_n_params = n;
    return kn_buf_steal(&out, NULL);
}
