/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_stream.c - one request and its answer.
 *
 * A stream has two kinds of owners: its session, until nghttp2 closes it, and whoever answers. What
 * is sent becomes a post: one block with copies of the fields and the body's bytes. On the loop's
 * own thread a post is applied at once, from elsewhere it goes through the loop's mail. Bytes in
 * and out are counted against the server's budget while they are held, so that neither many large
 * requests nor a client that does not read can make memory run out.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http2_internal.h"

struct KnH2Post {
    KnH2Post *next;
    KnH2Stream *st; /* a reference */
    char *body;
    size_t len;
    bool end;
    size_t n_head, n_trailers;
    nghttp2_nv fields[]; /* the head, the trailers; then their text */
};

static size_t fields_size(const KnH2Field *fields, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; ++i)
        size += fields[i].name.len + fields[i].value.len;
    return size;
}

static uint8_t *copy_text(uint8_t **at, KnStr text)
{
    uint8_t *copy = *at;
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static void copy_fields(nghttp2_nv *to, const KnH2Field *fields, size_t n, uint8_t **at)
{
    for (size_t i = 0; i < n; ++i) {
        to[i] = (nghttp2_nv){.namelen = fields[i].name.len, .valuelen = fields[i].value.len};
        to[i].name = copy_text(at, fields[i].name);
        to[i].value = copy_text(at, fields[i].value);
    }
}

static KnH2Post *post_new(KnH2Stream *st, const KnH2Send *send)
{
    size_t n = send->n_head + send->n_trailers;
    size_t text =
        fields_size(send->head, send->n_head) + fields_size(send->trailers, send->n_trailers);
    KnH2Post *post = malloc(sizeof(*post) + n * sizeof(nghttp2_nv) + text);
    if (!post)
        abort();
    *post = (KnH2Post){.st = kn_h2_stream_ref(st),
                       .end = send->end,
                       .n_head = send->n_head,
                       .n_trailers = send->n_trailers};
    if (send->body && send->body->len)
        post->body = kn_buf_steal(send->body, &post->len);
    uint8_t *at = (uint8_t *)(post->fields + n);
    copy_fields(post->fields, send->head, send->n_head, &at);
    copy_fields(post->fields + send->n_head, send->trailers, send->n_trailers, &at);
    return post;
}

static void post_free(KnH2Post *post)
{
    if (!post)
        return;
    KnH2Stream *st = post->st;
    free(post->body);
    free(post);
    (void)kn_h2_stream_unref(st);
}

/* ---- mail ---- */

KnCode kn_h2_mail_open(KnH2Mail **ret, KnErr *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "no more descriptors for the HTTP/2 server");
    KnH2Mail *mail = calloc(1, sizeof(*mail));
    if (!mail)
        abort();
    mail->refs = 1;
    mail->fd = fd;
    mail->owner = pthread_self();
    pthread_mutex_init(&mail->lock, NULL);
    *ret = mail;
    return KN_OK;
}

static void mail_unref(KnH2Mail *mail)
{
    if (atomic_fetch_sub(&mail->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&mail->lock);
    close(mail->fd);
    free(mail);
}

static KnH2Post *mail_take(KnH2Mail *mail)
{
    pthread_mutex_lock(&mail->lock);
    KnH2Post *first = mail->first;
    mail->first = mail->last = NULL;
    pthread_mutex_unlock(&mail->lock);
    return first;
}

void kn_h2_mail_close(KnH2Mail *mail)
{
    if (!mail)
        return;
    pthread_mutex_lock(&mail->lock);
    mail->closed = true;
    pthread_mutex_unlock(&mail->lock);
    for (KnH2Post *post = mail_take(mail), *next; post; post = next) {
        next = post->next;
        post_free(post);
    }
    mail_unref(mail);
}

void kn_h2_mail_wake(KnH2Mail *mail)
{
    uint64_t one = 1;
    /* Fails only when the counter is full, and then the loop wakes anyway. */
    (void)!write(mail->fd, &one, sizeof(one));
}

/* False: nobody will take it. */
static bool mail_put(KnH2Mail *mail, KnH2Post *post)
{
    pthread_mutex_lock(&mail->lock);
    bool open = !mail->closed;
    if (open && !mail->first) {
        mail->first = post;
        kn_h2_mail_wake(mail);
    } else if (open) {
        mail->last->next = post;
    }
    if (open)
        mail->last = post;
    pthread_mutex_unlock(&mail->lock);
    return open;
}

/* ---- applying what is sent ---- */

static void queue_body(KnH2Stream *st, KnH2Post *post)
{
    atomic_fetch_add(&st->session->shared->held, post->len);
    *st->out_tail = post;
    st->out_tail = &post->next;
}

static int submit_head(KnH2Stream *st, const KnH2Post *post)
{
    nghttp2_data_provider provider = {.source.ptr = st, .read_callback = kn_h2_stream_read};
    bool bare = post->end && !post->len && !post->n_trailers;
    st->head_sent = true;
    return nghttp2_submit_response(st->session->ng, st->id, post->fields, post->n_head,
                                   bare ? NULL : &provider);
}

static void reset(KnH2Stream *st, uint32_t code)
{
    (void)nghttp2_submit_rst_stream(st->session->ng, NGHTTP2_FLAG_NONE, st->id, code);
}

/* An answer without a body has its only fields in the one HEADERS frame ("trailers only"). */
static void apply_post(KnH2Post *post)
{
    KnH2Stream *st = post->st;
    post->next = NULL;
    KnH2Session *ses = st->session;
    if (!ses || st->ended || (!st->head_sent && !post->n_head)) {
        post_free(post);
        return;
    }
    if (atomic_load(&ses->shared->held) + post->len > ses->shared->opts.max_held) {
        reset(st, NGHTTP2_ENHANCE_YOUR_CALM);
        post_free(post);
        return;
    }
    int rc = post->n_head && !st->head_sent ? submit_head(st, post) : 0;
    st->ended = post->end;
    if (post->end)
        st->final = post;
    if (post->len)
        queue_body(st, post);
    if (rc == 0)
        (void)nghttp2_session_resume_data(ses->ng, st->id);
    else
        reset(st, NGHTTP2_INTERNAL_ERROR);
    if (!post->len && !post->end)
        post_free(post);
}

void kn_h2_mail_deliver(KnH2Mail *mail)
{
    uint64_t count;
    (void)!read(mail->fd, &count, sizeof(count));
    for (KnH2Post *post = mail_take(mail), *next; post; post = next) {
        next = post->next;
        KnH2Session *ses = post->st->session;
        apply_post(post);
        if (ses && ses->wake)
            ses->wake(ses->wake_arg);
    }
}

void kn_h2_stream_send(KnH2Stream *st, const KnH2Send *send)
{
    if (atomic_load(&st->gone)) {
        if (send->body)
            kn_buf_reset(send->body);
        return;
    }
    KnH2Post *post = post_new(st, send);
    if (pthread_equal(pthread_self(), st->mail->owner))
        apply_post(post);
    else if (!mail_put(st->mail, post))
        post_free(post);
}

/* ---- what nghttp2 fetches ---- */

static void pop_sent(KnH2Stream *st)
{
    KnH2Post *post = st->out;
    atomic_fetch_sub(&st->session->shared->held, post->len);
    st->out = post->next;
    if (!st->out)
        st->out_tail = &st->out;
    st->out_at = 0;
    if (post != st->final)
        post_free(post);
}

static size_t copy_queued(KnH2Stream *st, uint8_t *buf, size_t len)
{
    size_t n = 0;
    while (st->out && n < len) {
        size_t left = st->out->len - st->out_at;
        size_t part = left < len - n ? left : len - n;
        memcpy(buf + n, st->out->body + st->out_at, part);
        n += part;
        st->out_at += part;
        if (part == left)
            pop_sent(st);
    }
    return n;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2's signature */
ssize_t kn_h2_stream_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t len,
                          uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)arg;
    KnH2Stream *st = source->ptr;
    size_t n = copy_queued(st, buf, len);
    if (st->out)
        return (ssize_t)n;
    if (!st->ended) {
        st->hungry = true;
        return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    const KnH2Post *final = st->final;
    if (final->n_trailers) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(ng, id, final->fields + final->n_head, final->n_trailers) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

/* ---- what comes in ---- */

KnH2Stream *kn_h2_stream_new(KnH2Session *ses, int32_t id)
{
    KnH2Stream *st = calloc(1, sizeof(*st));
    if (!st)
        abort();
    st->refs = 1;
    st->mail = ses->mail;
    atomic_fetch_add(&st->mail->refs, 1);
    st->session = ses;
    st->id = id;
    st->since_us = kn_clock_mono_us();
    st->arena = kn_arena_new(0);
    st->out_tail = &st->out;
    kn_buf_init(&st->body, ses->shared->opts.max_body);
    st->req.peer = kn_arena_strdup(st->arena, ses->peer);
    st->next = ses->streams;
    st->prev = &ses->streams;
    if (st->next)
        st->next->prev = &st->next;
    ses->streams = st;
    ++ses->n_streams;
    return st;
}

static void drop_queued(KnH2Stream *st)
{
    while (st->out)
        pop_sent(st);
    KnH2Post *final = st->final;
    st->final = NULL;
    post_free(final);
}

void kn_h2_stream_detach(KnH2Stream *st)
{
    KnH2Session *ses = st->session;
    KnH2Shared *shared = ses->shared;
    drop_queued(st);
    atomic_fetch_sub(&shared->held, st->body_held);
    *st->prev = st->next;
    if (st->next)
        st->next->prev = st->prev;
    --ses->n_streams;
    st->session = NULL;
    atomic_store(&st->gone, true);
    if (st->seen)
        shared->handler->closed(shared->self, st);
    (void)kn_h2_stream_unref(st);
}

#define MAX_FIELDS 100

void kn_h2_stream_add_field(KnH2Stream *st, KnStr name, KnStr value)
{
    const KnH2Options *opts = &st->session->shared->opts;
    st->fields_bytes += name.len + value.len + 32; /* RFC 9113 6.5.2 counts so */
    if (st->fields_bytes > opts->max_fields || st->fields.len >= MAX_FIELDS)
        st->fields_too_large = true;
    if (st->fields_too_large)
        return;
    KnStr kept = {kn_arena_strndup(st->arena, value.ptr, value.len), value.len};
    if (kn_str_eq(name, KN_STR_LIT(":method")))
        st->req.method = kept;
    else if (kn_str_eq(name, KN_STR_LIT(":path")))
        st->req.path = kept;
    else if (kn_str_eq(name, KN_STR_LIT(":authority")))
        st->req.authority = kept;
    else if (name.len && name.ptr[0] != ':')
        *kn_vec_push(&st->fields) =
            (KnH2Field){{kn_arena_strndup(st->arena, name.ptr, name.len), name.len}, kept};
}

static void refuse_body(KnH2Stream *st)
{
    kn_buf_done(&st->body);
    st->req.too_large = true;
    st->cut = true; /* nothing but the answer comes: RFC 9113 8.1 */
    kn_h2_stream_dispatch(st);
}

void kn_h2_stream_add_body(KnH2Stream *st, const uint8_t *bytes, size_t len)
{
    KnH2Shared *shared = st->session->shared;
    if (st->in_parts && !st->ended)
        shared->handler->part(shared->self, st, (KnStr){(const char *)bytes, len}, false);
    if (st->seen || st->ended)
        return;
    st->body_held += len;
    size_t held = atomic_fetch_add(&shared->held, len) + len;
    if (held <= shared->opts.max_held)
        kn_buf_append(&st->body, bytes, len);
    else
        st->body.failed = true;
    if (st->body.failed)
        refuse_body(st);
}

static void answer_status(KnH2Stream *st, const char *status)
{
    KnH2Field head = {KN_STR_LIT(":status"), kn_str(status)};
    kn_h2_stream_send(st, &(KnH2Send){.head = &head, .n_head = 1, .end = true});
}

void kn_h2_stream_begin(KnH2Stream *st)
{
    KnH2Shared *shared = st->session->shared;
    if (!shared->handler->begin || st->fields_too_large)
        return;
    st->req.fields = st->fields.items;
    st->req.n_fields = st->fields.len;
    st->in_parts = shared->handler->begin(shared->self, st);
    st->seen = st->in_parts;
}

void kn_h2_stream_dispatch(KnH2Stream *st)
{
    KnH2Shared *shared = st->session->shared;
    if (st->in_parts && !st->ended)
        shared->handler->part(shared->self, st, (KnStr){0}, true);
    if (st->seen || st->ended)
        return;
    if (st->fields_too_large) {
        answer_status(st, "431");
        return;
    }
    st->seen = true;
    st->req.fields = st->fields.items;
    st->req.n_fields = st->fields.len;
    st->req.body = (KnStr){st->body.data, st->body.len};
    shared->handler->request(shared->self, st);
}

/* ---- for handlers ---- */

const KnH2Request *kn_h2_stream_request(const KnH2Stream *st)
{
    return &st->req;
}

KnStr kn_h2_stream_field(const KnH2Stream *st, const char *name)
{
    KnStr wanted = kn_str(name);
    for (size_t i = 0; i < st->req.n_fields; ++i)
        if (kn_str_eq(st->req.fields[i].name, wanted))
            return st->req.fields[i].value;
    return (KnStr){0};
}

KnArena *kn_h2_stream_arena(KnH2Stream *st)
{
    return st->arena;
}

void kn_h2_stream_set_user(KnH2Stream *st, void *user)
{
    st->user = user;
}

void *kn_h2_stream_user(const KnH2Stream *st)
{
    return st->user;
}

KnH2Stream *kn_h2_stream_ref(KnH2Stream *st)
{
    atomic_fetch_add(&st->refs, 1);
    return st;
}

KnH2Stream *kn_h2_stream_unref(KnH2Stream *st)
{
    if (!st || atomic_fetch_sub(&st->refs, 1) > 1)
        return NULL;
    kn_buf_done(&st->body);
    kn_vec_done(&st->fields);
    st->arena = kn_arena_free(st->arena);
    mail_unref(st->mail);
    free(st);
    return NULL;
}

bool kn_h2_stream_is_gone(const KnH2Stream *st)
{
    return atomic_load(&st->gone);
}
