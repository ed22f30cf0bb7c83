/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ron.h - RON, the notation of Rust's serde values: text to a tree of values and back.
 *
 * Read is what the ron crate reads (its docs/grammar.md): line and nested block comments, raw
 * strings, byte strings, raw identifiers, suffixed numbers, ranges, attributes, trailing commas.
 * Which type a value has is the caller's business: `(…)` is what was found between the parentheses.
 * Trees live in an arena and point into it, not into the text read. Thread-safe to read.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef enum KnRonKind {
    KN_RON_WORD,   /* name: a unit struct or variant, None */
    KN_RON_BOOL,   /* text is "true" or "false" */
    KN_RON_NUMBER, /* text as written: sign, base prefix, underscores, suffix */
    KN_RON_TEXT,   /* text, escapes resolved; UTF-8 without NUL */
    KN_RON_CHAR,   /* text is one character */
    KN_RON_BYTES,  /* text is what the byte string or byte literal holds */
    KN_RON_RANGE,  /* text as written */
    KN_RON_LIST,   /* items */
    KN_RON_TUPLE,  /* items; name of the tuple struct or variant, or empty. Also `()`, `Name()` */
    KN_RON_STRUCT, /* items with names; name of the struct or variant, or empty */
    KN_RON_MAP,    /* items with keys */
} KnRonKind;

typedef struct KnRon KnRon;
typedef struct KnRonItem KnRonItem;

struct KnRon {
    KnRonKind kind;
    uint32_t line, column; /* from 1, column in characters; 0 = made, not read */
    KnStr name;
    KnStr text;
    const KnRonItem *items;
    size_t len;
};

struct KnRonItem {
    KnStr name;       /* of a STRUCT */
    const KnRon *key; /* of a MAP */
    KnRon value;
    uint32_t line, column; /* of the name */
};

/* What `#![enable(...)]` named. */
typedef struct KnRonExtensions {
    bool implicit_some;
    bool unwrap_newtypes;
    bool unwrap_variant_newtypes;
    bool explicit_struct_names;
} KnRonExtensions;

typedef struct KnRonDocument {
    KnRon value;
    KnRonExtensions extensions;
} KnRonDocument;

/** Depth of nesting that is read and written, as of the ron crate. */
#define KN_RON_MAX_DEPTH 128

/** Parse a whole document. KN_E_CORRUPT: "origin:line:column: expected …, found …". */
KN_NODISCARD KnCode kn_ron_parse(KnArena *arena, KnStr text, const char *origin, KnRonDocument *ret,
                                 KnErr *err);

/** Append the value as serde's pretty writer lays it out, with a final newline. Texts of several
 * lines, or with quotes or backslashes, become raw strings; apostrophes stay as they are. */
void kn_ron_write(KnBuf *buf, const KnRon *value);

/** A few words on what value is, for messages: "a list", "the word `x`". */
const char *kn_ron_describe(const KnRon *value, char *buf, size_t size);
