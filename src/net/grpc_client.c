/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_client.c - a call is a POST with one framed message; its status comes in the trailers.
 *
 * An answer without grpc-status is none of gRPC (a proxy's, another server's): statuses of HTTP are
 * translated as gRPC's own clients do, and a stream that ends without one is a lost answer.
 */
#include "net/grpc_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define MAX_MESSAGE ((size_t)512 << 20)

struct KnGrpcClient {
    KnHttpClient *http;
    KnArena *arena;
    const char *uri;
    const char *authorization; /* NULL = none */
    size_t max_message;
};

static KnCode check_uri(const char *uri, KnErr *err)
{
    KnStr text = kn_str(uri);
    bool plain = kn_str_starts_with(text, KN_STR_LIT("http://"));
    bool tls = kn_str_starts_with(text, KN_STR_LIT("https://"));
    size_t scheme = tls ? 8 : 7;
    if (!plain && !tls)
        return kn_err_set(err, KN_E_INVAL,
                          "%s is no address of a gRPC server: give http://HOST:PORT or "
                          "https://HOST:PORT",
                          uri);
    if (strchr(uri, '@'))
        return kn_err_set(err, KN_E_INVAL,
                          "the gRPC server's address has a user before '@': give a token by the "
                          "environment");
    size_t host = strcspn(uri + scheme, "/?#");
    const char *rest = uri + scheme + host;
    if (host == 0 || (*rest && strcmp(rest, "/") != 0))
        return kn_err_set(err, KN_E_INVAL, "%s is no address of a gRPC server: %s", uri,
                          host ? "it has a path" : "it has no host");
    return KN_OK;
}

static KnCode fill(KnGrpcClient *client, const KnGrpcClientOptions *opts, KnErr *err)
{
    KN_TRY(check_uri(opts->uri, err));
    size_t len = strlen(opts->uri);
    client->uri =
        kn_arena_strndup(client->arena, opts->uri, len - (opts->uri[len - 1] == '/' ? 1 : 0));
    for (const char *c = opts->token; c && *c; ++c)
        if (*c <= ' ' || *c == 0x7f)
            return kn_err_set(err, KN_E_INVAL,
                              "the token for %s has a space or a control character", client->uri);
    if (opts->token)
        client->authorization = kn_arena_printf(client->arena, "Bearer %s", opts->token);
    client->max_message = opts->max_message ? opts->max_message : MAX_MESSAGE;
    KnHttpClientOptions http = {
        .ca_file = opts->ca_file,
        .client_cert = opts->client_cert,
        .client_key = opts->client_key,
        .version = strncmp(client->uri, "https:", 6) == 0 ? KN_HTTP_2_TLS : KN_HTTP_2_PRIOR};
    return kn_http_client_new(&http, &client->http, err);
}

KnCode kn_grpc_client_new(const KnGrpcClientOptions *opts, KnGrpcClient **ret, KnErr *err)
{
    KnGrpcClient *client = calloc(1, sizeof(*client));
    if (!client)
        abort();
    client->arena = kn_arena_new(0);
    KnCode rc = fill(client, opts, err);
    if (rc == KN_OK)
        *ret = client;
    else
        client = kn_grpc_client_free(client);
    return rc;
}

KnGrpcClient *kn_grpc_client_free(KnGrpcClient *client)
{
    if (!client)
        return NULL;
    client->http = kn_http_client_free(client->http);
    client->arena = kn_arena_free(client->arena);
    free(client);
    return NULL;
}

const char *kn_grpc_client_uri(const KnGrpcClient *client)
{
    return client->uri;
}

void kn_grpc_answer_done(KnGrpcAnswer *answer)
{
    kn_http_response_done(&answer->http);
}

/* As gRPC's "HTTP to gRPC Status Code Mapping" has it. */
static int code_of_http(int status)
{
    switch (status) {
    case 400:
        return KN_GRPC_INTERNAL;
    case 401:
        return KN_GRPC_UNAUTHENTICATED;
    case 403:
        return KN_GRPC_PERMISSION_DENIED;
    case 404:
        return KN_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return KN_GRPC_UNAVAILABLE;
    default:
        return KN_GRPC_UNKNOWN;
    }
}

static void set_text(KnGrpcStatus *status, const KnHttpResponse *http)
{
    const char *encoded = kn_http_header(http, "grpc-message", 0);
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)64 << 10);
    kn_grpc_message_decode(&text, kn_str(encoded ? encoded : ""));
    size_t len = text.len < sizeof(status->text) - 1 ? text.len : sizeof(status->text) - 1;
    if (len)
        memcpy(status->text, text.data, len);
    for (char *c = status->text; c < status->text + len; ++c)
        if ((unsigned char)*c < ' ') /* a failure is one line */
            *c = ' ';
    status->text[len] = '\0';
}

static KnCode read_status(const KnGrpcClient *client, KnGrpcAnswer *ret, KnErr *err)
{
    const char *code = kn_http_header(&ret->http, "grpc-status", 0);
    int64_t number = 0;
    if (code && kn_str_to_i64(kn_str(code), &number) && number >= 0 && number <= 1000) {
        ret->status.code = (int)number;
        set_text(&ret->status, &ret->http);
        return KN_OK;
    }
    if (ret->http.status == 200)
        return kn_err_set(err, KN_E_UNKNOWN, "%s: the answer ended without a status of gRPC",
                          client->uri);
    ret->status.code = code_of_http(ret->http.status);
    (void)snprintf(ret->status.text, sizeof(ret->status.text),
                   "HTTP status %d: is this a gRPC server?", ret->http.status);
    return KN_OK;
}

static KnCode read_message(const KnGrpcClient *client, KnGrpcAnswer *ret, KnErr *err)
{
    KnStr rest = {ret->http.body.data, ret->http.body.len};
    KnCode rc = kn_grpc_frame_next(&rest, &ret->message, err);
    if (rc == KN_OK && rest.len)
        rc = kn_err_set(err, KN_E_CORRUPT, "more than one message came");
    /* It said OK: what it did is done, and what it says about it is not known. */
    return rc == KN_OK ? KN_OK : kn_err_wrap(err, KN_E_UNKNOWN, "%s", client->uri);
}

KnCode kn_grpc_client_call(KnGrpcClient *client, const char *path, const KnBuf *framed,
                           KnGrpcAnswer *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpHeader headers[] = {{"content-type", "application/grpc"},
                              {"te", "trailers"},
                              {"grpc-accept-encoding", "identity"},
                              {"authorization", client->authorization}};
    KnHttpRequest req = {.method = "POST",
                         .url = kn_arena_printf(arena, "%s%s", client->uri, path),
                         .headers = headers,
                         .n_headers = client->authorization ? 4 : 3,
                         .body = {framed->data, framed->len},
                         .max_response = client->max_message};
    KN_TRY(kn_http_perform(client->http, &req, &ret->http, err));
    KN_TRY(read_status(client, ret, err));
    return ret->status.code == KN_GRPC_OK ? read_message(client, ret, err) : KN_OK;
}
