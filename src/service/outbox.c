/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c - see outbox.h. One lock guards the ring; sending happens outside of it. */
#include "service/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/http_client.h"
#include "net/url.h"

enum { RING = 1024, TRIES = 3, CLOSE_US = 5000000, ANSWER_MS = 5000 };

struct KnOutbox {
    char *name, *to, *auth; /* auth: "Bearer ..." or NULL */
    int fd;                 /* of a file, else -1 */
    KnHttpClient *client;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *ring[RING];
    size_t head, len;
    bool closing;
    int64_t give_up_at; /* once closing */
    KnMetric *sent, *lost;
};

static KnCode write_line(KnOutbox *box, const char *body, KnErr *err)
{
    KN_BUF_AUTO line;
    kn_buf_init(&line, (size_t)64 << 20);
    kn_buf_printf(&line, "%s\n", body);
    KN_TRY(kn_buf_check(&line, err));
    /* One write, so that lines of several processes do not mix. */
    if (write(box->fd, line.data, line.len) != (ssize_t)line.len)
        return kn_err_set(err, KN_E_IO, "%s: %s", box->to, kn_errno_text(errno));
    return KN_OK;
}

static KnCode post(KnOutbox *box, const char *body, KnErr *err)
{
    KN_HTTP_RESPONSE_AUTO rsp = {0};
    KnHttpHeader headers[2] = {{"Content-Type", "application/json"}, {"Authorization", box->auth}};
    const KnHttpRequest req = {.method = "POST",
                               .url = box->to,
                               .headers = headers,
                               .n_headers = box->auth ? 2 : 1,
                               .body = kn_str(body),
                               .connect_ms = ANSWER_MS,
                               .total_ms = ANSWER_MS};
    KN_TRY(kn_http_perform(box->client, &req, &rsp, err));
    if (rsp.status / 100 == 2)
        return KN_OK;
    return kn_err_set(err, rsp.status / 100 == 5 ? KN_E_IO : KN_E_INVAL, "%s answered %d", box->to,
                      rsp.status);
}

static void deliver(KnOutbox *box, const char *body)
{
    KnErr err = {0};
    KnCode rc = KN_E_IO;
    for (int i = 0; i < TRIES && rc != KN_OK && rc != KN_E_INVAL; i++)
        rc = box->fd >= 0 ? write_line(box, body, &err) : post(box, body, &err);
    kn_metric_add(rc == KN_OK ? box->sent : box->lost, 1);
    if (rc != KN_OK)
        kn_log(KN_LOG_WARN, "cdc", "event-lost", KN_F("to", box->name), KN_F("error", err.msg));
}

static void *sender_main(void *arg)
{
    KnOutbox *box = arg;
    (void)pthread_mutex_lock(&box->lock);
    for (;;) {
        while (!box->len && !box->closing)
            (void)pthread_cond_wait(&box->changed, &box->lock);
        if (!box->len || (box->closing && kn_clock_mono_us() > box->give_up_at))
            break;
        char *body = box->ring[box->head];
        box->head = (box->head + 1) % RING;
        box->len--;
        (void)pthread_mutex_unlock(&box->lock);
        deliver(box, body);
        free(body);
        (void)pthread_mutex_lock(&box->lock);
    }
    (void)pthread_mutex_unlock(&box->lock);
    return NULL;
}

void kn_outbox_send(KnOutbox *box, KnStr body)
{
    if (!box)
        return;
    char *copy = strndup(body.ptr, body.len);
    if (!copy)
        abort();
    (void)pthread_mutex_lock(&box->lock);
    bool fits = box->len < RING;
    if (fits)
        box->ring[(box->head + box->len++) % RING] = copy;
    (void)pthread_cond_signal(&box->changed);
    (void)pthread_mutex_unlock(&box->lock);
    if (fits)
        return;
    free(copy);
    kn_metric_add(box->lost, 1);
}

static KnMetric *metric_of(const char *name, const char *outcome)
{
    KN_BUF_AUTO labels;
    kn_buf_init(&labels, 1024);
    kn_metric_label(&labels, "to", kn_str(name));
    kn_metric_label(&labels, "outcome", kn_str(outcome));
    return kn_metric_get(KN_METRIC_COUNTER, "knut_events_total", labels.data,
                         "Events for others, by what became of them");
}

static char *copy_text(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        abort();
    return copy;
}

static KnCode open_place(KnOutbox *box, const KnOutboxOptions *opts, KnErr *err)
{
    KnUrl url;
    const char *token = opts->token_env ? getenv(opts->token_env) : NULL;
    if (!strncmp(opts->to, "file:", 5)) {
        box->fd = open(opts->to + 5, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        return box->fd >= 0 ? KN_OK
                            : kn_err_set(err, KN_E_IO, "%s: %s: %s", opts->name, opts->to,
                                         kn_errno_text(errno));
    }
    KnCode rc = kn_url_parse(kn_str(opts->to), &url, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s (an address, or file:PATH)", opts->name);
    if (token && *token && asprintf(&box->auth, "Bearer %s", token) < 0)
        abort();
    return kn_http_client_new(&(KnHttpClientOptions){0}, &box->client, err);
}

KnCode kn_outbox_open(const KnOutboxOptions *opts, KnOutbox **ret, KnErr *err)
{
    KnOutbox *box = calloc(1, sizeof(*box));
    if (!box)
        abort();
    box->fd = -1;
    box->name = copy_text(opts->name);
    box->to = copy_text(opts->to);
    box->sent = metric_of(opts->name, "sent");
    box->lost = metric_of(opts->name, "lost");
    (void)pthread_mutex_init(&box->lock, NULL);
    (void)pthread_cond_init(&box->changed, NULL);
    KnCode rc = open_place(box, opts, err);
    if (rc == KN_OK) {
        box->started = pthread_create(&box->thread, NULL, sender_main, box) == 0;
        if (!box->started)
            rc = kn_err_set(err, KN_E_NOMEM, "a thread cannot be started");
    }
    if (rc != KN_OK) {
        box = kn_outbox_close(box);
        return rc;
    }
    *ret = box;
    return KN_OK;
}

KnOutbox *kn_outbox_close(KnOutbox *box)
{
    if (!box)
        return NULL;
    (void)pthread_mutex_lock(&box->lock);
    box->closing = true;
    box->give_up_at = kn_clock_mono_us() + CLOSE_US;
    (void)pthread_cond_signal(&box->changed);
    (void)pthread_mutex_unlock(&box->lock);
    if (box->started)
        (void)pthread_join(box->thread, NULL);
    for (size_t i = 0; i < box->len; i++)
        free(box->ring[(box->head + i) % RING]);
    if (box->fd >= 0)
        (void)close(box->fd);
    box->client = kn_http_client_free(box->client);
    (void)pthread_cond_destroy(&box->changed);
    (void)pthread_mutex_destroy(&box->lock);
    free(box->name);
    free(box->to);
    free(box->auth);
    free(box);
    return NULL;
}
