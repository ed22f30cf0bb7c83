/* SPDX-License-Identifier: Apache-2.0 */
/* Views in the core, over SQLite and PostgreSQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "core_support.h"
#include "support/postgres.h"

static void assert_failed(KnCode rc, KnCode code, KnErrSubject about, const CoreFixture *fix,
                          const char *words)
{
    if (rc != code || fix->err.about != about || !strstr(fix->err.msg, words))
        fail_msg("code %d about %d: %s", rc, fix->err.about, fix->err.msg);
}

static KnCode try_create(CoreFixture *fix, const char *name)
{
    KN_JSON_AUTO body = core_json(
        "{'name':'v','schema':{'type':'struct','schema-id':0,'fields':[{'id':1,'name':'a',"
        "'required':false,'type':'int'}]},'view-version':{'version-id':1,'timestamp-ms':1000,"
        "'schema-id':0,'summary':{},'default-namespace':['ns'],'representations':[{'type':'sql',"
        "'sql':'select 1','dialect':'spark'}]},'properties':{'p':'1'}}");
    KN_DOCUMENT_AUTO doc = NULL;
    KnCreateView create;
    KnTableIdent ident = CORE_IDENT(name);
    KN_TRY(kn_create_view_parse(body, &create, &fix->err));
    return kn_core_view_create(fix->core, &ident, &create, &doc, &fix->err);
}

static KnCode set_property(CoreFixture *fix, const KnTableIdent *ident, const char *value)
{
    char text[200];
    (void)snprintf(text, sizeof(text),
                   "{'updates':[{'action':'set-properties','updates':{'p':'%s'}}]}", value);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = core_json(text);
    KN_DOCUMENT_AUTO doc = NULL;
    KnViewCommit commit;
    KN_TRY(kn_view_commit_parse(arena, body, &commit, &fix->err));
    return kn_core_view_commit(fix->core, ident, &commit, &doc, &fix->err);
}

static void a_view_is_made_replaced_renamed_and_dropped(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnTableIdent v = CORE_IDENT("v"), w = CORE_IDENT("w");
    KN_DOCUMENT_AUTO one = NULL;
    KN_DOCUMENT_AUTO two = NULL;
    KN_VIEW_AUTO view = NULL;
    bool there = false;
    assert_int_equal(try_create(fix, "v"), KN_OK);
    assert_failed(try_create(fix, "v"), KN_E_EXISTS, KN_ABOUT_VIEW, fix,
                  "View already exists: ns.v");
    assert_int_equal(kn_core_view_load(fix->core, &v, &one, &fix->err), KN_OK);
    assert_int_equal(set_property(fix, &v, "2"), KN_OK);
    assert_int_equal(kn_core_view_load(fix->core, &v, &two, &fix->err), KN_OK);
    assert_non_null(strstr(kn_document_location(one), "/metadata/00000-"));
    assert_non_null(strstr(kn_document_location(two), "/metadata/00001-"));
    assert_int_equal(kn_document_view(two, &view, &fix->err), KN_OK);
    assert_string_equal(json_string_value(json_object_get(view->properties, "p")), "2");
    assert_int_equal(kn_core_view_rename(fix->core, &v, &w, &fix->err), KN_OK);
    assert_int_equal(kn_core_view_exists(fix->core, &w, &there, &fix->err), KN_OK);
    assert_true(there);
    assert_failed(set_property(fix, &v, "3"), KN_E_NOTFOUND, KN_ABOUT_VIEW, fix,
                  "View does not exist: ns.v");
    assert_int_equal(kn_core_view_drop(fix->core, &w, &fix->err), KN_OK);
    assert_failed(kn_core_view_drop(fix->core, &w, &fix->err), KN_E_NOTFOUND, KN_ABOUT_VIEW, fix,
                  "View does not exist: ns.w");
    KN_DOCUMENT_AUTO again = NULL;
    assert_int_equal(
        kn_core_view_register(fix->core, &v, kn_document_location(two), &again, &fix->err), KN_OK);
    assert_failed(kn_core_view_register(fix->core, &w, "/etc/passwd", &again, &fix->err),
                  KN_E_REFUSED, KN_ABOUT_LOCATION, fix, "outside the warehouse");
}

static void a_view_and_a_table_share_their_names(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnTableIdent t = CORE_IDENT("t"), v = CORE_IDENT("v");
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO doc = NULL;
    KnNameList list;
    bool there = true;
    core_create(fix, "t");
    assert_int_equal(try_create(fix, "v"), KN_OK);
    assert_failed(try_create(fix, "t"), KN_E_EXISTS, KN_ABOUT_TABLE, fix,
                  "Table with same name already exists: ns.t");
    assert_failed(core_try_create(fix->core, &v, &fix->err), KN_E_EXISTS, KN_ABOUT_VIEW, fix,
                  "View with same name already exists: ns.v");
    assert_failed(kn_core_table_load(fix->core, &v, &doc, &fix->err), KN_E_NOTFOUND, KN_ABOUT_TABLE,
                  fix, "Table does not exist: ns.v");
    assert_failed(kn_core_view_load(fix->core, &t, &doc, &fix->err), KN_E_NOTFOUND, KN_ABOUT_VIEW,
                  fix, "View does not exist: ns.t");
    assert_failed(kn_core_table_drop(fix->core, &v, &fix->err), KN_E_NOTFOUND, KN_ABOUT_TABLE, fix,
                  "Table does not exist: ns.v");
    assert_int_equal(kn_core_table_exists(fix->core, &v, &there, &fix->err), KN_OK);
    assert_false(there);
    assert_failed(kn_core_table_rename(fix->core, &t, &v, &fix->err), KN_E_EXISTS, KN_ABOUT_VIEW,
                  fix, "Cannot rename ns.t to ns.v. View already exists");
    assert_failed(kn_core_view_rename(fix->core, &v, &t, &fix->err), KN_E_EXISTS, KN_ABOUT_TABLE,
                  fix, "Cannot rename ns.v to ns.t. Table already exists");
    assert_int_equal(kn_core_table_list(fix->core, arena, &core_namespace, NULL, &list, &fix->err),
                     KN_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.names[0], "t");
    assert_int_equal(kn_core_view_list(fix->core, arena, &core_namespace, NULL, &list, &fix->err),
                     KN_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.names[0], "v");
}

static void a_lost_answer_about_a_view_is_settled_by_asking(void **state)
{
    CoreFixture *fix = *state;
    core_make_namespace(fix);
    KnTableIdent v = CORE_IDENT("v");
    KN_DOCUMENT_AUTO doc = NULL;
    KN_VIEW_AUTO view = NULL;
    assert_int_equal(kn_fault_set("catalog-pointer-moved:1:fail", NULL, &fix->err), KN_OK);
    assert_int_equal(try_create(fix, "v"), KN_OK);
    assert_int_equal(kn_fault_set("catalog-pointer-moved:1:fail", NULL, &fix->err), KN_OK);
    assert_int_equal(set_property(fix, &v, "2"), KN_OK);
    assert_int_equal(kn_fault_set("catalog-pointer-not-moved:1:fail", NULL, &fix->err), KN_OK);
    assert_int_equal(set_property(fix, &v, "3"), KN_E_IO);
    assert_int_equal(kn_fault_set(NULL, NULL, &fix->err), KN_OK);
    assert_int_equal(kn_core_view_load(fix->core, &v, &doc, &fix->err), KN_OK);
    assert_int_equal(kn_document_view(doc, &view, &fix->err), KN_OK);
    assert_string_equal(json_string_value(json_object_get(view->properties, "p")), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_BOTH(a_view_is_made_replaced_renamed_and_dropped),
        CORE_BOTH(a_view_and_a_table_share_their_names),
        CORE_BOTH(a_lost_answer_about_a_view_is_settled_by_asking),
    };
    return cmocka_run_group_tests(tests, NULL, test_postgres_stop);
}
