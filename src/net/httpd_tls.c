/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpd_tls.c - certificates of the HTTP server, and of its clients (mTLS).
 *
 * libmicrohttpd asks clients for a certificate when it has CAs, and leaves checking it to us: here
 * the handshake itself fails without a certificate that a CA signed, so no request is ever read
 * from a stranger.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/http_server_internal.h"

enum { PEM_MAX = 1 << 20 };

static KnCode read_pem(const char *file, char **ret, KnErr *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, KN_E_INVAL, "%s: %s", file, kn_errno_text(errno));
    char *text = malloc(PEM_MAX);
    if (!text)
        abort();
    size_t len = 0;
    ssize_t got = 1;
    while (len < PEM_MAX - 1 && got > 0) {
        got = read(fd, text + len, PEM_MAX - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    int failure = errno;
    (void)close(fd);
    text[len] = '\0';
    if (got < 0 || !strstr(text, "-----BEGIN ")) {
        free(text);
        return kn_err_set(err, KN_E_INVAL, "%s: %s", file,
                          got < 0 ? kn_errno_text(failure) : "no PEM block in this file");
    }
    *ret = text;
    return KN_OK;
}

KnCode kn_httpd_tls_load(KnHttpd *server, KnErr *err)
{
    const KnHttpdTls *tls = &server->opts.tls;
    if (!tls->cert_file != !tls->key_file)
        return kn_err_set(err, KN_E_INVAL, "TLS needs both a certificate and its key");
    if (!tls->cert_file && tls->client_ca_file)
        return kn_err_set(err, KN_E_INVAL,
                          "client certificates need TLS: give the server's certificate and key");
    if (!tls->cert_file)
        return KN_OK;
    KN_TRY(read_pem(tls->cert_file, &server->tls_pem[0], err));
    KN_TRY(read_pem(tls->key_file, &server->tls_pem[1], err));
    if (tls->client_ca_file)
        KN_TRY(read_pem(tls->client_ca_file, &server->tls_pem[2], err));
    return KN_OK;
}

static gnutls_session_t session_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info ? (gnutls_session_t)info->tls_session : NULL;
}

void kn_httpd_tls_demand(struct MHD_Connection *mhd)
{
    gnutls_session_t session = session_of(mhd);
    if (!session)
        return;
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(session, NULL, 0);
}

char *kn_httpd_tls_subject(struct MHD_Connection *mhd)
{
    gnutls_session_t session = session_of(mhd);
    unsigned int n = 0;
    const gnutls_datum_t *chain = session ? gnutls_certificate_get_peers(session, &n) : NULL;
    gnutls_x509_crt_t crt = NULL;
    char *subject = NULL;
    if (!chain || n == 0 || gnutls_x509_crt_init(&crt) != GNUTLS_E_SUCCESS)
        return NULL;
    gnutls_datum_t dn = {0};
    if (gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) == GNUTLS_E_SUCCESS &&
        gnutls_x509_crt_get_dn3(crt, &dn, 0) == GNUTLS_E_SUCCESS) {
        subject = strndup((const char *)dn.data, dn.size);
        gnutls_free(dn.data);
    }
    gnutls_x509_crt_deinit(crt);
    return subject;
}
