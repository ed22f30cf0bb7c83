/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_thrift.h - Thrift's compact protocol, as far as Parquet's footers and page headers need.
 *
 * Reading: a cursor over bytes from outside. Every read is checked against the end, nesting is
 * limited; the first fault makes the cursor bad for good, values read after it are 0, and loops
 * over fields end. Writing: struct fields appended to a KnBuf. One thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Types in field headers. A bool lives in its field's header: TRUE or FALSE, without a value. */
typedef enum KnThriftType {
    KN_THRIFT_STOP = 0,
    KN_THRIFT_TRUE = 1,
    KN_THRIFT_FALSE = 2,
    KN_THRIFT_BYTE = 3,
    KN_THRIFT_I16 = 4,
    KN_THRIFT_I32 = 5,
    KN_THRIFT_I64 = 6,
    KN_THRIFT_DOUBLE = 7,
    KN_THRIFT_BINARY = 8,
    KN_THRIFT_LIST = 9,
    KN_THRIFT_SET = 10,
    KN_THRIFT_MAP = 11,
    KN_THRIFT_STRUCT = 12,
} KnThriftType;

typedef struct KnThrift {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} KnThrift;

typedef struct KnThriftField {
    const uint8_t *header; /* the byte with the type in its low half */
    int type;              /* KnThriftType, or a number that is none */
    int id;
} KnThriftField;

/** The next field of a struct; false at its end and on a fault. Zero *f before the first. */
bool kn_thrift_field_next(KnThrift *t, KnThriftField *f);
/** The value of field f, which is of the type wanted (else the cursor is bad): a zigzag number. */
int64_t kn_thrift_int(KnThrift *t, const KnThriftField *f, KnThriftType want);
/** Opens a list; returns the number of elements, which is no more than the bytes left. */
uint64_t kn_thrift_list_open(KnThrift *t, int *ret_type);
/** Opens a list of structs, or makes the cursor bad. */
uint64_t kn_thrift_structs_open(KnThrift *t, const KnThriftField *f);
/** Passes over a value of a field of this type, whatever is in it. */
void kn_thrift_skip(KnThrift *t, int type);

void kn_thrift_write_varint(KnBuf *buf, uint64_t value);
/** The header of a field; *last is the id before it in this struct (0 at first), and is moved. */
void kn_thrift_write_field(KnBuf *buf, int *last, int id, int type);
void kn_thrift_write_i32(KnBuf *buf, int *last, int id, int32_t value);
void kn_thrift_write_i64(KnBuf *buf, int *last, int id, int64_t value);
/** Field f as it was read: its header anew, its value's bytes from t->at, which is passed over. */
void kn_thrift_copy(KnBuf *buf, int *last, const KnThriftField *f, KnThrift *t);
void kn_thrift_write_list(KnBuf *buf, int type, uint64_t n);
