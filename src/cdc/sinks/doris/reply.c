/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - what an answer means. The HTTP status says nothing: refusals come with 200 too.
 *
 * Three shapes are read: the backend's {"Status": ...}, the frontend's {"status", "msg"} of loads
 * and its {"code", "msg", "data"} of everything else. Success is told by a list of two words
 * (Success, Publish Timeout); words of failures are only sorted into what may pass and what will
 * not, and a failure never proves that nothing was committed: the label's state does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/str.h"
#include "doris_internal.h"

enum { MAX_REPLY = 4 << 20 };

/* The string at key, in arena; otherwise what is given. */
static const char *text_at(KnArena *arena, const json_t *obj, const char *key, const char *dflt)
{
    const json_t *value = json_object_get(obj, key);
    return json_is_string(value) ? kn_arena_strdup(arena, json_string_value(value)) : dflt;
}

static int64_t number_at(const json_t *obj, const char *key)
{
    const json_t *value = json_object_get(obj, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void read_backend(KnArena *arena, const json_t *doc, KnDorisReply *ret)
{
    *ret = (KnDorisReply){
        .status = text_at(arena, doc, "Status", ""),
        .label = text_at(arena, doc, "Label", ""),
        .existing = text_at(arena, doc, "ExistingJobStatus", ""),
        .text = text_at(arena, doc, "Message", ""),
        .error_url = text_at(arena, doc, "ErrorURL", ""),
        .held = strcmp(text_at(arena, doc, "TwoPhaseCommit", ""), "true") == 0,
        .group_commit = json_object_get(doc, "GroupCommit") != NULL,
        .txn = number_at(doc, "TxnId"),
        .total = number_at(doc, "NumberTotalRows"),
        .loaded = number_at(doc, "NumberLoadedRows"),
        .filtered = number_at(doc, "NumberFilteredRows"),
        .unselected = number_at(doc, "NumberUnselectedRows"),
    };
}

static void read_frontend(KnArena *arena, const json_t *doc, KnDorisReply *ret)
{
    const char *msg = text_at(arena, doc, "msg", ""), *data = text_at(arena, doc, "data", "");
    *ret = (KnDorisReply){
        .frontend = true,
        .unauthorized = number_at(doc, "code") == 401,
        .status = "",
        .label = "",
        .existing = "",
        .text = data[0] ? kn_arena_printf(arena, "%s: %s", msg, data) : msg,
        .error_url = "",
        .total = -1,
        .loaded = -1,
    };
}

KnCode kn_doris_reply_parse(KnArena *arena, KnStr body, KnDorisReply *ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KnErr why = {0};
    if (body.len > MAX_REPLY || kn_json_parse(body.ptr, body.len, &doc, &why) != KN_OK)
        return kn_err_set(err, KN_E_CORRUPT, "the answer of %zu bytes is no verdict: %s", body.len,
                          why.msg[0] ? why.msg : "too large");
    if (json_is_string(json_object_get(doc, "Status")))
        read_backend(arena, doc, ret);
    else if (json_is_string(json_object_get(doc, "msg")) &&
             (json_is_string(json_object_get(doc, "status")) ||
              json_is_integer(json_object_get(doc, "code"))))
        read_frontend(arena, doc, ret);
    else
        return kn_err_set(err, KN_E_CORRUPT, "the answer of %zu bytes is no verdict", body.len);
    return KN_OK;
}

/* ---- words ---- */

static bool has_any(const char *text, const char *const *words)
{
    for (; *words; ++words)
        if (strcasestr(text, *words))
            return true;
    return false;
}

/* The server has too much to do with many small loads: pausing for long helps. */
static bool is_crowded(const char *text)
{
    static const char *const WORDS[] = {"-235",
                                        "-238",
                                        "too many version",
                                        "too many segment",
                                        "running txns on db",
                                        "committed txns on table",
                                        NULL};
    return has_any(text, WORDS);
}

static bool is_passing(const char *text)
{
    static const char *const WORDS[] = {"MEM_LIMIT_EXCEEDED",
                                        "MEM_ALLOC_FAILED",
                                        "No backend available",
                                        "No backend load available",
                                        "tablet writer write failed",
                                        "THRIFT_RPC_ERROR",
                                        "RPC_ERROR",
                                        "NOT_MASTER",
                                        "not master",
                                        "write lock timeout",
                                        "timeout by txn manager",
                                        "cancelled: closed",
                                        "DELETE_BITMAP_LOCK_ERROR",
                                        "sender is gone",
                                        "NETWORK_ERROR",
                                        "Server is not ready",
                                        "blocked on schema change",
                                        "TIMEOUT",
                                        NULL};
    static const char *const NEVER[] = {"too many filtered rows", "data quota", "DATA_QUALITY",
                                        NULL};
    return !has_any(text, NEVER) && has_any(text, WORDS);
}

/* ---- verdicts ---- */

static KnDorisNext judge_rows(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err)
{
    bool whole = reply->loaded == asked->rows &&
                 (reply->total < 0 || reply->total == asked->rows) && reply->filtered <= 0 &&
                 reply->unselected <= 0;
    if (whole)
        return KN_DORIS_LANDED;
    (void)kn_err_set(err, KN_E_REFUSED,
                     "label %s: the backend says %s and loaded %" PRId64 " of %" PRId64
                     " rows (%" PRId64 " filtered): %s",
                     asked->label, reply->status, reply->loaded, asked->rows, reply->filtered,
                     reply->held ? "they were held, and are dropped"
                                 : "what it loaded is in the target");
    return KN_DORIS_WRONG;
}

static KnDorisNext judge_exists(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err)
{
    bool finished = strcasecmp(reply->existing, "FINISHED") == 0;
    if (asked->first_try) {
        (void)kn_err_set(err, KN_E_REFUSED,
                         "label %s is there (%s) though it was never sent from this state file: an "
                         "older state file, or a second delivery into the same target; run `knut "
                         "cdc reload`",
                         asked->label, reply->existing[0] ? reply->existing : "no status");
        return KN_DORIS_WRONG;
    }
    if (finished)
        return KN_DORIS_REPEATED;
    (void)kn_err_set(err, KN_E_IO, "label %s: an earlier attempt is %s", asked->label,
                     reply->existing[0] ? reply->existing : "not decided");
    return KN_DORIS_ASK;
}

static KnDorisNext judge_fail(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err)
{
    bool crowded = is_crowded(reply->text);
    if (crowded || is_passing(reply->text)) {
        (void)kn_err_set(err, KN_E_IO, "label %s: %s", asked->label, reply->text);
        return crowded ? KN_DORIS_ASK_LATER : KN_DORIS_ASK;
    }
    (void)kn_err_set(err, KN_E_REFUSED, "label %s: %.300s", asked->label,
                     reply->text[0] ? reply->text : "refused without a reason");
    return KN_DORIS_STOP;
}

static KnDorisNext judge_frontend(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err)
{
    if (is_passing(reply->text)) {
        (void)kn_err_set(err, KN_E_IO, "label %s: the frontend says: %s", asked->label,
                         reply->text);
        return KN_DORIS_ASK;
    }
    (void)kn_err_set(err, KN_E_REFUSED, "label %s: the frontend says: %s%s", asked->label,
                     reply->text, reply->unauthorized ? " (DORIS_USER, DORIS_PASSWORD)" : "");
    return KN_DORIS_STOP;
}

KnDorisNext kn_doris_judge(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err)
{
    if (reply->frontend)
        return judge_frontend(reply, asked, err);
    bool success =
        strcmp(reply->status, "Success") == 0 || strcmp(reply->status, "Publish Timeout") == 0;
    bool exists = strcmp(reply->status, "Label Already Exists") == 0;
    bool other = reply->label[0] && strcmp(reply->label, asked->label) != 0;
    if ((success && strcmp(reply->label, asked->label) != 0) || reply->group_commit || other) {
        (void)kn_err_set(
            err, KN_E_REFUSED,
            "label %s: the server did not take our label (it answers '%s'%s): rows may "
            "have been loaded and cannot be told from a repetition",
            asked->label, reply->label, reply->group_commit ? ", group commit" : "");
        return KN_DORIS_WRONG;
    }
    if (success)
        return judge_rows(reply, asked, err);
    if (exists)
        return judge_exists(reply, asked, err);
    if (strcmp(reply->status, "Fail") == 0)
        return judge_fail(reply, asked, err);
    (void)kn_err_set(err, KN_E_UNKNOWN, "label %s: status '%s' is not known: %s", asked->label,
                     reply->status, reply->text);
    return KN_DORIS_ASK;
}

/* ---- states ---- */

KnCode kn_doris_state_parse(KnStr body, KnDorisState *ret, KnErr *err)
{
    static const struct {
        const char *name;
        KnDorisState state;
    } STATES[] = {
        {"UNKNOWN", KN_DORIS_STATE_UNKNOWN},
        {"PREPARE", KN_DORIS_STATE_PREPARE},
        {"PRECOMMITTED", KN_DORIS_STATE_PRECOMMITTED},
        {"COMMITTED", KN_DORIS_STATE_LANDED},
        {"VISIBLE", KN_DORIS_STATE_LANDED},
        {"ABORTED", KN_DORIS_STATE_ABORTED},
    };
    KN_JSON_AUTO doc = NULL;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    if (body.len > MAX_REPLY || kn_json_parse(body.ptr, body.len, &doc, NULL) != KN_OK)
        return kn_err_set(err, KN_E_IO, "the state of a label: the answer is not JSON");
    const char *data = text_at(arena, doc, "data", "");
    for (size_t i = 0; number_at(doc, "code") == 0 && i < sizeof(STATES) / sizeof(STATES[0]); ++i) {
        if (strcmp(data, STATES[i].name) != 0)
            continue;
        *ret = STATES[i].state;
        return KN_OK;
    }
    return kn_err_set(err, KN_E_IO, "the state of a label could not be said: %s %s",
                      text_at(arena, doc, "msg", ""), data);
}
