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
/** The same of any document that has a location and properties (a view's). */
const char *kn_metadata_file_next_in(KnArena *arena, const char *location, const json_t *properties,
                                     const char *previous);
/** JSON text, packed when the name says so. Create-if-absent and durable. */
KN_NODISCARD KnCode kn_metadata_file_write_text(KnFileIO *io, KnStr json, const char *location,
                                                KnErr *err);
/** Create-if-absent and durable. */
KN_NODISCARD KnCode kn_metadata_file_write(KnFileIO *io, const KnMetadata *md, const char *location,
                                           KnErr *err);
/** The number in front of a metadata file's name ("00012-…", "v12.…"), or -1. */
int64_t kn_metadata_file_version(KnStr name);
bool kn_metadata_file_is_name(KnStr name);
