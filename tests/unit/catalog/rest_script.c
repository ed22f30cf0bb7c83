/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/catalog/rest_script.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stub.h"

struct TestScript {
    TestStub *stub;
    const TestStep *steps;
    size_t n, next;
    char uri[64];
    char broken[400];
};

static bool has_header(const TestRequest *req, const char *line)
{
    char name[64], value[1024];
    bool absent = *line == '-';
    size_t len = strcspn(line + absent, ":");
    (void)snprintf(name, sizeof(name), "%.*s", (int)len, line + absent);
    const char *given = test_stub_header(req, name, value, sizeof(value));
    if (absent)
        return !*given;
    return strcmp(given, line + len + 2) == 0;
}

static const char *differs(const TestScript *script, const TestRequest *req)
{
    if (script->next == script->n)
        return "nothing more was expected";
    const TestStep *step = &script->steps[script->next];
    char asked[2048];
    (void)snprintf(asked, sizeof(asked), "%s %s", req->method, req->target);
    if (strncmp(asked, step->asks, strlen(step->asks)) != 0)
        return step->asks;
    if (step->header && !has_header(req, step->header))
        return step->header;
    if (step->body && !strstr(req->body, step->body))
        return step->body;
    return NULL;
}

static bool play(void *arg, const TestRequest *req)
{
    TestScript *script = arg;
    const char *what = differs(script, req);
    if (what) {
        (void)snprintf(script->broken, sizeof(script->broken),
                       "step %zu: '%s %s' came, expected: %s", script->next, req->method,
                       req->target, what);
        test_stub_answer(req, 599, NULL, script->broken);
        return false;
    }
    const TestStep *step = &script->steps[script->next++];
    if (step->status == 0)
        return false;
    if (step->status < 0) {
        test_stub_printf(req, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                              "Content-Length: 1000\r\n\r\n{\"metadata");
        return false;
    }
    test_stub_answer(req, step->status, step->extra, step->text ? step->text : "");
    return true;
}

TestScript *test_script_start(const TestStep *steps, size_t n)
{
    TestScript *script = calloc(1, sizeof(*script));
    assert_non_null(script);
    script->steps = steps;
    script->n = n;
    script->stub = test_stub_start(play, script);
    (void)snprintf(script->uri, sizeof(script->uri), "http://127.0.0.1:%d",
                   test_stub_port(script->stub));
    return script;
}

TestScript *test_script_end(TestScript *script)
{
    test_stub_stop(script->stub);
    if (*script->broken)
        fail_msg("%s", script->broken);
    if (script->next != script->n)
        fail_msg("step %zu (%s) was not asked for", script->next, script->steps[script->next].asks);
    free(script);
    return NULL;
}

const char *test_script_uri(const TestScript *script)
{
    return script->uri;
}

char *test_script_table(const char *which)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnErr err = {0};
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, &err), KN_OK);
    KN_JSON_AUTO props = json_pack("{s:s}", "which", which);
    KnCreateTable create = {
        .format_version = 2, .location = "/w/s/t", .schema = schema, .properties = props};
    KN_METADATA_AUTO md = NULL;
    assert_int_equal(kn_metadata_create(&create, &md, &err), KN_OK);
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 1 << 20);
    kn_buf_printf(&text, "{\"metadata-location\":\"/w/s/t/metadata/%s.metadata.json\",", which);
    kn_buf_text(&text, "\"metadata\":");
    assert_int_equal(kn_metadata_to_json(md, &text, &err), KN_OK);
    kn_buf_char(&text, '}');
    return kn_buf_steal(&text, NULL);
}

/* ---- what the tests share ---- */

static const char *const levels[] = {"s"};
const KnTableIdent rest_ident = {.levels = levels, .n_levels = 1, .name = "t"};

int rest_clean_environment(void **state)
{
    (void)state;
    (void)unsetenv("KNUT_REST_TOKEN");
    (void)unsetenv("KNUT_REST_CREDENTIAL");
    (void)unsetenv("KNUT_REST_PASSWORD");
    (void)unsetenv("BIFROST_CATALOG_TOKEN");
    (void)unsetenv("BIFROST_CATALOG_CREDENTIAL");
    return 0;
}

KnCatalog *rest_open_ok(const TestScript *script)
{
    KnLocator loc = {.rest = {.uri = test_script_uri(script)}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    if (kn_catalog_rest_open(&loc, &cat, &err) != KN_OK)
        fail_msg("open: %s", err.msg);
    return cat;
}

KnTable *rest_load_ok(KnCatalog *cat)
{
    KnTable *tbl = NULL;
    KnErr err = {0};
    if (kn_table_load(cat, &rest_ident, &tbl, &err) != KN_OK)
        fail_msg("load: %s", err.msg);
    return tbl;
}

void rest_assert_said(const KnErr *err, const char *part)
{
    if (!strstr(err->msg, part))
        fail_msg("'%s' is not in '%s'", part, err->msg);
}

const char *rest_which(const KnTable *tbl)
{
    return kn_metadata_property(tbl->md, "which", "");
}
