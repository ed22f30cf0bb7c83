/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_transfer.c - one request: its easy handle, its callbacks, its outcome.
 *
 * libcurl's own time-outs know seconds and count slowness, not silence; so the clock is ours: every
 * byte in either direction (curl's progress callback counts them) restarts it, and http_client.c
 * ends a transfer whose clock ran out. Until the connection stands, only connect_ms counts.
 *
 * `connected` decides between "nothing happened there" and "the answer is lost": it is set when
 * curl is about to send the request.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "net/http_internal.h"
#include "net/url.h"

static int64_t pick(int64_t mine, int64_t clients, int64_t standard)
{
    return mine ? mine : clients ? clients : standard;
}

/* May it be sent twice? What a GET, PUT or DELETE does is the same after the second time. */
static bool is_repeatable(const KnHttpRequest *req)
{
    return strcmp(req->method, "POST") != 0 && strcmp(req->method, "PATCH") != 0;
}

static int on_connected(void *arg, char *remote, char *local, int remote_port, int local_port)
{
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    KnHttpTransfer *transfer = arg;
    if (transfer->connected && !is_repeatable(&transfer->call->req)) {
        transfer->lost = true;
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->connected = true;
    transfer->moved_us = kn_clock_mono_us();
    return CURL_PREREQFUNC_OK;
}

static int on_progress(void *arg, curl_off_t want_in, curl_off_t in, curl_off_t want_out,
                       curl_off_t out)
{
    (void)want_in, (void)want_out;
    KnHttpTransfer *transfer = arg;
    if (in + out != transfer->bytes) {
        transfer->bytes = in + out;
        transfer->moved_us = kn_clock_mono_us();
    }
    return 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    KnHttpTransfer *transfer = arg;
    KnHttpCall *call = transfer->call;
    transfer->moved_us = kn_clock_mono_us();
    if (kn_http_fields_add(&call->ret.fields, (KnStr){bytes, size * n}))
        return size * n;
    transfer->failed =
        kn_err_set(&call->err, KN_E_NOMEM, "the headers of the answer are more than %d bytes",
                   KN_HTTP_MAX_HEADERS);
    return 0;
}

static long status_of(CURL *easy)
{
    long status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static KnCode take_body(KnHttpTransfer *transfer, const char *bytes, size_t len, KnErr *err)
{
    KnHttpCall *call = transfer->call;
    size_t max = call->ret.body.max;
    if (len > max - transfer->body_len)
        return kn_err_set(err, KN_E_NOMEM, "the answer is larger than the %zu bytes expected", max);
    transfer->body_len += len;
    if (call->req.on_body && status_of(transfer->easy) / 100 == 2)
        return call->req.on_body(call->req.on_body_arg, bytes, len, err);
    kn_buf_append(&call->ret.body, bytes, len);
    return kn_buf_check(&call->ret.body, err);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    KnHttpTransfer *transfer = arg;
    transfer->moved_us = kn_clock_mono_us();
    if (size * n == 0)
        return 0;
    transfer->failed = take_body(transfer, bytes, size * n, &transfer->call->err);
    return transfer->failed == KN_OK ? size * n : 0;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
    KnHttpTransfer *transfer = arg;
    KnHttpCall *call = transfer->call;
    const KnHttpRequest *req = &call->req;
    size_t cap = size * n, got = 0;
    if (req->read_len != UINT64_MAX && cap > req->read_len - transfer->read_off)
        cap = (size_t)(req->read_len - transfer->read_off);
    if (cap == 0)
        return 0;
    transfer->failed = req->read(req->read_arg, transfer->read_off, out, cap, &got, &call->err);
    if (transfer->failed != KN_OK)
        return CURL_READFUNC_ABORT;
    transfer->read_off += got;
    return got;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
    KnHttpTransfer *transfer = arg;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    transfer->read_off = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void set_tls(CURL *easy, const KnHttpClientOptions *options)
{
    if (options->ca_file)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    if (options->client_cert)
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, options->client_cert);
    if (options->client_key)
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, options->client_key);
    long version = options->version == KN_HTTP_2_PRIOR ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                   : options->version == KN_HTTP_2_TLS ? CURL_HTTP_VERSION_2TLS
                                                       : CURL_HTTP_VERSION_1_1;
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
    /* libcurl 7.88 fails with CURLE_HTTP2 on the second request of such a connection without TLS.
     */
    if (options->version == KN_HTTP_2_PRIOR)
        (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
}

static void set_body(KnHttpTransfer *transfer)
{
    CURL *easy = transfer->easy;
    const KnHttpRequest *req = &transfer->call->req;
    if (req->read) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
        if (req->read_len != UINT64_MAX)
            (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->read_len);
    } else if (req->body.len || strcmp(req->method, "PUT") == 0 ||
               strcmp(req->method, "POST") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, req->body.len ? req->body.ptr : "");
    }
    if (strcmp(req->method, "HEAD") == 0)
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
}

static bool has_header(const KnHttpRequest *req, const char *name)
{
    for (size_t i = 0; i < req->n_headers; ++i)
        if (kn_str_eq_nocase(kn_str(req->headers[i].name), kn_str(name)))
            return true;
    return false;
}

static void add_header(KnHttpTransfer *transfer, const char *name, const char *value)
{
    KN_BUF_AUTO line;
    kn_buf_init(&line, KN_HTTP_MAX_HEADERS);
    kn_buf_text(&line, name);
    kn_buf_text(&line, value ? (value[0] ? ": " : ";") : ":"); /* curl: "X;" is empty, "X:" none */
    kn_buf_text(&line, value ? value : "");
    struct curl_slist *more = curl_slist_append(transfer->headers, line.data);
    if (!more)
        abort();
    transfer->headers = more;
}

/* A line break in a name or value would be a header of somebody else's making. */
static KnCode set_headers(KnHttpTransfer *transfer, KnErr *err)
{
    const KnHttpRequest *req = &transfer->call->req;
    for (size_t i = 0; i < req->n_headers; ++i) {
        const KnHttpHeader *header = &req->headers[i];
        if (strpbrk(header->name, "\r\n: ") || strpbrk(header->value, "\r\n"))
            return kn_err_set(err, KN_E_INVAL,
                              "header '%.60s' holds a line break or is no header's name",
                              header->name);
        add_header(transfer, header->name, header->value);
    }
    static const char *const unwanted[] = {"Expect", "Content-Type", "Accept"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); ++i)
        if (!has_header(req, unwanted[i]))
            add_header(transfer, unwanted[i], NULL);
    if (!has_header(req, "User-Agent"))
        add_header(transfer, "User-Agent", "knut/" KN_VERSION_STRING);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    return KN_OK;
}

static void set_times(KnHttpTransfer *transfer)
{
    const KnHttpRequest *req = &transfer->call->req;
    const KnHttpClientOptions *options = transfer->options;
    int64_t stall = pick(req->stall_ms, options->stall_ms, KN_HTTP_STALL_MS);
    transfer->stall_us = stall < 0 ? 0 : stall * 1000;
    transfer->started_us = transfer->moved_us = kn_clock_mono_us();
    int64_t connect = pick(req->connect_ms, options->connect_ms, KN_HTTP_CONNECT_MS);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect);
    int64_t total = pick(req->total_ms, options->total_ms, 0);
    if (total > 0)
        (void)curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)total);
}

static void set_callbacks(KnHttpTransfer *transfer)
{
    CURL *easy = transfer->easy;
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->detail);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    if (transfer->call->req.no_proxy)
        (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (transfer->call->req.accept_gzip)
        (void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

KnCode kn_http_transfer_begin(KnHttpTransfer *transfer, KnErr *err)
{
    KnHttpCall *call = transfer->call;
    KnUrl url;
    KN_TRY(kn_url_parse(kn_str(call->req.url), &url, err));
    call->ret = (KnHttpResponse){0};
    size_t max = call->req.max_response ? call->req.max_response : KN_HTTP_MAX_RESPONSE;
    kn_buf_init(&call->ret.body, max);
    kn_buf_init(&call->ret.fields, KN_HTTP_MAX_HEADERS);
    set_callbacks(transfer);
    set_tls(transfer->easy, transfer->options);
    set_times(transfer);
    set_body(transfer);
    if (curl_easy_setopt(transfer->easy, CURLOPT_URL, call->req.url) != CURLE_OK)
        abort(); /* out of memory */
    return set_headers(transfer, err);
}

int64_t kn_http_transfer_left(KnHttpTransfer *transfer, int64_t now_us)
{
    if (!transfer->connected || !transfer->stall_us)
        return INT64_MAX;
    int64_t left = transfer->moved_us + transfer->stall_us - now_us;
    transfer->stalled = left <= 0;
    return left > 0 ? left : 0;
}

/* ---- outcome ---------------------------------------------------------------------------- */

static const char *advice(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "check the name and this machine's name service";
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "check http_proxy and https_proxy in the environment";
    case CURLE_COULDNT_CONNECT:
        return "check host and port, and that the server runs";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "give the CA that signed its certificate (ca file)";
    case CURLE_SSL_CONNECT_ERROR:
        return "check that this port speaks TLS (https)";
    case CURLE_SSL_CERTPROBLEM:
        return "check the client certificate and its key";
    case CURLE_SSL_CACERT_BADFILE:
        return "check the CA file";
    default:
        return NULL;
    }
}

/* Trying again does not change a certificate. */
static bool is_lasting(CURLcode result)
{
    return result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CERTPROBLEM ||
           result == CURLE_SSL_CACERT_BADFILE || result == CURLE_SSL_CIPHER;
}

static KnCode fail(KnHttpTransfer *transfer, KnCode code, const char *what, const char *more)
{
    KnHttpCall *call = transfer->call;
    KnUrl url;
    if (kn_url_parse(kn_str(call->req.url), &url, &call->err) != KN_OK)
        return KN_E_INVAL;
    KnCode rc =
        kn_err_set(&call->err, code, "%s://" KN_STR_FMT ": %.200s%s%s", url.tls ? "https" : "http",
                   KN_STR_ARG(url.authority), what, more ? "; " : "", more ? more : "");
    call->err.sys_errno = 0;
    call->err.retriable = code == KN_E_IO || code == KN_E_UNKNOWN;
    return rc;
}

static KnCode fail_stalled(KnHttpTransfer *transfer)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "no byte moved for %.1f s (%s)",
                   (double)transfer->stall_us / 1e6,
                   status_of(transfer->easy) ? "in the middle of the answer" : "no answer came");
    return fail(transfer, KN_E_UNKNOWN, text, NULL);
}

static KnCode fail_curl(KnHttpTransfer *transfer, CURLcode result)
{
    KnHttpCall *call = transfer->call;
    const char *text = transfer->detail[0] ? transfer->detail : curl_easy_strerror(result);
    if (result == CURLE_OUT_OF_MEMORY)
        abort();
    KnCode code = transfer->connected ? KN_E_UNKNOWN : KN_E_IO;
    if (!transfer->connected &&
        (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_URL_MALFORMAT))
        code = KN_E_INVAL;
    KnCode rc = fail(transfer, code, text, advice(result));
    if (is_lasting(result))
        call->err.retriable = false;
    return rc;
}

static KnCode outcome(KnHttpTransfer *transfer, CURLcode result)
{
    if (transfer->failed != KN_OK)
        return transfer->failed;
    if (transfer->cancelled)
        return fail(transfer, KN_E_CANCELLED, "given up, as asked", NULL);
    if (transfer->stalled)
        return fail_stalled(transfer);
    if (transfer->lost)
        return fail(transfer, KN_E_UNKNOWN, "the server closed the connection without an answer",
                    NULL);
    return result == CURLE_OK ? KN_OK : fail_curl(transfer, result);
}

static int version_of(CURL *easy)
{
    long version = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    return version == CURL_HTTP_VERSION_1_0 ? 10 : version == CURL_HTTP_VERSION_1_1 ? 11 : 20;
}

void kn_http_transfer_end(KnHttpTransfer *transfer, CURLcode result)
{
    KnHttpCall *call = transfer->call;
    call->code = outcome(transfer, result);
    if (call->code == KN_OK) {
        call->ret.status = (int)status_of(transfer->easy);
        call->ret.version = version_of(transfer->easy);
        call->ret.elapsed_us = kn_clock_mono_us() - transfer->started_us;
    } else {
        kn_http_response_done(&call->ret);
    }
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
}
