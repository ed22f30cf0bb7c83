/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
/* The gRPC front on a catalog of SQLite: our own client against it, rights, health, the stream of
 * commits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog.h"
#include "catalog/grpc/front.h"
#include "catalog/grpc/wire.h"
#include "net/digest.h"
#include "net/grpc_client.h"
#include "support/tempdir.h"
#include "unit/net/h2_peer.h"

typedef struct Fixture {
    char dir[256];
    KnCatalogCore *core;
    KnAuth *auth;
    KnFront *front;
    uint16_t port;
    char uri[64];
} Fixture;

static void open_front(Fixture *fx, const char *token_file)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnErr err = {0};
    KnCoreOptions core = {.warehouse = kn_arena_printf(arena, "file://%s", fx->dir),
                          .db = kn_arena_printf(arena, "%s/catalog.db", fx->dir),
                          .create_db = true};
    if (kn_core_open(&core, &fx->core, &err) != KN_OK)
        fail_msg("%s", err.msg);
    KnAuthOptions auth = {.token_file = token_file};
    if (kn_auth_open(&auth, &fx->auth, &err) != KN_OK)
        fail_msg("%s", err.msg);
    KnListen listening = {0};
    assert_int_equal(kn_listen_open("127.0.0.1:0", &listening, &err), KN_OK);
    fx->port = (uint16_t)listening.port;
    (void)snprintf(fx->uri, sizeof(fx->uri), "http://127.0.0.1:%d", listening.port);
    KnFrontContext ctx = {.core = fx->core, .auth = fx->auth, .quick_reads = true};
    assert_int_equal(kn_front_grpc.open(&ctx, &listening, &fx->front, &err), KN_OK);
}

static int set_up(void **state)
{
    Fixture *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    (void)test_tempdir_make(fx->dir);
    (void)unsetenv("KNUT_GRPC_TOKEN");
    *state = fx;
    return 0;
}

static void close_front(Fixture *fx)
{
    if (fx->front)
        assert_true(fx->front->ops->close(fx->front, 60000000));
    fx->front = NULL;
}

static int tear_down(void **state)
{
    Fixture *fx = *state;
    close_front(fx);
    fx->auth = kn_auth_close(fx->auth);
    fx->core = kn_core_close(fx->core);
    test_tempdir_remove(fx->dir);
    free(fx);
    return 0;
}

static KnCatalog *connect_ok(const Fixture *fx)
{
    KnLocator loc = {.grpc = {.uri = fx->uri}};
    KnCatalog *cat = NULL;
    KnErr err = {0};
    if (kn_catalog_open(&loc, false, &cat, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return cat;
}

static KnCode make_table(KnCatalog *cat, const char *name, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnTableIdent ident;
    KnTable *tbl = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, NULL), KN_OK);
    assert_int_equal(kn_table_ident_parse(arena, kn_str(name), &ident, NULL), KN_OK);
    KnCreateTable create = {.format_version = 2, .schema = schema};
    KnCode rc = kn_table_create(cat, &ident, &create, &tbl, err);
    kn_table_free(tbl);
    return rc;
}

static KnTable *load(KnCatalog *cat, const char *name, KnCode wanted)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableIdent ident;
    KnTable *tbl = NULL;
    assert_int_equal(kn_table_ident_parse(arena, kn_str(name), &ident, NULL), KN_OK);
    assert_int_equal(kn_table_load(cat, &ident, &tbl, NULL), wanted);
    return tbl;
}

static KnCode set_property(KnTable *tbl, const char *key, const char *value, KnErr *err)
{
    KN_JSON_AUTO props = json_pack("{s:s}", key, value);
    KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    return kn_table_commit(tbl, &commit, err);
}

static void tables_are_made_committed_listed_and_dropped(void **state)
{
    Fixture *fx = *state;
    open_front(fx, NULL);
    KnCatalog *cat = connect_ok(fx);
    KnErr err = {0};
    if (make_table(cat, "a.\"b.c\".t", &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(make_table(cat, "a.\"b.c\".t", NULL), KN_E_EXISTS);
    KnTable *tbl = load(cat, "a.\"b.c\".t", KN_OK);
    KnTable *other = load(cat, "a.\"b.c\".t", KN_OK);
    for (int i = 0; i < 5; ++i) /* each on what the other has made */
        assert_int_equal(set_property(i % 2 ? tbl : other, "k", i % 2 ? "odd" : "even", NULL),
                         KN_OK);
    assert_string_equal(kn_metadata_property(other->md, "k", ""), "even");
    kn_table_free(tbl);
    kn_table_free(other);
    (void)load(cat, "a.t", KN_E_NOTFOUND);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableIdent ident;
    assert_int_equal(kn_table_ident_parse(arena, kn_str("a.\"b.c\".t"), &ident, NULL), KN_OK);
    assert_int_equal(cat->ops->drop(cat, &ident, NULL), KN_OK);
    assert_int_equal(cat->ops->drop(cat, &ident, NULL), KN_E_NOTFOUND);
    kn_catalog_close(cat);
}

static void write_tokens(const Fixture *fx, char path[512])
{
    static const struct {
        const char *token, *name, *grants;
    } rows[] = {{"reader-token", "reader", "read:a"},
                {"writer-token", "writer", "write:a"},
                {"admin-token", "admin", "admin:*"}};
    (void)snprintf(path, 512, "%s/tokens", fx->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < 3; ++i) {
        uint8_t hash[KN_SHA256_LEN];
        char hex[2 * KN_SHA256_LEN + 1];
        kn_sha256(kn_str(rows[i].token), hash);
        kn_hex(hash, sizeof(hash), hex);
        assert_true(fprintf(file, "%s sha256:%s %s\n", rows[i].name, hex, rows[i].grants) > 0);
    }
    assert_int_equal(fclose(file), 0);
}

static KnCatalog *connect_as(const Fixture *fx, const char *token)
{
    (void)setenv("KNUT_GRPC_TOKEN", token, 1);
    KnCatalog *cat = connect_ok(fx);
    (void)unsetenv("KNUT_GRPC_TOKEN");
    return cat;
}

static void tokens_give_rights_in_their_namespaces(void **state)
{
    Fixture *fx = *state;
    char path[512];
    write_tokens(fx, path);
    open_front(fx, path);
    KnLocator loc = {.grpc = {.uri = fx->uri}};
    KnCatalog *none = NULL;
    assert_int_equal(kn_catalog_open(&loc, false, &none, NULL), KN_E_REFUSED);
    KnCatalog *admin = connect_as(fx, "admin-token"), *writer = connect_as(fx, "writer-token"),
              *reader = connect_as(fx, "reader-token");
    assert_int_equal(make_table(writer, "a.t", NULL), KN_E_REFUSED); /* makes no namespace */
    assert_int_equal(make_table(admin, "a.t", NULL), KN_OK);
    assert_int_equal(make_table(admin, "b.t", NULL), KN_OK);
    KnTable *tbl = load(reader, "a.t", KN_OK);
    assert_int_equal(set_property(tbl, "k", "v", NULL), KN_E_REFUSED);
    kn_table_free(tbl);
    (void)load(reader, "b.t", KN_E_REFUSED);
    tbl = load(writer, "a.t", KN_OK);
    assert_int_equal(set_property(tbl, "k", "v", NULL), KN_OK);
    kn_table_free(tbl);
    kn_catalog_close(admin);
    kn_catalog_close(writer);
    kn_catalog_close(reader);
}

/* ---- flows, by hand ---- */

static H2Answer *ask(H2Peer *peer, const char *path, const KnPbMessage *message,
                     const KnWireRequest *req, KnBuf *framed)
{
    kn_buf_init(framed, 4096);
    size_t begin = kn_grpc_frame_begin(framed);
    kn_pb_encode(message, req, framed);
    kn_grpc_frame_end(framed, begin);
    return h2_peer_post(peer, path, (KnStr){framed->data, framed->len}, NULL, 0);
}

/* The n-th message of the stream (from 0), which is waited for. */
static void nth_message(H2Peer *peer, const H2Answer *answer, size_t n, KnStr *ret)
{
    for (;;) {
        KnStr rest = {answer->body.data, answer->body.len};
        size_t i = 0;
        while (rest.len && kn_grpc_frame_next(&rest, ret, NULL) == KN_OK)
            if (i++ == n)
                return;
        assert_false(answer->closed);
        h2_peer_await(peer, answer, answer->body.len + 1);
    }
}

static void nth_commit(H2Peer *peer, const H2Answer *answer, size_t n, KnArena *arena,
                       KnWireCommit *ret)
{
    KnStr message;
    nth_message(peer, answer, n, &message);
    assert_int_equal(kn_pb_decode(&kn_wire_commit, message, arena, ret, NULL), KN_OK);
}

static void commits_stream_from_a_sequence_number_on(void **state)
{
    Fixture *fx = *state;
    open_front(fx, NULL);
    KnCatalog *cat = connect_ok(fx);
    assert_int_equal(make_table(cat, "a.t", NULL), KN_OK);
    assert_int_equal(make_table(cat, "b.t", NULL), KN_OK);
    H2Peer *peer = h2_peer_connect(fx->port);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO bytes;
    KN_BUF_AUTO only_bytes;
    const char *const b[] = {"b"};
    H2Answer *all = ask(peer, "/knut.catalog.v1.Commits/Watch", &kn_wire_watch_request,
                        &(KnWireRequest){.after = 1}, &bytes);
    H2Answer *only = ask(peer, "/knut.catalog.v1.Commits/Watch", &kn_wire_watch_request,
                         &(KnWireRequest){.levels = {b, 1}}, &only_bytes);
    KnWireCommit commit;
    nth_commit(peer, all, 0, arena, &commit);
    assert_int_equal(commit.sequence, 2);
    assert_string_equal(commit.kind, "create");
    assert_string_equal(commit.table.levels.items[0], "b");
    assert_int_equal(commit.snapshot_id, -1);
    assert_true(commit.timestamp_ms > 0);
    KnTable *tbl = load(cat, "a.t", KN_OK);
    for (int i = 0; i < 300; ++i)
        assert_int_equal(set_property(tbl, "k", i % 2 ? "x" : "y", NULL), KN_OK);
    for (size_t i = 0; i < 301; ++i) {
        nth_commit(peer, all, i, arena, &commit);
        assert_int_equal(commit.sequence, i + 2);
    }
    assert_string_equal(commit.kind, "update");
    assert_string_equal(commit.metadata_location, tbl->metadata_location);
    kn_table_free(tbl);
    nth_commit(peer, only, 0, arena, &commit);
    assert_int_equal(commit.sequence, 2);
    KnTableIdent ident;
    assert_int_equal(kn_table_ident_parse(arena, kn_str("b.t"), &ident, NULL), KN_OK);
    assert_int_equal(cat->ops->drop(cat, &ident, NULL), KN_OK);
    nth_commit(peer, only, 1, arena, &commit);
    assert_int_equal(commit.sequence, 303);
    assert_string_equal(commit.kind, "drop");
    kn_catalog_close(cat);
    close_front(fx);
    h2_peer_pump(peer);
    assert_string_equal(all->grpc_status, "14");
    h2_peer_free(peer);
}

static void a_position_that_the_log_never_had_is_out_of_range(void **state)
{
    Fixture *fx = *state;
    open_front(fx, NULL);
    H2Peer *peer = h2_peer_connect(fx->port);
    KN_BUF_AUTO beyond_bytes;
    KN_BUF_AUTO below_bytes;
    H2Answer *beyond = ask(peer, "/knut.catalog.v1.Commits/Watch", &kn_wire_watch_request,
                           &(KnWireRequest){.after = 7}, &beyond_bytes);
    H2Answer *below = ask(peer, "/knut.catalog.v1.Commits/Watch", &kn_wire_watch_request,
                          &(KnWireRequest){.after = -1}, &below_bytes);
    h2_peer_pump(peer);
    assert_string_equal(beyond->grpc_status, "11");
    assert_string_equal(below->grpc_status, "3");
    h2_peer_free(peer);
}

static int64_t health_of(H2Peer *peer, const H2Answer *answer, size_t n)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnWireAnswer health;
    KnStr message;
    nth_message(peer, answer, n, &message);
    assert_int_equal(kn_pb_decode(&kn_wire_health, message, arena, &health, NULL), KN_OK);
    return health.number;
}

static void health_is_asked_and_watched_without_a_token(void **state)
{
    Fixture *fx = *state;
    char path[512];
    write_tokens(fx, path);
    open_front(fx, path);
    H2Peer *peer = h2_peer_connect(fx->port);
    static const struct {
        const char *method, *service;
    } cases[] = {{"Check", ""},
                 {"Check", "skade.katalog.v1.Catalog"},
                 {"Watch", "knut.catalog.v1.Commits"},
                 {"Check", "no.such.Service"},
                 {"Watch", "no.such.Service"}};
    KnBuf bytes[5];
    H2Answer *answers[5];
    char method[64];
    for (size_t i = 0; i < 5; ++i) {
        (void)snprintf(method, sizeof(method), "/grpc.health.v1.Health/%s", cases[i].method);
        answers[i] = ask(peer, method, &kn_wire_health_request,
                         &(KnWireRequest){.service = cases[i].service}, &bytes[i]);
    }
    for (size_t i = 0; i < 3; ++i)
        assert_int_equal(health_of(peer, answers[i], 0), 1);
    h2_peer_await(peer, answers[3], SIZE_MAX);
    assert_string_equal(answers[3]->grpc_status, "5");
    assert_int_equal(health_of(peer, answers[4], 0), 3);
    close_front(fx);
    h2_peer_pump(peer);
    assert_int_equal(health_of(peer, answers[2], 1), 2);
    assert_string_equal(answers[2]->grpc_status, "14");
    for (size_t i = 0; i < 5; ++i)
        kn_buf_done(&bytes[i]);
    h2_peer_free(peer);
}

static void wrong_requests_are_invalid_arguments(void **state)
{
    Fixture *fx = *state;
    open_front(fx, NULL);
    H2Peer *peer = h2_peer_connect(fx->port);
    static const char *const names[] = {"a", ""};
    const struct {
        const char *method;
        KnWireRequest req;
        const KnPbMessage *message;
    } cases[] = {
        {"LoadTable", {.name = "t"}, &kn_wire_table_request},
        {"LoadTable", {.levels = {names, 1}}, &kn_wire_table_request},
        {"LoadTable", {.levels = {names, 2}, .name = "t"}, &kn_wire_table_request},
        {"ListTables", {.name = ""}, &kn_wire_namespace_request},
        {"LoadTable", {.levels = {names, 1}, .after = 1}, &kn_wire_watch_request},
        {"CreateTable",
         {.levels = {names, 1}, .name = "t", .schema_json = "{"},
         &kn_wire_create_table},
        {"CreateTable",
         {.levels = {names, 1}, .name = "../../x", .schema_json = "{}"},
         &kn_wire_create_table},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        KN_BUF_AUTO bytes;
        char path[80];
        (void)snprintf(path, sizeof(path), KN_WIRE_CATALOG "%s", cases[i].method);
        H2Answer *answer = ask(peer, path, cases[i].message, &cases[i].req, &bytes);
        h2_peer_pump(peer);
        assert_string_equal(answer->grpc_status, "3");
        assert_true(answer->grpc_message[0]);
    }
    h2_peer_free(peer);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(tables_are_made_committed_listed_and_dropped),
        CASE(tokens_give_rights_in_their_namespaces),
        CASE(commits_stream_from_a_sequence_number_on),
        CASE(a_position_that_the_log_never_had_is_out_of_range),
        CASE(health_is_asked_and_watched_without_a_token),
        CASE(wrong_requests_are_invalid_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
