/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* names.h - names of datasets and inputs, found as graph.h says. */
#include "pipeline/check/graph.h"

KnNameIndex *kn_names_new(KnArena *arena, const KnPipeline *pipeline);
/** The first place of a name, exactly; NONE. */
size_t kn_names_dataset(const KnNameIndex *names, const char *name);
size_t kn_names_input(const KnNameIndex *names, const char *name);
/** Datasets and inputs by all rules. Fills dataset, input and other_case of read. */
void kn_names_resolve(const KnNameIndex *names, KnGraphRead *read);
