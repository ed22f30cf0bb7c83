/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of many at once, over SQLite and PostgreSQL: none lost, none doubled, all or none of
 * several tables, answers that are lost. labels: threads */
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "core_support.h"
#include "support/postgres.h"
#include "support/tempdir.h"

enum { THREADS = 64, ROUNDS = 3 };

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

static void sixty_four_committers_of_one_table_lose_nothing(void **state)
{
    CoreFixture *fix = *state;
    Committer all[THREADS];
    core_make_namespace(fix);
    core_create(fix, "t0");
    run_committers(fix->core, all, THREADS, 1);
    core_assert_history(fix, "t0", THREADS * ROUNDS);
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
        core_assert_history(fix, name, 8 * ROUNDS);
    }
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
    core_assert_history(fix, "t0", 1);
}

/* ---- PostgreSQL alone ---- */

enum { ENDED_COMMITS = 30 };

/* Ends our connections to the server, once a commit, somewhere in it. */
static void *terminate_backends(void *arg)
{
    sem_t *begun = arg;
    PGconn *pg = PQconnectdb(test_postgres_uri());
    for (int i = 0; i < ENDED_COMMITS; i++) {
        while (sem_wait(begun) != 0)
            continue;
        PQclear(PQexec(pg, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                           " application_name='knut'"));
    }
    PQfinish(pg);
    return NULL;
}

static void connections_that_are_ended_lose_no_acknowledged_commit(void **state)
{
    CoreFixture *fix = *state;
    KnTableIdent t0 = CORE_IDENT("t0");
    pthread_t killer;
    sem_t begun;
    int acknowledged = 0;
    core_make_namespace(fix);
    core_create(fix, "t0");
    assert_int_equal(sem_init(&begun, 0, 0), 0);
    assert_int_equal(pthread_create(&killer, NULL, terminate_backends, &begun), 0);
    for (int i = 0; i < ENDED_COMMITS; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(sem_post(&begun), 0);
        KnCode rc = core_set(fix->core, &t0, key, "x", &fix->err);
        acknowledged += rc == KN_OK;
        if (rc != KN_OK && rc != KN_E_IO)
            fail_msg("code %d: %s", rc, fix->err.msg);
    }
    assert_int_equal(pthread_join(killer, NULL), 0);
    assert_int_equal(sem_destroy(&begun), 0);
    assert_true(acknowledged > 0);
    core_assert_history(fix, "t0", acknowledged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_BOTH(sixty_four_committers_of_one_table_lose_nothing),
        CORE_BOTH(of_commits_that_exclude_one_another_one_is_taken),
        CORE_BOTH(committers_of_several_tables_share_transactions),
        CORE_BOTH(creates_and_drops_at_once_only_say_exists_or_not_found),
        CORE_BOTH(several_tables_change_together_or_not_at_all),
        CORE_BOTH(a_lost_answer_is_settled_by_asking),
        {"connections_that_are_ended_lose_no_acknowledged_commit",
         connections_that_are_ended_lose_no_acknowledged_commit, core_setup_postgres, core_teardown,
         NULL},
    };
    return cmocka_run_group_tests(tests, NULL, test_postgres_stop);
}
