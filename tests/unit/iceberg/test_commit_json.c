/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements and updates from JSON and back: all of the REST specification, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/metadata/commit_json.h"

/* JSON with ' in place of ". */
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

static const char *const updates_json[] = {
    "{'action':'assign-uuid','uuid':'u'}",
    "{'action':'upgrade-format-version','format-version':3}",
    "{'action':'add-schema','schema':{'type':'struct','schema-id':1,'fields':[{'id':1,'name':'a',"
    "'required':false,'type':'long'}]}}",
    "{'action':'set-current-schema','schema-id':-1}",
    "{'action':'add-spec','spec':{'spec-id':0,'fields':[{'name':'a','transform':'identity',"
    "'source-id':1,'field-id':1000}]}}",
    "{'action':'set-default-spec','spec-id':-1}",
    "{'action':'add-sort-order','sort-order':{'order-id':1,'fields':[{'transform':'identity',"
    "'source-id':1,'direction':'asc','null-order':'nulls-first'}]}}",
    "{'action':'set-default-sort-order','sort-order-id':-1}",
    "{'action':'add-snapshot','snapshot':{'sequence-number':1,'snapshot-id':7,'timestamp-ms':1,"
    "'summary':{'operation':'append'},'manifest-list':'m','schema-id':0}}",
    "{'action':'set-snapshot-ref','ref-name':'b','snapshot-id':7,'type':'branch',"
    "'min-snapshots-to-keep':2,'max-snapshot-age-ms':3,'max-ref-age-ms':4}",
    "{'action':'remove-snapshots','snapshot-ids':[1,2]}",
    "{'action':'remove-snapshot-ref','ref-name':'b'}",
    "{'action':'set-location','location':'file:///w/t'}",
    "{'action':'set-properties','updates':{'a':'b'}}",
    "{'action':'remove-properties','removals':['a']}",
    "{'action':'set-statistics','statistics':{'snapshot-id':7,'statistics-path':'p',"
    "'file-size-in-bytes':1,'file-footer-size-in-bytes':1,'blob-metadata':[]},'snapshot-id':7}",
    "{'action':'remove-statistics','snapshot-id':7}",
    "{'action':'set-partition-statistics','partition-statistics':{'snapshot-id':7,"
    "'statistics-path':'p','file-size-in-bytes':1}}",
    "{'action':'remove-partition-statistics','snapshot-id':7}",
    "{'action':'remove-partition-specs','spec-ids':[1]}",
    "{'action':'remove-schemas','schema-ids':[1]}",
    "{'action':'add-encryption-key','encryption-key':{'key-id':'k','encrypted-key-metadata':'e'}}",
    "{'action':'remove-encryption-key','key-id':'k'}",
};
enum { N_UPDATES = sizeof(updates_json) / sizeof(updates_json[0]) };

static void every_update_survives_being_read_and_written(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < N_UPDATES; i++) {
        KN_JSON_AUTO json = json_of(updates_json[i]);
        KN_JSON_AUTO array = json_array();
        KN_JSON_AUTO written = NULL;
        const KnUpdate *updates = NULL;
        size_t n = 0;
        KnErr err = {0};
        assert_int_equal(json_array_append(array, json), 0);
        if (kn_updates_parse(arena, array, &updates, &n, &err) != KN_OK)
            fail_msg("%s: %s", updates_json[i], err.msg);
        assert_int_equal(n, 1);
        assert_int_equal(updates[0].kind, i); /* in the order of KnUpdateKind */
        assert_int_equal(kn_update_to_json(&updates[0], &written, &err), KN_OK);
        if (!json_equal(written, json))
            fail_msg("%s became %s", updates_json[i], json_dumps(written, JSON_COMPACT));
    }
}

static void every_requirement_survives_being_read_and_written(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO array =
        json_of("[{'type':'assert-create'},{'type':'assert-table-uuid','uuid':'u'},"
                "{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null},"
                "{'type':'assert-last-assigned-field-id','last-assigned-field-id':3},"
                "{'type':'assert-current-schema-id','current-schema-id':0},"
                "{'type':'assert-last-assigned-partition-id','last-assigned-partition-id':999},"
                "{'type':'assert-default-spec-id','default-spec-id':0},"
                "{'type':'assert-default-sort-order-id','default-sort-order-id':0},"
                "{'type':'assert-ref-snapshot-id','ref':'b','snapshot-id':5}]");
    const KnRequirement *reqs = NULL;
    size_t n = 0;
    assert_int_equal(kn_requirements_parse(arena, array, &reqs, &n, NULL), KN_OK);
    assert_int_equal(n, 9);
    for (size_t i = 0; i < n; i++) {
        KN_JSON_AUTO written = NULL;
        assert_true(kn_requirement_is_rest(&reqs[i]));
        assert_int_equal(kn_requirement_to_json(&reqs[i], &written, NULL), KN_OK);
        assert_true(json_equal(written, json_array_get(array, i)));
    }
    const KnRequirement ours = {.kind = KN_REQUIRE_REF_COUNT, .number = 1};
    json_t *none = NULL;
    assert_false(kn_requirement_is_rest(&ours));
    assert_int_equal(kn_requirement_to_json(&ours, &none, NULL), KN_E_UNSUPPORTED);
}

static void what_is_wrong_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"{'updates':[{'action':'fly'}]}",
         "updates[0]: Cannot convert metadata update action 'fly'"},
        {"{'updates':[{'action':'add-view-version','view-version':{}}]}", "a table is no view"},
        {"{'requirements':[{'type':'assert-view-uuid','uuid':'u'}]}", "a table is no view"},
        {"{'requirements':[{'type':'assert-luck'}]}", "'assert-luck'"},
        {"{'requirements':[7]}", "requirements[0]"},
        {"{'updates':{}}", "'updates'"},
        {"{'updates':[{'action':'assign-uuid'}]}", "updates[0]: assign-uuid: field 'uuid'"},
        {"{'updates':[{'action':'set-properties','updates':{'a':1}}]}", "property 'a'"},
        {"{'updates':[{'action':'remove-properties','removals':[1]}]}", "'removals'"},
        {"{'updates':[{'action':'remove-snapshots','snapshot-ids':['1']}]}", "'snapshot-ids'"},
        {"{'updates':[{'action':'add-snapshot','snapshot':{'snapshot-id':1}}]}", "add-snapshot"},
        {"{'updates':[{'action':'add-schema','schema':{'type':'struct','fields':[{'id':1}]}}]}",
         "add-schema"},
        {"{'updates':[{'action':'set-snapshot-ref','ref-name':'x','type':'twig','snapshot-id':1}]}",
         "'twig'"},
        {"{'updates':[{'action':'set-statistics','statistics':{'snapshot-id':1}}]}",
         "'statistics-path'"},
        {"{'updates':[{'action':'set-current-schema','schema-id':1.5}]}", "'schema-id'"},
        {"[]", "'requirements'"},
    };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_JSON_AUTO body = json_of(cases[i].body);
        KnTableCommit commit;
        KnErr err = {0};
        KnCode rc = kn_commit_parse(arena, body, &commit, &err);
        if (rc != KN_E_INVAL || err.code != rc || !strstr(err.msg, cases[i].words))
            fail_msg("%s: code %d: %s", cases[i].body, rc, err.msg);
    }
}

static void a_table_is_asked_for_by_name_and_schema_alone(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO least = json_of("{'name':'t','schema':{'type':'struct','fields':[]}}");
    KN_JSON_AUTO most = json_of(
        "{'name':'t','location':'file:///w/t','stage-create':true,'properties':{'format-version':"
        "'1','a':'b'},'schema':{'type':'struct','fields':[{'id':0,'name':'a','required':true,"
        "'type':'long'}]},'partition-spec':{'fields':[{'source-id':0,'transform':'identity',"
        "'name':'a'}]},'write-order':{'order-id':1,'fields':[{'source-id':0,'transform':'identity',"
        "'direction':'desc','null-order':'nulls-last'}]}}");
    KN_JSON_AUTO bad = json_of(
        "{'name':'t','schema':{'type':'struct','fields':[]},'properties':{'format-version':'9'}}");
    KN_JSON_AUTO none = json_of("{'name':'t'}");
    KnCreateRequest req;
    KnErr err = {0};
    assert_int_equal(kn_create_request_parse(arena, least, &req, &err), KN_OK);
    assert_int_equal(req.create.format_version, 2);
    assert_false(req.stage);
    assert_null(req.create.spec);
    assert_null(req.create.location);
    assert_int_equal(kn_create_request_parse(arena, most, &req, &err), KN_OK);
    assert_true(req.stage);
    assert_int_equal(req.create.format_version, 1);
    assert_int_equal(req.create.spec->n_fields, 1);
    assert_true(req.create.sort_order->fields[0].descending);
    assert_int_equal(kn_create_request_parse(arena, bad, &req, &err), KN_E_INVAL);
    assert_int_equal(kn_create_request_parse(arena, none, &req, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "'schema'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_update_survives_being_read_and_written),
        cmocka_unit_test(every_requirement_survives_being_read_and_written),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(a_table_is_asked_for_by_name_and_schema_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
