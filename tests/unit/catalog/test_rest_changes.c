/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
/* test_rest_changes.c - tables made, committed to and dropped through a REST catalog: races are
 * tried again, answers that were lost are looked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/rest/rest_internal.h"
#include "iceberg/write/commit_retry.h"
#include "unit/catalog/rest_script.h"

#define LOST                                                                                       \
    "{\"error\":{\"message\":\"who knows\",\"type\":\"CommitStateUnknownException\","              \
    "\"code\":500}}"
#define CONFLICT                                                                                   \
    "{\"error\":{\"message\":\"Requirement failed: branch main has changed\",\"type\":"            \
    "\"CommitFailedException\",\"code\":409}}"

/* ---- changes ---- */

static void a_missing_namespace_is_made_for_a_new_table(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = "POST /v1/namespaces/s/tables", .status = 404, .text = NO_SUCH_NAMESPACE},
        {.asks = "POST /v1/namespaces",
         .body = "{\"namespace\":[\"s\"],\"properties\":{}}",
         .status = 409},
        {.asks = "POST /v1/namespaces/s/tables",
         .body = "\"properties\":{\"format-version\":\"3\"}",
         .status = 200,
         .text = table},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnErr err = {0};
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, &err), KN_OK);
    KnCreateTable create = {.format_version = 3, .schema = schema};
    KnTable *tbl = NULL;
    if (kn_table_create(cat, &rest_ident, &create, &tbl, &err) != KN_OK)
        fail_msg("%s", err.msg);
    kn_table_free(tbl);
    kn_catalog_close(cat);
    test_script_end(script);
    free(table);
}

static const KnRequirement same_branch = {
    .kind = KN_REQUIRE_REF_SNAPSHOT_ID, .text = "main", .number = -1};

/* Sets the property "which" to "b". */
static KnCode set_which(KnTable *tbl, KnErr *err)
{
    KN_JSON_AUTO set = json_pack("{s:s}", "which", "b");
    KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = set};
    KnTableCommit commit = {&same_branch, 1, &update, 1};
    return kn_table_commit(tbl, &commit, err);
}

#define COMMIT_ASKS "POST /v1/namespaces/s/tables/t"
#define LOAD_ASKS   "GET /v1/namespaces/s/tables/t"

static KnCode commit_by(const TestStep *steps, size_t n, KnErr *err)
{
    TestScript *script = test_script_start(steps, n);
    KnCatalog *cat = rest_open_ok(script);
    KnTable *tbl = rest_load_ok(cat);
    KnCode rc = set_which(tbl, err);
    if (rc == KN_OK)
        assert_string_equal(rest_which(tbl), "b");
    kn_table_free(tbl);
    kn_catalog_close(cat);
    test_script_end(script);
    return rc;
}

static void a_commit_is_sent_once_with_requirements_and_updates(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS,
         .header = "-Idempotency-Key",
         .body = "{\"identifier\":{\"namespace\":[\"s\"],\"name\":\"t\"},\"requirements\":["
                 "{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\",\"snapshot-id\":null}],"
                 "\"updates\":[{\"action\":\"set-properties\",\"updates\":{\"which\":\"b\"}}]}",
         .status = 200,
         .text = newer},
    };
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    free(table);
    free(newer);
}

static void a_lost_commit_is_looked_for_and_never_sent_again(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    static const struct {
        int status;
        const char *extra, *text;
    } losses[] = {
        {0, NULL, NULL},
        {-1, NULL, NULL},
        {500, NULL, LOST},
        {502, "Content-Type: text/html\r\n", "<html>"},
        {503, "Retry-After: 0\r\n", ""},
        {200, NULL, "<html>welcome to the hotel's network"},
        {200, NULL, "{}"},
    };
    for (size_t i = 0; i < COUNT(losses); i++) {
        const TestStep steps[] = {
            TEST_CONFIG,
            {.asks = LOAD_ASKS, .status = 200, .text = table},
            {.asks = COMMIT_ASKS,
             .status = losses[i].status,
             .extra = losses[i].extra,
             .text = losses[i].text},
            {.asks = LOAD_ASKS, .status = 200, .text = newer},
        };
        KnErr err = {0};
        assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    }
    free(table);
    free(newer);
}

/* A table whose status checks are quick. */
static char *quick_table(const char *name)
{
    char *table = test_script_table(name);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *at = strstr(table, "\"which\"");
    char *quick = strdup(kn_arena_printf(arena,
                                         "%.*s\"commit.status-check.num-retries\":\"1\","
                                         "\"commit.status-check.min-wait-ms\":\"1\",%s",
                                         (int)(at - table), table, at));
    free(table);
    return quick;
}

static void a_commit_that_cannot_be_found_is_unknown(void **state)
{
    (void)state;
    char *table = quick_table("a");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS, .status = 504},
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = LOAD_ASKS, .status = 200, .text = table},
    };
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_E_UNKNOWN);
    rest_assert_said(&err, "may or may not");
    rest_assert_said(&err, "504");
    free(table);
}

static void a_lost_race_is_tried_again_while_the_requirements_hold(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS, .status = 409, .text = CONFLICT},
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS, .status = 429, .extra = "Retry-After: 0\r\n"},
        {.asks = COMMIT_ASKS, .status = 200, .text = newer},
    };
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    free(table);
    free(newer);
}

static void a_token_that_ends_in_mid_commit_is_renewed(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    (void)setenv("KNUT_REST_CREDENTIAL", "me:secret", 1);
    const TestStep steps[] = {
        {.asks = "POST /v1/oauth/tokens", .status = 200, .text = "{\"access_token\":\"one\"}"},
        TEST_CONFIG,
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS, .header = "Authorization: Bearer one", .status = 401},
        {.asks = "POST /v1/oauth/tokens", .status = 200, .text = "{\"access_token\":\"two\"}"},
        {.asks = COMMIT_ASKS, .header = "Authorization: Bearer two", .status = 200, .text = newer},
    };
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    (void)unsetenv("KNUT_REST_CREDENTIAL");
    free(table);
    free(newer);
}

static void with_an_idempotency_key_a_lost_commit_is_sent_again(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    const TestStep steps[] = {
        {.asks = "GET /v1/config",
         .status = 200,
         .text = "{\"defaults\":{},\"overrides\":{},\"idempotency-key-lifetime\":\"PT30M\"}"},
        {.asks = LOAD_ASKS, .status = 200, .text = table},
        {.asks = COMMIT_ASKS, .status = 0},
        {.asks = COMMIT_ASKS, .status = 503, .extra = "Retry-After: 0\r\n"},
        {.asks = COMMIT_ASKS, .status = 200, .text = newer},
    };
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    free(table);
    free(newer);
}

static void a_drop_whose_answer_was_lost_is_done_when_the_table_is_gone(void **state)
{
    (void)state;
    const TestStep steps[] = {
        {.asks = "GET /v1/config",
         .status = 200,
         .text = "{\"defaults\":{},\"overrides\":{},\"idempotency-key-lifetime\":\"PT30M\"}"},
        {.asks = "DELETE /v1/namespaces/s/tables/t?purgeRequested=false", .status = -1},
        {.asks = "DELETE /v1/namespaces/s/tables/t?purgeRequested=false",
         .status = 404,
         .text = NO_SUCH_TABLE},
        {.asks = "DELETE /v1/namespaces/s/tables/t?purgeRequested=false",
         .status = 404,
         .text = NO_SUCH_TABLE},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KnErr err = {0};
    assert_int_equal(cat->ops->drop(cat, &rest_ident, &err), KN_OK);
    assert_int_equal(cat->ops->drop(cat, &rest_ident, &err), KN_E_NOTFOUND);
    kn_catalog_close(cat);
    test_script_end(script);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_namespace_is_made_for_a_new_table),
        cmocka_unit_test(a_commit_is_sent_once_with_requirements_and_updates),
        cmocka_unit_test(a_lost_commit_is_looked_for_and_never_sent_again),
        cmocka_unit_test(a_commit_that_cannot_be_found_is_unknown),
        cmocka_unit_test(a_lost_race_is_tried_again_while_the_requirements_hold),
        cmocka_unit_test(a_token_that_ends_in_mid_commit_is_renewed),
        cmocka_unit_test(with_an_idempotency_key_a_lost_commit_is_sent_again),
        cmocka_unit_test(a_drop_whose_answer_was_lost_is_done_when_the_table_is_gone),
    };
    return cmocka_run_group_tests_name("rest_changes", tests, rest_clean_environment, NULL);
}
