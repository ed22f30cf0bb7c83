/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* file.h - documents in files: read by any surface, written atomically. */
#include "pipeline/surface/surface.h"

typedef struct KnLoad {
    const char *file;         /* a local path */
    const KnSurface *surface; /* NULL = by the file's extension */
    KnSession *session;       /* for surfaces that need an engine; else NULL */
} KnLoad;

/** Read the file. The pipeline's name, where its surface says none, is the file's name without
 * extension. */
KN_NODISCARD KnCode kn_pipeline_load(KnArena *arena, const KnLoad *load, KnNotes *notes,
                                     const KnPipeline **ret, KnErr *err);
typedef struct KnSave {
    const char *file;         /* a local path */
    const KnSurface *surface; /* NULL = by the file's extension */
    KnSession *session;       /* likewise */
} KnSave;

/** Write it; whoever reads the name sees the old or the new document. */
KN_NODISCARD KnCode kn_pipeline_save(const KnPipeline *pipeline, const KnSave *save, KnNotes *notes,
                                     KnErr *err);
