/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* value.h - one primitive value: bounds, partition values, literals, defaults (spec appendix D). */
#include "iceberg/schema/type.h"

typedef struct KnValue {
    bool null;
    KnTypeKind kind;
    int32_t scale; /* decimal: of this value */
    union {
        bool b;
        int64_t i;    /* int, long, date (days), time (us), timestamps (us or ns) */
        double d;     /* float (exactly widened), double */
        __int128 dec; /* unscaled */
        KnStr bytes;  /* string, uuid (16 bytes), fixed, binary; borrowed */
    };
} KnValue;

/** Binary single-value form. A shorter int for a long (after promotion) and float for double are
 * taken. */
KN_NODISCARD KnCode kn_value_decode(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err);
void kn_value_encode(KnBuf *buf, const KnType *type, const KnValue *value);
/** JSON single-value form; text is copied into arena. */
KN_NODISCARD KnCode kn_value_from_json(KnArena *arena, const KnType *type, const json_t *json,
                                       KnValue *ret, KnErr *err);
json_t *kn_value_to_json(const KnType *type, const KnValue *value); /* new reference */
/** A literal as a person or the engine's VARCHAR cast spells it ("2026-01-31", "1.25", "0x00ff",
 * "true"). */
KN_NODISCARD KnCode kn_value_parse(KnArena *arena, const KnType *type, KnStr text, KnValue *ret,
                                   KnErr *err);
/** Text for people and for partition paths' values (ISO dates, decimal text, 0x hex). */
void kn_value_format(KnBuf *buf, const KnType *type, const KnValue *value);
/** A literal of the engine with its cast: `CAST('2026-01-31' AS DATE)`; NULL as `CAST(NULL AS t)`.
 * Exact for NaN, infinities, -0.0, extreme timestamps. */
KN_NODISCARD KnCode kn_value_sql(KnBuf *buf, const KnType *type, const KnValue *value, KnErr *err);
/** Total order of Iceberg: -NaN.. no: NaN is the greatest, -0.0 < 0.0; bytes unsigned; kinds must
 * be equal. */
int kn_value_compare(const KnValue *a, const KnValue *b);
/** Read column value `row` of an engine vector whose type is kn_type_sql() of type. bytes are
 * borrowed from the batch; a UUID's, which the engine keeps in another order, are made in arena. */
struct KnVector;
KN_NODISCARD KnCode kn_value_from_vector(KnArena *arena, const KnType *type,
                                         const struct KnVector *vec, size_t row, KnValue *ret,
                                         KnErr *err);
