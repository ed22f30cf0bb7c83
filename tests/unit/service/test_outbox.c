/* SPDX-License-Identifier: Apache-2.0 */
/* test_outbox.c - events of many threads, sent by one of the outbox's own; a configuration that
 * many hold. labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/metrics.h"
#include "service/config.h"
#include "service/outbox.h"

enum { SENDERS = 4, EVENTS = 200 }; /* together fewer than the outbox keeps */

typedef struct Sender {
    KnOutbox *box;
    int number;
} Sender;

static void *send_all(void *arg)
{
    const Sender *me = arg;
    for (int i = 0; i < EVENTS; i++) {
        char body[32];
        int len = snprintf(body, sizeof(body), "[%d,%d]", me->number, i);
        kn_outbox_send(me->box, (KnStr){body, (size_t)len});
    }
    return NULL;
}

/* The numbers of each sender's events must come in its order, none missing. */
static void check_lines(FILE *file)
{
    int next[SENDERS] = {0};
    char line[64];
    while (fgets(line, sizeof(line), file)) {
        KN_JSON_AUTO event = NULL;
        assert_int_equal(kn_json_parse(line, strlen(line), &event, NULL), KN_OK);
        json_int_t who = json_integer_value(json_array_get(event, 0));
        assert_in_range(who, 0, SENDERS - 1);
        assert_int_equal(json_integer_value(json_array_get(event, 1)), next[who]++);
    }
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(next[i], EVENTS);
}

static void events_of_many_threads_arrive_each_in_its_order(void **state)
{
    (void)state;
    char path[] = "/tmp/knut-outbox-XXXXXX", place[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)snprintf(place, sizeof(place), "file:%s", path);
    const KnOutboxOptions opts = {.name = "lineage", .to = place};
    KnOutbox *box = NULL;
    assert_int_equal(kn_outbox_open(&opts, &box, NULL), KN_OK);
    pthread_t threads[SENDERS];
    Sender senders[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (Sender){box, i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    box = kn_outbox_close(box);
    assert_null(box);
    FILE *file = fdopen(fd, "r");
    assert_non_null(file);
    check_lines(file);
    (void)fclose(file);
    assert_int_equal(unlink(path), 0);
}

static void what_does_not_arrive_is_counted_and_holds_nobody_up(void **state)
{
    (void)state;
    const KnOutboxOptions opts = {.name = "airflow", .to = "http://127.0.0.1:1/nobody"};
    KnOutbox *box = NULL;
    assert_int_equal(kn_outbox_open(&opts, &box, NULL), KN_OK);
    kn_outbox_send(box, KN_STR_LIT("{}"));
    box = kn_outbox_close(box);
    KN_BUF_AUTO text;
    kn_buf_init(&text, 1 << 20);
    kn_metrics_write(&text);
    assert_non_null(strstr(text.data, "knut_events_total{to=\"airflow\",outcome=\"lost\"} 1"));
}

static void a_place_that_makes_no_sense_is_refused_and_nobody_may_listen(void **state)
{
    (void)state;
    KnOutbox *box = NULL;
    KnErr err = {0};
    KnOutboxOptions opts = {.name = "lineage", .to = "nowhere"};
    assert_int_equal(kn_outbox_open(&opts, &box, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "an address, or file:PATH"));
    opts.to = "file:/absent/events";
    assert_int_equal(kn_outbox_open(&opts, &box, &err), KN_E_IO);
    assert_null(box);
    kn_outbox_send(NULL, KN_STR_LIT("{}"));
    assert_null(kn_outbox_close(NULL));
}

static void *hold(void *arg)
{
    KnServiceConfig *config = arg;
    for (int i = 0; i < EVENTS; i++) {
        KnServiceConfig *held = kn_service_config_ref(config);
        if (held->n != 1)
            abort();
        held = kn_service_config_unref(held);
    }
    config = kn_service_config_unref(config);
    return NULL;
}

static void the_last_of_many_holders_frees_a_configuration(void **state)
{
    (void)state;
    KnServiceConfig *config = NULL;
    KnStr text = kn_str("deliveries: [{warehouse: /w, table: a.b, sink: 'null:'}]");
    assert_int_equal(kn_service_config_parse("f", text, &config, NULL), KN_OK);
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold, kn_service_config_ref(config)), 0);
    config = kn_service_config_unref(config);
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_many_threads_arrive_each_in_its_order),
        cmocka_unit_test(what_does_not_arrive_is_counted_and_holds_nobody_up),
        cmocka_unit_test(a_place_that_makes_no_sense_is_refused_and_nobody_may_listen),
        cmocka_unit_test(the_last_of_many_holders_frees_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
