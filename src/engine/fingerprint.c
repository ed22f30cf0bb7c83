/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.c - two independent 64-bit hashes of a row, column by column.
 *
 * A value is one or more words of 64 bits; a word is folded into both hashes by steps that are
 * one-to-one, so rows that differ in one word never agree before the last mixing, which is
 * one-to-one too. Texts end with their length, which keeps ("a", "bc") and ("ab", "c") apart. NULL
 * is a word drawn from the seed.
 */
#include "engine/fingerprint.h"

#include <string.h>

#include "engine/engine_internal.h"

#define MUL_A UINT64_C(0x9fb21c651e98df25)
#define MUL_B UINT64_C(0xc2b2ae3d27d4eb4f)
#define MUL_C UINT64_C(0x9e3779b185ebca87)

static uint64_t finish(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

static inline void fold(KnFingerprint *to, uint64_t word)
{
    uint64_t a = (to->a ^ word) * MUL_A;
    uint64_t b = to->b ^ (word * MUL_B);
    to->a = a ^ (a >> 32);
    to->b = (b << 29 | b >> 35) * MUL_C;
}

/* A column, and what stands for its NULLs. */
typedef struct Column {
    const KnVector *vec;
    uint64_t null;
    size_t rows;
    KnFingerprint *out;
} Column;

/* One loop for each width: word is the value at row i as 64 bits. */
#define FOLD_ROWS(col, word)                                                                       \
    do {                                                                                           \
        if (!(col)->vec->validity) {                                                               \
            for (size_t i = 0; i < (col)->rows; i++)                                               \
                fold(&(col)->out[i], (word));                                                      \
        } else {                                                                                   \
            for (size_t i = 0; i < (col)->rows; i++)                                               \
                fold(&(col)->out[i],                                                               \
                     kn_vector_is_null((col)->vec, i) ? (col)->null : (uint64_t)(word));           \
        }                                                                                          \
    } while (0)

static void fold_8(const Column *col)
{
    const uint8_t *data = col->vec->data;
    FOLD_ROWS(col, data[i]);
}

static void fold_16(const Column *col)
{
    const uint16_t *data = col->vec->data;
    FOLD_ROWS(col, data[i]);
}

static void fold_32(const Column *col)
{
    const uint32_t *data = col->vec->data;
    FOLD_ROWS(col, data[i]);
}

static void fold_64(const Column *col)
{
    const uint64_t *data = col->vec->data;
    FOLD_ROWS(col, data[i]);
}

static void fold_128(const Column *col)
{
    const uint64_t *data = col->vec->data;
    FOLD_ROWS(col, data[2 * i]);
    FOLD_ROWS(col, data[2 * i + 1]);
}

static void fold_bool(const Column *col)
{
    const uint8_t *data = col->vec->data;
    FOLD_ROWS(col, data[i] != 0);
}

/* NaN has many forms in bits and is one value. */
static uint64_t float_word(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return value != value ? UINT32_C(0x7fc00000) : bits;
}

static uint64_t double_word(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return value != value ? UINT64_C(0x7ff8000000000000) : bits;
}

static void fold_float(const Column *col)
{
    const float *data = col->vec->data;
    FOLD_ROWS(col, float_word(data[i]));
}

static void fold_double(const Column *col)
{
    const double *data = col->vec->data;
    FOLD_ROWS(col, double_word(data[i]));
}

/* Over 12 bytes, the last word may hold bytes of the one before again. */
static inline void fold_long_text(KnFingerprint *to, const char *text, size_t len)
{
    uint64_t word;
    for (size_t at = 0; at + sizeof(word) < len; at += sizeof(word)) {
        memcpy(&word, text + at, sizeof(word));
        fold(to, word);
    }
    memcpy(&word, text + len - sizeof(word), sizeof(word));
    fold(to, word);
    fold(to, len);
}

/* A short text is the engine's 16 bytes of it: its length, its bytes, and zeros. */
static inline void fold_text(KnFingerprint *to, const duckdb_string_t *text)
{
    uint64_t words[2];
    if (text->value.inlined.length > sizeof(text->value.inlined.inlined)) {
        fold_long_text(to, text->value.pointer.ptr, text->value.pointer.length);
        return;
    }
    memcpy(words, text, sizeof(words));
    fold(to, words[0]);
    fold(to, words[1]);
}

static void fold_texts(const Column *col)
{
    const duckdb_string_t *data = col->vec->data;
    for (size_t i = 0; i < col->rows; i++) {
        if (kn_vector_is_null(col->vec, i))
            fold(&col->out[i], col->null);
        else
            fold_text(&col->out[i], &data[i]);
    }
}

static void fold_nulls(const Column *col)
{
    for (size_t i = 0; i < col->rows; i++)
        fold(&col->out[i], col->null);
}

typedef void (*FoldFn)(const Column *col);

static FoldFn fold_of(const KnColType *type)
{
    switch (type->kind) {
    case KN_COL_BOOL:
        return fold_bool;
    case KN_COL_FLOAT:
        return fold_float;
    case KN_COL_DOUBLE:
        return fold_double;
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
        return fold_texts;
    case KN_COL_NULL:
        return fold_nulls;
    case KN_COL_STRUCT:
    case KN_COL_LIST:
    case KN_COL_MAP:
    case KN_COL_OTHER:
        return NULL;
    default:
        break;
    }
    switch (kn_col_type_size(type)) {
    case 1:
        return fold_8;
    case 2:
        return fold_16;
    case 4:
        return fold_32;
    case 8:
        return fold_64;
    default:
        return fold_128;
    }
}

KnCode kn_fingerprint_rows(const KnVector *columns, size_t n, size_t rows, uint64_t seed,
                           KnFingerprint *ret, KnErr *err)
{
    for (size_t c = 0; c < n; c++)
        if (!fold_of(columns[c].type))
            return kn_err_set(err, KN_E_UNSUPPORTED, "no fingerprint of a column of type %s",
                              kn_col_kind_name(columns[c].type->kind));
    KnFingerprint start = {finish(seed ^ MUL_A), finish(seed ^ MUL_B)};
    for (size_t i = 0; i < rows; i++)
        ret[i] = start;
    for (size_t c = 0; c < n; c++) {
        Column col = {.vec = &columns[c], .null = finish(seed + MUL_C), .rows = rows, .out = ret};
        fold_of(columns[c].type)(&col);
    }
    for (size_t i = 0; i < rows; i++)
        ret[i] = (KnFingerprint){finish(ret[i].a), finish(ret[i].b)};
    return KN_OK;
}
