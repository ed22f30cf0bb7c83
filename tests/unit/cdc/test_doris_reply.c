/* SPDX-License-Identifier: Apache-2.0 */
/* test_doris_reply.c - what the sink concludes from what a Doris says, and where it goes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cdc/sinks/doris/doris_internal.h"

#define LABEL "skade-d:t-init-1-0-aa"

static KnDorisNext judge(const char *body, bool first, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnDorisReply reply;
    const KnDorisAsked asked = {.label = LABEL, .rows = 10, .first_try = first};
    *err = (KnErr){0};
    assert_int_equal(kn_doris_reply_parse(arena, kn_str(body), &reply, err), KN_OK);
    return kn_doris_judge(&reply, &asked, err);
}

#define REPLY(status, more)                                                                        \
    "{\"TxnId\":5,\"Label\":\"" LABEL "\",\"Status\":\"" status "\"" more "}"
#define COUNTS(total, loaded)                                                                      \
    ",\"Message\":\"OK\",\"NumberTotalRows\":" #total ",\"NumberLoadedRows\":" #loaded             \
    ",\"NumberFilteredRows\":0,\"NumberUnselectedRows\":0"
#define FAIL(text) REPLY("Fail", ",\"Message\":\"" text "\",\"NumberLoadedRows\":10")

static void each_answer_has_one_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        KnDorisNext first, later;
        const char *words;
    } CASES[] = {
        {REPLY("Success", COUNTS(10, 10)), KN_DORIS_LANDED, KN_DORIS_LANDED, ""},
        {REPLY("Publish Timeout", COUNTS(10, 10)), KN_DORIS_LANDED, KN_DORIS_LANDED, ""},
        {REPLY("Success", COUNTS(10, 9)), KN_DORIS_WRONG, KN_DORIS_WRONG, "loaded 9 of 10 rows"},
        {REPLY("Success", COUNTS(0, 0)), KN_DORIS_WRONG, KN_DORIS_WRONG, "loaded 0 of 10 rows"},
        {REPLY("Success", ""), KN_DORIS_WRONG, KN_DORIS_WRONG, "of 10 rows"},
        {REPLY("Success", COUNTS(10, 10) ",\"GroupCommit\":true"), KN_DORIS_WRONG, KN_DORIS_WRONG,
         "group commit"},
        {"{\"Label\":\"other\",\"Status\":\"Success\"" COUNTS(10, 10) "}", KN_DORIS_WRONG,
         KN_DORIS_WRONG, "did not take our label"},
        {"{\"Status\":\"Success\"" COUNTS(10, 10) "}", KN_DORIS_WRONG, KN_DORIS_WRONG,
         "did not take our label"},
        {REPLY("Label Already Exists", ",\"ExistingJobStatus\":\"FINISHED\""), KN_DORIS_WRONG,
         KN_DORIS_REPEATED, "never sent from this state file"},
        {REPLY("Label Already Exists", ",\"ExistingJobStatus\":\"RUNNING\""), KN_DORIS_WRONG,
         KN_DORIS_ASK, ""},
        {REPLY("Label Already Exists", ",\"ExistingJobStatus\":\"\""), KN_DORIS_WRONG, KN_DORIS_ASK,
         ""},
        {REPLY("Label Already Exists", ""), KN_DORIS_WRONG, KN_DORIS_ASK, ""},
        {FAIL("[E-235]failed to init rowset builder. version count: 2001, exceed limit: 2000"),
         KN_DORIS_ASK_LATER, KN_DORIS_ASK_LATER, "E-235"},
        {FAIL("current running txns on db 5 is 10000, larger than limit 10000"), KN_DORIS_ASK_LATER,
         KN_DORIS_ASK_LATER, ""},
        {FAIL("[MEM_LIMIT_EXCEEDED]x"), KN_DORIS_ASK, KN_DORIS_ASK, ""},
        {FAIL("get tableList write lock timeout"), KN_DORIS_ASK, KN_DORIS_ASK, ""},
        {FAIL("timeout by txn manager"), KN_DORIS_ASK, KN_DORIS_ASK, ""},
        {FAIL("cancelled: closed"), KN_DORIS_ASK, KN_DORIS_ASK, ""},
        {FAIL("[DATA_QUALITY_ERROR]too many filtered rows"), KN_DORIS_STOP, KN_DORIS_STOP,
         "too many filtered"},
        {FAIL("Database d data quota exceeded; tablet writer write failed"), KN_DORIS_STOP,
         KN_DORIS_STOP, ""},
        {FAIL("unknown table"), KN_DORIS_STOP, KN_DORIS_STOP, "unknown table"},
        {REPLY("Splendid", ""), KN_DORIS_ASK, KN_DORIS_ASK, "'Splendid' is not known"},
        {REPLY("success", COUNTS(10, 10)), KN_DORIS_ASK, KN_DORIS_ASK, "not known"},
        {"{\"status\":\"FAILED\",\"msg\":\"There is no 100-continue header\"}", KN_DORIS_STOP,
         KN_DORIS_STOP, "100-continue"},
        {"{\"status\":\"FAILED\",\"msg\":\"No backend available for load\"}", KN_DORIS_ASK,
         KN_DORIS_ASK, ""},
        {"{\"msg\":\"Unauthorized\",\"code\":401,\"data\":\"Access denied\",\"count\":0}",
         KN_DORIS_STOP, KN_DORIS_STOP, "DORIS_PASSWORD"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
        KnErr err;
        KnDorisNext first = judge(CASES[i].body, true, &err);
        if (first != CASES[i].first || !strstr(err.msg, CASES[i].words))
            fail_msg("%s: %d, %s", CASES[i].body, first, err.msg);
        if ((first > KN_DORIS_REPEATED) != (err.code != KN_OK))
            fail_msg("%s: code %d", CASES[i].body, err.code);
        assert_int_equal(judge(CASES[i].body, false, &err), CASES[i].later);
    }
}

static void what_is_no_verdict_is_said_to_be_none(void **state)
{
    (void)state;
    static const char *const BODIES[] = {"",
                                         "<html></html>",
                                         "{",
                                         "[]",
                                         "1",
                                         "{}",
                                         "{\"Status\":1}",
                                         "{\"status\":\"OK\"}",
                                         "{\"msg\":\"x\"}",
                                         "{\"Status\":\"Success\",\"Status\":\"Fail\"}",
                                         "\xff\xfe"};
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    for (size_t i = 0; i < sizeof(BODIES) / sizeof(BODIES[0]); ++i) {
        KnDorisReply reply;
        KnErr err = {0};
        assert_int_equal(kn_doris_reply_parse(arena, kn_str(BODIES[i]), &reply, &err),
                         KN_E_CORRUPT);
        assert_non_null(strstr(err.msg, "no verdict"));
    }
}

static void states_are_told_by_their_exact_names(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        KnCode code;
        KnDorisState state;
    } CASES[] = {{"UNKNOWN", KN_OK, KN_DORIS_STATE_UNKNOWN},
                 {"PREPARE", KN_OK, KN_DORIS_STATE_PREPARE},
                 {"PRECOMMITTED", KN_OK, KN_DORIS_STATE_PRECOMMITTED},
                 {"COMMITTED", KN_OK, KN_DORIS_STATE_LANDED},
                 {"VISIBLE", KN_OK, KN_DORIS_STATE_LANDED},
                 {"ABORTED", KN_OK, KN_DORIS_STATE_ABORTED},
                 {"visible", KN_E_IO, KN_DORIS_STATE_UNKNOWN},
                 {"", KN_E_IO, KN_DORIS_STATE_UNKNOWN}};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
        char body[128];
        KnErr err = {0};
        KnDorisState found = KN_DORIS_STATE_UNKNOWN;
        int n =
            snprintf(body, sizeof(body),
                     "{\"msg\":\"success\",\"code\":0,\"data\":\"%s\",\"count\":0}", CASES[i].data);
        assert_in_range(n, 1, sizeof(body) - 1);
        assert_int_equal(kn_doris_state_parse(kn_str(body), &found, &err), CASES[i].code);
        assert_int_equal(found, CASES[i].state);
    }
    KnDorisState found;
    const char *lost = "{\"msg\":\"Error\",\"code\":1,\"data\":\"ABORTED\",\"count\":0}";
    assert_int_equal(kn_doris_state_parse(kn_str(lost), &found, NULL), KN_E_IO);
}

static KnDorisSettings settings(KnArena *arena, const char *place)
{
    KnDorisSettings set;
    KnErr err = {0};
    if (kn_doris_settings_parse(arena, place, &set, &err) != KN_OK)
        fail_msg("%s: %s", place, err.msg);
    return set;
}

static void a_redirect_gives_host_port_and_path_only(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    const KnDorisSettings set = settings(arena, "http://fe:8030?rewrite=be2:8040=far:1");
    static const char *const CASES[][2] = {
        {"http://root:@be:8040/api/d/t/_stream_load?", "http://be:8040/api/d/t/_stream_load"},
        {"http://root:p%40ss@be:8040/api/d/t/_stream_load", "http://be:8040/api/d/t/_stream_load"},
        {"http://ro@ot:p@s:s@be:8040/x", "http://be:8040/x"},
        {"http://be:8040/x?forward_to=b:1", "http://be:8040/x?forward_to=b:1"},
        {"http://u:p@be2:8040/x", "http://far:1/x"},
        {"http://u:p@[::1]:8040/x", "http://[::1]:8040/x"},
        {"/api/x", "http://fe:8030/api/x"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
        const char *url = NULL;
        KnErr err = {0};
        KnCode rc = kn_doris_redirect(arena, &set, "http://fe:8030/api/d/t/_stream_load",
                                      kn_str(CASES[i][0]), &url, &err);
        if (rc != KN_OK || strcmp(url, CASES[i][1]) != 0)
            fail_msg("%s: %s %s", CASES[i][0], url ? url : "", err.msg);
    }
}

static void a_redirect_from_tls_to_plain_is_refused_unless_allowed(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    const char *from = "https://fe:8030/x", *url = NULL;
    KnStr to = kn_str("http://u:secret@be:8040/x");
    KnErr err = {0};
    KnDorisSettings set = settings(arena, "https://fe:8030");
    assert_int_equal(kn_doris_redirect(arena, &set, from, to, &url, &err), KN_E_REFUSED);
    assert_non_null(strstr(err.msg, "be:8040"));
    assert_null(strstr(err.msg, "secret"));
    set = settings(arena, "https://fe:8030?allow-downgrade=true");
    assert_int_equal(kn_doris_redirect(arena, &set, from, to, &url, &err), KN_OK);
    assert_string_equal(url, "http://be:8040/x");
    set = settings(arena, "https://fe:8030?be-scheme=https");
    assert_int_equal(kn_doris_redirect(arena, &set, from, to, &url, &err), KN_OK);
    assert_string_equal(url, "https://be:8040/x");
}

static void a_redirect_to_nowhere_is_an_error(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    const KnDorisSettings set = settings(arena, "http://fe:8030");
    static const char *const BAD[] = {"",
                                      "nowhere",
                                      "ftp://x/y",
                                      "http://",
                                      "http://u:secret@/x",
                                      "http://a b/x",
                                      "http://be:99999999/x"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i) {
        const char *url = NULL;
        KnErr err = {0};
        KnCode rc = kn_doris_redirect(arena, &set, "http://fe:8030/x", kn_str(BAD[i]), &url, &err);
        if (rc == KN_OK)
            fail_msg("%s: taken as %s", BAD[i], url);
        assert_null(strstr(err.msg, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_has_one_meaning),
        cmocka_unit_test(what_is_no_verdict_is_said_to_be_none),
        cmocka_unit_test(states_are_told_by_their_exact_names),
        cmocka_unit_test(a_redirect_gives_host_port_and_path_only),
        cmocka_unit_test(a_redirect_from_tls_to_plain_is_refused_unless_allowed),
        cmocka_unit_test(a_redirect_to_nowhere_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
