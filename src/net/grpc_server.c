/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_server.c - from requests to methods and back.
 *
 * A call lives in its stream's arena. Whoever still needs it (a job in the workers' queue, a flow
 * in the server's list) holds a reference on the stream. A flow is in one of these states, guarded
 * by the server's lock:
 *
 *     QUEUED   a worker has it or will take it       -> SENDING, WAITING or ENDED by that worker
 *     SENDING  what it said is on its way            -> QUEUED when the stream has drained
 *     WAITING  it had nothing to say                 -> QUEUED by kn_grpc_server_wake()
 *     ENDED    its last word is sent, or its client has left
 *
 * So each flow has at most one job, and the queue has room for all flows. A dialog is a flow that
 * has something to say when messages have come, which are kept until it is pulled.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/grpc_internal.h"
#include "net/httpd_pool.h"

typedef enum FlowState { QUEUED, SENDING, WAITING, ENDED } FlowState;

typedef struct Call {
    KnGrpcCall pub;
    KnHttpdJob job;
    KnGrpcServer *srv;
    void *self;
    int64_t deadline_us; /* monotonic; 0 = none */
    FlowState state;
    bool again;   /* woken while QUEUED */
    bool drained; /* likewise: what it said is gone before its worker could say that it sends */
    bool head_sent;
    bool heard_all; /* a dialog's last message has come */
    KnBuf heard;    /* of a dialog: frames that it has not answered yet */
    struct Call *next, **prev;
    struct Call *to_run;
} Call;

static Call *call_of(KnHttpdJob *job)
{
    return (Call *)((char *)job - offsetof(Call, job));
}

struct KnGrpcServer {
    KnGrpcOptions opts;
    KnGrpcService *services;
    KnH2Server *http;
    KnHttpdPool *pool;
    atomic_size_t blocking; /* calls queued or running */
    atomic_bool shut;
    pthread_mutex_t lock;
    Call *flows;
    unsigned n_flows;
};

KnStr kn_grpc_call_metadata(const KnGrpcCall *call, const char *name)
{
    return kn_h2_stream_field(call->stream, name);
}

/* ---- answers ---- */

static const KnH2Field head_fields[] = {
    {KN_STR_LIT(":status"), KN_STR_LIT("200")},
    {KN_STR_LIT("content-type"), KN_STR_LIT("application/grpc")},
    {KN_STR_LIT("grpc-accept-encoding"), KN_STR_LIT("identity")},
};
enum { N_HEAD = 2, N_HEAD_ENCODING = 3 };

#define MAX_MESSAGE ((size_t)4 << 10)  /* of a status, encoded */
#define MAX_HEARD   ((size_t)64 << 10) /* of a dialog's messages, unanswered */

typedef struct Status {
    KnH2Field fields[2];
    size_t n;
    char code[16];
    KnBuf text;
} Status;

static void status_init(Status *status, int code, const char *message)
{
    int len = snprintf(status->code, sizeof(status->code), "%d", code);
    status->fields[0] =
        (KnH2Field){KN_STR_LIT("grpc-status"), {status->code, len > 0 ? (size_t)len : 0}};
    status->n = 1;
    kn_buf_init(&status->text, MAX_MESSAGE);
    if (code == KN_GRPC_OK || !message || !message[0])
        return;
    kn_grpc_message_encode(&status->text, kn_str(message));
    status->fields[1] =
        (KnH2Field){KN_STR_LIT("grpc-message"), {status->text.data, status->text.len}};
    status->n = 2;
}

/* out (may be NULL) is sent before it; a head is sent when none was. */
static void send_end(KnH2Stream *st, bool head_sent, KnBuf *out, int code, const char *message)
{
    Status status = {0};
    status_init(&status, code, message);
    KnH2Field fields[N_HEAD_ENCODING + 2];
    size_t n_head = code == KN_GRPC_UNIMPLEMENTED ? N_HEAD_ENCODING : N_HEAD;
    memcpy(fields, head_fields, n_head * sizeof(*fields));
    KnH2Send send = {.head = fields, .n_head = head_sent ? 0 : n_head, .end = true};
    bool only_trailers = !head_sent && (!out || !out->len);
    if (only_trailers) {
        memcpy(fields + n_head, status.fields, status.n * sizeof(*fields));
        send.n_head += status.n;
    } else {
        send.body = out;
        send.trailers = status.fields;
        send.n_trailers = status.n;
    }
    kn_h2_stream_send(st, &send);
    kn_buf_done(&status.text);
}

static void refuse(KnH2Stream *st, int code, const char *message)
{
    send_end(st, false, NULL, code, message);
}

static void refuse_http(KnH2Stream *st, const char *status)
{
    KnH2Field head = {KN_STR_LIT(":status"), kn_str(status)};
    kn_h2_stream_send(st, &(KnH2Send){.head = &head, .n_head = 1, .end = true});
}

/* ---- unary calls ---- */

static void run_unary(Call *call)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, call->srv->opts.max_reply);
    size_t begin = kn_grpc_frame_begin(&out);
    KnErr err = {0};
    int code = call->pub.method->call(call->self, &call->pub, &out, &err);
    if (code == KN_GRPC_OK && out.failed) {
        code = KN_GRPC_RESOURCE_EXHAUSTED;
        kn_err_set(&err, KN_E_NOMEM, "the answer is too large");
    }
    if (code == KN_GRPC_OK) {
        kn_grpc_frame_end(&out, begin);
        send_end(call->pub.stream, false, &out, code, NULL);
    } else {
        refuse(call->pub.stream, code, err.msg);
    }
    if (call->pub.method->ended)
        call->pub.method->ended(call->self, &call->pub);
}

static bool is_late(const Call *call)
{
    return call->deadline_us && kn_clock_mono_us() >= call->deadline_us;
}

static void blocking_job(KnHttpdJob *job)
{
    Call *call = call_of(job);
    KnGrpcServer *srv = call->srv;
    KnH2Stream *st = call->pub.stream;
    if (is_late(call))
        refuse(st, KN_GRPC_DEADLINE_EXCEEDED, "the deadline passed before the call began");
    else if (!kn_h2_stream_is_gone(st))
        run_unary(call);
    (void)kn_h2_stream_unref(st);
    atomic_fetch_sub(&srv->blocking, 1);
}

static void start_blocking(Call *call)
{
    KnGrpcServer *srv = call->srv;
    KnH2Stream *st = call->pub.stream;
    if (atomic_fetch_add(&srv->blocking, 1) >= srv->opts.max_waiting) {
        atomic_fetch_sub(&srv->blocking, 1);
        refuse(st, KN_GRPC_RESOURCE_EXHAUSTED, "too many calls are waiting: try again later");
        return;
    }
    (void)kn_h2_stream_ref(st);
    call->job.run = blocking_job;
    kn_httpd_pool_run(srv->pool, &call->job);
}

/* ---- flows ---- */

/* The lock is held; the caller gives it to the pool without it. */
static Call *queue_flow(Call *call)
{
    call->state = QUEUED;
    call->again = call->drained = false;
    return call;
}

/* The lock is held and the flow has not ended: the caller lets go of the stream. */
static void end_flow(Call *call)
{
    call->state = ENDED;
    *call->prev = call->next;
    if (call->next)
        call->next->prev = call->prev;
    --call->srv->n_flows;
}

static void let_go(Call *call)
{
    kn_buf_done(&call->heard);
    if (call->pub.method->ended)
        call->pub.method->ended(call->self, &call->pub);
    (void)kn_h2_stream_unref(call->pub.stream); /* the call dies with it */
}

/* What a pull has come to: true when the flow goes on. */
static bool settle_flow(Call *call, int code, bool said)
{
    KnGrpcServer *srv = call->srv;
    pthread_mutex_lock(&srv->lock);
    bool gone = kn_h2_stream_is_gone(call->pub.stream);
    bool on = code == KN_GRPC_GO_ON && !gone;
    Call *to_run = NULL;
    if (!on)
        end_flow(call);
    else if (said ? call->drained : call->again)
        to_run = queue_flow(call);
    else
        call->state = said ? SENDING : WAITING;
    pthread_mutex_unlock(&srv->lock);
    if (to_run)
        kn_httpd_pool_run(srv->pool, &to_run->job);
    return on;
}

/* The next message of a dialog, in arena. False: none, and *ret_code says how it goes on. */
static bool next_heard(Call *call, KnArena *arena, KnStr *ret, int *ret_code, KnErr *err)
{
    KnCode rc = KN_E_NOTFOUND;
    pthread_mutex_lock(&call->srv->lock);
    KnBuf *heard = &call->heard;
    KnStr rest = {heard->data, heard->len};
    if (heard->failed)
        rc = kn_err_set(err, KN_E_NOMEM, "more messages than this method takes at once");
    else if (rest.len && (call->heard_all || kn_grpc_frame_is_whole(rest)))
        rc = kn_grpc_frame_next(&rest, ret, err);
    if (rc == KN_OK) {
        ret->ptr = kn_arena_strndup(arena, ret->ptr, ret->len);
        memmove(heard->data, rest.ptr, rest.len);
        heard->len = rest.len;
    }
    bool all = call->heard_all;
    pthread_mutex_unlock(&call->srv->lock);
    if (rc == KN_E_NOTFOUND)
        *ret_code = all ? KN_GRPC_OK : KN_GRPC_GO_ON;
    else if (rc != KN_OK)
        *ret_code = rc == KN_E_UNSUPPORTED ? KN_GRPC_UNIMPLEMENTED
                    : rc == KN_E_NOMEM     ? KN_GRPC_RESOURCE_EXHAUSTED
                                           : KN_GRPC_INTERNAL;
    return rc == KN_OK;
}

static int answer_heard(Call *call, KnBuf *out, KnErr *err)
{
    int code = KN_GRPC_OK;
    while (code == KN_GRPC_OK) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        KnGrpcCall one = call->pub;
        one.arena = arena;
        if (!next_heard(call, arena, &one.message, &code, err))
            return code;
        size_t begin = kn_grpc_frame_begin(out);
        code = one.method->call(call->self, &one, out, err);
        if (code == KN_GRPC_OK)
            kn_grpc_frame_end(out, begin);
        else
            out->len = begin;
    }
    return code;
}

static int pull(Call *call, KnBuf *out, KnErr *err)
{
    if (call->pub.method->kind == KN_GRPC_DIALOG)
        return answer_heard(call, out, err);
    return call->pub.method->call(call->self, &call->pub, out, err);
}

static void pull_job(KnHttpdJob *job)
{
    Call *call = call_of(job);
    KnH2Stream *st = kn_h2_stream_ref(call->pub.stream); /* the flow's own may go meanwhile */
    KN_BUF_AUTO out;
    kn_buf_init(&out, call->srv->opts.max_reply);
    KnErr err = {0};
    int code = KN_GRPC_CANCELLED;
    /* Looked at before the call: what a method says of the end is said before the end. */
    bool last = atomic_load(&call->srv->shut);
    if (!kn_h2_stream_is_gone(st))
        code = pull(call, &out, &err);
    if (code == KN_GRPC_GO_ON && last) {
        code = KN_GRPC_UNAVAILABLE;
        kn_err_set(&err, KN_E_CANCELLED, "the server is shutting down");
    }
    bool said = out.len > 0, first = !call->head_sent;
    call->head_sent = true;
    /* Before the state changes: after that another worker may send. */
    if (code == KN_GRPC_GO_ON && (said || first))
        kn_h2_stream_send(
            st, &(KnH2Send){.head = head_fields, .n_head = first ? N_HEAD : 0, .body = &out});
    else if (code != KN_GRPC_GO_ON)
        send_end(st, !first, &out, code, err.msg);
    if (!settle_flow(call, code, said))
        let_go(call);
    (void)kn_h2_stream_unref(st);
}

static void start_flow(Call *call)
{
    KnGrpcServer *srv = call->srv;
    KnH2Stream *st = call->pub.stream;
    pthread_mutex_lock(&srv->lock);
    bool room = srv->n_flows < srv->opts.max_flows;
    if (room) {
        ++srv->n_flows;
        call->next = srv->flows;
        call->prev = &srv->flows;
        if (call->next)
            call->next->prev = &call->next;
        srv->flows = call;
        kn_h2_stream_set_user(st, call);
        (void)kn_h2_stream_ref(st);
        call->job.run = pull_job;
    }
    pthread_mutex_unlock(&srv->lock);
    if (room)
        kn_httpd_pool_run(srv->pool, &call->job);
    else
        refuse(st, KN_GRPC_RESOURCE_EXHAUSTED, "too many streams are open: close some");
}

/* ---- what HTTP/2 tells us ---- */

static const KnGrpcMethod *find_method(const KnGrpcServer *srv, KnStr path, void **ret_self)
{
    for (size_t i = 0; i < srv->opts.n_services; ++i) {
        const KnGrpcService *service = &srv->services[i];
        for (size_t k = 0; k < service->n_methods; ++k) {
            if (!kn_str_eq(kn_str(service->methods[k].path), path))
                continue;
            *ret_self = service->self;
            return &service->methods[k];
        }
    }
    return NULL;
}

/* Whether it is gRPC at all: if not, the answer is one of HTTP. */
static bool check_http(KnH2Stream *st, const KnH2Request *req)
{
    KnStr type = kn_h2_stream_field(st, "content-type");
    KnStr grpc = KN_STR_LIT("application/grpc");
    bool is_grpc = kn_str_starts_with(type, grpc) &&
                   (type.len == grpc.len || strchr("+;", type.ptr[grpc.len]));
    bool is_post = kn_str_eq(req->method, KN_STR_LIT("POST"));
    if (!is_post)
        refuse_http(st, "405");
    else if (!is_grpc)
        refuse_http(st, "415");
    return is_post && is_grpc;
}

static bool check_call(KnGrpcServer *srv, KnH2Stream *st, const KnH2Request *req)
{
    KnStr encoding = kn_h2_stream_field(st, "grpc-encoding");
    if (atomic_load(&srv->shut))
        refuse(st, KN_GRPC_UNAVAILABLE, "the server is shutting down");
    else if (req->too_large)
        refuse(st, KN_GRPC_RESOURCE_EXHAUSTED, "the message is larger than this server takes");
    else if (encoding.ptr && !kn_str_eq(encoding, KN_STR_LIT("identity")))
        refuse(st, KN_GRPC_UNIMPLEMENTED, "messages are taken uncompressed only");
    else
        return true;
    return false;
}

static bool take_message(KnH2Stream *st, const KnH2Request *req, KnStr *ret)
{
    KnErr err = {0};
    KnStr rest = req->body;
    KnCode rc = kn_grpc_frame_next(&rest, ret, &err);
    if (rc == KN_OK && rest.len)
        rc = kn_err_set(&err, KN_E_CORRUPT, "this method takes one message, more were sent");
    if (rc != KN_OK)
        refuse(st, rc == KN_E_UNSUPPORTED ? KN_GRPC_UNIMPLEMENTED : KN_GRPC_INTERNAL, err.msg);
    return rc == KN_OK;
}

static int64_t deadline_of(const KnH2Stream *st)
{
    int64_t timeout_us;
    KnStr timeout = kn_h2_stream_field(st, "grpc-timeout");
    return kn_grpc_timeout_parse(timeout, &timeout_us) ? kn_clock_mono_us() + timeout_us : 0;
}

static Call *make_call(KnGrpcServer *srv, KnH2Stream *st, const KnGrpcMethod *method, void *self)
{
    KnArena *arena = kn_h2_stream_arena(st);
    Call *call = kn_arena_zalloc(arena, sizeof(*call));
    call->pub = (KnGrpcCall){
        .arena = arena, .method = method, .peer = kn_h2_stream_request(st)->peer, .stream = st};
    call->srv = srv;
    call->self = self;
    call->deadline_us = deadline_of(st);
    return call;
}

static void on_request(void *self, KnH2Stream *st)
{
    KnGrpcServer *srv = self;
    const KnH2Request *req = kn_h2_stream_request(st);
    KnStr message;
    if (!check_http(st, req) || !check_call(srv, st, req))
        return;
    void *method_self = NULL;
    const KnGrpcMethod *method = find_method(srv, req->path, &method_self);
    if (!method) {
        refuse(st, KN_GRPC_UNIMPLEMENTED, "there is no such method here");
        return;
    }
    if (!take_message(st, req, &message))
        return;
    Call *call = make_call(srv, st, method, method_self);
    call->pub.message = message;
    if (method->kind == KN_GRPC_QUICK)
        run_unary(call);
    else if (method->kind == KN_GRPC_BLOCKING)
        start_blocking(call);
    else
        start_flow(call);
}

static bool on_begin(void *self, KnH2Stream *st)
{
    KnGrpcServer *srv = self;
    const KnH2Request *req = kn_h2_stream_request(st);
    void *method_self = NULL;
    const KnGrpcMethod *method = find_method(srv, req->path, &method_self);
    if (!method || method->kind != KN_GRPC_DIALOG)
        return false;
    if (!check_http(st, req) || !check_call(srv, st, req))
        return true;
    Call *call = make_call(srv, st, method, method_self);
    kn_buf_init(&call->heard, MAX_HEARD);
    start_flow(call);
    return true;
}

static void on_part(void *self, KnH2Stream *st, KnStr bytes, bool last)
{
    KnGrpcServer *srv = self;
    Call *call = kn_h2_stream_user(st);
    Call *to_run = NULL;
    if (!call)
        return;
    pthread_mutex_lock(&srv->lock);
    if (call->state != ENDED) {
        kn_buf_str(&call->heard, bytes);
        call->heard_all = last;
    }
    if (call->state == WAITING)
        to_run = queue_flow(call);
    else if (call->state == QUEUED)
        call->again = true;
    pthread_mutex_unlock(&srv->lock);
    if (to_run)
        kn_httpd_pool_run(srv->pool, &to_run->job);
}

static void on_drained(void *self, KnH2Stream *st)
{
    KnGrpcServer *srv = self;
    Call *call = kn_h2_stream_user(st);
    if (!call)
        return;
    pthread_mutex_lock(&srv->lock);
    Call *to_run = NULL;
    if (call->state == SENDING)
        to_run = queue_flow(call);
    else if (call->state == QUEUED)
        call->drained = true;
    pthread_mutex_unlock(&srv->lock);
    if (to_run)
        kn_httpd_pool_run(srv->pool, &to_run->job);
}

static void on_closed(void *self, KnH2Stream *st)
{
    KnGrpcServer *srv = self;
    Call *call = kn_h2_stream_user(st);
    if (!call)
        return;
    pthread_mutex_lock(&srv->lock);
    bool mine = call->state == SENDING || call->state == WAITING;
    if (mine)
        end_flow(call);
    pthread_mutex_unlock(&srv->lock);
    if (mine)
        let_go(call);
}

const KnH2Handler kn_grpc_handler = {on_request, on_drained, on_closed, on_begin, on_part};

/* ---- the server ---- */

KnGrpcServer *kn_grpc_server_new(const KnGrpcOptions *opts)
{
    KnGrpcServer *srv = calloc(1, sizeof(*srv));
    if (!srv)
        abort();
    srv->opts = *opts;
    KnGrpcOptions *own = &srv->opts;
    own->workers = own->workers ? own->workers : 64;
    own->max_waiting = own->max_waiting ? own->max_waiting : 1024;
    own->max_flows = own->max_flows ? own->max_flows : 256;
    own->max_reply = own->max_reply ? own->max_reply : (size_t)256 << 20;
    srv->services = calloc(own->n_services ? own->n_services : 1, sizeof(*srv->services));
    if (!srv->services)
        abort();
    memcpy(srv->services, opts->services, own->n_services * sizeof(*srv->services));
    pthread_mutex_init(&srv->lock, NULL);
    srv->pool = kn_httpd_pool_new(own->workers);
    return srv;
}

KnCode kn_grpc_server_listen(KnGrpcServer *srv, KnListen *listening, KnErr *err)
{
    return kn_h2_server_open(listening, &srv->opts.http, &kn_grpc_handler, srv, &srv->http, err);
}

void kn_grpc_server_wake(KnGrpcServer *srv)
{
    Call *to_run = NULL;
    pthread_mutex_lock(&srv->lock);
    for (Call *call = srv->flows; call; call = call->next) {
        if (call->state == WAITING) {
            queue_flow(call)->to_run = to_run;
            to_run = call;
        } else if (call->state == QUEUED) {
            call->again = true;
        }
    }
    pthread_mutex_unlock(&srv->lock);
    for (Call *next; to_run; to_run = next) { /* only its job ends a flow that is QUEUED */
        next = to_run->to_run;
        kn_httpd_pool_run(srv->pool, &to_run->job);
    }
}

void kn_grpc_server_shut(KnGrpcServer *srv)
{
    atomic_store(&srv->shut, true);
    kn_grpc_server_wake(srv);
    if (srv->http)
        kn_h2_server_shut(srv->http);
}

bool kn_grpc_server_close(KnGrpcServer *srv, int64_t grace_us)
{
    if (!srv)
        return true;
    kn_grpc_server_shut(srv);
    bool all = kn_h2_server_close(srv->http, grace_us);
    srv->pool = kn_httpd_pool_free(srv->pool);
    pthread_mutex_destroy(&srv->lock);
    free(srv->services);
    free(srv);
    return all;
}
