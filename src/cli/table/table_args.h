/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* table_args.h - what several table commands read from their words: files with rows, schemas,
 * results. */
#include "cli/command.h"
#include "iceberg/write/write.h"

/** Where rows to write come from. */
typedef struct KnRowsFrom {
    int format;            /* auto|parquet|csv|json */
    const char *null_text; /* CSV: this text is NULL too (the empty field always is) */
    const char *sql;       /* a query instead of files */
} KnRowsFrom;
/** Rows for KnRowsFrom, offsets from its start. */
extern const KnOptGroup kn_rows_from_options;

/** The SELECT whose rows are written into a table of this schema: CSV fields and JSON values are
 * read as the table's types, not as guessed ones. */
KN_NODISCARD KnCode kn_args_rows(const KnCall *call, KnSession *ses, const KnSchema *schema,
                                 const KnRowsFrom *from, const char **ret_sql, KnErr *err);
/** Iceberg's schema JSON from a file. */
KN_NODISCARD KnCode kn_args_schema_file(KnArena *arena, const char *file, KnSchema **ret,
                                        KnErr *err);
/** The columns of a data file as an Iceberg schema; KN_E_UNSUPPORTED names a column that Iceberg
 * cannot hold. */
KN_NODISCARD KnCode kn_args_schema_like(const KnCall *call, const char *file, KnSchema **ret,
                                        KnErr *err);
/** KEY=VALUE words as pairs for the snapshot's summary; keys that the writer itself sets are
 * refused.
 */
KN_NODISCARD KnCode kn_args_summary(const KnCall *call, const KnOptList *words,
                                    KnWriteOptions *write, KnErr *err);
/** Prints what a writing command did. */
KN_NODISCARD KnCode kn_args_print_result(const KnCall *call, const KnTable *tbl,
                                         const char *operation, const KnWriteResult *result,
                                         KnErr *err);
KN_NODISCARD KnCode kn_args_print_upsert(const KnCall *call, const KnTable *tbl,
                                         const KnWriteResult *result, KnErr *err);
