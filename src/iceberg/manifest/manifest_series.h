/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* manifest_series.h - several manifests of a table, read one after the other. */
#include "iceberg/manifest/manifest.h"

typedef struct KnManifestSeries {
    const KnManifestFile *const *files;
    size_t n;
    KnManifestVisit visit;
    /* Told before the entries of each, with the arg of visit; NULL = nobody is. */
    KnCode (*begin)(void *arg, const KnManifestFile *mf, KnErr *err);
} KnManifestSeries;

enum { KN_MANIFESTS_AHEAD = 8 };

/** kn_manifest_read() of each, in their order and on this thread. Where the storage is far, the
 * next ones (at most KN_MANIFESTS_AHEAD) are fetched meanwhile. */
KN_NODISCARD KnCode kn_manifest_read_series(KnFileIO *io, const KnMetadata *md,
                                            const KnManifestSeries *series, KnErr *err);
