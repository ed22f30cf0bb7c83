/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* parquet_tree.h - a footer's flat list of schema elements as a normalised tree. */
#include "engine/parquet.h"

/* One row of parquet_schema(); texts are arena memory, NULL = not set. */
typedef struct KnPqElement {
    const char *name;
    const char *type;      /* physical: "INT64", ...; NULL for groups */
    const char *converted; /* "LIST", "MAP", ... */
    const char *logical;   /* "TimestampType(isAdjustedToUTC=1, ...", ... */
    const char *sql_type;  /* what the engine derives for a leaf */
    bool repeated;
    int64_t n_children; /* -1 = not set */
    int32_t field_id;   /* -1 = not set */
} KnPqElement;

typedef struct KnPqElements {
    const KnPqElement *items;
    size_t n;
} KnPqElements;

/** The tree of n elements, the first of which is the root. KN_E_CORRUPT when counts do not fit. */
KN_NODISCARD KnCode kn_pq_tree_build(KnArena *arena, KnPqElements elements, KnPqNode *ret,
                                     KnErr *err);
/** Canonical text: equal text = equal tree, ids and types. */
const char *kn_pq_tree_shape(KnArena *arena, const KnPqNode *root);
bool kn_pq_tree_has_ids(const KnPqNode *node);
/** True when some group may be a VARIANT, which the element list alone does not tell. */
bool kn_pq_tree_has_variant_like(const KnPqNode *node);
/** Turn variant-like groups that the engine reads as something else than STRUCT into VARIANT
 * leaves. types are those of the columns, in order. */
void kn_pq_tree_mark_variants(KnPqNode *root, const KnColType *types, size_t n);
