/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of many at once, over SQLite and PostgreSQL: none lost, none doubled, all or none of
 * several tables, answers that are lost. labels: threads */
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "core_support.h"
#include "support/postgres.h"
#include "support/tempdir.h"

enum { THREADS = 64, ROUNDS = 3, PROCESSES = 4, PROCESS_ROUNDS = 10 };

typedef struct Committer {
    KnCatalogCore *core;
    const char *table;
    int number, rounds;
    KnCode rc;
    KnErr err;
} Committer;

static void *commit_often(void *arg)
{
    Committer *me = arg;
    KnTableIdent ident = CORE_IDENT(me->table);
    for (int i = 0; i < me->rounds && me->rc == KN_OK; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "w%d-%d", me->number, i);
        me->rc = core_set(me->core, &ident, key, "x", &me->err);
    }
    return NULL;
}

static void run_committers(KnCatalogCore *core, Committer *all, int n, int n_tables)
{
    static const char *const tables[] = {"t0", "t1", "t2", "t3"};
    pthread_t threads[THREADS];
    for (int i = 0; i < n; i++) {
        all[i] =
            (Committer){.core = core, .table = tables[i % n_tables], .number = i, .rounds = ROUNDS};
        assert_int_equal(pthread_create(&threads[i], NULL, commit_often, &all[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (all[i].rc != KN_OK)
            fail_msg("committer %d: %s", i, all[i].err.msg);
    }
}

typedef struct Count {
    const char *table;
    int64_t last;
    int updates;
} Count;

static KnCode count_event(void *arg, const KnCommitEvent *event, KnErr *err)
{
    (void)err;
    Count *count = arg;
    assert_int_equal(event->seq, count->last + 1);
    count->last = event->seq;
    count->updates += event->kind == KN_EVENT_UPDATE && !strcmp(event->ident.name, count->table);
    return KN_OK;
}

/* Each commit is there and in the log once. Those that were answered together have one document. */
static void assert_history(CoreFixture *fix, const char *table, int commits)
{
    char folder[600];
    KnTableIdent ident = CORE_IDENT(table);
    Count count = {.table = table};
    (void)snprintf(folder, sizeof(folder), "%s/ns/%s/metadata", fix->dir, table);
    assert_int_equal(core_count_properties(fix->core, &ident), commits);
    assert_int_equal(kn_core_commits_since(fix->core, 0, 0, count_event, &count, &fix->err), KN_OK);
    assert_int_equal(count.updates, commits);
    assert_in_range(test_dir_count(folder), 2, (uintmax_t)commits + 1);
}

static void sixty_four_committers_of_one_table_lose_nothing(void **state)
{
    CoreFixture *fix = *state;
    Committer all[THREADS];
    core_make_namespace(fix);
    core_create(fix, "t0");
    run_committers(fix->core, all, THREADS, 1);
    assert_history(fix, "t0", THREADS * ROUNDS);
}

typedef struct Switch {
    KnCatalogCore *core;
    int number;
    bool won;
} Switch;

/* Only one may set the schema's successor: the others' requirement does not hold any more. */
static void *take_the_lead(void *arg)
{
    Switch *me = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char text[400];
    (void)snprintf(text, sizeof(text),
                   "{'requirements':[{'type':'assert-current-schema-id','current-schema-id':0}],"
                   "'updates':[{'action':'add-schema','schema':{'type':'struct','fields':[{'id':1,"
                   "'name':'id','required':true,'type':'long'},{'id':2,'name':'n%d','required':"
                   "false,'type':'string'}]}},{'action':'set-current-schema','schema-id':-1}]}",
                   me->number);
    KN_JSON_AUTO body = core_json(text);
    KN_DOCUMENT_AUTO doc = NULL;
    KnTableCommit commit;
    KnErr err = {0};
    KnTableIdent ident = CORE_IDENT("t0");
    KnCode rc = kn_commit_parse(arena, body, &commit, &err);
    if (rc == KN_OK)
        rc = kn_core_table_commit(me->core, &ident, &commit, &doc, &err);
    me->won = rc == KN_OK;
    if (rc != KN_OK && (rc != KN_E_CONFLICT || !strstr(err.msg, "Requirement failed")))
        abort();
    return NULL;
}

static void of_commits_that_exclude_one_another_one_is_taken(void **state)
{
    CoreFixture *fix = *state;
    Switch all[16];
    pthread_t threads[16];
    int winners = 0;
    core_make_namespace(fix);
    core_create(fix, "t0");
    for (int i = 0; i < 16; i++) {
        all[i] = (Switch){.core = fix->core, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, take_the_lead, &all[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        winners += all[i].won;
    }
    assert_int_equal(winners, 1);
}

static void committers_of_several_tables_share_transactions(void **state)
{
    CoreFixture *fix = *state;
    Committer all[32];
    core_make_namespace(fix);
    for (int i = 0; i < 4; i++) {
        char name[4];
        (void)snprintf(name, sizeof(name), "t%d", i);
        core_create(fix, name);
    }
    run_committers(fix->core, all, 32, 4);
    for (int i = 0; i < 4; i++) {
        char name[4];
        (void)snprintf(name, sizeof(name), "t%d", i);
        assert_history(fix, name, 8 * ROUNDS);
    }
}

static void commit_in_child(CoreFixture *fix, int number)
{
    KnCatalogCore *core = core_open_again(fix);
    KnTableIdent ident = CORE_IDENT("t0");
    for (int i = 0; i < PROCESS_ROUNDS; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "p%d-%d", number, i);
        if (core_set(core, &ident, key, "x", &fix->err) != KN_OK)
            _exit(3);
    }
    _exit(0);
}

static void processes_that_race_lose_nothing(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    core_create(fix, "t0");
    kn_core_close(fix->core); /* no connection may cross a fork */
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (!pids[i])
            commit_in_child(fix, i);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    fix->core = core_open_again(fix);
    assert_history(fix, "t0", PROCESSES * PROCESS_ROUNDS);
}

static void *create_or_drop(void *arg)
{
    Committer *me = arg;
    KnTableIdent ident = CORE_IDENT("t0");
    for (int i = 0; i < 8; i++) {
        KnCode rc = i % 2 ? kn_core_table_drop(me->core, &ident, &me->err)
                          : core_try_create(me->core, &ident, &me->err);
        if (rc != KN_OK && rc != KN_E_EXISTS && rc != KN_E_NOTFOUND)
            me->rc = rc;
    }
    return NULL;
}

static void creates_and_drops_at_once_only_say_exists_or_not_found(void **state)
{
    CoreFixture *fix = *state;
    Committer all[16];
    pthread_t threads[16];
    core_make_namespace(fix);
    for (int i = 0; i < 16; i++) {
        all[i] = (Committer){.core = fix->core};
        assert_int_equal(pthread_create(&threads[i], NULL, create_or_drop, &all[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (all[i].rc != KN_OK)
            fail_msg("%s", all[i].err.msg);
    }
}

static KnCode release(CoreFixture *fix, const char *second, int64_t schema_of_second)
{
    KN_JSON_AUTO props = core_json("{'released':'yes'}");
    const KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    const KnRequirement reqs[] = {
        {.kind = KN_REQUIRE_CURRENT_SCHEMA_ID, .number = 0},
        {.kind = KN_REQUIRE_CURRENT_SCHEMA_ID, .number = schema_of_second}};
    const KnTableChange changes[] = {
        {CORE_IDENT("t0"), {&reqs[0], 1, &update, 1}},
        {CORE_IDENT(second), {&reqs[1], 1, &update, 1}},
    };
    KnDocument *docs[2] = {NULL};
    KnCode rc = kn_core_tables_commit(fix->core, changes, 2, docs, &fix->err);
    kn_document_unref(docs[0]);
    kn_document_unref(docs[1]);
    return rc;
}

static void several_tables_change_together_or_not_at_all(void **state)
{
    CoreFixture *fix = *state;
    KnTableIdent t0 = CORE_IDENT("t0"), t1 = CORE_IDENT("t1");
    core_make_namespace(fix);
    core_create(fix, "t0");
    core_create(fix, "t1");
    assert_int_equal(release(fix, "t1", 7), KN_E_CONFLICT);
    assert_non_null(strstr(fix->err.msg, "ns.t1"));
    assert_int_equal(core_count_properties(fix->core, &t0), 0);
    assert_int_equal(release(fix, "absent", 0), KN_E_NOTFOUND);
    assert_int_equal(core_count_properties(fix->core, &t0), 0);
    assert_int_equal(release(fix, "t0", 0), KN_E_INVAL);
    char folder[600];
    (void)snprintf(folder, sizeof(folder), "%s/ns/t0/metadata", fix->dir);
    assert_int_equal(test_dir_count(folder), 1);
    assert_int_equal(release(fix, "t1", 0), KN_OK);
    assert_int_equal(core_count_properties(fix->core, &t0), 1);
    assert_int_equal(core_count_properties(fix->core, &t1), 1);
}

/* Commits in a child that is killed there; true = it died there. */
static bool killed_at(CoreFixture *fix, const char *fault)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        KnCatalogCore *core = core_open_again(fix);
        KnTableIdent t0 = CORE_IDENT("t0");
        if (kn_fault_set(fault, NULL, &fix->err) != KN_OK)
            _exit(4);
        _exit(core_set(core, &t0, "killed", fault, &fix->err) == KN_OK ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void a_commit_killed_anywhere_is_there_whole_or_not_at_all(void **state)
{
    CoreFixture *fix = *state;
    static const struct {
        const char *fault;
        bool applied;
    } cases[] = {
        {"io-write-before:1:kill", false},          {"io-write-after-temp:1:kill", false},
        {"catalog-metadata-written:1:kill", false}, {"catalog-before-commit:1:kill", false},
        {"catalog-pointer-moved:1:kill", true},
    };
    KnTableIdent t0 = CORE_IDENT("t0");
    core_make_namespace(fix);
    core_create(fix, "t0");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_DOCUMENT_AUTO doc = NULL;
        KN_METADATA_AUTO md = NULL;
        kn_core_close(fix->core);
        fix->core = NULL;
        assert_true(killed_at(fix, cases[i].fault));
        fix->core = core_open_again(fix);
        assert_int_equal(kn_core_table_load(fix->core, &t0, &doc, &fix->err), KN_OK);
        assert_int_equal(kn_document_metadata(doc, &md, &fix->err), KN_OK);
        bool there = !strcmp(kn_metadata_property(md, "killed", ""), cases[i].fault);
        assert_int_equal(there, cases[i].applied);
        assert_int_equal(core_set(fix->core, &t0, "next", "ok", &fix->err), KN_OK);
    }
}

static void a_lost_answer_is_settled_by_asking(void **state)
{
    CoreFixture *fix = *state;
    KnTableIdent t0 = CORE_IDENT("t0");
    core_make_namespace(fix);
    core_create(fix, "t0");
    assert_int_equal(kn_fault_set("catalog-pointer-moved:1:fail", NULL, &fix->err), KN_OK);
    assert_int_equal(core_set(fix->core, &t0, "a", "1", &fix->err), KN_OK);
    assert_int_equal(kn_fault_set("catalog-pointer-not-moved:1:fail", NULL, &fix->err), KN_OK);
    assert_int_equal(core_set(fix->core, &t0, "b", "1", &fix->err), KN_E_IO);
    assert_non_null(strstr(fix->err.msg, "not applied"));
    assert_int_equal(kn_fault_set(NULL, NULL, &fix->err), KN_OK);
    assert_history(fix, "t0", 1);
}

/* ---- PostgreSQL alone ---- */

/* Ends other connections to the server until told to stop. */
static void *terminate_backends(void *arg)
{
    atomic_int *rounds = arg;
    PGconn *pg = PQconnectdb(test_postgres_uri());
    while (atomic_load(rounds) > 0) {
        PQclear(PQexec(pg, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                           " application_name='knut'"));
        PQclear(PQexec(pg, "SELECT pg_sleep(0.02)"));
        atomic_fetch_sub(rounds, 1);
    }
    PQfinish(pg);
    return NULL;
}

static void connections_that_are_ended_lose_no_acknowledged_commit(void **state)
{
    CoreFixture *fix = *state;
    KnTableIdent t0 = CORE_IDENT("t0");
    pthread_t killer;
    atomic_int rounds = 20;
    int acknowledged = 0;
    core_make_namespace(fix);
    core_create(fix, "t0");
    assert_int_equal(pthread_create(&killer, NULL, terminate_backends, &rounds), 0);
    for (int i = 0; atomic_load(&rounds) > 0; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "k%d", i);
        KnCode rc = core_set(fix->core, &t0, key, "x", &fix->err);
        acknowledged += rc == KN_OK;
        if (rc != KN_OK && rc != KN_E_IO)
            fail_msg("code %d: %s", rc, fix->err.msg);
    }
    assert_int_equal(pthread_join(killer, NULL), 0);
    assert_true(acknowledged > 0);
    assert_history(fix, "t0", acknowledged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_BOTH(sixty_four_committers_of_one_table_lose_nothing),
        CORE_BOTH(of_commits_that_exclude_one_another_one_is_taken),
        CORE_BOTH(committers_of_several_tables_share_transactions),
        CORE_BOTH(processes_that_race_lose_nothing),
        CORE_BOTH(creates_and_drops_at_once_only_say_exists_or_not_found),
        CORE_BOTH(several_tables_change_together_or_not_at_all),
        CORE_BOTH(a_commit_killed_anywhere_is_there_whole_or_not_at_all),
        CORE_BOTH(a_lost_answer_is_settled_by_asking),
        {"connections_that_are_ended_lose_no_acknowledged_commit",
         connections_that_are_ended_lose_no_acknowledged_commit, core_setup_postgres, core_teardown,
         NULL},
    };
    return cmocka_run_group_tests(tests, NULL, test_postgres_stop);
}
