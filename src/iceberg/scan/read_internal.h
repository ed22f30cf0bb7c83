/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* read_internal.h - the parts of reading, between read*.c. Everything lives in the read's arena. */
#include "base/vec.h"
#include "engine/fingerprint.h"
#include "engine/parquet.h"
#include "iceberg/scan/read.h"

/* A file, looked at. Delete files have no task. */
typedef struct KnReadFile {
    const KnScanTask *task;
    size_t index;         /* in what was looked at; for data files: in the caller's tasks */
    const char *name;     /* as the manifest has it */
    const char *path;     /* as the engine opens it: a copy perhaps */
    const KnPqNode *root; /* with field ids, from the file or the name mapping */
    const char *shape;
    int64_t n_rows;
    uint64_t *dead;                   /* a bit for each deleted row; NULL = none */
    const uint64_t *dead_by_position; /* with keep_positions: without equality deletes */
    const uint64_t *wanted;           /* a bit for each row still wanted; NULL = all that live */
} KnReadFile;

/* Tasks that follow one another and share a shape: read by one read_parquet(). */
typedef struct KnReadGroup {
    size_t first; /* task */
    size_t n_files;
    KnReadFile *const *files;
    int64_t from, to; /* rows [from, to) of the one file; 0, 0 = all rows of all files */
} KnReadGroup;

struct KnRead {
    KnArena *arena;
    const KnTable *tbl;
    KnSession *ses;
    KnReadOptions opts;
    int64_t id; /* names temporary tables, and the read to kn_live() */
    size_t n_tables;
    size_t n_tasks;
    const KnScanTask *tasks;
    size_t n_files;
    KnReadFile *files; /* in the order of the tasks */
    size_t n_groups;
    KnReadGroup *groups;
    bool is_narrow; /* groups ask for wanted rows (read_narrow.c) */
    const char **group_sql;
    const char *sql;
    void *copies; /* read_copies.c */
};

/* ---- read_files.c ---- */
/** Paths checked, footers read, ids assigned; entries may be data or Parquet delete files. */
KN_NODISCARD KnCode kn_read_look(KnRead *read, const KnManifestEntry *const *entries, size_t n,
                                 KnReadFile **ret, KnErr *err);
/** Puts a copy in the place of a file that the engine would read wrongly (read_copies.c). */
KN_NODISCARD KnCode kn_read_mend(KnRead *read, const KnDataFile *file, const KnPqFile *pq,
                                 KnReadFile *look, KnErr *err);
/** A new path for a copy, which is removed with the read. */
KN_NODISCARD KnCode kn_read_copy_path(KnRead *read, const char **ret, KnErr *err);
/** `read_parquet(['…', …]) AS t(c0, c1, …)` */
void kn_read_source_sql(KnRead *read, KnReadFile *const *files, size_t n, KnBuf *buf);
/** Files grouped by shape, in order of appearance; calls fn for each. */
typedef KnCode (*KnReadShapeFn)(void *arg, KnReadFile *const *files, size_t n, KnErr *err);
KN_NODISCARD KnCode kn_read_each_shape(KnReadFile *const *files, size_t n, KnReadShapeFn fn,
                                       void *arg, KnErr *err);

/* ---- read_project.c ---- */
/** The SQL of field over the columns c0… of files of one shape; a column that they do not have
 * becomes the identity partition value, the initial default or NULL. as_key: for matching equality
 * deletes, an absent required column is NULL instead of an error. */
typedef struct KnProject {
    KnRead *read;
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

/* ---- read_outputs.c ---- */
/* The columns o0, o1, … of an inner SELECT: those wanted, then those that only the filter needs. */
typedef struct KnOutputs {
    KN_VEC(const KnField *) fields;
} KnOutputs;
void kn_read_outputs_fill(KnOutputs *out, const KnReadOptions *opts, bool filter_only);
KN_NODISCARD KnCode kn_read_outputs_sql(const KnOutputs *out, const KnProject *project, KnBuf *buf,
                                        KnErr *err);
/** ` WHERE <filter>`, if there is one. */
KN_NODISCARD KnCode kn_read_where_sql(const KnOutputs *out, const KnReadOptions *opts, KnBuf *buf,
                                      KnErr *err);

/* ---- deleted rows: read_live.c, read_positions.c, read_vectors.c, read_equality.c ---- */
/** Marks rows of a data file as deleted; positions beyond its end are nothing. */
KN_NODISCARD KnCode kn_read_mark(KnRead *read, KnReadFile *file, uint64_t first, uint64_t count,
                                 KnErr *err);
/** Marks what a SELECT of (f BIGINT: index in files, p BIGINT: row) gives. */
KN_NODISCARD KnCode kn_read_mark_query(KnRead *read, KnReadFile *const *files, size_t n,
                                       const char *sql, KnErr *err);
/** Sets dead_by_position: what is marked so far. */
KN_NODISCARD KnCode kn_read_keep_positions(KnRead *read, KnErr *err);
/** Makes kn_live(read, file, row) and kn_wanted(read, file, row) known to the engine, and this read
 * to them. */
KN_NODISCARD KnCode kn_read_live_open(KnRead *read, KnErr *err);
void kn_read_live_close(KnRead *read);

/* ---- read_keys.c ---- */
typedef struct KnKeySet KnKeySet;
/* Where a data file stands in the chain of deletes that apply to it; a place in a chain. */
typedef struct KnKeyPlace {
    uint32_t chain, start;
} KnKeyPlace;
typedef struct KnKeySetOptions {
    uint64_t seed;         /* of the keys' fingerprints, the same in all passes */
    uint64_t n_keys;       /* at most so many are put in */
    size_t pass, n_passes; /* only keys whose turn this is, from 0; up to 65,536 passes */
} KnKeySetOptions;
KN_NODISCARD KnCode kn_key_set_open(KnSession *ses, const KnKeySetOptions *opts, KnKeySet **ret,
                                    KnErr *err);
/** These keys are deleted at this place of the chain; those whose turn it is not are ignored. */
KN_NODISCARD KnCode kn_key_set_add(KnKeySet *set, const KnFingerprint *keys, size_t n,
                                   KnKeyPlace at, KnErr *err);
/** From now on, asked for rows of these files, until close or the next ask. places are borrowed. */
void kn_key_set_ask(KnKeySet *set, const KnKeyPlace *places, size_t n_places);
/** A condition over f (BIGINT: index in places) and k0, ...: the row's key was deleted where the
 * file starts, or later. */
void kn_key_set_sql(const KnKeySet *set, size_t n_keys, KnBuf *buf);
KnKeySet *kn_key_set_close(KnKeySet *set);

KN_NODISCARD KnCode kn_read_load_positions(KnRead *read, KnErr *err);
KN_NODISCARD KnCode kn_read_load_vectors(KnRead *read, KnErr *err);
KN_NODISCARD KnCode kn_read_load_equality(KnRead *read, KnErr *err);
bool kn_read_is_vector(const KnManifestEntry *entry);

/** The SELECTs of read->groups, anew. */
KN_NODISCARD KnCode kn_read_write_groups(KnRead *read, KnErr *err);
/** Adds the files [first, end) to read->groups, those of one shape that follow one another as one.
 */
void kn_read_add_groups(KnRead *read, size_t first, size_t end);

/** A new name for a temporary table of the session. */
const char *kn_read_new_table(KnRead *read, const char *kind);
