/* SPDX-License-Identifier: Apache-2.0 */
/* View metadata: read, made, changed, as Java's ViewMetadata does it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/view/view.h"

#define SCHEMA                                                                                     \
    "{'type':'struct','schema-id':0,'fields':[{'id':1,'name':'a','required':false,'type':'int'}]}"
#define VERSION(id, sql, dialect)                                                                  \
    "{'version-id':" #id ",'timestamp-ms':1000,'schema-id':0,'summary':{'engine':'x'},"            \
    "'default-namespace':['ns'],'representations':[{'type':'sql','sql':'" sql                      \
    "','dialect':'" dialect "'}]}"

static json_t *json_of(const char *text)
{
    char *copy = strdup(text);
    json_t *json = NULL;
    assert_non_null(copy);
    for (char *at = copy; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    if (kn_json_parse(copy, strlen(copy), &json, NULL) != KN_OK)
        fail_msg("not JSON: %s", copy);
    free(copy);
    return json;
}

static KnView *new_view(const char *properties)
{
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "{'name':'v','schema':" SCHEMA
                   ",'view-version':" VERSION(1, "select 1", "spark") ",'properties':%s}",
                   properties);
    KN_JSON_AUTO body = json_of(text);
    KnCreateView create;
    KnView *view = NULL;
    KnErr err = {0};
    if (kn_create_view_parse(body, &create, &err) != KN_OK)
        fail_msg("%s", err.msg);
    create.location = "file:///w/v/";
    if (kn_view_create(&create, &view, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return view;
}

static KnCode apply(const KnView *base, const char *text, KnView **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = json_of(text);
    KnViewCommit commit;
    KN_TRY(kn_view_commit_parse(arena, body, &commit, err));
    return kn_view_apply(base, &commit, ret, err);
}

static KnView *applied(const KnView *base, const char *text)
{
    KnView *view = NULL;
    KnErr err = {0};
    if (apply(base, text, &view, &err) != KN_OK)
        fail_msg("%s: %s", text, err.msg);
    return view;
}

static void a_new_view_has_one_version_and_can_be_read_again(void **state)
{
    (void)state;
    KN_VIEW_AUTO view = new_view("{'k':'v'}");
    KN_VIEW_AUTO again = NULL;
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 1 << 20);
    assert_string_equal(view->location, "file:///w/v");
    assert_int_equal(view->n_versions, 1);
    assert_int_equal(view->n_log, 1);
    assert_int_equal(view->log[0].timestamp_ms, 1000);
    assert_int_equal(kn_view_version(view)->version_id, 1);
    assert_non_null(kn_view_find_schema(view, kn_view_version(view)->schema_id));
    assert_int_equal(kn_view_to_json(view, &text, NULL), KN_OK);
    assert_int_equal(kn_view_parse((KnStr){text.data, text.len}, "again", &again, NULL), KN_OK);
    assert_string_equal(again->uuid, view->uuid);
    assert_int_equal(strlen(view->uuid), 36);
}

static void a_replaced_view_has_a_new_version_or_an_equal_old_one(void **state)
{
    (void)state;
    KN_VIEW_AUTO one = new_view("{}");
    KN_VIEW_AUTO two =
        applied(one, "{'updates':[{'action':'add-view-version','view-version':" VERSION(
                         1, "select 2", "spark") "},{'action':'set-current-view-version',"
                                                 "'view-version-id':-1}]}");
    assert_int_equal(two->n_versions, 2);
    assert_int_equal(two->current_version_id, 2);
    assert_int_equal(two->n_log, 2);
    KN_VIEW_AUTO back =
        applied(two, "{'updates':[{'action':'add-view-version','view-version':" VERSION(
                         9, "select 1", "spark") "},{'action':'set-current-view-version',"
                                                 "'view-version-id':-1}]}");
    assert_int_equal(back->n_versions, 2);
    assert_int_equal(back->current_version_id, 1);
    assert_int_equal(back->n_log, 3);
    KN_VIEW_AUTO same = applied(back, "{'updates':[{'action':'set-current-view-version',"
                                      "'view-version-id':1}]}");
    assert_ptr_equal(same, back);
}

static void a_dialect_is_lost_only_when_that_is_allowed(void **state)
{
    (void)state;
    static const char trino[] = "{'updates':[{'action':'add-view-version','view-version':" VERSION(
        2, "select 2", "trino") "},{'action':'set-current-view-version','view-version-id':-1}]}";
    KN_VIEW_AUTO strict = new_view("{}");
    KN_VIEW_AUTO lax = new_view("{'replace.drop-dialect.allowed':'true'}");
    KnView *view = NULL;
    KnErr err = {0};
    assert_int_equal(apply(strict, trino, &view, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "Cannot replace view due to loss of view dialects"));
    KN_VIEW_AUTO replaced = applied(lax, trino);
    assert_int_equal(replaced->current_version_id, 2);
}

static void old_versions_go_and_the_log_before_them(void **state)
{
    (void)state;
    KN_VIEW_AUTO view = new_view("{'version.history.num-entries':'2'}");
    for (int i = 2; i <= 4; i++) {
        char text[1200];
        (void)snprintf(text, sizeof(text),
                       "{'updates':[{'action':'add-view-version','view-version':" VERSION(
                           1, "select %d0", "spark") "},{'action':'set-current-view-version',"
                                                     "'view-version-id':-1}]}",
                       i);
        KnView *next = applied(view, text);
        kn_view_unref(view);
        view = next;
    }
    assert_int_equal(view->n_versions, 2);
    assert_int_equal(view->current_version_id, 4);
    assert_non_null(kn_view_find_version(view, 3));
    assert_int_equal(view->n_log, 2);
    assert_int_equal(view->log[0].version_id, 3);
}

static void wrong_changes_are_refused(void **state)
{
    (void)state;
    static const struct {
        KnCode code;
        const char *body, *words;
    } cases[] = {
        {KN_E_CONFLICT, "{'requirements':[{'type':'assert-view-uuid','uuid':'no'}],'updates':[]}",
         "Requirement failed: view UUID does not match"},
        {KN_E_INVAL, "{'updates':[{'action':'add-snapshot','snapshot':{}}]}", "a view is no table"},
        {KN_E_INVAL, "{'updates':[{'action':'fly'}]}", "'fly'"},
        {KN_E_INVAL, "{'requirements':[{'type':'assert-create'}],'updates':[]}", "no table"},
        {KN_E_INVAL, "{}", "'updates'"},
        {KN_E_INVAL, "{'updates':[{'action':'set-current-view-version','view-version-id':7}]}",
         "unknown version: 7"},
        {KN_E_INVAL, "{'updates':[{'action':'set-current-view-version','view-version-id':-1}]}",
         "no current version id has been set"},
        {KN_E_INVAL, "{'updates':[{'action':'assign-uuid','uuid':'other'}]}", "reassign uuid"},
        {KN_E_INVAL, "{'updates':[{'action':'upgrade-format-version','format-version':2}]}",
         "unsupported format version"},
        {KN_E_INVAL,
         "{'updates':[{'action':'add-view-version','view-version':{'version-id':2,'timestamp-ms':1,"
         "'schema-id':5,'summary':{},'default-namespace':[],'representations':[]}}]}",
         "unknown schema: 5"},
        {KN_E_INVAL,
         "{'updates':[{'action':'add-view-version','view-version':{'version-id':2,'timestamp-ms':1,"
         "'schema-id':0,'summary':{},'default-namespace':[],'representations':[{'type':'sql','sql':"
         "'a','dialect':'Spark'},{'type':'sql','sql':'b','dialect':'spark'}]}}]}",
         "multiple queries for dialect spark"},
        {KN_E_INVAL,
         "{'updates':[{'action':'set-properties','updates':"
         "{'version.history.num-entries':'0'}}]}",
         "must be positive but was 0"},
    };
    KN_VIEW_AUTO view = new_view("{}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnView *next = NULL;
        KnErr err = {0};
        KnCode rc = apply(view, cases[i].body, &next, &err);
        if (rc != cases[i].code || err.code != rc || !strstr(err.msg, cases[i].words))
            fail_msg("%s: code %d: %s", cases[i].body, rc, err.msg);
    }
}

static void a_document_that_is_no_view_is_corrupt(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{'format-version':1}",
        ("{'format-version':1,'view-uuid':'u','location':'l','current-version-id':2,'schemas':[],"
         "'versions':[],'version-log':[]}"),
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KnView *view = NULL;
        KnErr err = {0};
        char *copy = strdup(bad[i]);
        assert_non_null(copy);
        for (char *at = copy; *at; at++)
            if (*at == '\'')
                *at = '"';
        assert_int_equal(kn_view_parse(kn_str(copy), "doc", &view, &err), KN_E_CORRUPT);
        assert_int_equal(strncmp(err.msg, "doc", 3), 0);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_view_has_one_version_and_can_be_read_again),
        cmocka_unit_test(a_replaced_view_has_a_new_version_or_an_equal_old_one),
        cmocka_unit_test(a_dialect_is_lost_only_when_that_is_allowed),
        cmocka_unit_test(old_versions_go_and_the_log_before_them),
        cmocka_unit_test(wrong_changes_are_refused),
        cmocka_unit_test(a_document_that_is_no_view_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
