/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http2.c - any bytes as what a client sends to a gRPC server.
 *
 * Behind a first byte with its lowest bit set they are frames (the preface is sent for them), else
 * they are all that comes. They are given in pieces whose size the first byte chooses.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/grpc_internal.h"
#include "net/http2_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int echo(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    (void)self;
    (void)err;
    kn_buf_str(out, call->message);
    return call->message.len % 3 == 2 ? KN_GRPC_NOT_FOUND : KN_GRPC_OK;
}

static const KnGrpcMethod methods[] = {{"/t.S/Echo", KN_GRPC_QUICK, echo, NULL, NULL}};

static bool feed(KnH2Session *ses, const uint8_t *data, size_t size)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)8 << 20);
    bool fine = kn_h2_session_recv(ses, data, size);
    return kn_h2_session_send(ses, &out, (size_t)1 << 20) && fine;
}

static void feed_all(KnH2Session *ses, const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    if (size == 0)
        return;
    size_t piece = data[0] >> 1 ? data[0] >> 1 : SIZE_MAX;
    bool fine = !(data[0] & 1) || feed(ses, (const uint8_t *)preface, sizeof(preface));
    for (size_t at = 1; fine && at < size;) {
        size_t n = size - at < piece ? size - at : piece;
        fine = feed(ses, data + at, n);
        at += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static KnH2Mail *mail;
    static KnGrpcServer *srv;
    if (!srv) {
        KnGrpcService service = {methods, 1, NULL};
        srv = kn_grpc_server_new(&(KnGrpcOptions){.services = &service, .n_services = 1});
        if (kn_h2_mail_open(&mail, NULL) != KN_OK)
            abort();
    }
    KnH2Shared shared = {.handler = &kn_grpc_handler, .self = srv};
    shared.opts =
        (KnH2Options){.max_streams = 10, .max_body = 4096, .max_fields = 1024, .max_held = 16384};
    KnH2Session *ses;
    if (kn_h2_session_new(&shared, mail, "fuzzer:1", &ses, NULL) != KN_OK)
        abort();
    feed_all(ses, data, size);
    ses = kn_h2_session_free(ses);
    if (atomic_load(&shared.held) != 0)
        abort();
    return 0;
}
