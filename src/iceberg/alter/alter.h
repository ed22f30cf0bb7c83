/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * alter.h - changes of a table's shape: columns, identifier fields, partitioning, write order,
 * properties, format version, location.
 *
 * A change is what stands behind ALTER TABLE in Spark's and Iceberg's DDL. Several changes are one
 * commit; each sees the table as the ones before it left it. Rules are those of Java's SchemaUpdate
 * and BaseUpdatePartitionSpec. One thread.
 */
#include "iceberg/schema/text_cursor.h"
#include "iceberg/table.h"

typedef enum KnChangeKind {
    KN_CHANGE_ADD_COLUMN,
    KN_CHANGE_DROP_COLUMN,
    KN_CHANGE_RENAME_COLUMN,
    KN_CHANGE_COLUMN_TYPE,
    KN_CHANGE_COLUMN_REQUIRED, /* required: SET or DROP NOT NULL */
    KN_CHANGE_COLUMN_COMMENT,
    KN_CHANGE_COLUMN_PLACE,
    KN_CHANGE_COLUMN_DEFAULT, /* literal NULL = drop */
    KN_CHANGE_SET_IDENTIFIER,
    KN_CHANGE_DROP_IDENTIFIER,
    KN_CHANGE_ADD_PARTITION,
    KN_CHANGE_DROP_PARTITION,
    KN_CHANGE_REPLACE_PARTITION,
    KN_CHANGE_RENAME_PARTITION,
    KN_CHANGE_WRITE_ORDER,
    KN_CHANGE_SET_PROPERTIES,
    KN_CHANGE_UNSET_PROPERTIES,
    KN_CHANGE_FORMAT_VERSION,
    KN_CHANGE_LOCATION,
} KnChangeKind;

typedef enum KnColumnPlace {
    KN_PLACE_LAST, /* where it is */
    KN_PLACE_FIRST,
    KN_PLACE_AFTER,
    KN_PLACE_BEFORE,
} KnColumnPlace;

/* Members that a kind does not use are zero. Everything lives in the arena of the parse. */
typedef struct KnChange {
    KnChangeKind kind;
    const char *parent; /* ADD COLUMN: path of the struct; NULL = top level */
    const char *column; /* path of a column; ADD COLUMN: the new name */
    const char *name;   /* RENAME … TO name; AS name */
    const KnType *type; /* ids of nested fields are to be given */
    bool required;
    const char *doc;
    const char *literal; /* text of a default; NULL = none, or the word NULL */
    KnColumnPlace place;
    const char *beside;            /* AFTER, BEFORE */
    KnTerm term, with;             /* partition field; WITH */
    size_t n_names;                /* identifier fields, properties */
    const char *const *names;      /* paths, keys */
    const char *const *values;     /* of properties */
    size_t n_sort;                 /* WRITE ORDERED BY; 0 = unordered */
    const KnSortTerm *sort;        /* fields of the order */
    bool keep_order;               /* WRITE DISTRIBUTED BY PARTITION alone */
    const char *distribution_mode; /* "range", "hash", "none" */
    int64_t number;                /* format version */
    const char *location;
} KnChange;

typedef struct KnChanges {
    size_t n;
    const KnChange *items;
} KnChanges;

/** Reads changes, separated by ';' where there are several. KN_E_INVAL with position and what was
 * expected. alter_parse.c has the grammar. */
KN_NODISCARD KnCode kn_changes_parse(KnArena *arena, KnStr text, KnChanges *ret, KnErr *err);

typedef struct KnAlterOptions {
    bool allow_incompatible; /* required columns without default, SET NOT NULL */
    bool dry_run;            /* everything but the commit */
} KnAlterOptions;

/** Applies the changes as one commit; a table that was changed meanwhile is looked at again, and
 * the changes are made on it where each column means the same field (else KN_E_CONFLICT). When
 * there is nothing to change, no commit is made. *ret_before: the metadata that the changes were
 * made on, *ret_after: what came out; the caller drops both references. */
KN_NODISCARD KnCode kn_table_alter(KnTable *tbl, const KnChanges *changes,
                                   const KnAlterOptions *opts, KnMetadata **ret_before,
                                   KnMetadata **ret_after, KnErr *err);
