/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* avro_lake.h - Avro files written datum by datum, and a table that has them: for tests of reading.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/avro.h"
#include "iceberg/scan/read.h"

enum { MAX_FILES = 8 };

typedef struct AvroLake {
    char dir[256], tmp[300];
    KnArena *arena;
    KnFileIO *io;
    KnEngine *eng;
    KnSession *ses;
    KnTable *tbl;
    KnErr err;
    KnBuf out;
    KnScanTask tasks[MAX_FILES];
    size_t n_tasks;
} AvroLake;

/* cmocka set-up and tear-down: *state is an AvroLake. TMPDIR is a folder of its own, which must be
 * empty in the end: no copy outlives its read. */
int avro_setup(void **state);
int avro_teardown(void **state);

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define INT                        "\"int\""
#define LONG                       "\"long\""
#define TEXT                       "\"string\""
#define AVRO(fields)               "{\"type\":\"record\",\"name\":\"table\",\"fields\":[" fields "]}"
#define AVRO_FIELD(id, name, type) "{\"name\":\"" name "\",\"type\":" type ",\"field-id\":" #id "}"
#define OR_NULL(type)              "[\"null\"," type "]"

#define TIMESTAMP(unit, utc)                                                                       \
    "{\"type\":\"long\",\"logicalType\":\"timestamp-" unit "\",\"adjust-to-utc\":" utc "}"
#define AVRO_ONE_LONG AVRO(AVRO_FIELD(1, "a", LONG))

/** A table of one schema, by its fields; properties: a JSON object or NULL. */
void avro_table(AvroLake *fix, const char *fields, const char *properties);

/* A file being written: values go to buf, avro_end_row() ends a datum. */
typedef struct AvroFile {
    AvroLake *fix;
    KnAvroWriter *writer;
    KnBuf *buf;
    int64_t rows;
} AvroFile;

AvroFile avro_begin(AvroLake *fix, const char *schema, KnAvroCodec codec);
void avro_put_text(AvroFile *avro, const char *text);
/** A number in a union with null. */
void avro_put_some(AvroFile *avro, int64_t value);
void avro_end_row(AvroFile *avro);
/** Ends the file: its bytes, or an entry of it in the table's folder. */
KnBuf avro_bytes(AvroFile *avro);
KnManifestEntry *avro_end(AvroFile *avro, const char *name);
KnManifestEntry *avro_entry(AvroLake *fix, const char *name, const void *bytes, size_t len,
                            int64_t rows);

/** What the reads below read. deletes may be NULL. */
KnScanTask *avro_task(AvroLake *fix, KnManifestEntry *data, KnManifestEntry *deletes);
/** The one text that sql gives, in which {scan} is the rows, in fix->out. */
KnCode avro_read(AvroLake *fix, const char *sql);
void avro_expect(AvroLake *fix, const char *sql, const char *want);
void avro_expect_error(AvroLake *fix, KnCode code, const char *file, const char *part);
