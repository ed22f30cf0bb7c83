/* SPDX-License-Identifier: Apache-2.0 */
/* The core of a served catalog, over SQLite and PostgreSQL: namespaces, tables, lists, the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core_support.h"
#include "support/postgres.h"

static void assert_failed(KnCode rc, KnCode code, KnErrSubject about, const CoreFixture *fix,
                          const char *words)
{
    if (rc != code || fix->err.about != about || !strstr(fix->err.msg, words))
        fail_msg("code %d about %d: %s", rc, fix->err.about, fix->err.msg);
}

static void a_namespace_has_properties_until_it_is_dropped(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KN_JSON_AUTO props = core_json("{'owner':'me','a':'1'}");
    const char *levels[] = {"x"};
    KnNamespace ns = {levels, 1};
    assert_int_equal(kn_core_namespace_create(fix->core, &ns, props, &fix->err), KN_OK);
    assert_failed(kn_core_namespace_create(fix->core, &ns, props, &fix->err), KN_E_EXISTS,
                  KN_ABOUT_NAMESPACE, fix, "Namespace already exists: x");
    KN_JSON_AUTO got = NULL;
    assert_int_equal(kn_core_namespace_get(fix->core, &ns, &got, &fix->err), KN_OK);
    assert_true(json_equal(got, props));

    KN_JSON_AUTO removals = core_json("['a','b']");
    KN_JSON_AUTO updates = core_json("{'owner':'you','c':'3'}");
    KN_JSON_AUTO report = NULL;
    assert_int_equal(
        kn_core_namespace_update(fix->core, &ns, removals, updates, &report, &fix->err), KN_OK);
    KN_JSON_AUTO expected = core_json("{'updated':['owner','c'],'removed':['a'],'missing':['b']}");
    assert_true(json_equal(report, expected));
    KN_JSON_AUTO after = NULL;
    assert_int_equal(kn_core_namespace_get(fix->core, &ns, &after, &fix->err), KN_OK);
    assert_true(json_equal(after, updates));

    KN_JSON_AUTO both = core_json("['c']");
    assert_failed(kn_core_namespace_update(fix->core, &ns, both, updates, &report, &fix->err),
                  KN_E_INVAL, KN_ABOUT_BOTH, fix, "cannot simultaneously set and remove");
    assert_int_equal(kn_core_namespace_drop(fix->core, &ns, &fix->err), KN_OK);
    assert_failed(kn_core_namespace_drop(fix->core, &ns, &fix->err), KN_E_NOTFOUND,
                  KN_ABOUT_NAMESPACE, fix, "Namespace does not exist: x");
}

static void nested_namespaces_are_listed_level_by_level(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    static const char *const names[][3] = {{"a"},   {"a", "x.y"}, {"a", "b"}, {"a", "b", "c"},
                                           {"a!b"}, {"a.b"},      {"p", "q"}};
    static const size_t lens[] = {1, 2, 2, 3, 1, 1, 2};
    for (size_t i = 0; i < 7; i++) {
        KnNamespace ns = {names[i], lens[i]};
        if (kn_core_namespace_create(fix->core, &ns, NULL, &fix->err) != KN_OK)
            fail_msg("%s", fix->err.msg);
    }
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnNameList list;
    static const char *const top[] = {"a", "a!b", "a.b", "ns", "p"};
    assert_int_equal(kn_core_namespace_list(fix->core, arena, NULL, NULL, &list, &fix->err), KN_OK);
    assert_int_equal(list.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(list.names[i], top[i]);

    KnNamespace a = {names[0], 1}, none = {names[1] + 1, 1};
    KnPage page = {.size = 1};
    assert_int_equal(kn_core_namespace_list(fix->core, arena, &a, &page, &list, &fix->err), KN_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.names[0], "b");
    page.token = list.next;
    assert_int_equal(kn_core_namespace_list(fix->core, arena, &a, &page, &list, &fix->err), KN_OK);
    assert_string_equal(list.names[0], "x.y");
    assert_null(list.next);
    assert_failed(kn_core_namespace_list(fix->core, arena, &none, NULL, &list, &fix->err),
                  KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, fix, "Namespace does not exist");
    assert_failed(kn_core_namespace_drop(fix->core, &a, &fix->err), KN_E_REFUSED,
                  KN_ABOUT_NOT_EMPTY, fix, "is not empty");
}

static void a_table_is_made_loaded_listed_and_dropped(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnTableIdent t = CORE_IDENT("t");
    bool there = true;
    KN_DOCUMENT_AUTO doc = NULL;
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_false(there);
    core_create(fix, "t");
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_true(there);
    assert_failed(core_try_create(fix->core, &t, &fix->err), KN_E_EXISTS, KN_ABOUT_TABLE, fix,
                  "Table already exists: ns.t");
    assert_int_equal(kn_core_table_load(fix->core, &t, &doc, &fix->err), KN_OK);
    assert_non_null(strstr(kn_document_location(doc), "/ns/t/metadata/00000-"));
    KN_JSON_AUTO json = NULL;
    KnStr bytes = kn_document_bytes(doc);
    assert_int_equal(kn_json_parse(bytes.ptr, bytes.len, &json, &fix->err), KN_OK);
    assert_int_equal(json_integer_value(json_object_get(json, "format-version")), 2);
    assert_failed(kn_core_namespace_drop(fix->core, &core_namespace, &fix->err), KN_E_REFUSED,
                  KN_ABOUT_NOT_EMPTY, fix, "is not empty");
    assert_int_equal(kn_core_table_drop(fix->core, &t, &fix->err), KN_OK);
    assert_failed(kn_core_table_drop(fix->core, &t, &fix->err), KN_E_NOTFOUND, KN_ABOUT_TABLE, fix,
                  "Table does not exist: ns.t");
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_false(there);
    assert_int_equal(access(kn_document_location(doc) + strlen("file://"), F_OK), 0);
}

static void tables_come_in_pages_in_byte_order(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    static const char *const names[] = {"b", "B", "a_b", "a b", "aXb", "\xc3\xa9"};
    static const char *const sorted[] = {"B", "a b", "aXb", "a_b", "b", "\xc3\xa9"};
    for (size_t i = 0; i < 6; i++)
        core_create(fix, names[i]);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnPage page = {.size = 4};
    KnNameList list;
    size_t seen = 0;
    do {
        assert_int_equal(
            kn_core_table_list(fix->core, arena, &core_namespace, &page, &list, &fix->err), KN_OK);
        for (size_t i = 0; i < list.n; i++)
            assert_string_equal(list.names[i], sorted[seen++]);
        page.token = list.next;
    } while (list.next);
    assert_int_equal(seen, 6);
    static const char *const absent[] = {"absent"};
    KnNamespace none = {absent, 1};
    assert_failed(kn_core_table_list(fix->core, arena, &none, NULL, &list, &fix->err),
                  KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, fix, "Namespace does not exist: absent");
}

static void a_table_needs_a_namespace(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    static const char *const absent[] = {"non-existing"};
    KnTableIdent ident = {.levels = absent, .n_levels = 1, .name = "t"};
    assert_failed(core_try_create(fix->core, &ident, &fix->err), KN_E_NOTFOUND, KN_ABOUT_NAMESPACE,
                  fix, "Namespace does not exist: non-existing");
    core_create(fix, "t");
    KnTableIdent t = CORE_IDENT("t");
    assert_failed(kn_core_table_rename(fix->core, &t, &ident, &fix->err), KN_E_NOTFOUND,
                  KN_ABOUT_NAMESPACE, fix, "Namespace does not exist: non-existing");
}

static void a_renamed_table_keeps_its_document(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    core_create(fix, "t");
    static const char *const other[] = {"other.level"};
    KnNamespace ns = {other, 1};
    KnTableIdent t = CORE_IDENT("t"), to = {.levels = other, .n_levels = 1, .name = "n/ew"};
    KN_DOCUMENT_AUTO before = NULL;
    KN_DOCUMENT_AUTO after = NULL;
    bool there = true;
    assert_int_equal(kn_core_namespace_create(fix->core, &ns, NULL, &fix->err), KN_OK);
    assert_int_equal(kn_core_table_load(fix->core, &t, &before, &fix->err), KN_OK);
    assert_int_equal(kn_core_table_rename(fix->core, &t, &to, &fix->err), KN_OK);
    assert_int_equal(kn_core_table_load(fix->core, &to, &after, &fix->err), KN_OK);
    assert_string_equal(kn_document_location(before), kn_document_location(after));
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_false(there);
    core_create(fix, "t");
    assert_failed(kn_core_table_rename(fix->core, &t, &to, &fix->err), KN_E_EXISTS, KN_ABOUT_TABLE,
                  fix, "Table already exists");
}

static void a_staged_table_is_nowhere_until_it_is_committed(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO staged = NULL;
    KN_DOCUMENT_AUTO doc = NULL;
    KN_JSON_AUTO body =
        core_json("{'name':'t','stage-create':true,'properties':{'p':'1','format-version':'3'},"
                  "'schema':{'type':'struct','fields':[{'id':5,'name':'id','required':true,'type':'"
                  "long'}]}}");
    KnCreateRequest req;
    KnTableIdent t = CORE_IDENT("t");
    bool there = true;
    assert_int_equal(kn_create_request_parse(arena, body, &req, &fix->err), KN_OK);
    assert_true(req.stage);
    assert_int_equal(
        kn_core_table_create(fix->core, &t, &req.create, req.stage, &staged, &fix->err), KN_OK);
    assert_string_equal(kn_document_location(staged), "");
    assert_non_null(strstr(kn_document_bytes(staged).ptr, "\"format-version\":3"));
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_false(there);

    KN_JSON_AUTO commit_json = core_json(
        "{'requirements':[{'type':'assert-create'}],'updates':[{'action':'assign-uuid','uuid':"
        "'11111111-2222-4333-8444-555555555555'},{'action':'upgrade-format-version',"
        "'format-version':2},{'action':'add-schema','schema':{'type':'struct','schema-id':0,"
        "'fields':[{'id':1,'name':'id','required':true,'type':'long'}]}},"
        "{'action':'set-current-schema','schema-id':-1},{'action':'add-spec','spec':{'spec-id':0,"
        "'fields':[]}},{'action':'set-default-spec','spec-id':-1},{'action':'add-sort-order',"
        "'sort-order':{'order-id':0,'fields':[]}},{'action':'set-default-sort-order',"
        "'sort-order-id':-1},{'action':'set-properties','updates':{'p':'1'}}]}");
    KnTableCommit commit;
    assert_int_equal(kn_commit_parse(arena, commit_json, &commit, &fix->err), KN_OK);
    if (kn_core_table_commit(fix->core, &t, &commit, &doc, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_non_null(strstr(kn_document_bytes(doc).ptr, "11111111-2222"));
    assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
    assert_true(there);
    KN_DOCUMENT_AUTO again = NULL;
    assert_int_equal(kn_core_table_commit(fix->core, &t, &commit, &again, &fix->err),
                     KN_E_CONFLICT);
    assert_non_null(strstr(fix->err.msg, "table already exists"));
}

static void a_registered_document_becomes_a_table_and_may_replace_one(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    core_create(fix, "t");
    core_create(fix, "u");
    KnTableIdent t = CORE_IDENT("t"), u = CORE_IDENT("u"), v = CORE_IDENT("v");
    KN_DOCUMENT_AUTO doc = NULL;
    KN_DOCUMENT_AUTO got = NULL;
    KN_DOCUMENT_AUTO loaded = NULL;
    assert_int_equal(kn_core_table_load(fix->core, &t, &doc, &fix->err), KN_OK);
    const char *file = kn_document_location(doc);
    assert_failed(
        kn_core_table_register(fix->core, &u, &(KnRegistration){.location = file}, &got, &fix->err),
        KN_E_EXISTS, KN_ABOUT_TABLE, fix, "Table already exists: ns.u");
    assert_int_equal(
        kn_core_table_register(fix->core, &v, &(KnRegistration){.location = file}, &got, &fix->err),
        KN_OK);
    got = kn_document_unref(got);
    assert_int_equal(kn_core_table_register(fix->core, &u,
                                            &(KnRegistration){.location = file, .overwrite = true},
                                            &got, &fix->err),
                     KN_OK);
    assert_int_equal(kn_core_table_load(fix->core, &u, &loaded, &fix->err), KN_OK);
    assert_string_equal(kn_document_location(loaded), file);
}

static void what_leads_out_of_the_warehouse_is_refused(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    core_create(fix, "t");
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO doc = NULL;
    KnTableIdent t = CORE_IDENT("t"), v = CORE_IDENT("v");
    const char *inside = kn_arena_printf(arena, "%s/a/../b", fix->dir);
    const char *outside[] = {"/etc",
                             "file:///etc/x",
                             "s3://bucket/x",
                             "http://127.0.0.1/x",
                             kn_arena_printf(arena, "%s/../x", fix->dir),
                             kn_arena_printf(arena, "%sx/y", fix->dir),
                             "relative/x",
                             ""};
    assert_int_equal(kn_core_check_location(fix->core, kn_str(inside), &fix->err), KN_OK);
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_failed(kn_core_check_location(fix->core, kn_str(outside[i]), &fix->err),
                      KN_E_REFUSED, KN_ABOUT_LOCATION, fix, "");
    assert_failed(kn_core_table_register(
                      fix->core, &v, &(KnRegistration){.location = "/etc/passwd"}, &doc, &fix->err),
                  KN_E_REFUSED, KN_ABOUT_LOCATION, fix, "outside the warehouse");
    assert_failed(core_set(fix->core, &t, "write.metadata.path", "/tmp/elsewhere", &fix->err),
                  KN_E_REFUSED, KN_ABOUT_LOCATION, fix, "write.metadata.path");
    const KnUpdate update = {.kind = KN_UPDATE_SET_LOCATION, .text = "file:///var/x"};
    const KnTableCommit commit = {.updates = &update, .n_updates = 1};
    assert_failed(kn_core_table_commit(fix->core, &t, &commit, &doc, &fix->err), KN_E_REFUSED,
                  KN_ABOUT_LOCATION, fix, "outside the warehouse");
    KN_JSON_AUTO props = core_json("{'location':'/etc'}");
    static const char *const x[] = {"x"};
    KnNamespace ns = {x, 1};
    assert_failed(kn_core_namespace_create(fix->core, &ns, props, &fix->err), KN_E_REFUSED,
                  KN_ABOUT_LOCATION, fix, "outside the warehouse");
}

static void names_that_are_none_are_refused(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    static const char *const bad[] = {"",         ".",    "..",   "../x", "a/../b",
                                      "a\\..\\b", "a\nb", "\xff", "a/.",  "x\x1fy"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KnTableIdent ident = CORE_IDENT(bad[i]), inner = {.levels = &bad[i], 1, "t"};
        bool there = true;
        assert_int_equal(core_try_create(fix->core, &ident, &fix->err), KN_E_INVAL);
        assert_int_equal(core_try_create(fix->core, &inner, &fix->err), KN_E_INVAL);
        assert_int_equal(kn_core_table_exists(fix->core, &ident, &there, &fix->err), KN_E_INVAL);
        assert_int_equal(kn_core_table_exists(fix->core, &inner, &there, &fix->err), KN_E_INVAL);
    }
}

static void a_document_that_is_gone_is_told_apart_from_a_table_that_is(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    core_create(fix, "t");
    KnTableIdent t = CORE_IDENT("t");
    KN_DOCUMENT_AUTO doc = NULL;
    KN_DOCUMENT_AUTO again = NULL;
    assert_int_equal(kn_core_table_load(fix->core, &t, &doc, &fix->err), KN_OK);
    assert_int_equal(unlink(kn_document_location(doc) + strlen("file://")), 0);
    kn_core_close(fix->core);
    fix->core = core_open_again(fix);
    assert_failed(kn_core_table_load(fix->core, &t, &again, &fix->err), KN_E_NOTFOUND,
                  KN_ABOUT_FILE, fix, "Failed to open input stream for file: ");
    assert_int_equal(kn_core_table_drop(fix->core, &t, &fix->err), KN_OK);
}

/* How many tables are listed, and listed again. */
static size_t count_listed(CoreFixture *fix, KnCatalogCore *core)
{
    KnNameList list = {0}, again = {0};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_int_equal(kn_core_table_list(core, arena, &core_namespace, NULL, &list, &fix->err),
                     KN_OK);
    assert_int_equal(kn_core_table_list(core, arena, &core_namespace, NULL, &again, &fix->err),
                     KN_OK);
    assert_int_equal(list.n, again.n);
    for (size_t i = 0; i < list.n; i++)
        assert_string_equal(list.names[i], again.names[i]);
    return list.n;
}

/* Another core on the same database stands for another process. */
static void what_another_process_changes_is_in_lists_at_once(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnCatalogCore *other = core_open_again(fix);
    KnTableIdent a = CORE_IDENT("a"), t = CORE_IDENT("t");
    assert_int_equal(core_try_create(fix->core, &a, &fix->err), KN_OK);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(count_listed(fix, fix->core), 1);
        assert_int_equal(core_try_create(i % 2 ? other : fix->core, &t, &fix->err), KN_OK);
        assert_int_equal(count_listed(fix, fix->core), 2);
        assert_int_equal(count_listed(fix, other), 2);
        assert_int_equal(core_set(other, &a, "k", i % 2 ? "1" : "2", &fix->err), KN_OK);
        assert_int_equal(count_listed(fix, fix->core), 2);
        assert_int_equal(kn_core_table_drop(i % 2 ? fix->core : other, &t, &fix->err), KN_OK);
        assert_int_equal(count_listed(fix, other), 1);
    }
    kn_core_close(other);
}

static void what_another_process_changes_is_seen_at_once(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnCatalogCore *other = core_open_again(fix);
    KnTableIdent t = CORE_IDENT("t");
    for (int i = 0; i < 20; i++) {
        bool there = true;
        KN_DOCUMENT_AUTO a = NULL;
        KN_DOCUMENT_AUTO b = NULL;
        assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
        assert_false(there);
        assert_int_equal(core_try_create(other, &t, &fix->err), KN_OK);
        assert_int_equal(kn_core_table_exists(fix->core, &t, &there, &fix->err), KN_OK);
        assert_true(there);
        assert_int_equal(core_set(other, &t, "k", "1", &fix->err), KN_OK);
        assert_int_equal(kn_core_table_load(fix->core, &t, &a, &fix->err), KN_OK);
        assert_int_equal(kn_core_table_load(other, &t, &b, &fix->err), KN_OK);
        assert_string_equal(kn_document_location(a), kn_document_location(b));
        assert_int_equal(kn_core_table_drop(i % 2 ? other : fix->core, &t, &fix->err), KN_OK);
        assert_int_equal(kn_core_table_exists(other, &t, &there, &fix->err), KN_OK);
        assert_false(there);
    }
    kn_core_close(other);
}

typedef struct Seen {
    int64_t last;
    int n;
    KnCommitEvent events[16];
    char text[16][200];
} Seen;

static KnCode note(void *arg, const KnCommitEvent *event, KnErr *err)
{
    (void)err;
    Seen *seen = arg;
    assert_int_equal(event->seq, seen->last + 1);
    seen->last = event->seq;
    seen->events[seen->n] = *event;
    (void)snprintf(seen->text[seen->n++], 200, "%s %s%s.%s from %s",
                   kn_event_kind_name(event->kind), event->is_view ? "view " : "",
                   event->ident.levels[0], event->ident.name,
                   event->from.name ? event->from.name : "-");
    return KN_OK;
}

static void the_log_tells_of_every_commit_without_a_gap(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    int64_t last = -1;
    assert_int_equal(kn_core_commits_last(fix->core, &last, &fix->err), KN_OK);
    assert_int_equal(last, 0);
    assert_int_equal(kn_core_commits_wait(fix->core, 0, 1, &fix->err), KN_E_CANCELLED);
    core_create(fix, "t");
    KnTableIdent t = CORE_IDENT("t"), u = CORE_IDENT("u");
    assert_int_equal(core_set(fix->core, &t, "k", "1", &fix->err), KN_OK);
    assert_int_equal(core_try_create(fix->core, &t, &fix->err), KN_E_EXISTS);
    assert_int_equal(kn_core_table_rename(fix->core, &t, &u, &fix->err), KN_OK);
    assert_int_equal(kn_core_table_drop(fix->core, &u, &fix->err), KN_OK);
    Seen seen = {0};
    assert_int_equal(kn_core_commits_since(fix->core, 0, 0, note, &seen, &fix->err), KN_OK);
    static const char *const texts[] = {"create ns.t from -", "update ns.t from -",
                                        "rename ns.u from t", "drop ns.u from -"};
    assert_int_equal(seen.n, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(seen.text[i], texts[i]);
    assert_true(seen.events[0].timestamp_ms > 1600000000000);
    assert_int_equal(seen.events[0].snapshot_id, -1);
    Seen rest = {.last = 1};
    assert_int_equal(kn_core_commits_since(fix->core, 1, 2, note, &rest, &fix->err), KN_OK);
    assert_int_equal(rest.n, 2);
    assert_int_equal(kn_core_commits_wait(fix->core, 3, 1, &fix->err), KN_OK);
    kn_core_stop(fix->core);
    assert_int_equal(kn_core_commits_wait(fix->core, 4, 60000, &fix->err), KN_E_CANCELLED);
}

/* A core that keeps so many events, on the fixture's database. */
static KnCatalogCore *open_keeping(CoreFixture *fix, int64_t events)
{
    KnCatalogCore *core = NULL;
    const KnCoreOptions opts = {.warehouse = kn_core_warehouse(fix->core),
                                .db = fix->db,
                                .catalog = fix->catalog,
                                .keep_events = events};
    assert_int_equal(kn_core_open(&opts, &core, &fix->err), KN_OK);
    return core;
}

static void old_events_go_and_their_positions_are_refused(void **state)
{
    CoreFixture *fix = *state;
    if (!fix->core)
        return;
    core_make_namespace(fix);
    core_create(fix, "t");
    KnTableIdent t = CORE_IDENT("t");
    for (int i = 0; i < 5; i++)
        assert_int_equal(core_set(fix->core, &t, "k", i % 2 ? "1" : "2", &fix->err), KN_OK);
    Seen all = {0}, kept = {.last = 4}, later = {.last = 7}, refused = {0};
    assert_int_equal(kn_core_commits_since(fix->core, 0, 0, note, &all, &fix->err), KN_OK);
    assert_int_equal(all.n, 6);
    KnCatalogCore *keeps = open_keeping(fix, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(core_set(keeps, &t, "k", i % 2 ? "3" : "4", &fix->err), KN_OK);
    kn_core_close(keeps);
    assert_int_equal(kn_core_commits_since(fix->core, 3, 0, note, &refused, &fix->err),
                     KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "the log of commits begins with 5: what came after 3"));
    assert_int_equal(refused.n, 0);
    assert_int_equal(kn_core_commits_since(fix->core, 4, 0, note, &kept, &fix->err), KN_OK);
    assert_int_equal(kept.n, 6);
    assert_int_equal(kn_core_commits_since(fix->core, 7, 0, note, &later, &fix->err), KN_OK);
    assert_int_equal(later.n, 3);
    Seen oldest = {.last = 4};
    assert_int_equal(kn_core_commits_since(fix->core, 0, 1, note, &oldest, &fix->err), KN_OK);
    assert_int_equal(oldest.n, 1);
    int64_t last = 0;
    assert_int_equal(kn_core_commits_last(fix->core, &last, &fix->err), KN_OK);
    assert_int_equal(last, 10);
}

static void a_database_address_keeps_its_secrets(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "postgresql://bob:hunter2@127.0.0.1:1/db", "postgresql://bob:hunter2@127.0.0.1:port/db",
        "postgresql://bob:hunter2@nowhere.invalid/db?bad=1",
        "postgresql+psycopg2://bob:hunter2@h/d", "mysql://bob:hunter2@h/d"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KnErr err = {0};
        KnCatalogCore *core = NULL;
        const KnCoreOptions opts = {.warehouse = "/tmp", .db = bad[i]};
        assert_int_not_equal(kn_core_open(&opts, &core, &err), KN_OK);
        assert_null(strstr(err.msg, "hunter2"));
        assert_null(strstr(err.msg, "bob"));
    }
    if (!test_postgres_start())
        return;
    char uri[512];
    KnErr err = {0};
    KnCatalogCore *core = NULL;
    (void)snprintf(uri, sizeof(uri), "postgresql://bob:hunter2@%s",
                   strchr(test_postgres_uri(), '@') + 1);
    const KnCoreOptions opts = {.warehouse = "/tmp", .db = uri};
    assert_int_not_equal(kn_core_open(&opts, &core, &err), KN_OK);
    assert_null(strstr(err.msg, "hunter2"));
    assert_null(strstr(err.msg, "bob"));
    const KnCoreOptions good = {.warehouse = "/tmp", .db = test_postgres_uri(), .create_db = true};
    assert_int_equal(kn_core_open(&good, &core, &err), KN_OK);
    assert_null(strchr(kn_core_id(core), '@'));
    assert_non_null(strstr(kn_core_id(core), "jdbc:postgresql://127.0.0.1:"));
    kn_core_close(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_BOTH(a_namespace_has_properties_until_it_is_dropped),
        CORE_BOTH(nested_namespaces_are_listed_level_by_level),
        CORE_BOTH(a_table_is_made_loaded_listed_and_dropped),
        CORE_BOTH(tables_come_in_pages_in_byte_order),
        CORE_BOTH(a_table_needs_a_namespace),
        CORE_BOTH(a_renamed_table_keeps_its_document),
        CORE_BOTH(a_staged_table_is_nowhere_until_it_is_committed),
        CORE_BOTH(a_registered_document_becomes_a_table_and_may_replace_one),
        CORE_BOTH(what_leads_out_of_the_warehouse_is_refused),
        CORE_BOTH(names_that_are_none_are_refused),
        CORE_BOTH(a_document_that_is_gone_is_told_apart_from_a_table_that_is),
        CORE_BOTH(what_another_process_changes_is_seen_at_once),
        CORE_BOTH(what_another_process_changes_is_in_lists_at_once),
        CORE_BOTH(the_log_tells_of_every_commit_without_a_gap),
        CORE_BOTH(old_events_go_and_their_positions_are_refused),
        cmocka_unit_test(a_database_address_keeps_its_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, test_postgres_stop);
}
