/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_finish.h - what the engine's writer cannot say, put into the files that it has written.
 *
 * It has no fixed-length binary and no nanoseconds in UTC, and cannot give statistics of the first
 * nanoseconds there are. So such columns leave it as BLOB and BIGINT, and the file is finished
 * here: nanoseconds by a footer that says what the numbers are, fixed lengths by a copy in which
 * the pages of these columns lose the lengths in front of their values.
 */
#include "base/arena.h"
#include "engine/parquet.h"

/** Finishes the file just written at file->path (local; replaced by a rename when it is copied) as
 * types ask; fills in size_bytes, the row groups' offsets and the sizes of recoded columns. Memory:
 * a page. KN_E_CORRUPT for a value of another length than its type's. Thread-safe. */
KN_NODISCARD KnCode kn_parquet_finish(KnPqWritten *file, const KnPqColumnType *types, size_t n,
                                      KnArena *arena, KnErr *err);
