/* SPDX-License-Identifier: Apache-2.0 */
/* test_session.c - instances, sessions and streams: what works, and how each kind of failure reads.
 * labels: threads */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/engine/support.h"

static KnCode drain(KnStream *stream, int64_t *ret_rows, KnErr *err)
{
    *ret_rows = 0;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(kn_stream_next(stream, &batch, err));
        if (!batch)
            return KN_OK;
        *ret_rows += (int64_t)kn_batch_rows(batch);
    }
}

/* The code of running sql to its end. */
static KnCode run(Bench *b, const char *sql)
{
    return kn_session_exec(b->ses, sql, NULL, &b->err);
}

static void a_stream_gives_every_row_in_order_then_stays_ended(void **state)
{
    Bench *b = *state;
    KnStream *stream = bench_query(b, "SELECT i AS id, 'n' || i AS name FROM range(100000) t(i)");
    assert_int_equal(kn_stream_n_columns(stream), 2);
    assert_string_equal(kn_stream_column_name(stream, 1), "name");
    assert_null(kn_stream_column_name(stream, 2));
    assert_int_equal(kn_stream_column_type(stream, 0)->kind, KN_COL_INT64);
    int64_t next = 0;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        assert_ok(b, kn_stream_next(stream, &batch, &b->err));
        if (!batch)
            break;
        assert_in_range(kn_batch_rows(batch), 1, 2048);
        KnVector vec = kn_batch_vector(batch, 0);
        for (size_t i = 0; i < kn_batch_rows(batch); i++)
            assert_int_equal(((const int64_t *)vec.data)[i], next++);
    }
    assert_int_equal(next, 100000);
    KnBatch *batch = (KnBatch *)1;
    assert_ok(b, kn_stream_next(stream, &batch, &b->err));
    assert_null(batch);
    kn_stream_close(stream);
}

static void a_stream_closed_early_leaves_the_session_usable(void **state)
{
    Bench *b = *state;
    for (int i = 0; i < 20; i++) {
        KnStream *stream = bench_query(b, "SELECT i, i * i FROM range(10000000) t(i)");
        KN_BATCH_AUTO batch = NULL;
        assert_ok(b, kn_stream_next(stream, &batch, &b->err));
        assert_null(kn_stream_close(stream));
    }
    assert_string_equal(bench_text(b, "SELECT 41 + 1"), "42");
    assert_null(kn_stream_close(NULL));
}

typedef struct Sum {
    int64_t rows, total, stop_at;
} Sum;

static KnCode add_up(void *arg, KnBatch *batch, KnErr *err)
{
    Sum *sum = arg;
    KnVector vec = kn_batch_vector(batch, 0);
    for (size_t i = 0; i < kn_batch_rows(batch); i++)
        sum->total += ((const int64_t *)vec.data)[i];
    sum->rows += (int64_t)kn_batch_rows(batch);
    return sum->rows < sum->stop_at ? KN_OK : kn_err_set(err, KN_E_REFUSED, "enough");
}

static void a_visit_gives_every_batch_until_the_visitor_fails(void **state)
{
    Bench *b = *state;
    const char *sql = "SELECT i FROM range(100000) t(i)";
    Sum sum = {.stop_at = INT64_MAX};
    assert_ok(b, kn_session_visit(b->ses, sql, add_up, &sum, &b->err));
    assert_int_equal(sum.rows, 100000);
    assert_int_equal(sum.total, 4999950000);
    sum = (Sum){.stop_at = 5000};
    assert_code(b, kn_session_visit(b->ses, sql, add_up, &sum, &b->err), KN_E_REFUSED);
    assert_string_equal(b->err.msg, "enough");
    assert_in_range(sum.rows, 5000, 5000 + 2048);
    assert_code(b, kn_session_visit(b->ses, "SELECT", add_up, &sum, &b->err), KN_E_INVAL);
    assert_string_equal(bench_text(b, "SELECT 41 + 1"), "42");
}

static void a_second_query_closes_the_first_stream(void **state)
{
    Bench *b = *state;
    KnStream *first = bench_query(b, "SELECT * FROM range(1000000)");
    bench_exec(b, "SELECT 1");
    KnBatch *batch = NULL;
    assert_code(b, kn_stream_next(first, &batch, &b->err), KN_E_INVAL);
    kn_stream_close(first);
}

static void exec_runs_every_statement_and_counts_the_last(void **state)
{
    Bench *b = *state;
    int64_t changed = -1;
    assert_ok(b, kn_session_exec(b->ses,
                                 "CREATE TABLE t(a INTEGER); SELECT * FROM range(5000000); "
                                 "INSERT INTO t SELECT * FROM range(10)",
                                 &changed, &b->err));
    assert_int_equal(changed, 10);
    assert_ok(b, kn_session_exec(b->ses, "DELETE FROM t WHERE a < 3", &changed, &b->err));
    assert_int_equal(changed, 3);
    assert_ok(b, kn_session_exec(b->ses, "  ", &changed, &b->err));
    assert_int_equal(changed, 0);
    assert_code(b, run(b, "INSERT INTO t VALUES (1); SELEKT 1"), KN_E_INVAL);
    assert_string_equal(bench_text(b, "SELECT count(*) FROM t"), "7");
}

static void single_values_come_as_number_or_text(void **state)
{
    Bench *b = *state;
    int64_t n = 0;
    assert_ok(b, kn_session_query_i64(b->ses, "SELECT -5::SMALLINT", &n, &b->err));
    assert_int_equal(n, -5);
    assert_code(b, kn_session_query_i64(b->ses, "SELECT NULL::BIGINT", &n, &b->err), KN_E_NOTFOUND);
    assert_code(b, kn_session_query_i64(b->ses, "SELECT NULL", &n, &b->err), KN_E_NOTFOUND);
    assert_code(b, kn_session_query_i64(b->ses, "SELECT 1 WHERE false", &n, &b->err),
                KN_E_NOTFOUND);
    assert_code(b, kn_session_query_i64(b->ses, "SELECT 'x'", &n, &b->err), KN_E_INVAL);
    assert_code(b,
                kn_session_query_i64(b->ses, "SELECT 18446744073709551615::UBIGINT", &n, &b->err),
                KN_E_INVAL);
    assert_int_equal(n, -5);
    assert_string_equal(bench_text(b, "SELECT {'a': [1, NULL]} -- end"), "{'a': [1, NULL]}");
    assert_string_equal(bench_text(b, "SELECT 7; "), "7");
    assert_string_equal(bench_text(b, "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+02'"),
                        "2023-12-31 22:00:00+00");
}

static void sql_errors_are_one_line_and_invalid(void **state)
{
    Bench *b = *state;
    assert_code(b, run(b, "SELEKT 1"), KN_E_INVAL);
    assert_null(strstr(b->err.msg, "LINE 1"));
    assert_code(b, run(b, "SELECT nope FROM range(3)"), KN_E_INVAL);
    assert_code(b, run(b, "SELECT * FROM missing_table"), KN_E_INVAL);
    assert_non_null(strstr(b->err.msg, "missing_table"));
}

static void failures_of_running_statements_have_their_codes(void **state)
{
    Bench *b = *state;
    assert_code(b, run(b, "SELECT CAST('abc' || i AS INTEGER) FROM range(3) t(i)"), KN_E_CORRUPT);
    bench_exec(b, "CREATE TABLE u(a INTEGER PRIMARY KEY); INSERT INTO u VALUES (1)");
    assert_code(b, run(b, "INSERT INTO u VALUES (1)"), KN_E_EXISTS);
    bench_exec(b, "SET memory_limit = '20MB'; SET max_temp_directory_size = '1MB'");
    KnCode code = run(b, "SELECT * FROM range(20000000) t(i) ORDER BY hash(i)");
    assert_true(code == KN_E_NOMEM || code == KN_E_IO);
    assert_string_equal(bench_text(b, "SELECT 'usable'"), "usable");
}

static void memory_running_out_says_what_to_raise(void **state)
{
    Bench *b = *state;
    bench_exec(b, "SET memory_limit = '10MB'");
    assert_code(b, run(b, "SELECT list(i) FROM range(30000000) t(i)"), KN_E_NOMEM);
    assert_non_null(strstr(b->err.msg, "--memory-limit"));
    assert_string_equal(bench_text(b, "SELECT 'usable'"), "usable");
}

static void a_missing_file_is_not_found_and_named(void **state)
{
    Bench *b = *state;
    assert_code(b, run(b, "SELECT * FROM read_parquet('/nowhere/x.parquet')"), KN_E_NOTFOUND);
    assert_non_null(strstr(b->err.msg, "/nowhere/x.parquet"));
}

static void overwrite(const char *path, off_t at, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, at), len);
    close(fd);
}

static void truncated_and_damaged_parquet_is_corrupt_and_named(void **state)
{
    Bench *b = *state;
    char path[128];
    char sql[256];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/d.parquet", b->dir);
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM read_parquet('%s')", path);
    bench_exec(b, "COPY (SELECT i, hash(i) h FROM range(50000) t(i)) TO '%s' (FORMAT parquet)",
               path);
    assert_ok(b, run(b, sql));
    assert_int_equal(stat(path, &st), 0);
    char noise[4096];
    memset(noise, 0xa5, sizeof(noise));
    overwrite(path, 4, noise, 64); /* a page header */
    assert_code(b, run(b, sql), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, path));
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    assert_code(b, run(b, sql), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, path));
    assert_int_equal(truncate(path, 3), 0);
    assert_code(b, run(b, sql), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, path));
}

typedef struct Interrupter {
    KnSession *ses;
    atomic_bool done;
} Interrupter;

/* Only a running statement sees the flag, so it is raised until the other side has stopped. */
static void *interrupt_until_done(void *arg)
{
    Interrupter *in = arg;
    while (!atomic_load(&in->done)) {
        kn_session_interrupt(in->ses);
        (void)sched_yield();
    }
    return NULL;
}

static void another_thread_interrupts_a_statement(void **state)
{
    Bench *b = *state;
    Interrupter in = {.ses = b->ses};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, interrupt_until_done, &in), 0);
    KnCode code = run(b, "SELECT count(*) FROM range(100000) a, range(1000000) b "
                         "WHERE a.range + b.range = 7");
    atomic_store(&in.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(code, KN_E_CANCELLED);
    assert_string_equal(bench_text(b, "SELECT 'usable'"), "usable");
}

static void another_thread_interrupts_a_stream(void **state)
{
    Bench *b = *state;
    KnStream *stream = bench_query(b, "SELECT * FROM range(1000000000000)");
    KN_BATCH_AUTO batch = NULL;
    assert_ok(b, kn_stream_next(stream, &batch, &b->err));
    kn_session_interrupt(b->ses);
    int64_t rows;
    assert_code(b, drain(stream, &rows, &b->err), KN_E_CANCELLED);
    assert_code(b, drain(stream, &rows, &b->err), KN_E_CANCELLED);
    kn_stream_close(stream);
}

static void a_database_held_by_another_process_is_busy_and_the_holder_named(void **state)
{
    Bench *b = *state;
    char path[128];
    char command[256];
    (void)snprintf(path, sizeof(path), "%s/held.db", b->dir);
    const KnEngineOptions opts = {.database = path, .threads = 1};
    KnEngine *eng = NULL;
    assert_ok(b, kn_engine_open(&opts, &eng, &b->err));
    (void)snprintf(command, sizeof(command), "/proc/%d/exe --try-open %s", (int)getpid(), path);
    FILE *child = popen(command, "re");
    assert_non_null(child);
    char line[600] = "";
    assert_non_null(fgets(line, sizeof(line), child));
    assert_int_equal(WEXITSTATUS(pclose(child)), KN_E_BUSY);
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "PID %d", (int)getpid());
    assert_non_null(strstr(line, path));
    assert_non_null(strstr(line, pid));
    assert_null(strstr(line, "http"));
    kn_engine_close(eng);
}

static void a_database_open_in_this_process_is_busy(void **state)
{
    Bench *b = *state;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/own.db", b->dir);
    KnEngineOptions opts = {.database = path, .threads = 1};
    KnEngine *eng = NULL;
    KnEngine *second = NULL;
    KnEngine *third = NULL;
    assert_ok(b, kn_engine_open(&opts, &eng, &b->err));
    assert_code(b, kn_engine_open(&opts, &second, &b->err), KN_E_BUSY);
    assert_null(second);
    kn_engine_close(eng);
    opts.read_only = true;
    assert_ok(b, kn_engine_open(&opts, &second, &b->err));
    assert_ok(b, kn_engine_open(&opts, &third, &b->err));
    kn_engine_close(second);
    kn_engine_close(third);
    opts.database = "/nowhere/at/all.db";
    assert_true(kn_engine_open(&opts, &eng, &b->err) != KN_OK);
    assert_non_null(strstr(b->err.msg, "/nowhere/at/all.db"));
}

static int helper_open(const char *path)
{
    KnErr err = {0};
    KnEngine *eng = NULL;
    const KnEngineOptions opts = {.database = path, .threads = 1};
    KnCode code = kn_engine_open(&opts, &eng, &err);
    printf("%s\n", err.msg);
    kn_engine_close(eng);
    return (int)code;
}

static void the_engine_is_configured_and_its_spill_folder_goes_away(void **state)
{
    Bench *b = *state;
    char spill[256];
    struct stat st;
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    const KnEngineOptions opts = {.threads = 2, .memory_limit = (uint64_t)64 << 20};
    assert_ok(b, kn_engine_open(&opts, &eng, &b->err));
    assert_ok(b, kn_session_open(eng, &ses, &b->err));
    KN_BUF_AUTO text;
    kn_buf_init(&text, 1000);
    assert_ok(
        b, kn_session_query_text(ses, "SELECT current_setting('temp_directory')", &text, &b->err));
    (void)snprintf(spill, sizeof(spill), "%s", text.data);
    assert_int_equal(stat(spill, &st), 0);
    assert_ok(b, kn_session_exec(ses, "SELECT * FROM range(6000000) t(i) ORDER BY hash(i)", NULL,
                                 &b->err));
    assert_ok(b, kn_session_query_text(
                     ses,
                     "SELECT current_setting('autoload_known_extensions') || "
                     "current_setting('autoinstall_known_extensions') || "
                     "current_setting('allow_persistent_secrets') || current_setting('TimeZone')",
                     &text, &b->err));
    assert_string_equal(text.data, "falsefalsefalseUTC");
    kn_session_close(ses);
    kn_engine_close(eng);
    assert_int_equal(stat(spill, &st), -1);
    assert_null(kn_session_close(NULL));
    assert_null(kn_engine_close(NULL));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--try-open") == 0)
        return helper_open(argv[2]);
    const struct CMUnitTest tests[] = {
        CASE(a_stream_gives_every_row_in_order_then_stays_ended),
        CASE(a_stream_closed_early_leaves_the_session_usable),
        CASE(a_visit_gives_every_batch_until_the_visitor_fails),
        CASE(a_second_query_closes_the_first_stream),
        CASE(exec_runs_every_statement_and_counts_the_last),
        CASE(single_values_come_as_number_or_text),
        CASE(sql_errors_are_one_line_and_invalid),
        CASE(failures_of_running_statements_have_their_codes),
        CASE(memory_running_out_says_what_to_raise),
        CASE(a_missing_file_is_not_found_and_named),
        CASE(truncated_and_damaged_parquet_is_corrupt_and_named),
        CASE(another_thread_interrupts_a_statement),
        CASE(another_thread_interrupts_a_stream),
        CASE(a_database_held_by_another_process_is_busy_and_the_holder_named),
        CASE(a_database_open_in_this_process_is_busy),
        CASE(the_engine_is_configured_and_its_spill_folder_goes_away),
    };
    return cmocka_run_group_tests_name("engine.session", tests, NULL, NULL);
}
