/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * json.h - reading and writing JSON (jansson underneath; only base includes jansson.h directly,
 * others through this header).
 *
 * Documents are json_t with reference counts; KN_JSON_AUTO drops the reference at scope end.
 * Getters report the field's name and what was found instead: "field 'format-version': expected an
 * integer, found a string". Depth is limited by jansson (2048), size by the caller.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/** Parse a whole document; duplicates of a key and trailing bytes are errors with line and column.
 */
KN_NODISCARD KnCode kn_json_parse(const char *text, size_t len, json_t **ret, KnErr *err);

/* Fields of an object. `_opt` leaves *ret alone (caller's default) when absent or null. */
KN_NODISCARD KnCode kn_json_get_i64(const json_t *obj, const char *key, int64_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_json_opt_i64(const json_t *obj, const char *key, int64_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_json_get_i32(const json_t *obj, const char *key, int32_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_json_opt_i32(const json_t *obj, const char *key, int32_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_json_opt_bool(const json_t *obj, const char *key, bool *ret, KnErr *err);
KN_NODISCARD KnCode kn_json_get_bool(const json_t *obj, const char *key, bool *ret, KnErr *err);
/** Borrowed from obj: valid while obj is. */
KN_NODISCARD KnCode kn_json_get_str(const json_t *obj, const char *key, const char **ret,
                                    KnErr *err);
KN_NODISCARD KnCode kn_json_opt_str(const json_t *obj, const char *key, const char **ret,
                                    KnErr *err);
KN_NODISCARD KnCode kn_json_get_array(const json_t *obj, const char *key, json_t **ret, KnErr *err);
KN_NODISCARD KnCode kn_json_opt_array(const json_t *obj, const char *key, json_t **ret, KnErr *err);
KN_NODISCARD KnCode kn_json_get_object(const json_t *obj, const char *key, json_t **ret,
                                       KnErr *err);
KN_NODISCARD KnCode kn_json_opt_object(const json_t *obj, const char *key, json_t **ret,
                                       KnErr *err);

/** Append a JSON string literal with quotes; invalid UTF-8 becomes U+FFFD. */
void kn_json_quote(KnBuf *buf, KnStr s);
/** Append `"name":"text"` and `"name":number` of an object; no comma before or after. The name is
 * written as it is. A number below 0 is none, and null. */
void kn_json_put_text(KnBuf *buf, const char *name, const char *text);
void kn_json_put_count(KnBuf *buf, const char *name, int64_t value);
/** Append a compact document (keys in insertion order). */
void kn_json_dump(KnBuf *buf, const json_t *doc);

static inline void kn_json_freep(json_t **doc)
{
    if (*doc)
        json_decref(*doc);
    *doc = NULL;
}
#define KN_JSON_AUTO __attribute__((cleanup(kn_json_freep))) json_t *
