/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
/* test_rest.c - the REST catalog against servers that follow a script: what it asks, and what it
 * makes of answers, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/rest/rest_internal.h"
#include "unit/catalog/rest_script.h"

static KnCode open_with(const KnRestFlags *flags, KnErr *err)
{
    KnLocator loc = {.rest = *flags};
    KnCatalog *cat = NULL;
    KnCode rc = kn_catalog_rest_open(&loc, &cat, err);
    kn_catalog_close(cat);
    return rc;
}

/* ---- configuration ---- */

static void prefix_and_separator_of_the_server_are_used(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    const TestStep steps[] = {
        {.asks = "GET /v1/config?warehouse=my%20wh",
         .status = 200,
         .text = "{\"defaults\":{\"prefix\":\"no\"},\"overrides\":{\"prefix\":\"p q/r\","
                 "\"namespace-separator\":\"%2E\",\"n\":1}}"},
        {.asks = "GET /v1/p%20q/r/namespaces/a%20b%2Ec%2Fd/tables/x%2By%C3%A9",
         .header = "X-Iceberg-Access-Delegation: vended-credentials",
         .status = 200,
         .text = table},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnLocator loc = {.rest = {.uri = test_script_uri(script), .warehouse = "my wh"}};
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    KnErr err = {0};
    const char *const deep[] = {"a b", "c/d"};
    KnTableIdent odd = {.levels = deep, .n_levels = 2, .name = "x+yé"};
    assert_int_equal(kn_catalog_rest_open(&loc, &cat, &err), KN_OK);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_string_equal(cat->ops->id(cat),
                        kn_arena_printf(arena, "rest:%s#my wh", test_script_uri(script)));
    if (kn_table_load(cat, &odd, &tbl, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(rest_which(tbl), "a");
    kn_table_free(tbl);
    kn_catalog_close(cat);
    test_script_end(script);
    free(table);
}

static void what_a_server_does_not_offer_is_not_asked_for(void **state)
{
    (void)state;
    const TestStep steps[] = {{.asks = "GET /v1/config",
                               .status = 200,
                               .text = "{\"defaults\":{},\"overrides\":{},\"endpoints\":"
                                       "[\"GET /v1/{prefix}/namespaces\",7]}"}};
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KnErr err = {0};
    assert_int_equal(cat->ops->rename(cat, &rest_ident, &rest_ident, &err), KN_E_UNSUPPORTED);
    rest_assert_said(&err, "POST /v1/{prefix}/tables/rename");
    kn_catalog_close(cat);
    test_script_end(script);
}

static void a_server_may_not_send_clients_elsewhere(void **state)
{
    (void)state;
    const TestStep steps[] = {
        {.asks = "GET /v1/config",
         .status = 200,
         .text = "{\"defaults\":{},\"overrides\":{\"uri\":\"http://10.1.2.3/x\"}}"}};
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnErr err = {0};
    assert_int_equal(open_with(&(KnRestFlags){.uri = test_script_uri(script)}, &err), KN_E_REFUSED);
    rest_assert_said(&err, "10.1.2.3");
    test_script_end(script);
}

static void hostile_configurations_are_one_line(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{\"defaults\":3}",
        "<html>\n<body>Bad\tGateway</body>",
        "{\"overrides\":{\"namespace-separator\":\"%zz\"}}",
        "{\"defaults\":{},\"defaults\":{}}",
        "",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        const TestStep steps[] = {{.asks = "GET /v1/config", .status = 200, .text = texts[i]}};
        TestScript *script = test_script_start(steps, COUNT(steps));
        KnErr err = {0};
        assert_int_equal(open_with(&(KnRestFlags){.uri = test_script_uri(script)}, &err),
                         KN_E_CORRUPT);
        assert_null(strchr(err.msg, '\n'));
        rest_assert_said(&err, "config");
        test_script_end(script);
    }
}

static void a_deep_answer_does_not_bring_us_down(void **state)
{
    (void)state;
    KN_BUF_AUTO deep = {0};
    kn_buf_init(&deep, 1 << 22);
    for (int i = 0; i < 1000000; i++)
        kn_buf_char(&deep, '[');
    const TestStep steps[] = {{.asks = "GET /v1/config", .status = 200, .text = deep.data}};
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnErr err = {0};
    assert_int_equal(open_with(&(KnRestFlags){.uri = test_script_uri(script)}, &err), KN_E_CORRUPT);
    test_script_end(script);
}

/* ---- flags and secrets ---- */

static void nonsense_flags_are_refused_before_anything_is_sent(void **state)
{
    (void)state;
    const struct {
        KnRestFlags flags;
        const char *says;
    } cases[] = {
        {{.uri = "ftp://h"}, "no HTTP address"},
        {{.uri = "http://"}, "names no host"},
        {{.uri = "http://u:p@h/"}, "KNUT_REST_TOKEN"},
        {{.uri = "http://h/?a=b"}, "more than a path"},
        {{.uri = "http://h", .vendor = 2}, "--rest-warehouse"},
        {{.uri = "http://h", .sigv4 = "glue", .user = "u"}, "more than one way"},
        {{.uri = "http://h", .oauth2_uri = "http://t"}, "KNUT_REST_CREDENTIAL"},
        {{.uri = "http://h", .headers = {(const char *[]){"Authorization=Bearer x"}, 1}},
         "environment"},
        {{.uri = "http://h", .headers = {(const char *[]){"A B=c"}, 1}}, "NAME=VALUE"},
        {{.uri = "http://h", .headers = {(const char *[]){"A=b\r\nC: d"}, 1}}, "line break"},
        {{.uri = "http://h", .headers = {(const char *[]){"A=env:KNUT_NOT_SET"}, 1}}, "not set"},
        {{.uri = "http://h", .options = {(const char *[]){"token=x"}, 1}}, "environment"},
        {{.uri = "http://h", .options = {(const char *[]){"s3.secret-access-key=x"}, 1}},
         "environment"},
        {{.uri = "http://h", .options = {(const char *[]){"novalue"}, 1}}, "KEY=VALUE"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        KnErr err = {0};
        assert_int_equal(open_with(&cases[i].flags, &err), KN_E_INVAL);
        rest_assert_said(&err, cases[i].says);
        assert_null(strstr(err.msg, "u:p"));
    }
}

static void vendors_have_their_paths(void **state)
{
    (void)state;
    static const struct {
        int vendor;
        const char *asks;
    } cases[] = {
        {1, "GET /_iceberg/v1/config?warehouse=w"},
        {2, "GET /api/catalog/v1/config?warehouse=w"},
        {3, "GET /api/2.1/unity-catalog/iceberg/v1/config?warehouse=w"},
        {4, "GET /iceberg/v1/config?warehouse=w"},
    };
    (void)setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const TestStep steps[] = {{.asks = cases[i].asks,
                                   .header = cases[i].vendor == 1 ? NULL : "-Authorization",
                                   .status = 200,
                                   .text = "{\"defaults\":{},\"overrides\":{}}"}};
        TestScript *script = test_script_start(steps, COUNT(steps));
        KnErr err = {0};
        KnRestFlags flags = {
            .uri = test_script_uri(script), .warehouse = "w", .vendor = cases[i].vendor};
        if (open_with(&flags, &err) != KN_OK)
            fail_msg("%s", err.msg);
        test_script_end(script);
    }
}

/* ---- tokens ---- */

static void client_credentials_give_a_token_and_401_another(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    (void)setenv("KNUT_REST_CREDENTIAL", "me:s&c", 1);
    const TestStep steps[] = {
        {.asks = "POST /v1/oauth/tokens",
         .header = "Content-Type: application/x-www-form-urlencoded",
         .body = "grant_type=client_credentials&client_id=me&client_secret=s%26c&scope=all",
         .status = 200,
         .text = "{\"access_token\":\"one\",\"token_type\":\"bearer\",\"expires_in\":3600}"},
        {.asks = "GET /v1/config",
         .header = "Authorization: Bearer one",
         .status = 200,
         .text = "{\"defaults\":{},\"overrides\":{}}"},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer one",
         .status = 419},
        {.asks = "POST /v1/oauth/tokens", .status = 200, .text = "{\"access_token\":\"two\"}"},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer two",
         .status = 200,
         .text = table},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer two",
         .status = 401},
        {.asks = "POST /v1/oauth/tokens", .status = 200, .text = "{\"access_token\":\"three\"}"},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer three",
         .status = 401,
         .text = "{\"error\":{\"message\":\"no\",\"type\":\"NotAuthorizedException\"}}"},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnLocator loc = {.rest = {.uri = test_script_uri(script), .scope = "all"}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    assert_int_equal(kn_catalog_rest_open(&loc, &cat, &err), KN_OK);
    kn_table_free(rest_load_ok(cat));
    KnTable *tbl = NULL;
    assert_int_equal(kn_table_load(cat, &rest_ident, &tbl, &err), KN_E_REFUSED);
    rest_assert_said(&err, "401 NotAuthorizedException: no");
    kn_catalog_close(cat);
    test_script_end(script);
    (void)unsetenv("KNUT_REST_CREDENTIAL");
    free(table);
}

static void a_token_is_renewed_before_it_ends(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    (void)setenv("KNUT_REST_CREDENTIAL", "secret-only", 1);
    /* A life of a microsecond is over at once. */
    const TestStep steps[] = {
        {.asks = "POST /v1/oauth/tokens",
         .body = "grant_type=client_credentials&client_secret=secret-only&scope=catalog",
         .status = 200,
         .text = "{\"access_token\":\"one\",\"expires_in\":0.000001}"},
        {.asks = "GET /v1/config",
         .header = "Authorization: Bearer one",
         .status = 200,
         .text = "{\"defaults\":{},\"overrides\":{}}"},
        {.asks = "POST /v1/oauth/tokens",
         .status = 200,
         .text = "{\"access_token\":\"two\",\"expires_in\":\"3600\"}"},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer two",
         .status = 200,
         .text = table},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    kn_table_free(rest_load_ok(cat));
    kn_catalog_close(cat);
    test_script_end(script);
    (void)unsetenv("KNUT_REST_CREDENTIAL");
    free(table);
}

static void a_bearer_is_exchanged_where_that_is_asked_for(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    (void)setenv("KNUT_REST_TOKEN", "first", 1);
    const TestStep steps[] = {
        {.asks = "GET /v1/config",
         .header = "Authorization: Bearer first",
         .status = 200,
         .text = "{\"defaults\":{\"token-exchange-enabled\":\"true\",\"audience\":\"us\"},"
                 "\"overrides\":{}}"},
        {.asks = "GET /v1/namespaces/s/tables/t", .status = 401},
        {.asks = "POST /v1/oauth/tokens",
         .body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&"
                 "subject_token=first&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type"
                 "%3Aaccess_token&scope=catalog&audience=us",
         .status = 200,
         .text = "{\"access_token\":\"second\"}"},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "Authorization: Bearer second",
         .status = 200,
         .text = table},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    kn_table_free(rest_load_ok(cat));
    kn_catalog_close(cat);
    test_script_end(script);
    (void)unsetenv("KNUT_REST_TOKEN");
    free(table);
}

static void refused_credentials_are_told_without_the_secret(void **state)
{
    (void)state;
    (void)setenv("KNUT_REST_CREDENTIAL", "me:hunter2", 1);
    const TestStep steps[] = {{.asks = "POST /v1/oauth/tokens",
                               .status = 401,
                               .text = "{\"error\":\"invalid_client\",\"error_description\":"
                                       "\"unknown\\nclient\"}"}};
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnErr err = {0};
    assert_int_equal(open_with(&(KnRestFlags){.uri = test_script_uri(script)}, &err), KN_E_REFUSED);
    rest_assert_said(&err, "401 invalid_client: unknown client");
    assert_null(strstr(err.msg, "hunter2"));
    test_script_end(script);
    (void)unsetenv("KNUT_REST_CREDENTIAL");
}

/* ---- loading ---- */

static void an_unchanged_table_is_not_read_again(void **state)
{
    (void)state;
    char *table = test_script_table("a"), *newer = test_script_table("b");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "-If-None-Match",
         .status = 200,
         .extra = "ETag: W/\"e1\"\r\n",
         .text = table},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "If-None-Match: W/\"e1\"",
         .status = 304},
        {.asks = "GET /v1/namespaces/s/tables/t",
         .header = "If-None-Match: W/\"e1\"",
         .status = 200,
         .text = newer},
        {.asks = "GET /v1/namespaces/s/tables/t", .header = "-If-None-Match", .status = 304},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KnTable *tbl = rest_load_ok(cat);
    KnErr err = {0};
    const KnMetadata *first = tbl->md;
    assert_int_equal(kn_table_refresh(tbl, &err), KN_OK);
    assert_ptr_equal(tbl->md, first);
    assert_int_equal(kn_table_refresh(tbl, &err), KN_OK);
    assert_string_equal(rest_which(tbl), "b");
    assert_int_equal(kn_table_refresh(tbl, &err), KN_E_CORRUPT);
    rest_assert_said(&err, "304");
    assert_string_equal(rest_which(tbl), "b");
    kn_table_free(tbl);
    kn_catalog_close(cat);
    test_script_end(script);
    free(table);
    free(newer);
}

static void a_question_is_asked_again_after_a_passing_failure(void **state)
{
    (void)state;
    char *table = test_script_table("a");
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = "GET /v1/namespaces/s/tables/t", .status = 503, .extra = "Retry-After: 0\r\n"},
        {.asks = "GET /v1/namespaces/s/tables/t", .status = 0},
        {.asks = "GET /v1/namespaces/s/tables/t", .status = -1},
        {.asks = "GET /v1/namespaces/s/tables/t", .status = 429, .extra = "Retry-After: 0\r\n"},
        {.asks = "GET /v1/namespaces/s/tables/t", .status = 200, .text = table},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    kn_table_free(rest_load_ok(cat));
    kn_catalog_close(cat);
    test_script_end(script);
    free(table);
}

static void refusals_are_one_line_with_status_type_and_message(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *extra, *text;
        KnCode code;
        const char *says;
    } cases[] = {
        {404, NULL, NO_SUCH_TABLE, KN_E_NOTFOUND,
         "404 NoSuchTableException: Table does not exist: s.t"},
        {403, NULL, "{\"error\":{\"message\":\"a\\u0007b\\nc\",\"type\":\"ForbiddenException\"}}",
         KN_E_REFUSED, "403 ForbiddenException: a b c"},
        {404, "Content-Type: text/html\r\n", "<html>\r\n<h1>Not here</h1>", KN_E_NOTFOUND,
         "404 no answer of a catalog (text/html): <html> <h1>Not here</h1>"},
        {400, NULL, "", KN_E_INVAL, "400 an answer without a body"},
        {302, "Location: https://login.example/x\r\n", "", KN_E_IO, "https://login.example/x"},
        {503, "Retry-After: 3600\r\n", "{\"error\":{\"message\":\"later\"}}", KN_E_BUSY,
         "503 later"},
        {501, NULL, "[]", KN_E_UNSUPPORTED, "501"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const TestStep steps[] = {TEST_CONFIG,
                                  {.asks = "GET /v1/namespaces/s/tables/t",
                                   .status = cases[i].status,
                                   .extra = cases[i].extra,
                                   .text = cases[i].text}};
        TestScript *script = test_script_start(steps, COUNT(steps));
        KnCatalog *cat = rest_open_ok(script);
        KnTable *tbl = NULL;
        KnErr err = {0};
        assert_int_equal(kn_table_load(cat, &rest_ident, &tbl, &err), cases[i].code);
        rest_assert_said(&err, cases[i].says);
        rest_assert_said(&err, "load table s.t");
        assert_null(strchr(err.msg, '\n'));
        kn_catalog_close(cat);
        test_script_end(script);
    }
}

static void tables_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "7",
        "{}",
        "{\"metadata\":[]}",
        "{\"metadata\":{},\"metadata-location\":\"/x\"}",
        "{\"metadata\":{\"format-version\":2},\"metadata-location\":5}",
        "{\"metadata-location\":\"/x\",\"metadata\":{\"format-version\":9}}",
        "not json",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        const TestStep steps[] = {
            TEST_CONFIG,
            {.asks = "GET /v1/namespaces/s/tables/t", .status = 200, .text = texts[i]}};
        TestScript *script = test_script_start(steps, COUNT(steps));
        KnCatalog *cat = rest_open_ok(script);
        KnTable *tbl = NULL;
        KnErr err = {0};
        KnCode rc = kn_table_load(cat, &rest_ident, &tbl, &err);
        assert_true(rc == KN_E_CORRUPT || rc == KN_E_UNSUPPORTED);
        assert_null(tbl);
        assert_null(strchr(err.msg, '\n'));
        kn_catalog_close(cat);
        test_script_end(script);
    }
}

/* ---- listing ---- */

static KnCode gather(void *arg, const KnTableIdent *found, KnErr *err)
{
    (void)err;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    kn_buf_printf(arg, "%s ", kn_table_ident_format(arena, found));
    return KN_OK;
}

static void lists_go_through_pages_and_nested_namespaces(void **state)
{
    (void)state;
    const TestStep steps[] = {
        {.asks = "GET /v1/config",
         .status = 200,
         .text = "{\"defaults\":{\"rest-page-size\":\"2\"},\"overrides\":{}}"},
        {.asks = "GET /v1/namespaces?pageToken=&pageSize=2",
         .status = 200,
         .text = "{\"namespaces\":[[\"b\"],[\"a\"]],\"next-page-token\":\"p 2\"}"},
        {.asks = "GET /v1/namespaces?pageToken=p%202&pageSize=2",
         .status = 200,
         .text = "{\"namespaces\":[[\"a\"],[\"x\",\"y\"],[3]],\"next-page-token\":null}"},
        {.asks = "GET /v1/namespaces/a/tables?pageToken=",
         .status = 200,
         .text = "{\"identifiers\":[{\"namespace\":[\"a\"],\"name\":\"t2\"},{\"name\":\"t1\"}]}"},
        {.asks = "GET /v1/namespaces?pageToken=&pageSize=2&parent=a",
         .status = 200,
         .text = "{\"namespaces\":[[\"a\",\"in.ner\"],[\"a\"],[\"b\"]]}"},
        {.asks = "GET /v1/namespaces/a%1Fin.ner/tables?pageToken=",
         .status = 200,
         .text = "{\"identifiers\":[{\"namespace\":[\"a\",\"in.ner\"],\"name\":\"t\"}]}"},
        {.asks = "GET /v1/namespaces?pageToken=&pageSize=2&parent=a%1Fin.ner",
         .status = 404,
         .text = NO_SUCH_NAMESPACE},
        {.asks = "GET /v1/namespaces/b/tables?pageToken=",
         .status = 404,
         .text = NO_SUCH_NAMESPACE},
        {.asks = "GET /v1/namespaces?pageToken=&pageSize=2&parent=b", .status = 400},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KN_BUF_AUTO all = {0};
    kn_buf_init(&all, 4096);
    KnErr err = {0};
    if (cat->ops->list(cat, gather, &all, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(all.data, "a.t1 a.t2 a.\"in.ner\".t ");
    kn_catalog_close(cat);
    test_script_end(script);
}

static void a_page_token_that_comes_back_ends_the_listing(void **state)
{
    (void)state;
    static const char page[] = "{\"namespaces\":[],\"next-page-token\":\"p\"}";
    const TestStep steps[] = {
        TEST_CONFIG,
        {.asks = "GET /v1/namespaces?pageToken=", .status = 200, .text = page},
        {.asks = "GET /v1/namespaces?pageToken=p", .status = 200, .text = page},
    };
    TestScript *script = test_script_start(steps, COUNT(steps));
    KnCatalog *cat = rest_open_ok(script);
    KN_BUF_AUTO all = {0};
    kn_buf_init(&all, 4096);
    KnErr err = {0};
    assert_int_equal(cat->ops->list(cat, gather, &all, &err), KN_E_CORRUPT);
    rest_assert_said(&err, "again and again");
    kn_catalog_close(cat);
    test_script_end(script);
}
/* ---- what is lent ---- */

static void the_longest_prefix_lends_its_keys(void **state)
{
    (void)state;
    KN_JSON_AUTO lent = NULL;
    static const char text[] =
        "[{\"prefix\":\"s3://b\",\"config\":{\"k\":\"1\"}},"
        "{\"prefix\":\"s3://b/a/b\",\"config\":{\"k\":\"3\"}},{\"prefix\":\"s3://b/a\","
        "\"config\":{\"k\":\"2\"}},{\"prefix\":7},{\"config\":{}},9]";
    assert_int_equal(kn_json_parse(text, strlen(text), &lent, NULL), KN_OK);
    static const char *const pairs[][2] = {
        {"s3://b/x", "1"}, {"s3://b/a/x", "2"}, {"s3://b/a/b/c", "3"}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const json_t *config = kn_remote_lent(lent, kn_str(pairs[i][0]));
        assert_string_equal(json_string_value(json_object_get(config, "k")), pairs[i][1]);
    }
    assert_null(kn_remote_lent(lent, kn_str("s3://c/x")));
    assert_null(kn_remote_lent(NULL, kn_str("s3://c/x")));
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefix_and_separator_of_the_server_are_used),
        cmocka_unit_test(what_a_server_does_not_offer_is_not_asked_for),
        cmocka_unit_test(a_server_may_not_send_clients_elsewhere),
        cmocka_unit_test(hostile_configurations_are_one_line),
        cmocka_unit_test(a_deep_answer_does_not_bring_us_down),
        cmocka_unit_test(nonsense_flags_are_refused_before_anything_is_sent),
        cmocka_unit_test(vendors_have_their_paths),
        cmocka_unit_test(client_credentials_give_a_token_and_401_another),
        cmocka_unit_test(a_token_is_renewed_before_it_ends),
        cmocka_unit_test(a_bearer_is_exchanged_where_that_is_asked_for),
        cmocka_unit_test(refused_credentials_are_told_without_the_secret),
        cmocka_unit_test(an_unchanged_table_is_not_read_again),
        cmocka_unit_test(a_question_is_asked_again_after_a_passing_failure),
        cmocka_unit_test(refusals_are_one_line_with_status_type_and_message),
        cmocka_unit_test(tables_that_are_none_are_refused),
        cmocka_unit_test(lists_go_through_pages_and_nested_namespaces),
        cmocka_unit_test(a_page_token_that_comes_back_ends_the_listing),
        cmocka_unit_test(the_longest_prefix_lends_its_keys),
    };
    return cmocka_run_group_tests_name("rest", tests, rest_clean_environment, NULL);
}
