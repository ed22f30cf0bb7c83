/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* decode_parts.h - what decoding needs beside the descent: messages, numbers, names nearby. */
#include "pipeline/ir/document.h"

/* Where in the value we are; the innermost place holds the outer ones. */
typedef struct KnIrPath {
    const struct KnIrPath *outer;
    const char *name; /* of a field or variant; NULL = index counts */
    size_t index;
} KnIrPath;
/** "flows[1].kind.streaming" */
void kn_ir_print_path(const KnIrPath *path, KnBuf *buf);

/** KN_E_CORRUPT: "origin:line:column: path: …" */
KnCode kn_ir_fail(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
KnCode kn_ir_expected(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, const char *what);
/** Append "; did you mean `x`?" where one of names is near, or the list of all. */
void kn_ir_nearest(KnBuf *buf, KnStr name, const char *const *names, size_t n);
/** A whole number as RON writes it: sign, 0x 0o 0b, underscores, suffix. */
bool kn_ir_parse_number(KnStr text, bool *ret_negative, uint64_t *ret);
/** Pairs (KnutPair, changed in place) by key; a key given twice is a failure. */
KN_NODISCARD KnCode kn_ir_sort_pairs(KnDecoder *dec, const KnIrPath *path, const KnRon *tree,
                                     KnIrItems pairs, KnIrItems *ret);
