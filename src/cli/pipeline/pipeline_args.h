/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* pipeline_args.h - what the pipeline commands share: the FILE, how it is read, what is told of it.
 */
#include "cli/command.h"
#include "pipeline/surface/file.h"

/** Row of --from, for a struct with a member `from`. */
#define KN_PIPELINE_FROM_ROW(T)                                                                    \
    {                                                                                              \
        .name = "from", .type = KN_OPT_TEXT, .offset = offsetof(T, from), .value = "FORM",         \
        .doc = "How FILE is written down (default: by its extension)"                              \
    }

/** The one positional FILE as a pipeline; an engine is opened where the form needs one, and closed
 * again. from may be NULL. */
KN_NODISCARD KnCode kn_args_pipeline(const KnCall *call, const char *from, KnNotes *notes,
                                     const KnPipeline **ret, KnErr *err);
/** What was noted, on standard error: "FILE:1:2: …". */
void kn_args_notes(const KnCall *call, const KnNotes *notes);
/** The FILE; kn_args_pipeline() has seen that there is one. */
const char *kn_args_file(const KnCall *call);
