/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* read_internal.h - the parts of reading, between read*.c. Everything lives in the read's arena. */
#include "base/vec.h"
#include "engine/parquet.h"
#include "iceberg/read.h"

/* A task's file, looked at. */
typedef struct KnReadFile {
    const KnScanTask *task;
    size_t index;         /* in the caller's tasks */
    const char *path;     /* as the engine opens it */
    const KnPqNode *root; /* with field ids, from the file or the name mapping */
    const char *shape;
} KnReadFile;

/* Files that one read_parquet() takes together. */
typedef struct KnReadGroup {
    const KnPqNode *root;
    size_t n_files;
    KnReadFile *const *files;
    const char *position_table; /* temporary table (f, p), or NULL */
    size_t n_equality;
    struct KnEqualityJoin *equality;
} KnReadGroup;

struct KnRead {
    KnArena *arena;
    const KnTable *tbl;
    KnSession *ses;
    KnReadOptions opts;
    uint64_t id;     /* makes the names of temporary tables */
    size_t n_tables; /* made so far */
    size_t n_groups;
    KnReadGroup *groups;
    const char **group_sql;
    const char *sql;
};

/* ---- read_files.c ---- */
/** Paths checked, footers read, ids assigned; entries may be data or Parquet delete files. */
KN_NODISCARD KnCode kn_read_look(KnRead *read, const KnManifestEntry *const *entries, size_t n,
                                 KnReadFile **ret, KnErr *err);
/** `read_parquet(['…', …]) AS t(c0, c1, …)` */
void kn_read_source_sql(KnArena *arena, const KnPqNode *root, KnReadFile *const *files, size_t n,
                        KnBuf *buf);

/* ---- read_project.c ---- */
/** The SQL of field over the columns c0… of files in group; a column that no file has becomes the
 * identity partition value, the initial default or NULL. as_key: for matching equality deletes, an
 * absent required column is NULL instead of an error. */
typedef struct KnProject {
    KnRead *read;
    const KnPqNode *root;
    size_t n_files;
    KnReadFile *const *files;
    bool as_key;
} KnProject;
KN_NODISCARD KnCode kn_read_column_sql(const KnProject *project, const KnField *field, KnBuf *buf,
                                       KnErr *err);
/** The same for a field inside structs, by id, whichever schema of the table has it. */
KN_NODISCARD KnCode kn_read_field_sql(const KnProject *project, int32_t id, KnBuf *buf, KnErr *err);
/** `[v0, v1, …][file_index + 1]`, or v0 when all are the same text. */
void kn_read_lookup_sql(KnBuf *buf, const char *const *values, size_t n, const char *type);
const KnPqNode *kn_read_child_by_id(const KnPqNode *node, int32_t id, size_t *ret_index);

/* ---- read_equality.c, read_positions.c, read_vectors.c ---- */
/* One ANTI JOIN: all equality deletes over one set of columns. */
typedef struct KnEqualityJoin {
    size_t n_ids;
    const int32_t *ids;        /* ascending */
    const char *table;         /* (c, j, k0, s0, k1, …) */
    const char *const *chains; /* per file, as text */
    const char *const *starts; /* per file: the first j that applies */
} KnEqualityJoin;

/** Adds the positions of a deletion vector as those of file number `file` (read_vectors.c). */
KN_NODISCARD KnCode kn_read_load_vector(KnRead *read, const KnManifestEntry *vector, size_t file,
                                        const char *table, KnErr *err);
KN_NODISCARD KnCode kn_read_load_positions(KnRead *read, KnReadGroup *group, KnErr *err);
/** Ids in ascending order, made from a delete file's. */
const int32_t *kn_read_sorted_ids(KnArena *arena, const KnDataFile *file);
KN_NODISCARD KnCode kn_read_load_equality(KnRead *read, KnReadGroup *group, KnErr *err);
/** Key columns `expr AS k0, … AS s0` of the join with number `join`, named `<prefix>k0`. */
KN_NODISCARD KnCode kn_read_key_columns_sql(const KnProject *project, const KnEqualityJoin *join,
                                            const char *prefix, KnBuf *buf, KnErr *err);
const char *kn_read_new_table(KnRead *read, const char *kind);
/** Files grouped by shape, in order of appearance; calls fn for each. */
typedef KnCode (*KnReadShapeFn)(void *arg, KnReadFile *const *files, size_t n, KnErr *err);
KN_NODISCARD KnCode kn_read_each_shape(KnReadFile *files, size_t n, KnReadShapeFn fn, void *arg,
                                       KnErr *err);
