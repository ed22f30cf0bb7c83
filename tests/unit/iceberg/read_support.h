/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* read_support.h - Parquet files made by the engine, tasks made by hand, rows as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/scan/read.h"

enum { MAX_FILES = 16 };

typedef struct Fixture {
    char dir[256];
    KnArena *arena;
    KnFileIO *io;
    KnEngine *eng;
    KnSession *ses;
    KnTable *tbl;
    KnErr err;
    KnBuf out;
    KnManifestEntry *entries[MAX_FILES];
    size_t n_entries;
    KnScanTask tasks[MAX_FILES];
    size_t n_tasks;
} Fixture;

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define INT    "\"int\""
#define LONG   "\"long\""
#define STRING "\"string\""
#define DOUBLE "\"double\""

#define SCHEMA(id, fields) "{\"type\":\"struct\",\"schema-id\":" #id ",\"fields\":[" fields "]}"
#define CASE(f)            cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
#define ROWS               "SELECT CAST(s AS VARCHAR) FROM ({scan}) s"

/** schemas: JSON schemas without the array's brackets; the first has schema-id 0 and is current. */
void fixture_open_table(Fixture *fix, const char *schemas, const char *properties);
int fixture_setup(void **state);
int fixture_teardown(void **state);
/** Writes a Parquet file of a SELECT and its entry. field_ids: "{a: 1}", or NULL for none. */
KnManifestEntry *fixture_put(Fixture *fix, const char *name, const char *field_ids,
                             const char *select);
/** A task of data with up to three deletes. */
KnScanTask *fixture_task(Fixture *fix, KnManifestEntry *data, KnManifestEntry *d1,
                         KnManifestEntry *d2, KnManifestEntry *d3);
KnManifestEntry *fixture_equality(Fixture *fix, const char *name, int32_t id, const char *field_ids,
                                  const char *select);
KnManifestEntry *fixture_positions(Fixture *fix, const char *name, const char *select);
KnCode fixture_read(Fixture *fix, const KnReadOptions *given, const char *sql);
void expect_rows_with(Fixture *fix, const KnReadOptions *opts, const char *want);
void expect_rows(Fixture *fix, const char *want);
void expect_error(Fixture *fix, KnCode code, const char *part);
