/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * type.h - Iceberg's types and schemas (spec: "Schemas and Data Types", appendix C).
 *
 * Everything here is immutable after parsing and lives in the arena it was parsed into (for table
 * metadata: until the last reference of the KnMetadata is dropped). Thread-safe to read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/batch.h"

typedef enum KnTypeKind {
    KN_TYPE_BOOLEAN,
    KN_TYPE_INT,
    KN_TYPE_LONG,
    KN_TYPE_FLOAT,
    KN_TYPE_DOUBLE,
    KN_TYPE_DECIMAL,
    KN_TYPE_DATE,
    KN_TYPE_TIME,
    KN_TYPE_TIMESTAMP,
    KN_TYPE_TIMESTAMPTZ,
    KN_TYPE_TIMESTAMP_NS,
    KN_TYPE_TIMESTAMPTZ_NS,
    KN_TYPE_STRING,
    KN_TYPE_UUID,
    KN_TYPE_FIXED,
    KN_TYPE_BINARY,
    KN_TYPE_STRUCT,
    KN_TYPE_LIST,
    KN_TYPE_MAP,
    KN_TYPE_UNKNOWN,
    KN_TYPE_VARIANT,
    KN_TYPE_GEOMETRY,
    KN_TYPE_GEOGRAPHY,
} KnTypeKind;

typedef struct KnField KnField;
typedef struct KnType {
    KnTypeKind kind;
    int32_t precision, scale; /* decimal */
    int32_t length;           /* fixed */
    const char *text;         /* geometry/geography: the whole type text with its parameters */
    size_t n_fields;          /* struct: its fields; list: 1 (element); map: 2 (key, value) */
    const KnField *fields;
} KnType;

struct KnField {
    int32_t id;
    const char *name; /* list: "element"; map: "key", "value" */
    bool required;
    const KnType *type;
    const char *doc;                               /* or NULL */
    const json_t *initial_default, *write_default; /* JSON single-value form, or NULL */
    const json_t *extra; /* the object it was parsed from, whose unknown keys are kept; or NULL */
};

typedef struct KnSchema {
    int32_t schema_id;
    KnType root; /* KN_TYPE_STRUCT */
    size_t n_identifier_ids;
    const int32_t *identifier_ids;
    const json_t *extra; /* as in KnField */
} KnSchema;

/** "decimal(9,2)", "fixed[16]", "list<int>"…, as Iceberg's error messages spell types. */
void kn_type_format(KnBuf *buf, const KnType *type);
/** A primitive's text ("long", "decimal(9, 2)", "fixed[16]"); nested shapes only from JSON or
 * schema text. */
KN_NODISCARD KnCode kn_type_parse(KnArena *arena, KnStr text, const KnType **ret, KnErr *err);
bool kn_type_equal(const KnType *a, const KnType *b); /* with ids and names of nested fields */
bool kn_type_is_nested(const KnType *type);
/** The engine's column type: "BIGINT", "DECIMAL(9,2)", "STRUCT(a INTEGER, …)", uuid -> UUID, fixed
 * and binary -> BLOB, timestamptz -> TIMESTAMP WITH TIME ZONE, both ns types -> TIMESTAMP_NS,
 * unknown -> INTEGER (always NULL). KN_E_UNSUPPORTED names variant, geometry, geography. */
KN_NODISCARD KnCode kn_type_sql(KnBuf *buf, const KnType *type, KnErr *err);
/** The kind of a column of that type; KN_COL_OTHER where there is none. */
KnColKind kn_type_column_kind(KnTypeKind kind);

/** A schema object or a bare struct type (schema_id 0). Checks unique ids and names and identifier
 * fields; unknown type names are KN_E_UNSUPPORTED by name. */
KN_NODISCARD KnCode kn_schema_parse(KnArena *arena, const json_t *json, KnSchema **ret, KnErr *err);
json_t *kn_schema_to_json(const KnSchema *schema); /* new reference */
/** "id long required, name string, st struct<a int, b list<string>>, m map<string,int>": the CLI's
 * form. Ids are given breadth first (top level first), as createTable does. */
KN_NODISCARD KnCode kn_schema_parse_text(KnArena *arena, KnStr text, KnSchema **ret, KnErr *err);
/** KN_E_INVAL when a field's type or default needs a newer format version (ns timestamps, unknown,
 * variant, geo and initial defaults need v3). Checked where a schema is added, not where one is
 * read, as Java does. */
KN_NODISCARD KnCode kn_schema_check_format(const KnSchema *schema, int32_t format_version,
                                           KnErr *err);
/** A struct's own field, not one inside it. NULL = none. */
const KnField *kn_type_field(const KnType *type, int32_t id);
/** Any depth. NULL = none. */
const KnField *kn_schema_find_id(const KnSchema *schema, int32_t id);
/** "a", "st.a", "li.element", "mp.value.x": full dotted names; NULL = none. */
const KnField *kn_schema_find_name(const KnSchema *schema, KnStr dotted);
/** The dotted name of id into buf; false = no such id. */
bool kn_schema_full_name(const KnSchema *schema, int32_t id, KnBuf *buf);
int32_t kn_schema_highest_id(const KnSchema *schema);
/** The top-level fields named, in that order (NULL names = all). */
KN_NODISCARD KnCode kn_schema_project(KnArena *arena, const KnSchema *schema,
                                      const char *const *names, size_t n, KnSchema **ret,
                                      KnErr *err);
/** True when a value of type `from` may be read as `to`: int->long, float->double, wider decimal,
 * v3's date->timestamp(_ns); equal types always. */
bool kn_type_promotes(const KnType *from, const KnType *to);

/* Name mapping (property schema.name-mapping.default) for files without field ids. */
typedef struct KnNameMapping {
    size_t n_names;
    const char *const *names;
    int32_t field_id; /* -1 = none */
    size_t n_fields;
    const struct KnNameMapping *fields;
} KnNameMapping;
/** ret: a root node whose fields are the top-level mappings. */
KN_NODISCARD KnCode kn_name_mapping_parse(KnArena *arena, KnStr json, const KnNameMapping **ret,
                                          KnErr *err);

/* Reserved field ids (spec: "Reserved Field IDs"). */
enum {
    KN_FIELD_ID_FILE_PATH = 2147483546,
    KN_FIELD_ID_POS = 2147483545,
    KN_FIELD_ID_ROW = 2147483544,
    KN_FIELD_ID_ROW_ID = 2147483540,
    KN_FIELD_ID_LAST_UPDATED_SEQUENCE = 2147483539,
};
