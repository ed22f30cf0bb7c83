/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "catalog/server/idempotency.h"
#include "catalog/server/plans.h"

#define KEY "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

static void an_answer_is_given_again_under_its_key(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIdempotency *idem = kn_idempotency_new(1 << 20);
    KnKeptAnswer kept = {0};
    KnErr err = {0};
    assert_int_equal(kn_idempotency_begin(idem, arena, KN_STR_LIT(KEY), 7, &kept, &err), KN_OK);
    assert_non_null(kept.entry);
    KnStr pieces[] = {KN_STR_LIT("{\"a\":"), KN_STR_LIT("1}")};
    kn_idempotency_end(idem, kept.entry, 200, pieces, 2, "\"tag\"");
    assert_int_equal(kn_idempotency_begin(idem, arena,
                                          KN_STR_LIT("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), 7,
                                          &kept, &err),
                     KN_OK);
    assert_null(kept.entry);
    assert_int_equal(kept.status, 200);
    assert_string_equal(kept.body.ptr, "{\"a\":1}");
    assert_string_equal(kept.etag, "\"tag\"");
    assert_int_equal(kn_idempotency_begin(idem, arena, KN_STR_LIT(KEY), 8, &kept, &err),
                     KN_E_INVAL);
    assert_int_equal(err.about, KN_ABOUT_BOTH);
    (void)kn_idempotency_free(idem);
}

static void a_failure_of_the_server_is_not_kept(void **state)
{
    (void)state;
    static const int not_final[] = {500, 503, 401, 403, 429};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIdempotency *idem = kn_idempotency_new(1 << 20);
    for (size_t i = 0; i < sizeof(not_final) / sizeof(not_final[0]); i++) {
        KnKeptAnswer kept = {0};
        assert_int_equal(kn_idempotency_begin(idem, arena, KN_STR_LIT(KEY), 7, &kept, NULL), KN_OK);
        assert_non_null(kept.entry);
        kn_idempotency_end(idem, kept.entry, not_final[i], NULL, 0, NULL);
    }
    (void)kn_idempotency_free(idem);
}

static void what_is_no_uuid_is_refused(void **state)
{
    (void)state;
    static const char longer[] = KEY "0";
    static const char *const bad[] = {"", "x", longer, "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
                                      "017f22e2x79b0-7cc3-98c4-dc0c0c07398f"};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIdempotency *idem = kn_idempotency_new(1 << 20);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KnKeptAnswer kept = {0};
        assert_int_equal(kn_idempotency_begin(idem, arena, kn_str(bad[i]), 7, &kept, NULL),
                         KN_E_INVAL);
    }
    (void)kn_idempotency_free(idem);
}

static void the_oldest_answers_make_room(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIdempotency *idem = kn_idempotency_new(10000);
    static char body[1000];
    int ran = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            char key[37];
            (void)snprintf(key, sizeof(key), "%08d-79b0-7cc3-98c4-dc0c0c07398f", i);
            KnKeptAnswer kept = {0};
            assert_int_equal(kn_idempotency_begin(idem, arena, kn_str(key), 7, &kept, NULL), KN_OK);
            ran += kept.entry != NULL;
            KnStr piece = {body, sizeof(body)};
            if (kept.entry)
                kn_idempotency_end(idem, kept.entry, 200, &piece, 1, NULL);
        }
    }
    assert_int_equal(ran, 200); /* nothing from 100 requests ago is left */
    (void)kn_idempotency_free(idem);
}

typedef struct Race {
    KnIdempotency *idem;
    atomic_int ran;
} Race;

static void *repeat(void *arg)
{
    Race *race = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (int i = 0; i < 200; i++) {
        char key[37];
        (void)snprintf(key, sizeof(key), "%08d-79b0-7cc3-98c4-dc0c0c07398f", i);
        KnKeptAnswer kept = {0};
        if (kn_idempotency_begin(race->idem, arena, kn_str(key), 7, &kept, NULL) != KN_OK)
            return NULL;
        if (kept.entry) {
            race->ran++;
            kn_idempotency_end(race->idem, kept.entry, 204, NULL, 0, NULL);
        } else if (kept.status != 204) {
            return NULL;
        }
    }
    return race;
}

static void of_many_threads_with_one_key_one_runs(void **state)
{
    (void)state;
    Race race = {.idem = kn_idempotency_new(1 << 20)};
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, repeat, &race), 0);
    for (size_t i = 0; i < 8; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &race);
    }
    assert_int_equal(race.ran, 200);
    (void)kn_idempotency_free(race.idem);
}

static void a_plan_is_its_owners_and_ends_when_cancelled(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnPlans *plans = kn_plans_new(1 << 20, 60000000);
    KnStr pages[] = {{strdup("one"), 3}, {strdup("two"), 3}};
    const char *id = kn_plans_add(plans, arena, 5, pages, 2);
    KnStr page = {0};
    assert_int_equal(kn_plans_count(plans, 5, kn_str(id)), 2);
    assert_int_equal(kn_plans_page(plans, arena, &(KnPlanPage){5, kn_str(id), 1}, &page, NULL),
                     KN_OK);
    assert_string_equal(page.ptr, "two");
    assert_int_equal(kn_plans_page(plans, arena, &(KnPlanPage){5, kn_str(id), 2}, &page, NULL),
                     KN_E_NOTFOUND);
    assert_int_equal(kn_plans_page(plans, arena, &(KnPlanPage){6, kn_str(id), 1}, &page, NULL),
                     KN_E_NOTFOUND);
    assert_int_equal(kn_plans_cancel(plans, 6, kn_str(id), NULL), KN_E_NOTFOUND);
    assert_int_equal(kn_plans_cancel(plans, 5, kn_str(id), NULL), KN_OK);
    assert_int_equal(kn_plans_cancel(plans, 5, kn_str(id), NULL), KN_E_NOTFOUND);
    (void)kn_plans_free(plans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_given_again_under_its_key),
        cmocka_unit_test(a_failure_of_the_server_is_not_kept),
        cmocka_unit_test(what_is_no_uuid_is_refused),
        cmocka_unit_test(the_oldest_answers_make_room),
        cmocka_unit_test(of_many_threads_with_one_key_one_runs),
        cmocka_unit_test(a_plan_is_its_owners_and_ends_when_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
