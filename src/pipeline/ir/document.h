/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * document.h - values of the IR as trees, and trees as values, by description.
 *
 * One tree (codec/ron.h) serves two notations. In RON a struct is `(a: 1)`, a variant `name(a: 1)`,
 * an option `Some(x)`; in JSON an object, an object of one key, the value or null. Fields that the
 * description does not know are noted and left out; a field that is missing, or of another kind,
 * is KN_E_CORRUPT with its place and path.
 */
#include "codec/ron.h"
#include "pipeline/surface/surface.h"

typedef enum KnNotation { KN_NOTATION_RON, KN_NOTATION_JSON } KnNotation;

typedef struct KnDecoder {
    KnArena *arena;
    KnNotation notation;
    KnRonExtensions extensions;
    const char *origin; /* the file, for messages */
    KnNotes *notes;     /* may be NULL */
    KnErr *err;
} KnDecoder;

/** Fill value (type->size bytes, zeroed) from the tree. */
KN_NODISCARD KnCode kn_ir_decode(KnDecoder *dec, const KnIrType *type, const KnRon *tree,
                                 void *value);
/** The value as a tree; texts are borrowed from it. */
KnRon kn_ir_encode(KnArena *arena, KnNotation notation, const KnIrType *type, const void *value);
