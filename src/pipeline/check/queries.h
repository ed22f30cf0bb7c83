/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* queries.h - queries and conditions, as the engine's parser reads them. Nothing is bound or run.
 */
#include "engine/engine.h"
#include "pipeline/check/check.h"

/** Append what the engine does not read, and where a query and `reads` of its flow say different
 * things. A failure is one of the engine itself. */
KN_NODISCARD KnCode kn_pipeline_check_queries(const KnGraph *graph, KnSession *session,
                                              KnFlaws *flaws, KnErr *err);
