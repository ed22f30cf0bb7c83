/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* meta_support.h - what the tests of types, values and table metadata share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "iceberg/metadata/metadata.h"

typedef struct Meta {
    KnArena *arena;
    KnErr err;
} Meta;

int meta_setup(void **state);
int meta_teardown(void **state);

/** Fails with the message when code is not KN_OK. */
void meta_ok_at(const Meta *m, KnCode code, const char *file, int line);
#define meta_ok(m, code) meta_ok_at((m), (code), __FILE__, __LINE__)

/** A type from schema text ("list<int>"), an object from JSON with ' for ". They live in the arena.
 */
const KnType *meta_type(Meta *m, const char *text);
KnSchema *meta_schema(Meta *m, const char *text);
json_t *meta_json(Meta *m, const char *text);
/** A value of type from its text form. */
KnValue meta_value(Meta *m, const KnType *type, const char *text);
/** kn_value_format() of value, in the arena. */
const char *meta_text(Meta *m, const KnType *type, const KnValue *value);
/** The bytes of tests/data/metadata/<name>. */
KnStr meta_file(Meta *m, const char *name);
/** That file parsed. The caller drops it. */
KnMetadata *meta_load(Meta *m, const char *name);
/** text with every ' made " (JSON in C is unreadable otherwise). */
const char *meta_quotes(Meta *m, const char *text);

/** A table of columns id, ts, name without snapshots. The caller drops it. */
KnMetadata *meta_create(Meta *m, int32_t version);
/** base with the updates; takes over base. */
KnMetadata *meta_apply(Meta *m, KnMetadata *base, const KnUpdate *updates, size_t n);
/** The updates are KN_E_INVAL with that message. */
void meta_refused(Meta *m, const KnMetadata *base, const KnUpdate *updates, size_t n,
                  const char *message);
/** An append on the current snapshot, and a branch or tag moved. */
KnUpdate meta_add_snapshot(const KnMetadata *md, int64_t id, int64_t at_ms);
KnUpdate meta_set_ref(const char *name, int64_t id, bool is_branch);
/** Both, on main; takes over md. */
KnMetadata *meta_commit(Meta *m, KnMetadata *md, int64_t id, int64_t at_ms);
