/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * grpc_frame.h - how gRPC puts messages, statuses and deadlines on HTTP/2, both ways.
 *
 * Source: gRPC over HTTP2 (doc/PROTOCOL-HTTP2.md of the gRPC project). Thread-safe values.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef enum KnGrpcCode {
    KN_GRPC_OK = 0,
    KN_GRPC_CANCELLED = 1,
    KN_GRPC_UNKNOWN = 2,
    KN_GRPC_INVALID_ARGUMENT = 3,
    KN_GRPC_DEADLINE_EXCEEDED = 4,
    KN_GRPC_NOT_FOUND = 5,
    KN_GRPC_ALREADY_EXISTS = 6,
    KN_GRPC_PERMISSION_DENIED = 7,
    KN_GRPC_RESOURCE_EXHAUSTED = 8,
    KN_GRPC_FAILED_PRECONDITION = 9,
    KN_GRPC_ABORTED = 10,
    KN_GRPC_OUT_OF_RANGE = 11,
    KN_GRPC_UNIMPLEMENTED = 12,
    KN_GRPC_INTERNAL = 13,
    KN_GRPC_UNAVAILABLE = 14,
    KN_GRPC_DATA_LOSS = 15,
    KN_GRPC_UNAUTHENTICATED = 16,
} KnGrpcCode;

/** "NOT_FOUND"; "?" for a code that gRPC does not have. */
const char *kn_grpc_code_name(int code);

#define KN_GRPC_PREFIX 5 /* bytes before a message: a flag and its length */

/** Room for the prefix of the message that is appended next; returns where it is. */
size_t kn_grpc_frame_begin(KnBuf *buf);
/** The message is all that was appended since. */
void kn_grpc_frame_end(KnBuf *buf, size_t begin);
/** The next message of *rest, which is moved behind it. KN_E_CORRUPT when it is cut off,
 * KN_E_UNSUPPORTED when it is compressed. */
KN_NODISCARD KnCode kn_grpc_frame_next(KnStr *rest, KnStr *ret_message, KnErr *err);
/** False: what is there may become a message when more has come. */
bool kn_grpc_frame_is_whole(KnStr bytes);

/** Text as the value of grpc-message: all but printable ASCII, and '%', is percent-encoded. */
void kn_grpc_message_encode(KnBuf *buf, KnStr text);
/** Back; what is no escape stays as it is. */
void kn_grpc_message_decode(KnBuf *buf, KnStr value);

/** The value of grpc-timeout ("250m", "10S") in microseconds; false when it is none. */
bool kn_grpc_timeout_parse(KnStr value, int64_t *ret_us);
