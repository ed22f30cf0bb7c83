/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
/* The gRPC catalog against a server that follows a script: what it asks, and what it makes of
 * answers, good and bad. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog.h"
#include "catalog/grpc/wire.h"
#include "net/grpc_server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What must be called next, and what is answered. */
typedef struct Step {
    const char *method;
    const char *has; /* bytes of the request */
    int code;
    const char *text;           /* of the status */
    const KnPbMessage *message; /* NULL = an empty one */
    KnWireAnswer answer;
} Step;

typedef struct Script {
    KnGrpcServer *srv;
    pthread_mutex_t lock;
    const Step *steps;
    size_t n, at;
    char broken[200], token[100];
} Script;

static char metadata_text[2][4096];
static char uri[64];

static int answer_next(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    Script *script = self;
    int code = KN_GRPC_INTERNAL;
    pthread_mutex_lock(&script->lock);
    const Step *step = script->at < script->n ? &script->steps[script->at++] : NULL;
    const char *method = call->method->arg;
    KnStr token = kn_grpc_call_metadata(call, "authorization");
    (void)snprintf(script->token, sizeof(script->token), KN_STR_FMT, KN_STR_ARG(token));
    bool has = step && (!step->has ||
                        memmem(call->message.ptr, call->message.len, step->has, strlen(step->has)));
    if (!step || strcmp(step->method, method) != 0 || !has) {
        (void)snprintf(script->broken, sizeof(script->broken), "%s was asked, not %s with %s",
                       method, step ? step->method : "nothing",
                       step && step->has ? step->has : "-");
    } else {
        code = step->code;
        if (code != KN_GRPC_OK)
            kn_err_set(err, KN_E_IO, "%s", step->text ? step->text : "no");
        else if (step->message)
            kn_pb_encode(step->message, &step->answer, out);
    }
    pthread_mutex_unlock(&script->lock);
    return code;
}

#define METHOD(name)                                                                               \
    {                                                                                              \
        .path = KN_WIRE_CATALOG name, .kind = KN_GRPC_QUICK, .call = answer_next, .arg = name      \
    }
static const KnGrpcMethod methods[] = {
    METHOD("Config"),     METHOD("ListNamespaces"), METHOD("CreateNamespace"),
    METHOD("ListTables"), METHOD("CreateTable"),    METHOD("LoadTable"),
    METHOD("DropTable"),  METHOD("CommitTable"),
};

static Script *start(const Step *steps, size_t n)
{
    Script *script = calloc(1, sizeof(*script));
    assert_non_null(script);
    script->steps = steps;
    script->n = n;
    pthread_mutex_init(&script->lock, NULL);
    KnGrpcService service = {methods, COUNT(methods), script};
    script->srv = kn_grpc_server_new(&(KnGrpcOptions){.services = &service, .n_services = 1});
    KnListen listening = {0};
    KnErr err = {0};
    assert_int_equal(kn_listen_open("127.0.0.1:0", &listening, &err), KN_OK);
    (void)snprintf(uri, sizeof(uri), "http://127.0.0.1:%d", listening.port);
    assert_int_equal(kn_grpc_server_listen(script->srv, &listening, &err), KN_OK);
    return script;
}

static void end(Script *script)
{
    (void)kn_grpc_server_close(script->srv, 0);
    assert_string_equal(script->broken, "");
    assert_int_equal(script->at, script->n);
    pthread_mutex_destroy(&script->lock);
    free(script);
}

static KnCatalog *open_ok(void)
{
    KnLocator loc = {.grpc = {.uri = uri}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    if (kn_catalog_open(&loc, false, &cat, &err) != KN_OK)
        fail_msg("open: %s", err.msg);
    return cat;
}

static const char *const levels[] = {"s"};
static const KnTableIdent ident = {.levels = levels, .n_levels = 1, .name = "t"};

/* Two documents of one table: the property "which" tells them apart. */
static int make_metadata(void **state)
{
    (void)state;
    for (int i = 0; i < 2; ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        KnSchema *schema = NULL;
        assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, NULL), KN_OK);
        KN_JSON_AUTO props = json_pack("{s:s, s:s, s:s}", "which", i ? "new" : "old",
                                       "commit.status-check.num-retries", "1",
                                       "commit.status-check.min-wait-ms", "1");
        KnCreateTable create = {
            .format_version = 2, .location = "/w/s/t", .schema = schema, .properties = props};
        KN_METADATA_AUTO md = NULL;
        assert_int_equal(kn_metadata_create(&create, &md, NULL), KN_OK);
        KN_BUF_AUTO text;
        kn_buf_init(&text, sizeof(metadata_text[i]) - 1);
        assert_int_equal(kn_metadata_to_json(md, &text, NULL), KN_OK);
        memcpy(metadata_text[i], text.data, text.len + 1);
    }
    (void)unsetenv("KNUT_GRPC_TOKEN");
    return 0;
}

static Step table_step(const char *method, int which)
{
    return (Step){.method = method,
                  .message = &kn_wire_table,
                  .answer = {.metadata_location = "/w/s/t/metadata/00000-a.metadata.json",
                             .metadata_json = kn_str(metadata_text[which])}};
}
#define CONFIG                                                                                     \
    {                                                                                              \
        .method = "Config"                                                                         \
    }

static void assert_said(const KnErr *err, const char *part)
{
    if (!strstr(err->msg, part))
        fail_msg("'%s' is not in '%s'", part, err->msg);
}

static void a_table_is_loaded_from_the_answer_alone(void **state)
{
    (void)state;
    const Step steps[] = {CONFIG, table_step("LoadTable", 0)};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KnTable *tbl = NULL;
    KnErr err = {0};
    if (kn_table_load(cat, &ident, &tbl, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(kn_metadata_property(tbl->md, "which", ""), "old");
    assert_string_equal(tbl->metadata_location, "/w/s/t/metadata/00000-a.metadata.json");
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_string_equal(cat->ops->id(cat), kn_arena_printf(arena, "grpc:%s", uri));
    kn_table_free(tbl);
    kn_catalog_close(cat);
    end(script);
}

static void the_token_is_sent_and_told_to_nobody(void **state)
{
    (void)state;
    const Step steps[] = {{.method = "Config", .code = 16, .text = "unknown token"}};
    Script *script = start(steps, COUNT(steps));
    (void)setenv("KNUT_GRPC_TOKEN", "s3cret", 1);
    KnLocator loc = {.grpc = {.uri = uri}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    assert_int_equal(kn_catalog_open(&loc, false, &cat, &err), KN_E_REFUSED);
    assert_said(&err, "UNAUTHENTICATED: unknown token");
    assert_null(strstr(err.msg, "s3cret"));
    assert_string_equal(script->token, "Bearer s3cret");
    (void)unsetenv("KNUT_GRPC_TOKEN");
    end(script);
}

static void statuses_are_failures_that_say_what_was_asked(void **state)
{
    (void)state;
    static const struct {
        int code;
        KnCode means;
        const char *said;
    } cases[] = {
        {5, KN_E_NOTFOUND, "load table s.t: http://127.0.0.1"},
        {3, KN_E_INVAL, "INVALID_ARGUMENT"},
        {7, KN_E_REFUSED, "PERMISSION_DENIED: no"},
        {12, KN_E_UNSUPPORTED, "UNIMPLEMENTED"},
        {13, KN_E_IO, "INTERNAL"},
        {15, KN_E_CORRUPT, "DATA_LOSS"},
        {77, KN_E_IO, "answers ?: no"},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        const Step steps[] = {CONFIG, {.method = "LoadTable", .code = cases[i].code}};
        Script *script = start(steps, COUNT(steps));
        KnCatalog *cat = open_ok();
        KnTable *tbl = NULL;
        KnErr err = {0};
        assert_int_equal(kn_table_load(cat, &ident, &tbl, &err), cases[i].means);
        assert_said(&err, cases[i].said);
        kn_catalog_close(cat);
        end(script);
    }
}

static void reading_is_tried_again_while_the_server_is_not_available(void **state)
{
    (void)state;
    const Step steps[] = {CONFIG,
                          {.method = "LoadTable", .code = 14, .text = "in a moment"},
                          {.method = "LoadTable", .code = 14, .text = "in a moment"},
                          table_step("LoadTable", 1)};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KnTable *tbl = NULL;
    assert_int_equal(kn_table_load(cat, &ident, &tbl, NULL), KN_OK);
    kn_table_free(tbl);
    kn_catalog_close(cat);
    end(script);
}

static void an_answer_without_a_document_is_corrupt(void **state)
{
    (void)state;
    const Step steps[] = {
        CONFIG,
        {.method = "LoadTable", .message = &kn_wire_table},
        {.method = "LoadTable",
         .message = &kn_wire_table,
         .answer = {.metadata_location = "/w/m.json", .metadata_json = KN_STR_LIT("{]")}},
        {.method = "LoadTable",
         .message = &kn_wire_exists, /* a bool where a text should be */
         .answer = {.exists = true}}};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KnTable *tbl = NULL;
    for (int i = 0; i < 3; ++i)
        assert_int_equal(kn_table_load(cat, &ident, &tbl, NULL), KN_E_CORRUPT);
    kn_catalog_close(cat);
    end(script);
}

static KnCode create(KnCatalog *cat, KnCreateTable *how, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, NULL), KN_OK);
    how->schema = schema;
    KnTable *tbl = NULL;
    KnCode rc = kn_table_create(cat, &ident, how, &tbl, err);
    kn_table_free(tbl);
    return rc;
}

static void a_missing_namespace_is_made_for_a_new_table(void **state)
{
    (void)state;
    const Step steps[] = {CONFIG,
                          {.method = "CreateTable", .has = "\"name\":\"id\"", .code = 5},
                          {.method = "CreateNamespace", .has = "s", .code = 6},
                          table_step("CreateTable", 0)};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KnCreateTable how = {.format_version = 2};
    assert_int_equal(create(cat, &how, NULL), KN_OK);
    kn_catalog_close(cat);
    end(script);
}

static void what_the_wire_cannot_carry_is_refused_by_name(void **state)
{
    (void)state;
    const Step steps[] = {CONFIG};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KN_JSON_AUTO props = json_pack("{s:s}", "a", "b");
    KnPartitionField field = {0};
    KnPartitionSpec spec = {.fields = &field, .n_fields = 1};
    struct {
        KnCreateTable how;
        const char *said;
    } cases[] = {{{.format_version = 3}, "a format version other than 2"},
                 {{.format_version = 2, .properties = props}, "table properties"},
                 {{.format_version = 2, .spec = &spec}, "a partition spec"}};
    for (size_t i = 0; i < COUNT(cases); ++i) {
        KnErr err = {0};
        assert_int_equal(create(cat, &cases[i].how, &err), KN_E_UNSUPPORTED);
        assert_said(&err, cases[i].said);
    }
    KnErr err = {0};
    KnTable *tbl = NULL;
    assert_int_equal(cat->ops->rename(cat, &ident, &ident, &err), KN_E_UNSUPPORTED);
    assert_said(&err, "rename");
    assert_int_equal(cat->ops->register_table(cat, &ident, "/w/m.json", &tbl, &err),
                     KN_E_UNSUPPORTED);
    assert_said(&err, "register");
    kn_catalog_close(cat);
    end(script);
}

/* Loads the table and sets which = new. */
static KnCode commit_by(const Step *steps, size_t n, KnErr *err)
{
    Script *script = start(steps, n);
    KnCatalog *cat = open_ok();
    KnTable *tbl = NULL;
    assert_int_equal(kn_table_load(cat, &ident, &tbl, NULL), KN_OK);
    KN_JSON_AUTO props = json_pack("{s:s}", "which", "new");
    KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    KnRequirement requirement = {.kind = KN_REQUIRE_CURRENT_SCHEMA_ID};
    KnTableCommit commit = {
        .requirements = &requirement, .n_requirements = 1, .updates = &update, .n_updates = 1};
    KnCode rc = kn_table_commit(tbl, &commit, err);
    if (rc == KN_OK)
        assert_string_equal(kn_metadata_property(tbl->md, "which", ""), "new");
    kn_table_free(tbl);
    kn_catalog_close(cat);
    end(script);
    return rc;
}

static void a_commit_sends_requirements_and_updates_as_json(void **state)
{
    (void)state;
    Step commit = table_step("CommitTable", 1);
    commit.has = "\"assert-current-schema-id\"";
    const Step steps[] = {CONFIG, table_step("LoadTable", 0), commit};
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
}

static void a_lost_commit_is_looked_for_and_never_sent_again(void **state)
{
    (void)state;
    static const int codes[] = {1, 2, 4, 13, 14};
    for (size_t i = 0; i < COUNT(codes); ++i) {
        const Step steps[] = {CONFIG,
                              table_step("LoadTable", 0),
                              {.method = "CommitTable", .code = codes[i]},
                              table_step("LoadTable", 1)};
        KnErr err = {0};
        assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
    }
    const Step steps[] = {CONFIG,
                          table_step("LoadTable", 0),
                          {.method = "CommitTable", .code = 13},
                          table_step("LoadTable", 0),
                          table_step("LoadTable", 0)};
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_E_UNKNOWN);
    assert_said(&err, "may or may not have been applied");
}

static void a_lost_race_is_tried_again_while_the_requirements_hold(void **state)
{
    (void)state;
    const Step steps[] = {CONFIG,
                          table_step("LoadTable", 0),
                          {.method = "CommitTable", .code = 10},
                          table_step("LoadTable", 0),
                          table_step("CommitTable", 1)};
    KnErr err = {0};
    assert_int_equal(commit_by(steps, COUNT(steps), &err), KN_OK);
}

static KnCode add_name(void *arg, const KnTableIdent *found, KnErr *err)
{
    (void)err;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    kn_buf_printf(arg, "%s ", kn_table_ident_format(arena, found));
    return KN_OK;
}

static void tables_of_nested_namespaces_are_listed(void **state)
{
    (void)state;
    static const char *const inner[] = {"a", "b"};
    static const KnWireIdent top[] = {{.levels = {inner, 1}}}, below[] = {{.levels = {inner, 2}}};
    static const KnWireIdent tables[] = {{.levels = {inner, 1}, .name = "x"}},
                             deep[] = {{.levels = {inner, 2}, .name = "y"}};
    const Step steps[] = {
        CONFIG,
        {.method = "ListNamespaces",
         .message = &kn_wire_namespaces,
         .answer = {.namespaces = {top, 1}}},
        {.method = "ListTables", .message = &kn_wire_tables, .answer = {.tables = {tables, 1}}},
        {.method = "ListNamespaces",
         .message = &kn_wire_namespaces,
         .answer = {.namespaces = {below, 1}}},
        {.method = "ListTables", .message = &kn_wire_tables, .answer = {.tables = {deep, 1}}},
        /* Not a child: a server that always answers with all must not lead around in circles. */
        {.method = "ListNamespaces",
         .message = &kn_wire_namespaces,
         .answer = {.namespaces = {below, 1}}}};
    Script *script = start(steps, COUNT(steps));
    KnCatalog *cat = open_ok();
    KN_BUF_AUTO names;
    kn_buf_init(&names, 1000);
    assert_int_equal(cat->ops->list(cat, add_name, &names, NULL), KN_OK);
    assert_string_equal(names.data, "a.x a.b.y ");
    kn_catalog_close(cat);
    end(script);
}

static void addresses_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        KnGrpcFlags grpc;
        const char *said;
    } cases[] = {
        {{.uri = "localhost:1"}, "http://HOST:PORT"},
        {{.uri = "grpc://h:1"}, "http://HOST:PORT"},
        {{.uri = "http://u:secret@h:1"}, "a user before '@'"},
        {{.uri = "http://h:1/path"}, "it has a path"},
        {{.uri = "http:///"}, "it has no host"},
        {{.uri = ""}, "--grpc-uri is empty"},
        {{.uri = "https://h:1", .ca = "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        KnLocator loc = {.grpc = cases[i].grpc};
        KnCatalog *cat = NULL;
        KnErr err = {0};
        assert_int_equal(kn_catalog_open(&loc, false, &cat, &err), KN_E_INVAL);
        assert_said(&err, cases[i].said);
        assert_null(strstr(err.msg, "secret"));
    }
    KnLocator loc = {.root = "/x", .grpc = {.ca = "/x.pem"}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    assert_int_equal(kn_catalog_open(&loc, false, &cat, &err), KN_E_INVAL);
    assert_said(&err, "--grpc-ca goes with --grpc-uri");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_loaded_from_the_answer_alone),
        cmocka_unit_test(the_token_is_sent_and_told_to_nobody),
        cmocka_unit_test(statuses_are_failures_that_say_what_was_asked),
        cmocka_unit_test(reading_is_tried_again_while_the_server_is_not_available),
        cmocka_unit_test(an_answer_without_a_document_is_corrupt),
        cmocka_unit_test(a_missing_namespace_is_made_for_a_new_table),
        cmocka_unit_test(what_the_wire_cannot_carry_is_refused_by_name),
        cmocka_unit_test(a_commit_sends_requirements_and_updates_as_json),
        cmocka_unit_test(a_lost_commit_is_looked_for_and_never_sent_again),
        cmocka_unit_test(a_lost_race_is_tried_again_while_the_requirements_hold),
        cmocka_unit_test(tables_of_nested_namespaces_are_listed),
        cmocka_unit_test(addresses_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, make_metadata, NULL);
}
