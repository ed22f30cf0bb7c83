/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* run_args.h - what `pipeline run` and `pipeline plan` read alike: a document, and how it is run.
 */
#include "cli/command.h"
#include "lib/run_tables.h"
#include "pipeline/backend.h"

typedef struct KnRunArgs {
    const char *from;
    KnOptList inputs, targets; /* NAME=PATH */
    KnOptList select, full_refresh;
} KnRunArgs;
/** Rows for KnRunArgs, offsets from its start. */
extern const KnOptGroup kn_run_args_options;

/** The pipeline of the call's one word, with the inputs and targets that args add to it, and the
 * options of a run. */
KN_NODISCARD KnCode kn_args_run(const KnCall *call, const KnRunArgs *args, const KnPipeline **ret,
                                KnRunOptions *ret_opts, KnErr *err);
/** KN_E_UNSUPPORTED when the backend cannot run it; where that is for several reasons they are
 * printed. */
KN_NODISCARD KnCode kn_args_check_backend(const KnCall *call, const KnBackend *backend,
                                          const KnPipeline *pipeline, const KnRunOptions *opts,
                                          KnErr *err);
