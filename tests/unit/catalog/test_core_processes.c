/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of several processes, and of one that is killed, over SQLite and PostgreSQL. */
#include <setjmp.h>
#include <signal.h>
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
#include "core_support.h"
#include "support/postgres.h"

enum { PROCESSES = 4, PROCESS_ROUNDS = 10 };

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
    core_assert_history(fix, "t0", PROCESSES * PROCESS_ROUNDS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_BOTH(processes_that_race_lose_nothing),
        CORE_BOTH(a_commit_killed_anywhere_is_there_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, test_postgres_stop);
}
