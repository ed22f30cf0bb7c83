/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_capi.c - the yardstick of `cdc run` into the null sink: what DuckDB itself needs to scan a
 * Parquet file and hand its chunks to a C program.
 *
 *   bench_scan_capi FILE THREADS MEMORY_LIMIT    prints rows and a sum, so that nothing is left out
 *
 * One streaming result; of each vector the data and the validity are taken and one value is read,
 * as the least that a consumer does.
 */
#include <duckdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Totals {
    uint64_t rows;
    uint64_t sum; /* of the first byte of each vector */
} Totals;

static bool open_db(const char *threads, const char *memory, duckdb_database *ret)
{
    duckdb_config cfg;
    char *why = NULL;
    bool ok = duckdb_create_config(&cfg) == DuckDBSuccess &&
              duckdb_set_config(cfg, "threads", threads) == DuckDBSuccess &&
              duckdb_set_config(cfg, "memory_limit", memory) == DuckDBSuccess &&
              duckdb_open_ext(NULL, ret, cfg, &why) == DuckDBSuccess;
    if (!ok)
        fprintf(stderr, "bench_scan_capi: %s\n", why ? why : "configuration");
    duckdb_free(why);
    duckdb_destroy_config(&cfg);
    return ok;
}

static void take(duckdb_data_chunk chunk, Totals *totals)
{
    totals->rows += duckdb_data_chunk_get_size(chunk);
    for (idx_t i = 0; i < duckdb_data_chunk_get_column_count(chunk); i++) {
        duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, i);
        const uint64_t *valid = duckdb_vector_get_validity(vector);
        const uint8_t *data = duckdb_vector_get_data(vector);
        totals->sum += data[0] + (valid ? valid[0] & 1 : 1);
    }
}

static bool scan(duckdb_connection con, const char *file, Totals *totals)
{
    duckdb_prepared_statement stmt;
    duckdb_result res = {0};
    bool ok = duckdb_prepare(con, "SELECT * FROM read_parquet($1)", &stmt) == DuckDBSuccess &&
              duckdb_bind_varchar(stmt, 1, file) == DuckDBSuccess &&
              duckdb_execute_prepared_streaming(stmt, &res) == DuckDBSuccess;
    duckdb_data_chunk chunk;
    while (ok && (chunk = duckdb_fetch_chunk(res))) {
        take(chunk, totals);
        duckdb_destroy_data_chunk(&chunk);
    }
    const char *why = ok ? duckdb_result_error(&res) : duckdb_prepare_error(stmt);
    if (why)
        fprintf(stderr, "bench_scan_capi: %s\n", why);
    duckdb_destroy_result(&res);
    duckdb_destroy_prepare(&stmt);
    return ok && !why;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_scan_capi FILE THREADS MEMORY_LIMIT\n");
        return 2;
    }
    duckdb_database db;
    duckdb_connection con;
    if (!open_db(argv[2], argv[3], &db))
        return 1;
    Totals totals = {0};
    bool ok = duckdb_connect(db, &con) == DuckDBSuccess && scan(con, argv[1], &totals);
    duckdb_disconnect(&con);
    duckdb_close(&db);
    printf("%llu %llu\n", (unsigned long long)totals.rows, (unsigned long long)totals.sum);
    return ok ? 0 : 1;
}
