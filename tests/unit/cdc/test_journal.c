/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_journal.c - what the journal must keep: one writer, states that only go forward, plans and
 * marks that survive a kill, damage that stops everything. The cursor itself is moved by acks,
 * which only delivery.c makes: test_delivery.c has those cases.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "cdc/journal.h"
#include "support/tempdir.h"

typedef struct Place {
    char dir[256];
    char path[300];
    KnArena *arena;
    KnErr err;
} Place;

static int place_open(void **state)
{
    static Place place;
    memset(&place, 0, sizeof(place));
    (void)test_tempdir_make(place.dir);
    (void)snprintf(place.path, sizeof(place.path), "%s/state.db", place.dir);
    place.arena = kn_arena_new(4096);
    *state = &place;
    return 0;
}

static int place_close(void **state)
{
    Place *place = *state;
    place->arena = kn_arena_free(place->arena);
    test_tempdir_remove(place->dir);
    return 0;
}

#define ok(place, expr)                                                                            \
    do {                                                                                           \
        if ((expr) != KN_OK)                                                                       \
            fail_msg("%s: %s", #expr, (place)->err.msg);                                           \
    } while (0)

static KnJournal *open_journal(Place *place)
{
    KnJournal *jn = NULL;
    ok(place, kn_journal_sqlite_open(place->path, KN_JOURNAL_WRITE, &jn, &place->err));
    return jn;
}

static const KnDeliveryRow WANT = {
    .key = {"cat#ns.t", "duckdb:/d", "main.t"}, .table = "ns.t", .table_uuid = "u-1"};

static KnDeliveryRow get_row(Place *place, KnJournal *jn)
{
    KnDeliveryRow row;
    ok(place, jn->ops->delivery(jn, place->arena, &WANT, true, &row, &place->err));
    return row;
}

static KnJournalWindow two_chunks(int64_t from, int64_t to)
{
    static KnJournalChunk chunks[2];
    for (size_t i = 0; i < 2; ++i) {
        chunks[i] = (KnJournalChunk){.number = (int64_t)i, .op = KN_CHUNK_INSERT, .rows = 5};
        (void)snprintf(chunks[i].label, sizeof(chunks[i].label), "label-%zu", i);
    }
    return (KnJournalWindow){.from = from,
                             .to = to,
                             .operation = "append",
                             .window_label = "window",
                             .claim_label = "claim",
                             .table_uuid = "u-2",
                             .upserts = 10,
                             .plan = "{}",
                             .n_chunks = 2,
                             .chunks = chunks};
}

static KnJournalWindow *get_open(Place *place, KnJournal *jn, int64_t delivery)
{
    KnJournalWindow *win = NULL;
    ok(place, jn->ops->open_window(jn, place->arena, delivery, &win, &place->err));
    return win;
}

static void a_new_delivery_starts_without_a_cursor(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn), again = get_row(place, jn);
    assert_int_equal(row.cursor, -1);
    assert_int_equal(row.epoch, 0);
    assert_string_equal(row.status, "new");
    assert_string_equal(row.last_label, "");
    assert_int_equal(row.id, again.id);
    assert_null(get_open(place, jn, row.id));
    KnDeliveryRow other = WANT;
    other.key.target = "main.u";
    ok(place, jn->ops->delivery(jn, place->arena, &other, true, &other, &place->err));
    assert_int_not_equal(row.id, other.id);
    KnDeliveryRow *all;
    size_t n;
    ok(place, jn->ops->deliveries(jn, place->arena, &all, &n, &place->err));
    assert_int_equal(n, 2);
    jn = kn_journal_close(jn);
}

static void a_plan_comes_back_as_it_was_written(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn);
    KnJournalWindow win = two_chunks(-1, 42);
    int64_t id;
    ok(place, jn->ops->plan(jn, row.id, &win, &id, &place->err));
    jn = kn_journal_close(jn);
    jn = open_journal(place);
    KnJournalWindow *got = get_open(place, jn, row.id);
    assert_non_null(got);
    assert_int_equal(got->id, id);
    assert_int_equal(got->from, -1);
    assert_int_equal(got->to, 42);
    assert_string_equal(got->plan, "{}");
    assert_string_equal(got->window_label, "window");
    assert_string_equal(got->claim_label, "claim");
    assert_int_equal(got->n_chunks, 2);
    assert_string_equal(got->chunks[1].label, "label-1");
    assert_int_equal(got->chunks[1].rows, 5);
    assert_int_equal(got->chunks[1].state, KN_CHUNK_PLANNED);
    assert_string_equal(get_row(place, jn).table_uuid, "u-2");
    jn = kn_journal_close(jn);
}

static void only_the_window_that_follows_the_cursor_may_be_planned(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn);
    KnJournalWindow win = two_chunks(7, 42);
    int64_t id;
    assert_int_equal(jn->ops->plan(jn, row.id, &win, &id, &place->err), KN_E_CONFLICT);
    win = two_chunks(-1, 42);
    win.epoch = 1;
    assert_int_equal(jn->ops->plan(jn, row.id, &win, &id, &place->err), KN_E_CONFLICT);
    win.epoch = 0;
    ok(place, jn->ops->plan(jn, row.id, &win, &id, &place->err));
    assert_int_equal(jn->ops->plan(jn, row.id, &win, &id, &place->err), KN_E_CONFLICT);
    jn = kn_journal_close(jn);
}

static void a_chunk_goes_forward_only(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn);
    KnJournalWindow win = two_chunks(-1, 42);
    int64_t id;
    ok(place, jn->ops->plan(jn, row.id, &win, &id, &place->err));
    assert_int_equal(jn->ops->mark(jn, id, 0, KN_CHUNK_PROVEN, KN_VERDICT_LOADED, &place->err),
                     KN_E_CONFLICT);
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err));
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err)); /* again */
    assert_int_equal(jn->ops->mark(jn, id, 0, KN_CHUNK_PROVEN, KN_VERDICT_UNKNOWN, &place->err),
                     KN_E_INVAL);
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_PROVEN, KN_VERDICT_DUPLICATE, &place->err));
    assert_int_equal(jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err),
                     KN_E_CONFLICT);
    assert_int_equal(jn->ops->mark(jn, id, 9, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err),
                     KN_E_CONFLICT);
    KnJournalWindow *got = get_open(place, jn, row.id);
    assert_int_equal(got->chunks[0].state, KN_CHUNK_PROVEN);
    assert_int_equal(got->chunks[0].verdict, KN_VERDICT_DUPLICATE);
    assert_int_equal(got->chunks[1].state, KN_CHUNK_PLANNED);
    jn = kn_journal_close(jn);
}

static void what_is_held_of_a_chunk_is_kept_until_it_is_sent_again(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn);
    KnJournalWindow win = two_chunks(-1, 42);
    int64_t id;
    ok(place, jn->ops->plan(jn, row.id, &win, &id, &place->err));
    assert_int_equal(jn->ops->hold(jn, id, 0, 7, &place->err), KN_E_CONFLICT); /* not sent */
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err));
    assert_int_equal(get_open(place, jn, row.id)->chunks[0].hold, -1);
    assert_int_equal(jn->ops->hold(jn, id, 0, -1, &place->err), KN_E_INVAL);
    ok(place, jn->ops->hold(jn, id, 0, INT64_MAX, &place->err));
    jn = kn_journal_close(jn);
    jn = open_journal(place);
    assert_int_equal(get_open(place, jn, row.id)->chunks[0].hold, INT64_MAX);
    assert_int_equal(get_open(place, jn, row.id)->chunks[0].state, KN_CHUNK_SENT);
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, &place->err));
    assert_int_equal(get_open(place, jn, row.id)->chunks[0].hold, -1);
    ok(place, jn->ops->hold(jn, id, 0, 0, &place->err));
    ok(place, jn->ops->mark(jn, id, 0, KN_CHUNK_PROVEN, KN_VERDICT_LOADED, &place->err));
    assert_int_equal(get_open(place, jn, row.id)->chunks[0].hold, -1);
    jn = kn_journal_close(jn);
}

static void a_reload_starts_a_new_epoch_and_drops_the_window_in_flight(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    KnDeliveryRow row = get_row(place, jn);
    KnJournalWindow win = two_chunks(-1, 42);
    int64_t id;
    ok(place, jn->ops->plan(jn, row.id, &win, &id, &place->err));
    ok(place, jn->ops->reload(jn, row.id, &place->err));
    assert_null(get_open(place, jn, row.id));
    row = get_row(place, jn);
    assert_int_equal(row.epoch, 1);
    assert_int_equal(row.cursor, -1);
    jn = kn_journal_close(jn);
}

/* ---- kills ---- */

/* What a process does until it is killed at a fault point; only SQLite runs in it, so a fork may.
 */
static void plan_and_mark(Place *place)
{
    KnJournal *jn = NULL;
    KnDeliveryRow row;
    KnJournalWindow win = two_chunks(-1, 42);
    int64_t id;
    if (kn_journal_sqlite_open(place->path, KN_JOURNAL_WRITE, &jn, NULL) != KN_OK ||
        jn->ops->delivery(jn, place->arena, &WANT, true, &row, NULL) != KN_OK ||
        jn->ops->plan(jn, row.id, &win, &id, NULL) != KN_OK ||
        jn->ops->mark(jn, id, 0, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, NULL) != KN_OK ||
        jn->ops->mark(jn, id, 0, KN_CHUNK_PROVEN, KN_VERDICT_LOADED, NULL) != KN_OK)
        _exit(9);
    _exit(0);
}

static void run_until_killed(Place *place, const char *point)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char spec[64];
        (void)snprintf(spec, sizeof(spec), "%s:1:kill", point);
        if (kn_fault_set(spec, NULL, NULL) != KN_OK)
            _exit(8);
        plan_and_mark(place);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_killed_process_leaves_what_it_had_written_and_no_lock(void **state)
{
    Place *place = *state;
    static const struct {
        const char *point;
        bool open;
        KnChunkState state;
    } CASES[] = {
        {"journal-plan", false, KN_CHUNK_PLANNED},
        {"journal-plan-written", true, KN_CHUNK_PLANNED},
        {"journal-sent", true, KN_CHUNK_PLANNED},
        {"journal-sent-written", true, KN_CHUNK_SENT},
        {"journal-proven", true, KN_CHUNK_SENT},
        {"journal-proven-written", true, KN_CHUNK_PROVEN},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
        (void)unlink(place->path);
        run_until_killed(place, CASES[i].point);
        KnJournal *jn = open_journal(place);
        KnJournalWindow *win = get_open(place, jn, get_row(place, jn).id);
        if (!!win != CASES[i].open || (win && win->chunks[0].state != CASES[i].state))
            fail_msg("after a kill at %s the journal is wrong", CASES[i].point);
        jn = kn_journal_close(jn);
    }
}

/* ---- the lock ---- */

static void a_second_writer_is_told_who_holds_the_journal(void **state)
{
    Place *place = *state;
    int pipe_fd[2];
    KnJournal *jn = NULL;
    KnJournalHolder holder;
    char byte, pid_text[32];
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (kn_journal_sqlite_open(place->path, KN_JOURNAL_WRITE, &jn, NULL) != KN_OK)
            _exit(9);
        if (write(pipe_fd[1], "x", 1) != 1)
            _exit(8);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
    assert_int_equal(kn_journal_sqlite_open(place->path, KN_JOURNAL_WRITE, &jn, &place->err),
                     KN_E_BUSY);
    (void)snprintf(pid_text, sizeof(pid_text), "process %d on ", (int)pid);
    assert_non_null(strstr(place->err.msg, pid_text));
    ok(place, kn_journal_holder(place->path, &holder, &place->err));
    assert_true(holder.held);
    assert_int_equal(holder.pid, pid);
    /* Readers are not held up. */
    ok(place, kn_journal_sqlite_open(place->path, KN_JOURNAL_READ, &jn, &place->err));
    jn = kn_journal_close(jn);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    jn = open_journal(place);
    jn = kn_journal_close(jn);
    ok(place, kn_journal_holder(place->path, &holder, &place->err));
    assert_false(holder.held);
    (void)close(pipe_fd[0]);
    (void)close(pipe_fd[1]);
}

/* ---- damage ---- */

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, size, file);
    assert_int_equal(fclose(file), 0);
    return len;
}

static void refuse_damaged(Place *place, KnCode want)
{
    static char before[1 << 17], after[1 << 17];
    KnJournal *jn = NULL;
    size_t len = read_file(place->path, before, sizeof(before));
    KnCode rc = kn_journal_sqlite_open(place->path, KN_JOURNAL_WRITE, &jn, &place->err);
    if (rc != want)
        fail_msg("opening gave %s: %s", kn_code_name(rc), rc ? place->err.msg : "");
    assert_non_null(strstr(place->err.msg, place->path));
    assert_int_equal(read_file(place->path, after, sizeof(after)), len);
    assert_memory_equal(before, after, len);
}

static void a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
    Place *place = *state;
    write_file(place->path, "this is not a database, it is a letter", 38);
    refuse_damaged(place, KN_E_CORRUPT);
}

static void another_programs_database_is_refused_and_left_alone(void **state)
{
    Place *place = *state;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE theirs(a)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    refuse_damaged(place, KN_E_CORRUPT);
}

static void a_journal_with_overwritten_pages_is_refused_and_left_alone(void **state)
{
    Place *place = *state;
    static char bytes[1 << 17];
    KnJournal *jn = open_journal(place);
    (void)get_row(place, jn);
    jn = kn_journal_close(jn);
    size_t len = read_file(place->path, bytes, sizeof(bytes));
    for (size_t page = 4096; page < len; page += 4096)
        memset(bytes + page, 0x5a, 64);
    write_file(place->path, bytes, len);
    refuse_damaged(place, KN_E_CORRUPT);
}

static void a_truncated_journal_is_refused_and_left_alone(void **state)
{
    Place *place = *state;
    static char bytes[1 << 17];
    KnJournal *jn = open_journal(place);
    (void)get_row(place, jn);
    jn = kn_journal_close(jn);
    size_t len = read_file(place->path, bytes, sizeof(bytes));
    write_file(place->path, bytes, len / 2);
    refuse_damaged(place, KN_E_CORRUPT);
}

static void a_journal_of_a_newer_program_is_refused_and_left_alone(void **state)
{
    Place *place = *state;
    KnJournal *jn = open_journal(place);
    sqlite3 *db;
    jn = kn_journal_close(jn);
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    refuse_damaged(place, KN_E_UNSUPPORTED);
}

static void reading_needs_a_journal_and_never_changes_it(void **state)
{
    Place *place = *state;
    KnJournal *jn = NULL;
    KnDeliveryRow row;
    assert_int_equal(kn_journal_sqlite_open(place->path, KN_JOURNAL_READ, &jn, &place->err),
                     KN_E_NOTFOUND);
    assert_int_equal(access(place->path, F_OK), -1);
    jn = open_journal(place);
    jn = kn_journal_close(jn);
    ok(place, kn_journal_sqlite_open(place->path, KN_JOURNAL_READ, &jn, &place->err));
    assert_int_equal(jn->ops->delivery(jn, place->arena, &WANT, false, &row, &place->err),
                     KN_E_NOTFOUND);
    assert_int_equal(jn->ops->delivery(jn, place->arena, &WANT, true, &row, &place->err),
                     KN_E_INVAL);
    jn = kn_journal_close(jn);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_open, place_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_delivery_starts_without_a_cursor),
        TEST(a_plan_comes_back_as_it_was_written),
        TEST(only_the_window_that_follows_the_cursor_may_be_planned),
        TEST(a_chunk_goes_forward_only),
        TEST(what_is_held_of_a_chunk_is_kept_until_it_is_sent_again),
        TEST(a_reload_starts_a_new_epoch_and_drops_the_window_in_flight),
        TEST(a_killed_process_leaves_what_it_had_written_and_no_lock),
        TEST(a_second_writer_is_told_who_holds_the_journal),
        TEST(a_file_that_is_no_database_is_refused_and_left_alone),
        TEST(another_programs_database_is_refused_and_left_alone),
        TEST(a_journal_with_overwritten_pages_is_refused_and_left_alone),
        TEST(a_truncated_journal_is_refused_and_left_alone),
        TEST(a_journal_of_a_newer_program_is_refused_and_left_alone),
        TEST(reading_needs_a_journal_and_never_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
