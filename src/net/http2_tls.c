/* SPDX-License-Identifier: Apache-2.0 */
/* http2_tls.c - the server's side of TLS, and the text of a client's address. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "net/http2_internal.h"

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
    if (SSL_CTX_use_certificate_chain_file(ctx, opts->tls.cert_file) != 1)
        return tls_error("the TLS certificate", opts->tls.cert_file, err);
    if (SSL_CTX_use_PrivateKey_file(ctx, opts->tls.key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return tls_error("the TLS key", opts->tls.key_file, err);
    if (!opts->tls.client_ca_file)
        return KN_OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(opts->tls.client_ca_file);
    if (!names || SSL_CTX_load_verify_locations(ctx, opts->tls.client_ca_file, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return tls_error("the authority of clients", opts->tls.client_ca_file, err);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return KN_OK;
}

KnCode kn_h2_tls_open(const KnH2Options *opts, SSL_CTX **ret, KnErr *err)
{
    if (!opts->tls.cert_file && !opts->tls.key_file && !opts->tls.client_ca_file) {
        *ret = NULL;
        return KN_OK;
    }
    if (!opts->tls.cert_file || !opts->tls.key_file)
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
