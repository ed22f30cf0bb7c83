/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * read.h - tasks become SQL: columns matched by field id, deletes applied, as the engine can run
 * it.
 *
 * kn_read_open() looks at the footers of the tasks' files, resolves position deletes, deletion
 * vectors and equality deletes to rows of files, and has a SELECT ready for each group of files
 * that follow one another and share a physical schema. Renames at any depth, promotions, added
 * columns (v3 initial defaults), dropped columns, name mapping for files without ids, identity
 * partition values absent from files all end as expressions. Formats and features that are not done
 * (ORC, encryption, variant, geo) are KN_E_UNSUPPORTED by name.
 */
#include "engine/engine.h"
#include "iceberg/scan/plan.h"

typedef struct KnRead KnRead;

typedef struct KnReadOptions {
    const KnSchema *schema; /* the columns wanted, by id; each top-level field is a column */
    const KnExpr *filter;   /* on schema's names; NULL = all */
    bool with_position; /* two more columns at the end: _task BIGINT (index in tasks), _pos BIGINT
                           (row in file) */
    bool with_lineage; /* v3: _row_id BIGINT, _last_updated_sequence_number BIGINT after the columns
                        */
    bool ignore_deletes; /* rows as in the files */
    bool keep_positions; /* for kn_read_position_words() */
    /* SELECT of (task BIGINT, position BIGINT): rows to be taken for deleted too; NULL = none */
    const char *except_sql;
} KnReadOptions;

/** ses is borrowed until kn_read_close(); so are tbl and what tasks and opts point to. Delete files
 * are read here (under opts' filter), by temporary tables of ses that are dropped again. Checks
 * each file's row count against its manifest entry (KN_E_CORRUPT naming both). Avro files, and some
 * Parquet files, are read from copies under TMPDIR that go with the read. */
KN_NODISCARD KnCode kn_read_open(const KnTable *tbl, KnSession *ses, KnScanTasks tasks,
                                 const KnReadOptions *opts, KnRead **ret, KnErr *err);
KnRead *kn_read_close(KnRead *read);
/** Could all of these files be read, as far as manifests tell? KN_E_UNSUPPORTED by name if not. */
KN_NODISCARD KnCode kn_read_check_formats(const KnTable *tbl, KnScanTasks tasks, KnErr *err);
/** One SELECT over all groups (UNION ALL), to be used as a subquery on the same session. No task: a
 * SELECT without rows. */
const char *kn_read_sql(const KnRead *read);
/** Groups in task order; rows of a group come in file order, files in task order. */
size_t kn_read_n_groups(const KnRead *read);
const char *kn_read_group_sql(const KnRead *read, size_t group);
/** A condition over a task's number and a row's position in its file (SQL of BIGINT): the row is
 * live in this read, whatever read it comes from. Holds until kn_read_close(). */
void kn_read_live_sql(const KnRead *read, const char *task, const char *pos, KnBuf *buf);
/** Rows of a task's file that are live in this read (its filter left aside). */
int64_t kn_read_live_rows(const KnRead *read, size_t task);
/** The same of rows first, ..., first + n - 1 of the file. */
int64_t kn_read_live_rows_in(const KnRead *read, size_t task, int64_t first, int64_t n);
/** With keep_positions: the rows of a task's file that position deletes and deletion vectors delete
 * (equality deletes left aside), a bit for each row, as long as the read; NULL = none. */
const uint64_t *kn_read_position_words(const KnRead *read, size_t task);

/** Leaves in the SELECTs only rows whose bit is set in bits: row p of task t has bit firsts[t] + p,
 * firsts[t] being a multiple of 64. Row groups without any are not read. bits are borrowed until
 * kn_read_close(), and hold only rows that are live. kn_read_live_sql() goes on as before. */
KN_NODISCARD KnCode kn_read_narrow(KnRead *read, const uint64_t *bits, const uint64_t *firsts,
                                   KnErr *err);

/** The number of a plan's rows, when manifests tell it: no filter, and no deletes but vectors. */
bool kn_plan_count(const KnPlan *plan, int64_t *ret);
/** The same for any plan, under opts' filter: reads what it must of the delete files, of data files
 * the columns of equality deletes and of the filter. */
KN_NODISCARD KnCode kn_read_count(const KnPlan *plan, KnSession *ses, const KnReadOptions *opts,
                                  int64_t *ret, KnErr *err);

/* A scan: the groups one after another as batches. */
typedef struct KnScan KnScan;
KN_NODISCARD KnCode kn_scan_open(const KnPlan *plan, KnSession *ses, const KnReadOptions *opts,
                                 KnScan **ret, KnErr *err);
KN_NODISCARD KnCode kn_scan_next(KnScan *scan, KnBatch **ret, KnErr *err); /* NULL batch = end */
KnScan *kn_scan_close(KnScan *scan);

/** One JSON object for a row, values spelled as documented in docs/output.md ("Values in JSON"):
 * 64-bit integers as numbers, decimals as text, NaN and infinities as text, ISO 8601 without
 * needless zeros (Z for UTC), 0x hex, uuid text, structs as objects, maps as lists of pairs. extra:
 * further members after the columns, or NULL. */
KN_NODISCARD KnCode kn_row_json(KnBuf *out, const KnSchema *schema, const KnBatch *batch,
                                size_t row, const char *extra, KnErr *err);
/** One value, spelled likewise. The caller checks the buffer. */
KN_NODISCARD KnCode kn_value_json(KnBuf *out, const KnType *type, const KnVector *vec, size_t row,
                                  KnErr *err);
