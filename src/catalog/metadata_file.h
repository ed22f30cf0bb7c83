/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * metadata_file.h - metadata documents as files: read one, name and write the next.
 *
 * Names are Java's: `<metadata folder>/NNNNN-<uuid>.metadata.json`, `.gz.metadata.json` with
 * write.metadata.compression-codec=gzip; the folder is write.metadata.path, else
 * `<location>/metadata`.
 */
#include "iceberg/metadata/metadata.h"
#include "storage/file_io.h"

enum { KN_METADATA_FILE_MAX = 512 << 20 }; /* bytes; larger documents are refused */

KN_NODISCARD KnCode kn_metadata_file_read(KnFileIO *io, KnStr location, KnMetadata **ret,
                                          KnErr *err);
/** The name of the version after previous (NULL = version 0), in arena. */
const char *kn_metadata_file_next(KnArena *arena, const KnMetadata *md, const char *previous);
/** Create-if-absent and durable. */
KN_NODISCARD KnCode kn_metadata_file_write(KnFileIO *io, const KnMetadata *md, const char *location,
                                           KnErr *err);
/** The number in front of a metadata file's name ("00012-…", "v12.…"), or -1. */
int64_t kn_metadata_file_version(KnStr name);
bool kn_metadata_file_is_name(KnStr name);
/** write.metadata.delete-after-commit.enabled: removes the files that fell out of the metadata log
 * between before and after. Best effort: a file that cannot be removed is left. */
void kn_metadata_file_expire(KnFileIO *io, const KnMetadata *before, const KnMetadata *after);
