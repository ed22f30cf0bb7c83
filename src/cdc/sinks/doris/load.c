/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - one chunk: its rows become a body, the body goes through a frontend to a backend, and
 * the answer is judged.
 *
 *     frontend: headers only -> 307 -> backend: headers -> 100 -> body -> {"Status": ...}
 *
 * No byte of the body leaves before a backend has answered "100 Continue": its transaction is begun
 * then and the label is taken. A backend is asked for anew on each attempt. Whatever is not a clear
 * verdict is settled by the label's state, and then the same bytes go again under the same label:
 * a second label for the same rows is the one mistake that cannot be undone.
 */
#include <inttypes.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/stop.h"
#include "doris_internal.h"
#include "net/http_upload.h"
#include "net/url.h"

enum { MAX_HOPS = 5, MAX_HEADERS = 20, CROWDED_FACTOR = 10, MAX_PAUSE_MS = 60000 };

typedef struct Load {
    KnDoris *dor;
    const KnSinkChunk *chunk;
    KnArena *arena;
    KnDorisBody body;
    KnHttpHeader headers[MAX_HEADERS];
    size_t n_headers;
    bool sent; /* an attempt with this label may have reached a server */
} Load;

/* ---- the request ---- */

static void add_header(Load *load, const char *name, const char *value)
{
    load->headers[load->n_headers++] = (KnHttpHeader){name, value};
}

/* All of what decides about the meaning of the rows is said, whatever the server's defaults are. */
static void make_headers(Load *load)
{
    const KnDoris *dor = load->dor;
    bool deletes = load->chunk->op == KN_CHUNK_DELETE;
    add_header(load, "Authorization", dor->authorization);
    add_header(load, "label", load->chunk->label);
    add_header(load, "group_commit", "off_mode");
    add_header(load, "format", dor->plan.arrow ? "arrow" : "json");
    if (!dor->plan.arrow) {
        add_header(load, "read_json_by_line", "true");
        add_header(load, "strip_outer_array", "false");
    }
    add_header(load, "columns", deletes ? dor->plan.delete_columns : dor->plan.columns);
    add_header(load, "strict_mode", "true");
    add_header(load, "max_filter_ratio", "0");
    add_header(load, "timezone", "UTC");
    add_header(load, "timeout", kn_arena_printf(load->arena, "%" PRId64, dor->set.load_timeout_s));
    if (dor->set.two_phase)
        add_header(load, "two_phase_commit", "true");
    if (deletes)
        add_header(load, "merge_type", "DELETE");
    if (dor->plan.sequence[0])
        add_header(load, "function_column.sequence_col", KN_DORIS_SEQUENCE_COLUMN);
    if (dor->set.redirect_policy)
        add_header(load, "redirect-policy", dor->set.redirect_policy);
}

/* One of the two encoders. */
typedef struct Encoder {
    KnDorisJson *json;
    KnDorisArrow *arrow;
} Encoder;

static KnCode encode_rows(const Encoder *enc, const KnRowSource *rows, KnErr *err)
{
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(rows->next(rows->arg, &batch, err));
        if (!batch)
            return enc->arrow ? kn_doris_arrow_end(enc->arrow, err)
                              : kn_doris_json_end(enc->json, err);
        int64_t began = kn_clock_mono_us();
        KN_TRY(enc->arrow ? kn_doris_arrow_rows(enc->arrow, batch, err)
                          : kn_doris_json_rows(enc->json, batch, err));
        kn_row_source_encoded(rows, kn_clock_mono_us() - began);
    }
}

static KnCode encode(Load *load, const KnRowSource *rows, KnErr *err)
{
    const KnDorisPlan *plan = &load->dor->plan;
    bool deletes = load->chunk->op == KN_CHUNK_DELETE;
    Encoder enc = {0};
    if (plan->arrow)
        enc.arrow = kn_doris_arrow_new(plan, deletes, &load->body);
    else
        enc.json = kn_doris_json_new(plan, deletes, &load->body);
    KnCode rc = encode_rows(&enc, rows, err);
    enc.arrow = kn_doris_arrow_free(enc.arrow);
    enc.json = kn_doris_json_free(enc.json);
    if (rc == KN_E_REFUSED)
        return kn_err_wrap(err, rc, "%s, chunk %" PRId64, load->dor->where, load->chunk->number);
    return rc;
}

/* ---- an attempt ---- */

/* Host and port of a URL, for messages: no path, no user part. */
static const char *host_of(KnArena *arena, const char *url)
{
    KnUrl parts;
    if (kn_url_parse(kn_str(url), &parts, NULL) != KN_OK)
        return "?";
    return kn_arena_strndup(arena, parts.authority.ptr, parts.authority.len);
}

static const char *first_url(Load *load, bool *ret_direct)
{
    KnDoris *dor = load->dor;
    unsigned turn = atomic_fetch_add(&dor->turn, 1);
    *ret_direct = dor->set.n_be > 0;
    const char *host =
        *ret_direct ? dor->set.be[turn % dor->set.n_be] : dor->set.fe[turn % dor->set.n_fe];
    const char *parts[] = {dor->db, dor->table, "_stream_load"};
    return kn_arena_printf(load->arena, "%s%s", host, kn_doris_path(load->arena, parts, 3));
}

/* One hop. *ret_next: the URL that it sends us to, or NULL: ret has the answer. */
static KnCode hop(Load *load, const char *url, bool frontend, KnHttpUploadResult *ret,
                  const char **ret_next, KnErr *err)
{
    const KnDorisSettings *set = &load->dor->set;
    const KnHttpUpload up = {.url = url,
                             .headers = load->headers,
                             .n_headers = load->n_headers,
                             .body_len = load->body.len,
                             .hold_body = frontend,
                             .read = kn_doris_body_read,
                             .read_arg = &load->body,
                             .ca_file = set->ca_file,
                             .connect_ms = set->connect_ms,
                             .answer_ms = set->answer_ms,
                             .stall_ms = set->stall_ms};
    *ret_next = NULL;
    KnCode rc = kn_http_upload(&up, ret, err);
    load->sent |= ret->stage > KN_UPLOAD_CONNECT && !frontend;
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s, label %s: %s", load->dor->where, load->chunk->label,
                           frontend ? "frontend" : "backend");
    if (ret->status / 100 != 3)
        return KN_OK;
    KnStr location = {ret->location.data ? ret->location.data : "", ret->location.len};
    return kn_doris_redirect(load->arena, set, url, location, ret_next, err);
}

/* Headers to a frontend, then body to the backend that it names; the backend's answer. */
static KnCode send_body(Load *load, KnBuf *answer, const char **ret_host, KnErr *err)
{
    bool direct;
    const char *url = first_url(load, &direct), *next, *named_by = NULL;
    for (int i = 0; i < MAX_HOPS; ++i) {
        KN_HTTP_UPLOAD_AUTO got = {0};
        bool frontend = i == 0 && !direct;
        *ret_host = host_of(load->arena, url);
        KnCode rc = hop(load, url, frontend, &got, &next, err);
        if (rc != KN_OK && named_by)
            return kn_err_wrap(err, rc, "frontend %s sends loads to backend %s", named_by,
                               *ret_host);
        KN_TRY(rc);
        if (!next && got.status != 200)
            return kn_err_set(err, KN_E_IO, "%s, label %s: %s answers HTTP %d", load->dor->where,
                              load->chunk->label, *ret_host, got.status);
        if (!next) {
            kn_buf_append(answer, got.body.data, got.body.len);
            return kn_buf_check(answer, err);
        }
        named_by = *ret_host;
        url = next;
    }
    return kn_err_set(err, KN_E_REFUSED, "%s, label %s: redirected %d times, last to %s",
                      load->dor->where, load->chunk->label, MAX_HOPS, *ret_host);
}

/* What one attempt came to. */
typedef struct Outcome {
    KnDorisNext next;
    int64_t held; /* LANDED: the transaction waits for its commit; -1 = it does not */
    KnErr err;
} Outcome;

/* A held load of other rows than ours is not in the target yet, and will not be. */
static void undo_wrong(Load *load, const KnDorisReply *reply, Outcome *out)
{
    if (out->next != KN_DORIS_WRONG || !reply->held || reply->txn < 0 ||
        strcmp(reply->label, load->chunk->label) != 0)
        return;
    kn_doris_drop_held(load->dor, load->chunk->label, reply->txn);
    out->next = KN_DORIS_STOP;
}

/* Why the backend refused rows is not in its answer, but in a page that the answer names. */
static void add_rows_in_question(Load *load, const char *url, KnErr *err)
{
    size_t used = strlen(err->msg);
    const char *lines = kn_doris_error_log(load->dor, load->arena, url);
    (void)snprintf(err->msg + used, sizeof(err->msg) - used, "; rows in question: %s", lines);
}

static void attempt(Load *load, Outcome *ret)
{
    KN_BUF_AUTO answer;
    const char *host = "?";
    KnDorisReply reply = {.error_url = ""};
    *ret = (Outcome){.next = KN_DORIS_ASK, .held = -1};
    kn_buf_init(&answer, KN_HTTP_ANSWER_MAX_BODY);
    const KnDorisAsked asked = {.label = load->chunk->label,
                                .rows = load->chunk->rows,
                                .first_try = !load->sent && !load->chunk->resent};
    KnCode rc = send_body(load, &answer, &host, &ret->err);
    if (rc == KN_E_REFUSED || rc == KN_E_INVAL)
        ret->next = KN_DORIS_STOP;
    if (rc != KN_OK)
        return;
    KnStr body = {answer.data ? answer.data : "", answer.len};
    if (kn_doris_reply_parse(load->arena, body, &reply, &ret->err) == KN_OK) {
        ret->next = kn_doris_judge(&reply, &asked, &ret->err);
        ret->held = reply.held && load->dor->set.two_phase ? reply.txn : -1;
        undo_wrong(load, &reply, ret);
    }
    if (ret->next == KN_DORIS_STOP && reply.error_url[0])
        add_rows_in_question(load, reply.error_url, &ret->err);
    if (ret->next > KN_DORIS_REPEATED)
        kn_err_wrap(&ret->err, ret->err.code, "%s: %s", load->dor->where, host);
}

static bool pause_for(const Load *load, int64_t n, bool crowded)
{
    int64_t ms = load->dor->set.retry_ms << (n < 12 ? n : 12);
    ms *= crowded ? CROWDED_FACTOR : 1;
    return kn_stop_wait((ms < MAX_PAUSE_MS ? ms : MAX_PAUSE_MS) * 1000);
}

/* After an attempt without a verdict: has it landed, or may it go again? */
static KnCode settle(Load *load, const KnErr *why, bool *ret_landed, KnErr *err)
{
    KnDorisState state;
    KnErr asking = {0};
    KnCode rc = kn_doris_settle(load->dor, load->chunk->label, &state, &asking);
    *ret_landed = rc == KN_OK && state == KN_DORIS_STATE_LANDED;
    if (rc == KN_OK)
        return KN_OK;
    *err = *why;
    err->code = KN_E_UNKNOWN;
    return kn_err_wrap(err, KN_E_UNKNOWN, "%s", asking.msg);
}

static KnCode failed(KnVerdictKind kind, const Outcome *out, KnVerdict *ret, KnErr *err)
{
    *ret = (KnVerdict){.kind = kind};
    if (err)
        *err = out->err;
    return out->err.code != KN_OK ? out->err.code : KN_E_IO;
}

static KnCode send_until_decided(Load *load, KnVerdict *ret, KnErr *err)
{
    Outcome out;
    for (int64_t n = 0;; ++n) {
        bool landed = false;
        KN_FAULT("sink-begun", err);
        attempt(load, &out);
        if (out.next == KN_DORIS_LANDED && out.held >= 0) {
            *ret = (KnVerdict){KN_VERDICT_HELD, load->chunk->rows, out.held};
            return kn_fault_at("sink-after-hold", err);
        }
        if (out.next == KN_DORIS_LANDED || out.next == KN_DORIS_REPEATED) {
            bool again = out.next == KN_DORIS_REPEATED;
            *ret = (KnVerdict){.kind = again ? KN_VERDICT_DUPLICATE : KN_VERDICT_LOADED,
                               .rows = load->chunk->rows};
            return kn_fault_at("sink-after-commit", err);
        }
        if (out.next == KN_DORIS_WRONG)
            return failed(KN_VERDICT_WRONG, &out, ret, err);
        kn_debug("cdc", "doris-attempt", KN_F("label", load->chunk->label), KN_FI("attempt", n),
                 KN_F("error", out.err.msg));
        if (load->sent || load->chunk->resent) {
            *ret = (KnVerdict){.kind = KN_VERDICT_UNKNOWN};
            KN_TRY(settle(load, &out.err, &landed, err));
        }
        if (landed) {
            *ret = (KnVerdict){.kind = KN_VERDICT_LOADED, .rows = load->chunk->rows};
            return KN_OK;
        }
        if (out.next == KN_DORIS_STOP || n >= load->dor->set.max_retries ||
            pause_for(load, n, out.next == KN_DORIS_ASK_LATER))
            return failed(KN_VERDICT_FAILED, &out, ret, err);
    }
}

KnCode kn_doris_load(KnDoris *dor, const KnSinkChunk *chunk, const KnRowSource *rows,
                     KnVerdict *ret, KnErr *err)
{
    Load load = {.dor = dor, .chunk = chunk, .arena = kn_arena_new(4096)};
    *ret = (KnVerdict){.kind = KN_VERDICT_FAILED};
    kn_doris_body_init(&load.body, dor->spill_dir);
    make_headers(&load);
    KnCode rc = encode(&load, rows, err);
    if (rc == KN_OK)
        rc = kn_fault_at("sink-rows-written", err);
    if (rc == KN_OK)
        rc = send_until_decided(&load, ret, err);
    kn_doris_body_done(&load.body);
    (void)kn_arena_free(load.arena);
    return rc;
}
