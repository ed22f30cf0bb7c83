/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * manifest_support.h - tables of tests/data/manifest in memory, and manifests made for one case.
 *
 * The tables are real: v1 was written by PyIceberg, the others by Iceberg's Java library; each
 * holds its last metadata.json, its current snapshot's list and that list's manifests.
 */
#include "iceberg/manifest/manifest_internal.h"

typedef struct TestTable {
    KnFileIO *io;
    KnMetadata *md;
    KnArena *arena;
    KnManifestFile *manifests; /* of the current snapshot */
    size_t n_manifests;
} TestTable;
void test_table_open(const char *name, TestTable *ret);
void test_table_close(TestTable *table);

/** The text of a file of tests/data/manifest; the caller frees. */
char *test_manifest_file(const char *name, size_t *ret_len);

/** Copies of what kn_manifest_read() gives. */
enum { TEST_ENTRIES_MAX = 64 };
typedef struct TestEntries {
    KnArena *arena;
    size_t n;
    const KnManifestEntry *items[TEST_ENTRIES_MAX];
} TestEntries;
KnCode test_manifest_collect(const TestTable *table, const KnManifestFile *mf,
                             KnManifestReadOptions opts, TestEntries *ret, KnErr *err);

/** A table of one schema and spec 7 for manifests made by the test: v2 or v3. */
void test_table_make(int32_t format_version, TestTable *ret);

/** Entries exactly as given (no rule of kn_manifest_write() applies) at path. */
void test_manifest_put(const TestTable *table, const KnManifestForm *form, const char *path,
                       const KnManifestEntry *entries, size_t n);
/** An entry of a Parquet data file with a tuple of nulls for spec 7. */
KnManifestEntry test_entry(KnEntryStatus status, const char *path, int64_t rows);

/** The partition type of spec 7. */
const KnType *test_partition_type(const TestTable *table);
