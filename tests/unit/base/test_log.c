/* SPDX-License-Identifier: Apache-2.0 */
/* test_log.c - levels, areas, and the two forms of a line. labels: threads */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "unit/base/capture.h"

static int setup(void **state)
{
    (void)state;
    kn_log_set(KN_LOG_INFO, KN_LOG_TEXT);
    kn_log_set_debug("");
    return 0;
}

static void levels_and_areas_decide_what_is_wanted(void **state)
{
    (void)state;
    assert_true(kn_log_wants(KN_LOG_ERROR, "cdc"));
    assert_true(kn_log_wants(KN_LOG_INFO, "cdc"));
    assert_false(kn_log_wants(KN_LOG_DEBUG, "cdc"));
    kn_log_set_debug("scan,cdc");
    assert_true(kn_log_wants(KN_LOG_DEBUG, "cdc"));
    assert_true(kn_log_wants(KN_LOG_DEBUG, "scan"));
    assert_false(kn_log_wants(KN_LOG_DEBUG, "cd"));
    assert_false(kn_log_wants(KN_LOG_DEBUG, "cdcx"));
    assert_false(kn_log_wants(KN_LOG_DEBUG, ""));
    kn_log_set_debug("all");
    assert_true(kn_log_wants(KN_LOG_DEBUG, "anything"));
    kn_log_set_debug(NULL);
    assert_false(kn_log_wants(KN_LOG_DEBUG, "cdc"));
    kn_log_set(KN_LOG_ERROR, KN_LOG_TEXT);
    assert_false(kn_log_wants(KN_LOG_WARN, "cdc"));
    kn_log_set(KN_LOG_DEBUG, KN_LOG_TEXT);
    assert_true(kn_log_wants(KN_LOG_DEBUG, "cdc"));
}

static void a_text_line_has_time_level_area_event_and_fields(void **state)
{
    (void)state;
    char out[512];
    capture_begin();
    kn_log(KN_LOG_INFO, "cdc", "window-delivered", KN_F("table", "ns.t"), KN_FI("rows", -3),
           KN_F("note", "two words"), KN_F("empty", ""), KN_F("q", "a\"b\n"));
    kn_debug("cdc", "unseen", KN_FI("n", 1));
    capture_end(out, sizeof(out));
    assert_int_equal(strspn(out, "0123456789:."), 12);
    assert_string_equal(out + 12,
                        " info cdc window-delivered table=ns.t rows=-3 note=\"two words\" "
                        "empty=\"\" q=\"a\\\"b\\n\"\n");
}

static void a_json_line_is_valid_json(void **state)
{
    (void)state;
    char out[1024];
    kn_log_set(KN_LOG_INFO, KN_LOG_JSON);
    capture_begin();
    kn_log(KN_LOG_WARN, "s3", "retry", KN_F("path", "a\"\\\n\x01\xff"), KN_FI("n", INT64_MIN));
    capture_end(out, sizeof(out));
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
    KN_JSON_AUTO doc = NULL;
    KnErr err = {0};
    if (kn_json_parse(out, strlen(out), &doc, &err) != KN_OK)
        fail_msg("%s", err.msg);
    const char *s = NULL;
    int64_t n = 0;
    assert_int_equal(kn_json_get_str(doc, "level", &s, NULL), KN_OK);
    assert_string_equal(s, "warn");
    assert_int_equal(kn_json_get_str(doc, "event", &s, NULL), KN_OK);
    assert_string_equal(s, "retry");
    assert_int_equal(kn_json_get_str(doc, "path", &s, NULL), KN_OK);
    assert_string_equal(s, "a\"\\\n\x01\xef\xbf\xbd");
    assert_int_equal(kn_json_get_i64(doc, "n", &n, NULL), KN_OK);
    assert_true(n == INT64_MIN);
    assert_int_equal(kn_json_get_str(doc, "time", &s, NULL), KN_OK);
    assert_int_equal(strlen(s), 24);
}

static void an_event_without_fields_and_errno_are_left_alone(void **state)
{
    (void)state;
    char out[128];
    capture_begin();
    errno = ENOSPC;
    kn_log_write(KN_LOG_ERROR, "cli", "bare", NULL, 0);
    assert_int_equal(errno, ENOSPC);
    capture_end(out, sizeof(out));
    assert_string_equal(out + 12, " error cli bare\n");
}

static void a_huge_value_is_cut_and_the_line_still_ends(void **state)
{
    (void)state;
    static char huge[100000], out[100000];
    memset(huge, 'x', sizeof(huge) - 1);
    capture_begin();
    kn_log(KN_LOG_INFO, "a", "b", KN_F("k", huge));
    capture_end(out, sizeof(out));
    assert_true(strlen(out) > 8192 && strlen(out) < 8300);
    assert_int_equal(out[strlen(out) - 1], '\n');
}

static void level_names_are_parsed(void **state)
{
    (void)state;
    KnLogLevel level = KN_LOG_ERROR;
    KnErr err = {0};
    assert_int_equal(kn_log_level_parse("debug", &level, &err), KN_OK);
    assert_int_equal(level, KN_LOG_DEBUG);
    assert_int_equal(kn_log_level_parse("verbose", &level, &err), KN_E_INVAL);
    assert_string_equal(err.msg,
                        "log level 'verbose' is not known: give error, warn, info or debug");
    assert_int_equal(level, KN_LOG_DEBUG);
}

static void *logger(void *arg)
{
    for (int i = 0; i < 200; ++i) {
        kn_log(KN_LOG_INFO, "t", "e", KN_FI("n", i), KN_F("who", arg));
        kn_log_set_debug(i % 2 ? "x,y" : "");
        (void)kn_log_wants(KN_LOG_DEBUG, "y");
    }
    return NULL;
}

static void lines_of_many_threads_do_not_mix(void **state)
{
    (void)state;
    static char out[1 << 18];
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    capture_begin();
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, logger, names[i]), 0);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    capture_end(out, sizeof(out));
    int lines = 0;
    for (char *p = out, *end; (end = strchr(p, '\n')) != NULL; p = end + 1, ++lines) {
        assert_memory_equal(p + 12, " info t e n=", 12);
        assert_memory_equal(end - 6, " who=", 5);
    }
    assert_int_equal(lines, 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(levels_and_areas_decide_what_is_wanted, setup),
        cmocka_unit_test_setup(a_text_line_has_time_level_area_event_and_fields, setup),
        cmocka_unit_test_setup(a_json_line_is_valid_json, setup),
        cmocka_unit_test_setup(an_event_without_fields_and_errno_are_left_alone, setup),
        cmocka_unit_test_setup(a_huge_value_is_cut_and_the_line_still_ends, setup),
        cmocka_unit_test_setup(level_names_are_parsed, setup),
        cmocka_unit_test_setup(lines_of_many_threads_do_not_mix, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
