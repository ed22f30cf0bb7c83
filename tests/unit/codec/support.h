/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* support.h - test data and datums for the tests of codec/. */
#include "base/buf.h"
#include "codec/avro.h"

/** A file of tests/data/avro as an exact-size allocation (so that the sanitizer sees one byte too
 * far); fails the test when it cannot be read. The caller frees. */
uint8_t *test_avro_file(const char *name, size_t *ret_len);

/** Reads all datums by skipping; *ret_n counts them (also on failure). */
KnCode test_avro_walk(const void *bytes, size_t len, int64_t *ret_n, KnErr *err);

/** Bytes of a cursor over a string literal. */
#define TEST_CURSOR(lit)                                                                           \
    ((KnAvroCursor){(const uint8_t *)(lit), (const uint8_t *)(lit) + sizeof(lit) - 1, 0})
