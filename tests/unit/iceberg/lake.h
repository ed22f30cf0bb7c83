/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lake.h - one table in a folder of its own, with a catalog that keeps the pointer in memory: for
 * tests that write. Metadata documents are written beside the data, so that other readers can look
 * at what was made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "iceberg/changes/changelog.h"
#include "iceberg/write/write.h"

typedef struct Lake {
    char dir[256];
    bool keep; /* the folder stays */
    KnFileIO *io;
    KnEngine *eng;
    KnSession *ses;
    KnCatalog *cat;
    KnTable *tbl;
    KnErr err;
    /* Before the next commit's check: another writer's turn. Cleared when called. */
    void (*before_commit)(struct Lake *lake);
    bool dropped;       /* somebody dropped the table; it can still be loaded */
    KnCode fail_commit; /* the next commit is applied and then answers this; KN_OK = nothing */
} Lake;

typedef struct LakeTable {
    const char *schema;    /* the CLI's text forms */
    const char *spec;      /* or NULL */
    const char *order;     /* or NULL */
    int version;           /* 0 = 2 */
    const char *props[16]; /* key, value, ..., NULL */
} LakeTable;

/* A schema of every type that can be written, and its rows numbered from %d to before %d. */
#define LAKE_ALL_TYPES                                                                             \
    "bo boolean, i int, l long, f float, d double, de decimal(9,2), da date, ti time, "            \
    "ts timestamp, tz timestamptz, s string, u uuid, bi binary, "                                  \
    "st struct<a int, b struct<c string>>, li list<double>, "                                      \
    "ma map<string, struct<x int>>, ls list<struct<p int, q list<string>>>"

#define LAKE_ALL_VALUES                                                                            \
    "SELECT i %% 2 = 0 AS bo, i AS i, i * 10000000000 AS l, (i / 2.0)::FLOAT AS f, "               \
    "(i / 3.0)::DOUBLE AS d, i + 0.25 AS de, DATE '2026-01-01' + i::INT AS da, "                   \
    "TIME '10:00:00' + to_seconds(i) AS ti, TIMESTAMP '2026-01-01 00:00:00' + to_hours(i) AS ts, " \
    "TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_days(i::INT) AS tz, 'text ' || i AS s, "            \
    "'01234567-89ab-cdef-0123-456789abcdef'::UUID AS u, "                                          \
    "'\\xFF\\xFE'::BLOB AS bi, {'a': i::INT, 'b': {'c': 'c' || i}} AS st, "                        \
    "[i::DOUBLE, 'nan'::DOUBLE] AS li, MAP {'k': {'x': i::INT}} AS ma, "                           \
    "[{'p': i::INT, 'q': ['q']}] AS ls FROM range(%d, %d) t(i)"

void lake_open(Lake *lake, const LakeTable *table);
void lake_close(Lake *lake);
/** A handle of its own on the same table; free with kn_table_free(). */
KnTable *lake_load(Lake *lake);
/** Another writer's handle in the place of ours, which is returned; and back again. */
KnTable *lake_become_other(Lake *lake);
void lake_become_myself(Lake *lake, KnTable *mine);

KnWriteResult lake_append(Lake *lake, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
KnWriteResult lake_delete(Lake *lake, const char *where);
KnWriteResult lake_overwrite(Lake *lake, const char *where, const char *sql);
/** An append that may fail. */
KnCode lake_append_code(Lake *lake, const char *sql);
const KnExpr *lake_expr(Lake *lake, const char *where);
/** All files of the current snapshot; free with kn_plan_free(). */
KnPlan *lake_plan(Lake *lake);
/** Files below a folder of the table's own; "" = all. */
size_t lake_files_below(Lake *lake, const char *folder);

/* A snapshot as a merge-on-read writer makes it; the table is unpartitioned. */
typedef struct LakeRowDelta {
    const char *positions; /* SELECT of file_path, pos; NULL = none */
    const char *keys;      /* SELECT of key columns by the table's names; NULL = none */
    const char *key_names[4];
    const char *rows; /* to add, all columns in order; NULL = none */
    const char *operation;
} LakeRowDelta;
void lake_row_delta(Lake *lake, const LakeRowDelta *delta);

/** The first value of a SELECT in which {scan} is the table's rows as they are at a snapshot (NULL
 * = current); in a static buffer, "NULL" for NULL. */
const char *lake_text_at(Lake *lake, const KnSnapshot *snap, const char *sql);
const char *lake_text(Lake *lake, const char *sql);
/** All rows as one text: `list of structs` sorted. */
const char *lake_rows(Lake *lake);

void lake_exec(Lake *lake, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define lake_ok(lake, expr)                                                                        \
    do {                                                                                           \
        if ((expr) != KN_OK)                                                                       \
            fail_msg("%s: %s", #expr, (lake)->err.msg);                                            \
    } while (0)
#define lake_fails(lake, expr, want, part)                                                         \
    do {                                                                                           \
        KnCode got_ = (expr);                                                                      \
        if (got_ != (want))                                                                        \
            fail_msg("%s gave %s (%s)", #expr, kn_code_name(got_), got_ ? (lake)->err.msg : "");   \
        if (!strstr((lake)->err.msg, (part)))                                                      \
            fail_msg("'%s' is not in: %s", (part), (lake)->err.msg);                               \
    } while (0)
