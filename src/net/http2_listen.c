/* SPDX-License-Identifier: Apache-2.0 */
/* http2_listen.c - the listening socket, the text of addresses, and the server's side of TLS. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http2_internal.h"

typedef struct Address {
    char host[256], port[8];
} Address;

/* "host:port", ":port" or "[v6]:port". */
static KnCode parse_address(const char *text, Address *ret, KnErr *err)
{
    const char *colon = strrchr(text, ':');
    int64_t port = -1;
    if (!colon || !kn_str_to_i64(kn_str(colon + 1), &port) || port < 0 || port > 65535)
        return kn_err_set(err, KN_E_INVAL, "%s is no address to listen on: give HOST:PORT", text);
    KnStr host = {text, (size_t)(colon - text)};
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (KnStr){host.ptr + 1, host.len - 2};
    if (host.len >= sizeof(ret->host))
        return kn_err_set(err, KN_E_INVAL, "%s is no address to listen on: the name is too long",
                          text);
    memcpy(ret->host, host.ptr, host.len);
    ret->host[host.len] = '\0';
    (void)snprintf(ret->port, sizeof(ret->port), "%d", (int)port);
    return KN_OK;
}

static KnCode bind_first(const char *address, const struct addrinfo *info, int *ret_fd, KnErr *err)
{
    int last = 0;
    for (; info; info = info->ai_next) {
        int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            last = errno;
            continue;
        }
        int on = 1;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
            *ret_fd = fd;
            return KN_OK;
        }
        last = errno;
        close(fd);
    }
    return kn_err_set(err, last == EADDRINUSE ? KN_E_BUSY : KN_E_IO, "cannot listen on %s: %s",
                      address, kn_errno_text(last));
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof(addr);
    if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
        return 0;
    return ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                            : ((struct sockaddr_in *)&addr)->sin_port);
}

KnCode kn_h2_listen(const char *address, int *ret_fd, uint16_t *ret_port, KnErr *err)
{
    Address parts;
    KN_TRY(parse_address(address, &parts, err));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *info = NULL;
    int gai = getaddrinfo(parts.host[0] ? parts.host : NULL, parts.port, &hints, &info);
    if (gai != 0)
        return kn_err_set(err, KN_E_INVAL, "cannot listen on %s: %s", address, gai_strerror(gai));
    KnCode rc = bind_first(address, info, ret_fd, err);
    freeaddrinfo(info);
    if (rc == KN_OK)
        *ret_port = bound_port(*ret_fd);
    return rc;
}

void kn_h2_peer_format(const void *sockaddr, char out[64])
{
    const struct sockaddr *addr = sockaddr;
    char text[INET6_ADDRSTRLEN] = "";
    if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = sockaddr;
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
        (void)snprintf(out, 64, "[%s]:%d", text, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = sockaddr;
        (void)inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
        (void)snprintf(out, 64, "%s:%d", text, ntohs(v4->sin_port));
    }
}

/* ---- TLS ---- */

static KnCode tls_error(const char *what, const char *file, KnErr *err)
{
    char text[256] = "unknown reason";
    unsigned long code = ERR_get_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return kn_err_set(err, KN_E_INVAL, "%s %s cannot be used: %s", what, file, text);
}

/* HTTP/2 or nothing. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl;
    (void)arg;
    for (unsigned i = 0; i < in_len; i += 1U + in[i]) {
        if (in[i] == 2 && in_len - i >= 3 && memcmp(in + i + 1, "h2", 2) == 0) {
            *out = in + i + 1;
            *out_len = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static KnCode load_files(const KnH2Options *opts, SSL_CTX *ctx, KnErr *err)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, opts->tls_cert) != 1)
        return tls_error("the TLS certificate", opts->tls_cert, err);
    if (SSL_CTX_use_PrivateKey_file(ctx, opts->tls_key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return tls_error("the TLS key", opts->tls_key, err);
    if (!opts->client_ca)
        return KN_OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(opts->client_ca);
    if (!names || SSL_CTX_load_verify_locations(ctx, opts->client_ca, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return tls_error("the authority of clients", opts->client_ca, err);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return KN_OK;
}

KnCode kn_h2_tls_open(const KnH2Options *opts, SSL_CTX **ret, KnErr *err)
{
    if (!opts->tls_cert && !opts->tls_key && !opts->client_ca) {
        *ret = NULL;
        return KN_OK;
    }
    if (!opts->tls_cert || !opts->tls_key)
        return kn_err_set(err, KN_E_INVAL, "TLS needs a certificate and its key: give both");
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return tls_error("TLS", "(OpenSSL)", err);
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    (void)SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"knut", 4);
    KnCode rc = load_files(opts, ctx, err);
    if (rc != KN_OK)
        SSL_CTX_free(ctx);
    else
        *ret = ctx;
    return rc;
}
