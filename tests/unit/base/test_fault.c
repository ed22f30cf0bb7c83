/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault.c - rules from text, counting, and what a point does to a process. */
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

static void set(const char *spec, const char *trace)
{
    KnErr err = {0};
    if (kn_fault_set(spec, trace, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

static void the_nth_pass_fails_and_only_that(void **state)
{
    (void)state;
    set("a:2:fail", NULL);
    KnErr err = {0};
    assert_int_equal(kn_fault_at("a", &err), KN_OK);
    assert_int_equal(kn_fault_at("b", &err), KN_OK);
    assert_int_equal(kn_fault_at("a", &err), KN_E_IO);
    assert_string_equal(err.msg, "fault point 'a' was told to fail");
    assert_int_equal(kn_fault_at("a", &err), KN_OK);
}

static void a_star_counts_every_point_and_rules_add_up(void **state)
{
    (void)state;
    set("*:3:fail,b:1:fail", NULL);
    assert_int_equal(kn_fault_at("a", NULL), KN_OK);
    assert_int_equal(kn_fault_at("b", NULL), KN_E_IO);
    assert_int_equal(kn_fault_at("c", NULL), KN_E_IO);
    assert_int_equal(kn_fault_at("c", NULL), KN_OK);
}

static void malformed_rules_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"a",          "a:1",       ":1:fail",
                                        "a:0:fail",   "a:x:fail",  "a:1:explode",
                                        "a:1:fail,,", "a:-1:kill", "a:1:fail:x"};
    set(NULL, NULL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        KnErr err = {0};
        assert_int_equal(kn_fault_set(wrong[i], NULL, &err), KN_E_INVAL);
        assert_non_null(strstr(err.msg, "KNUT_FAULT"));
    }
    assert_int_equal(kn_fault_at("a", NULL), KN_OK);
    char many[17 * 9 + 1] = "";
    for (int i = 0; i < 17; ++i)
        memcpy(many + 9L * i, "a:1:fail,", 9);
    assert_int_equal(kn_fault_set(many, NULL, NULL), KN_E_INVAL);
}

static KnCode pass_macro(KnErr *err, int *reached)
{
    KN_FAULT("m", err);
    *reached = 1;
    return KN_OK;
}

static void the_macro_returns_on_failure(void **state)
{
    (void)state;
    int reached = 0;
    set("m:1:fail", NULL);
    assert_int_equal(pass_macro(NULL, &reached), KN_E_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(pass_macro(NULL, &reached), KN_OK);
    assert_int_equal(reached, 1);
}

static int child_status(const char *spec)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGTERM, SIG_DFL);
        if (kn_fault_set(spec, NULL, NULL) != KN_OK || kn_fault_at("p", NULL) != KN_OK)
            _exit(1);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_point_can_kill_exit_or_stop_the_process(void **state)
{
    (void)state;
    int status = child_status("p:1:kill");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = child_status("p:1:stop");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    status = child_status("p:1:exit");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    status = child_status("p:2:kill");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void points_passed_are_traced(void **state)
{
    (void)state;
    char name[] = "/tmp/knut-fault-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    set(NULL, name);
    assert_int_equal(kn_fault_at("one", NULL), KN_OK);
    assert_int_equal(kn_fault_at("two", NULL), KN_OK);
    set(NULL, NULL);
    assert_int_equal(kn_fault_at("three", NULL), KN_OK);
    char text[64] = "";
    assert_int_equal(read(fd, text, sizeof(text) - 1), 8);
    assert_string_equal(text, "one\ntwo\n");
    (void)close(fd);
    (void)unlink(name);
    set(NULL, "/nonexistent-folder/trace");
    assert_int_equal(kn_fault_at("one", NULL), KN_E_IO);
    set(NULL, NULL);
}

/* The environment is read once per process, at the first point: a fresh copy of this program. */
static void the_environment_arms_a_fresh_process(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int status;
    } cases[] = {{"child:1:fail", KN_E_IO}, {"child:2:fail", KN_OK}, {"nonsense", KN_E_INVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)setenv("KNUT_FAULT", cases[i].spec, 1);
            (void)execl("/proc/self/exe", "test", "child", (char *)NULL);
            _exit(99);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "child") == 0)
        return (int)kn_fault_at("child", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_pass_fails_and_only_that),
        cmocka_unit_test(a_star_counts_every_point_and_rules_add_up),
        cmocka_unit_test(malformed_rules_are_refused),
        cmocka_unit_test(the_macro_returns_on_failure),
        cmocka_unit_test(a_point_can_kill_exit_or_stop_the_process),
        cmocka_unit_test(points_passed_are_traced),
        cmocka_unit_test(the_environment_arms_a_fresh_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
