/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * describe.h - the description of the IR's types: names as documents spell them, offsets, defaults.
 *
 * To add a field: a member in knut/pipeline.h whose zero is the default, and a row in describe.c;
 * every reader, writer, copy and comparison follows. A field that is knut's own is KN_IR_SKIPPED,
 * so that documents without it stay loadable elsewhere.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

typedef enum KnIrKind {
    KN_IR_TEXT,   /* const char * */
    KN_IR_BOOL,   /* bool */
    KN_IR_U64,    /* uint64_t */
    KN_IR_I32,    /* int32_t; as an option, the bool at has_offset says whether it is there */
    KN_IR_NAMES,  /* KnutNames */
    KN_IR_PAIRS,  /* KnutPairs: a map from text to text */
    KN_IR_STRUCT, /* a struct of type, embedded */
    KN_IR_ENUM,   /* an enum of type (with its members, where variants have some), embedded */
    KN_IR_LIST,   /* {const T *items; size_t len;} of type */
} KnIrKind;

typedef enum KnIrPresence {
    KN_IR_REQUIRED, /* must be in a document, is always written */
    KN_IR_WRITTEN,  /* may be absent (its zero is meant then), is always written */
    KN_IR_SKIPPED,  /* may be absent, is written only when it is not its zero */
} KnIrPresence;

typedef struct KnIrType KnIrType;

typedef struct KnIrField {
    const char *name;
    KnIrKind kind;
    KnIrPresence presence;
    bool option; /* Some(...) or None: TEXT may be NULL, STRUCT and ENUM are pointers */
    size_t offset;
    size_t has_offset;
    const KnIrType *type; /* of STRUCT, ENUM, LIST */
} KnIrField;

typedef struct KnIrVariant {
    const char *name;
    const KnIrField *fields; /* offsets from the start of the enum's struct; none = a unit */
    size_t n_fields;
} KnIrVariant;

/* A struct has fields, an enum variants; the tag is an enum at the start of its struct. */
struct KnIrType {
    const char *name; /* as the published crate calls it, for messages */
    size_t size;
    const KnIrField *fields;
    size_t n_fields;
    const KnIrVariant *variants;
    size_t n_variants;
};

extern const KnIrType kn_ir_pipeline;
extern const KnIrType kn_ir_dataset, kn_ir_flow, kn_ir_input;
extern const KnIrType kn_ir_output_type, kn_ir_materialization, kn_ir_write_mode;
extern const KnIrType kn_ir_flow_kind, kn_ir_source, kn_ir_trigger, kn_ir_output_mode;
extern const KnIrType kn_ir_window, kn_ir_scd_type, kn_ir_on_violation;

/** The variant's name; "?" for a number that is none. */
const char *kn_ir_tag_name(const KnIrType *type, unsigned tag);
/** The tag of the enum at value. */
unsigned kn_ir_tag(const void *value);
/** The fields that count for the struct or enum at value. */
const KnIrField *kn_ir_fields(const KnIrType *type, const void *value, size_t *ret_n);
/** Deep equality; see kn_pipeline_equal() for the text. */
bool kn_ir_equal(const KnIrType *type, const void *a, const void *b, KnBuf *ret_difference);
/** True when the field of the struct at base has its zero. */
bool kn_ir_is_zero(const KnIrField *field, const void *base);
/** A deep copy of the value at from into to, whose bytes are all set; texts and lists go to arena.
 */
void kn_ir_copy(KnArena *arena, const KnIrType *type, void *to, const void *from);

/* Members by description: what any list, text or pointer of the IR looks like. */
typedef struct KnIrItems {
    const void *items;
    size_t len;
} KnIrItems;
KnIrItems kn_ir_items(const KnIrField *field, const void *base); /* NAMES, PAIRS, LIST */
void kn_ir_set_items(const KnIrField *field, void *base, KnIrItems items);
/** A text, or the pointer of an option; NULL = none. */
const void *kn_ir_pointer(const KnIrField *field, const void *base);
void kn_ir_set_pointer(const KnIrField *field, void *base, const void *pointer);
/** The struct or enum that field means, embedded or pointed to; NULL = none. */
const void *kn_ir_inner(const KnIrField *field, const void *base);
/** Element i of a list of field->type. */
static inline const void *kn_ir_item(const KnIrField *field, KnIrItems items, size_t i)
{
    return (const char *)items.items + i * field->type->size;
}
