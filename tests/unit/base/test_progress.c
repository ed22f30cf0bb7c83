/* SPDX-License-Identifier: Apache-2.0 */
/* test_progress.c - the words of a bar, and that silence is silence. labels: threads */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/progress_internal.h"
#include "unit/base/capture.h"

static void counts_have_commas(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(kn_format_count(0, out), "0");
    assert_string_equal(kn_format_count(999, out), "999");
    assert_string_equal(kn_format_count(1000, out), "1,000");
    assert_string_equal(kn_format_count(1234567, out), "1,234,567");
    assert_string_equal(kn_format_count(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

static void bytes_have_units(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(kn_format_bytes(0, out), "0 B");
    assert_string_equal(kn_format_bytes(1023, out), "1023 B");
    assert_string_equal(kn_format_bytes(1024, out), "1.0 KiB");
    assert_string_equal(kn_format_bytes(3565158, out), "3.4 MiB");
    assert_string_equal(kn_format_bytes((1 << 20) - 1, out), "1.0 MiB");
    assert_string_equal(kn_format_bytes(UINT64_MAX, out), "16.0 EiB");
}

static void durations_are_short(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(kn_format_seconds(0, out), "0.0s");
    assert_string_equal(kn_format_seconds(-1, out), "0.0s");
    assert_string_equal(kn_format_seconds(9.94, out), "9.9s");
    assert_string_equal(kn_format_seconds(9.96, out), "10s");
    assert_string_equal(kn_format_seconds(59.6, out), "1m 00s");
    assert_string_equal(kn_format_seconds(65, out), "1m 05s");
    assert_string_equal(kn_format_seconds(3661, out), "1h 01m");
    assert_string_equal(kn_format_seconds(1e300, out), "for ever");
    assert_string_equal(kn_format_seconds(__builtin_nan(""), out), "0.0s");
}

static const char *render(KnProgressView view, KnBuf *out)
{
    kn_buf_reset(out);
    view.label = "load";
    kn_progress_render(&view, out);
    return out->data;
}

static void a_line_shows_what_is_known(void **state)
{
    (void)state;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 1000);
    assert_string_equal(render((KnProgressView){0}, &out), "load");
    assert_string_equal(
        render(
            (KnProgressView){
                .rows = 4500, .bytes = 1 << 20, .total_rows = 10000, .seconds = 9, .bar_width = 10},
            &out),
        "load   45% [####------]  4,500 rows  1.0 MiB  500 rows/s  ETA 11s");
    assert_string_equal(
        render((KnProgressView){.bytes = 512, .total_bytes = 1024, .seconds = 2}, &out),
        "load   50%  512 B  256 B/s  ETA 2.0s");
    assert_string_equal(
        render((KnProgressView){.rows = 20, .total_rows = 10, .bar_width = 4}, &out),
        "load  100% [####]  20 rows");
    assert_string_equal(render((KnProgressView){.rows = 20, .seconds = 4}, &out),
                        "load  20 rows  5 rows/s");
}

static void never_and_auto_without_a_terminal_are_silent(void **state)
{
    (void)state;
    char out[256];
    capture_begin();
    KnProgress *never = kn_progress_new(KN_PROGRESS_NEVER, "x", 10, 0);
    KnProgress *automatic = kn_progress_new(KN_PROGRESS_AUTO, "x", 10, 0);
    kn_progress_add(never, 1, 1);
    kn_progress_add(automatic, 1, 1);
    bool none = !never && !automatic;
    (void)kn_progress_free(never);
    (void)kn_progress_free(automatic);
    capture_end(out, sizeof(out));
    assert_true(none);
    assert_string_equal(out, "");
}

static void *adder(void *progress)
{
    for (int i = 0; i < 1000; ++i)
        kn_progress_add(progress, 1, 2);
    return NULL;
}

static void elsewhere_the_last_line_has_the_sum_of_all_threads(void **state)
{
    (void)state;
    char out[256];
    capture_begin();
    KnProgress *progress = kn_progress_new(KN_PROGRESS_ALWAYS, "load", 4000, 0);
    pthread_t threads[4];
    int failures = 0;
    for (int i = 0; i < 4; ++i)
        failures += pthread_create(&threads[i], NULL, adder, progress) != 0;
    for (int i = 0; i < 4; ++i)
        failures += pthread_join(threads[i], NULL) != 0;
    progress = kn_progress_free(progress);
    capture_end(out, sizeof(out));
    assert_int_equal(failures, 0);
    assert_null(progress);
    assert_memory_equal(out, "load  100%  4,000 rows  7.8 KiB", 31);
    assert_int_equal(out[strlen(out) - 1], '\n');
}

/* Stderr becomes a terminal of 60 columns; returns what was written to it. */
static const char *drawn_on_a_terminal(char *out, size_t cap)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    (void)dup2(slave, STDERR_FILENO);
    KnProgress *progress =
        kn_progress_new(KN_PROGRESS_AUTO, "a label that is rather long for this", 1000000000, 0);
    struct pollfd fd = {.fd = master, .events = POLLIN};
    int64_t start = kn_clock_mono_us(), first = 0;
    while (!first) { /* the first picture comes after its delay */
        kn_progress_add(progress, 1, 1 << 20);
        if (poll(&fd, 1, 0) == 1)
            first = kn_clock_mono_us() - start;
    }
    progress = kn_progress_free(progress);
    (void)dup2(saved, STDERR_FILENO);
    size_t len = 0;
    do { /* a terminal hands bytes over piecemeal; the last ones clear the line */
        ssize_t n = read(master, out + len, cap - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
        out[len] = '\0';
    } while (len < 4 || strcmp(out + len - 4, "\r\x1b[K") != 0);
    (void)close(saved);
    (void)close(slave);
    (void)close(master);
    assert_null(progress);
    assert_true(first >= 300000);
    return out;
}

static void a_terminal_shows_one_line_cut_to_its_width_and_cleared(void **state)
{
    (void)state;
    char out[4096];
    (void)drawn_on_a_terminal(out, sizeof(out));
    static const char begin[] = "\ra label that is rather long for this    0% [------------";
    assert_memory_equal(out, begin, sizeof(begin) - 1);
    assert_ptr_equal(strchr(out, '\x1b'), out + 60); /* \r and 59 characters */
    assert_null(strchr(out, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_commas),
        cmocka_unit_test(bytes_have_units),
        cmocka_unit_test(durations_are_short),
        cmocka_unit_test(a_line_shows_what_is_known),
        cmocka_unit_test(never_and_auto_without_a_terminal_are_silent),
        cmocka_unit_test(a_terminal_shows_one_line_cut_to_its_width_and_cleared),
        cmocka_unit_test(elsewhere_the_last_line_has_the_sum_of_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
