/* SPDX-License-Identifier: Apache-2.0 */
/* test_terminal.c - a block of lines, drawn again in place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/terminal.h"

#define BEGIN "\x1b[?2026h\x1b[?7l\r"
#define END   "\x1b[J\x1b[?7h\x1b[?2026l"

static const KnTermSize wide = {80, 24};

static void assert_frame(KnLive *live, KnTermSize size, const char *text, const char *want)
{
    KN_BUF_AUTO out = {.max = 4096};
    kn_live_frame(live, size, kn_str(text), &out);
    assert_string_equal(out.data ? out.data : "", want);
}

static void a_block_is_drawn_over_the_one_before(void **state)
{
    (void)state;
    KnLive live = {0};
    assert_frame(&live, wide, "", ""); /* nothing to erase */
    assert_frame(&live, wide, "one\ntwo", BEGIN "one\x1b[K\r\ntwo\x1b[K" END);
    assert_frame(&live, wide, "three",
                 BEGIN "\x1b[1A"
                       "three\x1b[K" END);
    assert_frame(&live, wide, "four", BEGIN "four\x1b[K" END);
    assert_frame(&live, wide, "", BEGIN END);
    assert_frame(&live, wide, "", "");
}

static void what_does_not_fit_the_height_is_left_out(void **state)
{
    (void)state;
    KnLive live = {0};
    assert_frame(&live, (KnTermSize){80, 2}, "a\nb\nc", BEGIN "a\x1b[K\r\nb\x1b[K" END);
    assert_int_equal(live.n_lines, 2);
}

static void lines_that_a_narrower_terminal_wrapped_are_counted(void **state)
{
    (void)state;
    KnLive live = {0};
    assert_frame(&live, (KnTermSize){10, 24}, "0123456789abc\n\xC3\xA9\x1b[31mx\x1b[0m",
                 BEGIN "0123456789abc\x1b[K\r\n\xC3\xA9\x1b[31mx\x1b[0m\x1b[K" END);
    /* 10 columns of the first line were shown: 3 rows of 4; the second has 2 columns. */
    assert_frame(&live, (KnTermSize){4, 24}, "y",
                 BEGIN "\x1b[3A"
                       "y\x1b[K" END);
}

static void colours_are_asked_for_by_the_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("NO_COLOR", "", 1), 0);
    assert_true(kn_term_colours());
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    assert_false(kn_term_colours());
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    assert_false(kn_term_moves());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_drawn_over_the_one_before),
        cmocka_unit_test(what_does_not_fit_the_height_is_left_out),
        cmocka_unit_test(lines_that_a_narrower_terminal_wrapped_are_counted),
        cmocka_unit_test(colours_are_asked_for_by_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
