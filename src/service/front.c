/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - see front.h. Every answer is made from memory, on the thread that waits for
 * connections. Counters are in the process's registry; what may go down, or end with its delivery,
 * is written from the deliveries as they are now.
 */
#include "service/front.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "net/http_server.h"

enum { MAX_BODY = 4096, MAX_ANSWER = 64 << 20 };

struct KnServiceFront {
    KnHttpd *httpd;
    KnService *svc;
};

/* ---- metrics ---- */

typedef struct Gauge {
    const char *name, *help;
    double (*value)(const KnServiceState *state);
} Gauge;

static double lag_snapshots(const KnServiceState *state)
{
    return (double)state->snapshots;
}
static double lag_rows(const KnServiceState *state)
{
    return (double)state->rows;
}
static double lag_bytes(const KnServiceState *state)
{
    return (double)state->bytes;
}
static double lag_seconds(const KnServiceState *state)
{
    return state->seconds;
}
static double is_ready(const KnServiceState *state)
{
    return state->ready;
}
static double is_ok(const KnServiceState *state)
{
    return state->ok;
}
static double last_ok(const KnServiceState *state)
{
    return state->last_ok_ms > 0 ? (double)state->last_ok_ms / 1000 : -1;
}

/* A value below 0 is not known, and has no sample. */
static const Gauge gauges[] = {
    {"knut_delivery_lag_snapshots", "Snapshots that wait", lag_snapshots},
    {"knut_delivery_lag_rows", "Rows of files that wait", lag_rows},
    {"knut_delivery_lag_bytes", "Bytes of files that wait", lag_bytes},
    {"knut_delivery_lag_seconds", "Time since the oldest snapshot that waits was committed",
     lag_seconds},
    {"knut_delivery_ready", "Table found and destination's probe passed", is_ready},
    {"knut_delivery_ok", "The last round ended well (functional status)", is_ok},
    {"knut_delivery_last_success_timestamp_seconds", "When a round last ended well", last_ok},
};

static void write_gauge(const Gauge *gauge, const KnServiceState *states, size_t n, KnBuf *out)
{
    KN_BUF_AUTO labels;
    kn_buf_init(&labels, 8192);
    kn_buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", gauge->name, gauge->help, gauge->name);
    for (size_t i = 0; i < n; i++) {
        double value = gauge->value(&states[i]);
        if (value < 0)
            continue;
        kn_buf_reset(&labels);
        kn_metric_label(&labels, "delivery", kn_str(states[i].name));
        kn_metric_label(&labels, "sink", kn_str(states[i].sink_kind));
        kn_buf_printf(out, "%s{%s} %.15g\n", gauge->name, labels.data, value);
    }
}

void kn_service_metrics_write(KnService *svc, KnBuf *out)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    size_t n = 0;
    const KnServiceState *states = kn_service_states(svc, arena, &n);
    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
        write_gauge(&gauges[i], states, n, out);
    kn_metrics_write(out);
}

/* ---- JSON ---- */

static const char *bool_text(bool value)
{
    return value ? "true" : "false";
}

static const char *status_text(const KnServiceState *state)
{
    if (!state->looked)
        return "starting";
    if (state->code == KN_OK)
        return "ok";
    return kn_code_exit_status(state->code) == 3 ? "refused" : "failed";
}

static void write_state(KnBuf *out, const KnServiceState *state)
{
    char when[32];
    kn_buf_char(out, '{');
    kn_json_put_text(out, "delivery", state->name);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "table", state->table);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "sink", state->sink_kind);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "status", status_text(state));
    kn_buf_printf(out, ",\"ready\":%s,", bool_text(state->ready));
    kn_json_put_count(out, "cursor", state->cursor);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "behind", state->snapshots);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "rows_behind", state->rows);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "bytes_behind", state->bytes);
    kn_buf_printf(out, ",\"seconds_behind\":%.0f,", state->seconds);
    kn_json_put_text(out, "last_ok",
                     state->last_ok_ms > 0 ? kn_clock_format_ms(state->last_ok_ms, when) : "");
    kn_buf_text(out, ",\"functional_status\":{\"component\":\"knut-cdc\",");
    kn_json_put_text(out, "check", state->name);
    kn_buf_printf(out, ",\"ok\":%s,", bool_text(state->looked && state->ok));
    kn_json_put_text(out, "detail", state->message);
    kn_buf_text(out, "}}");
}

void kn_service_status_json(KnService *svc, KnBuf *out)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    size_t n = 0;
    const KnServiceState *states = kn_service_states(svc, arena, &n);
    kn_buf_text(out, "{\"deliveries\":[");
    for (size_t i = 0; i < n; i++) {
        kn_buf_text(out, i ? "," : "");
        write_state(out, &states[i]);
    }
    kn_buf_text(out, "]}\n");
}

static bool write_ready(KnService *svc, KnBuf *out)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    size_t n = 0, waiting = 0;
    const KnServiceState *states = kn_service_states(svc, arena, &n);
    kn_buf_text(out, "{\"waiting_for\":[");
    for (size_t i = 0; i < n; i++) {
        if (states[i].ready)
            continue;
        kn_buf_text(out, waiting++ ? ",{" : "{");
        kn_json_put_text(out, "delivery", states[i].name);
        kn_buf_char(out, ',');
        kn_json_put_text(out, "message",
                         states[i].looked ? states[i].message : "not looked at yet");
        kn_buf_char(out, '}');
    }
    kn_buf_printf(out, "],\"ready\":%s}\n", bool_text(waiting == 0));
    return waiting == 0;
}

/* ---- HTTP ---- */

static void answer(const KnHttpdRequest *req, KnHttpdResponse *rsp, int status, const char *type,
                   const KnBuf *body)
{
    rsp->status = status;
    kn_httpd_response_header(rsp, "Content-Type", type);
    kn_httpd_response_header(rsp, "Cache-Control", "no-store");
    kn_httpd_response_piece(
        rsp,
        (KnStr){kn_arena_strndup(req->arena, body->data ? body->data : "", body->len), body->len});
}

static size_t admit(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    (void)arg;
    (void)req;
    (void)rsp;
    return MAX_BODY;
}

static void fail(void *arg, KnHttpdRequest *req, int status, const char *message,
                 KnHttpdResponse *rsp)
{
    KN_BUF_AUTO body;
    kn_buf_init(&body, 4096);
    (void)arg;
    kn_buf_char(&body, '{');
    kn_json_put_text(&body, "error", message);
    kn_buf_text(&body, "}\n");
    answer(req, rsp, status, "application/json", &body);
}

static KnHttpdWhen handle(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    KnServiceFront *front = arg;
    KnStr path = req->target.path;
    const char *type = "application/json";
    int status = 200;
    KN_BUF_AUTO body;
    kn_buf_init(&body, MAX_ANSWER);
    bool reads =
        kn_str_eq(req->method, KN_STR_LIT("GET")) || kn_str_eq(req->method, KN_STR_LIT("HEAD"));
    if (!reads) {
        fail(arg, req, 405, "only GET is taken here", rsp);
        kn_httpd_response_header(rsp, "Allow", "GET, HEAD");
        return KN_HTTPD_NOW;
    }
    if (kn_str_eq(path, KN_STR_LIT("/health"))) {
        kn_buf_text(&body, "{\"status\":\"ok\"}\n");
    } else if (kn_str_eq(path, KN_STR_LIT("/ready"))) {
        status = write_ready(front->svc, &body) ? 200 : 503;
    } else if (kn_str_eq(path, KN_STR_LIT("/status"))) {
        kn_service_status_json(front->svc, &body);
    } else if (kn_str_eq(path, KN_STR_LIT("/metrics"))) {
        kn_service_metrics_write(front->svc, &body);
        type = "text/plain; version=0.0.4; charset=utf-8";
    } else {
        fail(arg, req, 404, "there are /health, /ready, /metrics and /status", rsp);
        return KN_HTTPD_NOW;
    }
    answer(req, rsp, status, type, &body);
    return KN_HTTPD_NOW;
}

static void done(void *arg, const KnHttpdRequest *req, int status, int64_t bytes)
{
    (void)arg;
    (void)req;
    (void)status;
    (void)bytes;
}

KnCode kn_service_front_open(KnListen *listening, KnService *svc, KnServiceFront **ret, KnErr *err)
{
    KnServiceFront *front = calloc(1, sizeof(*front));
    if (!front)
        abort();
    front->svc = svc;
    const KnHttpdOptions opts = {.handler = {front, admit, handle, fail, done},
                                 .threads = 1,
                                 .pool_threads = 1,
                                 .max_connections = 100};
    KnCode rc = kn_httpd_open(listening, &opts, &front->httpd, err);
    if (rc != KN_OK) {
        free(front);
        return rc;
    }
    *ret = front;
    return KN_OK;
}

KnServiceFront *kn_service_front_close(KnServiceFront *front)
{
    if (front) {
        (void)kn_httpd_close(front->httpd, 1000000);
        free(front);
    }
    return NULL;
}
