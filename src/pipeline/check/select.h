/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* select.h - words that choose datasets of a pipeline. */
#include "base/err.h"
#include "pipeline/check/graph.h"

/** "a" is the dataset of that name, "+a" it and all that it needs, "a+" it and all that needs it,
 * "+a+" both, "all" every one; a dataset that is called like the word comes before. Each once, in
 * the order of running, in the graph's arena. KN_E_INVAL names a word that is none; flag: for the
 * message. */
KN_NODISCARD KnCode kn_graph_select(const KnGraph *graph, const char *flag, const KnutNames *words,
                                    KnutNames *ret, KnErr *err);
