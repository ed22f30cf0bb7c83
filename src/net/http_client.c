/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client.c - the client: lanes of connections, and the loop that drives requests.
 *
 * A lane is a curl multi handle with its own kept connections. A call takes a lane from the top of
 * a stack (the one used last: its connections are warm), drives its requests on the caller's thread
 * and puts the lane back. So there is no thread of our own, no hand-over, and no lock is held while
 * bytes move; the stack grows to as many lanes as there ever were calls at a time.
 *
 * The loop waits in poll() for sockets, curl's timers, the nearest stall and the caller's
 * cancel_fd. Transfers that stall or are cancelled are taken out of the multi handle, which closes
 * their connection.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "net/http_internal.h"

enum {
    MAX_IDLE = 16, /* connections that a lane keeps */
    MAX_WAIT_MS = 1000,
};

typedef struct Lane {
    CURLM *multi;
    KN_VEC(CURL *) idle; /* easy handles for later */
} Lane;

struct KnHttpClient {
    KnHttpClientOptions options;
    pthread_mutex_t mutex;
    KN_VEC(Lane *) lanes; /* free ones */
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort();
}

static Lane *lane_free(Lane *lane)
{
    kn_vec_foreach (&lane->idle, easy)
        curl_easy_cleanup(*easy);
    kn_vec_done(&lane->idle);
    (void)curl_multi_cleanup(lane->multi);
    free(lane);
    return NULL;
}

static Lane *lane_new(void)
{
    Lane *lane = calloc(1, sizeof(*lane));
    if (!lane || !(lane->multi = curl_multi_init()))
        abort();
    (void)curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, (long)MAX_IDLE);
    return lane;
}

static Lane *lane_take(KnHttpClient *client)
{
    Lane *lane = NULL;
    (void)pthread_mutex_lock(&client->mutex);
    if (client->lanes.len)
        lane = client->lanes.items[--client->lanes.len];
    (void)pthread_mutex_unlock(&client->mutex);
    return lane ? lane : lane_new();
}

static void lane_put(KnHttpClient *client, Lane *lane)
{
    (void)pthread_mutex_lock(&client->mutex);
    *kn_vec_push(&client->lanes) = lane;
    (void)pthread_mutex_unlock(&client->mutex);
}

/* ---- driving ---------------------------------------------------------------------------- */

typedef struct Drive {
    KnHttpClient *client;
    Lane *lane;
    KnHttpCall *calls;
    KnHttpTransfer *transfers; /* one each */
    size_t n;
    size_t next;    /* the first that is not started */
    size_t running; /* started, not ended */
    int parallel;
} Drive;

static void transfer_finish(Drive *drive, KnHttpTransfer *transfer, CURLcode result)
{
    kn_http_transfer_end(transfer, result);
    (void)curl_multi_remove_handle(drive->lane->multi, transfer->easy);
    *kn_vec_push(&drive->lane->idle) = transfer->easy;
    transfer->easy = NULL;
    --drive->running;
}

static void start_one(Drive *drive, size_t i)
{
    KnHttpTransfer *transfer = &drive->transfers[i];
    KnHttpCall *call = &drive->calls[i];
    Lane *lane = drive->lane;
    *transfer = (KnHttpTransfer){.call = call, .options = &drive->client->options};
    transfer->easy = lane->idle.len ? lane->idle.items[--lane->idle.len] : curl_easy_init();
    if (!transfer->easy)
        abort();
    curl_easy_reset(transfer->easy);
    ++drive->running;
    call->code = KN_OK;
    transfer->failed = kn_http_transfer_begin(transfer, &call->err);
    if (transfer->failed != KN_OK || curl_multi_add_handle(lane->multi, transfer->easy) != CURLM_OK)
        transfer_finish(drive, transfer, CURLE_FAILED_INIT);
}

static void start_more(Drive *drive)
{
    size_t room = drive->parallel > 0 ? (size_t)drive->parallel : drive->n;
    while (drive->next < drive->n && drive->running < room)
        start_one(drive, drive->next++);
}

static void reap(Drive *drive)
{
    int left;
    for (CURLMsg *msg; (msg = curl_multi_info_read(drive->lane->multi, &left));) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode result = msg->data.result;
        char *transfer = NULL;
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &transfer);
        transfer_finish(drive, (KnHttpTransfer *)(void *)transfer, result);
    }
}

/* Ends what has stalled; returns the wait until the next one may, in milliseconds. */
static int check_stalls(Drive *drive)
{
    int64_t now = kn_clock_mono_us(), least = INT64_MAX;
    for (size_t i = 0; i < drive->next; ++i) {
        KnHttpTransfer *transfer = &drive->transfers[i];
        if (!transfer->easy)
            continue;
        int64_t left = kn_http_transfer_left(transfer, now);
        if (left == 0)
            transfer_finish(drive, transfer, CURLE_OPERATION_TIMEDOUT);
        else if (left < least)
            least = left;
    }
    return least / 1000 < MAX_WAIT_MS ? (int)(least / 1000) + 1 : MAX_WAIT_MS;
}

static void cancel_all(Drive *drive)
{
    for (; drive->next < drive->n; ++drive->next)
        start_one(drive, drive->next);
    for (size_t i = 0; i < drive->n; ++i) {
        KnHttpTransfer *transfer = &drive->transfers[i];
        if (!transfer->easy)
            continue;
        transfer->cancelled = true;
        transfer_finish(drive, transfer, CURLE_ABORTED_BY_CALLBACK);
    }
}

/* One descriptor serves all calls of a drive: the first that has one. */
static int cancel_fd_of(const Drive *drive)
{
    for (size_t i = 0; i < drive->n; ++i)
        if (drive->calls[i].req.cancel_fd)
            return *drive->calls[i].req.cancel_fd;
    return -1;
}

static void drive_run(Drive *drive)
{
    struct curl_waitfd cancel = {.fd = cancel_fd_of(drive), .events = CURL_WAIT_POLLIN};
    unsigned n_fds = cancel.fd >= 0 ? 1 : 0;
    start_more(drive);
    while (drive->running || drive->next < drive->n) {
        int active;
        (void)curl_multi_perform(drive->lane->multi, &active);
        reap(drive);
        start_more(drive);
        int wait_ms = check_stalls(drive);
        if (!drive->running)
            continue;
        cancel.revents = 0;
        (void)curl_multi_poll(drive->lane->multi, n_fds ? &cancel : NULL, n_fds, wait_ms, NULL);
        if (cancel.revents)
            cancel_all(drive);
    }
}

void kn_http_perform_all(KnHttpClient *client, KnHttpCall *calls, size_t n, int parallel)
{
    if (n == 0)
        return;
    KnHttpTransfer one = {0};
    KnHttpTransfer *transfers = n == 1 ? &one : calloc(n, sizeof(*transfers));
    if (!transfers)
        abort();
    Drive drive = {.client = client,
                   .lane = lane_take(client),
                   .calls = calls,
                   .transfers = transfers,
                   .n = n,
                   .parallel = parallel};
    drive_run(&drive);
    lane_put(client, drive.lane);
    if (n > 1)
        free(transfers);
}

KnCode kn_http_perform(KnHttpClient *client, const KnHttpRequest *req, KnHttpResponse *ret,
                       KnErr *err)
{
    KnHttpCall call = {.req = *req};
    kn_http_perform_all(client, &call, 1, 1);
    if (call.code != KN_OK) {
        if (err)
            *err = call.err;
        return call.code;
    }
    kn_http_response_done(ret);
    *ret = call.ret;
    return KN_OK;
}

KnCode kn_http_settle(KnCode code, KnErr *err)
{
    return code == KN_E_UNKNOWN ? kn_err_recode(err, KN_E_IO) : code;
}

/* ---- the client ------------------------------------------------------------------------- */

static char *copy(const char *text)
{
    if (!text)
        return NULL;
    char *p = strdup(text);
    if (!p)
        abort();
    return p;
}

static KnCode check_file(const char *path, const char *what, KnErr *err)
{
    if (path && access(path, R_OK) != 0)
        return kn_err_set(err, KN_E_INVAL, "%s '%.300s' is missing or not readable: %s", what, path,
                          kn_errno_text(errno));
    return KN_OK;
}

KnCode kn_http_client_new(const KnHttpClientOptions *options, KnHttpClient **ret, KnErr *err)
{
    const KnHttpClientOptions none = {0}, *from = options ? options : &none;
    KN_TRY(check_file(from->ca_file, "CA file", err));
    KN_TRY(check_file(from->client_cert, "client certificate", err));
    KN_TRY(check_file(from->client_key, "key of the client certificate", err));
    (void)pthread_once(&curl_once, init_curl);
    KnHttpClient *client = calloc(1, sizeof(*client));
    if (!client || pthread_mutex_init(&client->mutex, NULL) != 0)
        abort();
    client->options = *from;
    client->options.ca_file = copy(from->ca_file);
    client->options.client_cert = copy(from->client_cert);
    client->options.client_key = copy(from->client_key);
    *ret = client;
    return KN_OK;
}

KnHttpClient *kn_http_client_free(KnHttpClient *client)
{
    if (!client)
        return NULL;
    for (size_t i = 0; i < client->lanes.len; i++)
        (void)lane_free(client->lanes.items[i]);
    kn_vec_done(&client->lanes);
    free((char *)client->options.ca_file);
    free((char *)client->options.client_cert);
    free((char *)client->options.client_key);
    (void)pthread_mutex_destroy(&client->mutex);
    free(client);
    return NULL;
}
