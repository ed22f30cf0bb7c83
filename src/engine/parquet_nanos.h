/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_nanos.h - how columns of nanoseconds adjusted to UTC are read exactly.
 *
 * The engine knows no such type: read_parquet() yields TIMESTAMP WITH TIME ZONE cut to microseconds
 * (and infinity at both ends), whatever schema= asks for. In a copy of the file whose footer says
 * "not adjusted to UTC" the same bytes read as TIMESTAMP_NS: nanoseconds since the epoch, in UTC,
 * with every bit kept, and with statistics and field ids as before.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/** Clears "adjusted to UTC" on every nanosecond timestamp of a footer (the Thrift bytes of
 * FileMetaData), in place; the length does not change. ret_patched: columns changed. KN_E_CORRUPT
 * for bytes that are not a footer. Thread-safe. Parquet's LogicalTypes.md, parquet.thrift. */
KN_NODISCARD KnCode kn_parquet_nanos_patch(uint8_t *footer, size_t len, size_t *ret_patched,
                                           KnErr *err);
/** A new local file at `to` (replaced if there) that is `from` with its footer patched. Blocks are
 * shared with `from` where the file system can. On failure `to` is removed. */
KN_NODISCARD KnCode kn_parquet_nanos_copy(const char *from, const char *to, size_t *ret_patched,
                                          KnErr *err);
/** The same to a file of ours, in place. */
KN_NODISCARD KnCode kn_parquet_nanos_patch_file(const char *path, size_t *ret_patched, KnErr *err);
