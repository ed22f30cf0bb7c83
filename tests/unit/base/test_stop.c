/* SPDX-License-Identifier: Apache-2.0 */
/* test_stop.c - signals as a flag, waiting, and the second interrupt. labels: threads */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/stop.h"

static int setup(void **state)
{
    (void)state;
    kn_stop_install();
    kn_stop_reset();
    return 0;
}

static void nothing_is_asked_for_at_first(void **state)
{
    (void)state;
    assert_false(kn_stop_requested());
    assert_int_equal(kn_stop_signal(), 0);
    int64_t start = kn_clock_mono_us();
    assert_false(kn_stop_wait(2000));
    assert_true(kn_clock_mono_us() - start >= 2000);
    assert_false(kn_stop_wait(0));
    assert_false(kn_stop_wait(-5));
}

static void a_signal_sets_the_flag_and_the_descriptor(void **state)
{
    (void)state;
    (void)raise(SIGTERM);
    assert_true(kn_stop_requested());
    assert_int_equal(kn_stop_signal(), SIGTERM);
    struct pollfd fd = {.fd = kn_stop_fd(), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_true(kn_stop_wait(INT64_MAX)); /* at once */
    kn_stop_reset();
    assert_false(kn_stop_requested());
    assert_int_equal(poll(&fd, 1, 0), 0);
}

static void *waiter(void *arg)
{
    *(bool *)arg = kn_stop_wait(INT64_MAX);
    return NULL;
}

static void every_waiting_thread_is_woken(void **state)
{
    (void)state;
    pthread_t threads[4];
    bool asked[4] = {false};
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, waiter, &asked[i]), 0);
    (void)kill(getpid(), SIGINT);
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(asked[i]);
    }
    assert_int_equal(kn_stop_signal(), SIGINT);
}

static int child_status(int first, int second)
{
    pid_t pid = fork();
    if (pid == 0) {
        kn_stop_reset();
        (void)raise(first);
        (void)raise(second);
        _exit(kn_stop_signal());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_second_interrupt_ends_the_process_at_once(void **state)
{
    (void)state;
    assert_int_equal(child_status(SIGINT, SIGINT), 130);
    assert_int_equal(child_status(SIGTERM, SIGINT), 130);
    assert_int_equal(child_status(SIGINT, SIGTERM), SIGINT); /* the first one counts */
    assert_int_equal(child_status(SIGTERM, SIGTERM), SIGTERM);
}

static void a_broken_pipe_is_an_error_not_a_signal(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    (void)close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_asked_for_at_first, setup),
        cmocka_unit_test_setup(a_signal_sets_the_flag_and_the_descriptor, setup),
        cmocka_unit_test_setup(every_waiting_thread_is_woken, setup),
        cmocka_unit_test_setup(a_second_interrupt_ends_the_process_at_once, setup),
        cmocka_unit_test_setup(a_broken_pipe_is_an_error_not_a_signal, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
