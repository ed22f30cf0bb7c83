/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics.c - one metric per name and labels, and the text they are written as. labels:
 * threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"

static void the_same_name_and_labels_are_the_same_metric(void **state)
{
    (void)state;
    KnMetric *a = kn_metric_get(KN_METRIC_COUNTER, "same_total", "t=\"1\"", "Help.");
    assert_ptr_equal(kn_metric_get(KN_METRIC_COUNTER, "same_total", "t=\"1\"", "Help."), a);
    assert_ptr_not_equal(kn_metric_get(KN_METRIC_COUNTER, "same_total", "t=\"2\"", "Help."), a);
    kn_metric_add(a, 2);
    kn_metric_add(a, 3);
    assert_int_equal(kn_metric_value(a), 5);
    KnMetric *gauge = kn_metric_get(KN_METRIC_GAUGE, "same_gauge", "", "Help.");
    kn_metric_set(gauge, -7);
    kn_metric_add(gauge, -1);
    assert_int_equal(kn_metric_value(gauge), -8);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 1000);
    kn_metric_label(&out, "table", kn_str("a\"b\\c\nd"));
    kn_metric_label(&out, "sink", (KnStr){"x\xff", 2});
    assert_string_equal(out.data, "table=\"a\\\"b\\\\c\\nd\",sink=\"x\xef\xbf\xbd\"");
}

static void text_groups_samples_of_one_name(void **state)
{
    (void)state;
    kn_metric_add(kn_metric_get(KN_METRIC_COUNTER, "z_total", "t=\"b\"", "Two\nlines \\."), 2);
    kn_metric_set(kn_metric_get(KN_METRIC_GAUGE, "z_lag", "", "Lag."), -3);
    kn_metric_add(kn_metric_get(KN_METRIC_COUNTER, "z_total", "t=\"a\"", "Two\nlines \\."), 1);
    KN_BUF_AUTO out;
    kn_buf_init(&out, 10000);
    kn_metrics_write(&out);
    const char *at = strstr(out.data, "# HELP z_lag");
    assert_non_null(at);
    assert_string_equal(at, "# HELP z_lag Lag.\n"
                            "# TYPE z_lag gauge\n"
                            "z_lag -3\n"
                            "# HELP z_total Two\\nlines \\\\.\n"
                            "# TYPE z_total counter\n"
                            "z_total{t=\"a\"} 1\n"
                            "z_total{t=\"b\"} 2\n");
}

enum { THREADS = 8, ROUNDS = 1000 };

static void *counter(void *arg)
{
    (void)arg;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 1 << 20);
    for (int i = 0; i < ROUNDS; ++i)
        kn_metric_add(kn_metric_get(KN_METRIC_COUNTER, "threads_total", "", "Help."), 1);
    kn_metrics_write(&out);
    return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, counter, NULL), 0);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(
        kn_metric_value(kn_metric_get(KN_METRIC_COUNTER, "threads_total", "", "Help.")),
        THREADS * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_name_and_labels_are_the_same_metric),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(text_groups_samples_of_one_name),
        cmocka_unit_test(nothing_is_lost_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
