/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* partition_key.h - a file's spec and partition tuple as bytes, for maps. */
#include "iceberg/manifest/manifest.h"

/** Appends bytes that are equal exactly for files of one spec with equal tuples, whatever integer
 * width the manifest's schema had; every NaN is one. */
void kn_partition_key(KnBuf *buf, const KnDataFile *file);
/** The one data file that a file of position deletes is about; ptr NULL = it may be about many. By
 * its reference, or by bounds of file_path that are equal. */
KnStr kn_delete_named_data_file(const KnDataFile *file);
