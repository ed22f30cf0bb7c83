/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* tree.h - the engine's tree of a query, as far as streams look into it; and parts of it as text.
 */
#include "base/json.h"
#include "pipeline/native/native.h"

/** The query's tree without places in the text. The caller drops the reference. */
KN_NODISCARD KnCode kn_stream_tree(KnNativeRun *run, const char *query, json_t **ret, KnErr *err);
const char *kn_tree_text(const json_t *node, const char *key); /* "" = none */
bool kn_tree_is(const json_t *node, const char *key, const char *value);
/** Equal, but for the case of names and what the results are called. */
bool kn_tree_same(const json_t *a, const json_t *b);
/** Is there a node of this class below? */
bool kn_tree_has(const json_t *node, const char *class_name);
/** True when a node below, itself included, is a column. */
bool kn_tree_has_column(const json_t *node);
/** Is a table of one of these names read below? names: an array of texts. */
bool kn_tree_reads(const json_t *node, const json_t *names);
/** An expression, or what stands behind FROM, as the engine writes it. */
KN_NODISCARD KnCode kn_tree_expression(KnNativeRun *run, const json_t *node, const char **ret,
                                       KnErr *err);
KN_NODISCARD KnCode kn_tree_from(KnNativeRun *run, const json_t *node, const char **ret,
                                 KnErr *err);
/** A reference to a column; the caller drops it. */
json_t *kn_tree_column(const char *name);
