/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * protobuf.h - Protocol Buffers: structs to bytes and back, by tables.
 *
 * A message is a struct and a table of its fields, as a .proto would have them; there is no
 * generated code. Proto3 without presence: a zero, an empty text and false are not written, and
 * what was not sent is zero. Unlike with generated C, a text with a NUL inside is refused instead
 * of being cut there. A map is a repeated message of key (1) and value (2), as on the wire.
 * Thread-safe.
 *
 * Source: the encoding guide of Protocol Buffers.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef enum KnPbKind {
    KN_PB_BOOL,     /* bool */
    KN_PB_INT64,    /* int64_t: int64, uint64, int32, an enum */
    KN_PB_TEXT,     /* const char *, never NULL once decoded */
    KN_PB_BYTES,    /* KnStr, a view of the decoded bytes */
    KN_PB_TEXTS,    /* KnPbTexts */
    KN_PB_MESSAGE,  /* a struct inside; written when it has any field that is not zero */
    KN_PB_MESSAGES, /* KnPbMessages */
} KnPbKind;

typedef struct KnPbTexts {
    const char *const *items;
    size_t n;
} KnPbTexts;

typedef struct KnPbMessages {
    const void *items; /* an array of the message's struct */
    size_t n;
} KnPbMessages;

typedef struct KnPbMessage KnPbMessage;
typedef struct KnPbField {
    const char *name; /* for errors */
    uint32_t number;
    KnPbKind kind;
    size_t offset; /* in the struct */
    const KnPbMessage *message;
} KnPbField;

struct KnPbMessage {
    const char *name;
    size_t size; /* of the struct */
    const KnPbField *fields;
    size_t n_fields; /* at most KN_PB_FIELDS */
};
enum { KN_PB_FIELDS = 16 };

/** Elements that one repeated field may have: small elements on the wire are larger here. */
#define KN_PB_MAX_ITEMS ((size_t)1 << 20)

/** ret points to the message's struct, which is zeroed first; texts are copied to arena, bytes are
 * views. KN_E_CORRUPT: the bytes are no such message; KN_E_NOMEM: too many elements. */
KN_NODISCARD KnCode kn_pb_decode(const KnPbMessage *message, KnStr bytes, KnArena *arena, void *ret,
                                 KnErr *err);
/** Appends the message; fails when buf does. */
void kn_pb_encode(const KnPbMessage *message, const void *value, KnBuf *buf);
