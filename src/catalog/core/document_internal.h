/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* document_internal.h - what the core does with documents beside reading them. */
#include "catalog/core/document.h"

/** Gives a new document what is known already; takes references. Before others see it. */
void kn_document_set_metadata(KnDocument *doc, const KnMetadata *md);
void kn_document_set_view(KnDocument *doc, const KnView *view);
/** Bytes of memory that it takes, about. */
size_t kn_document_cost(const KnDocument *doc);
KN_NODISCARD KnCode kn_document_from_metadata(const KnMetadata *md, const char *location,
                                              KnDocument **ret, KnErr *err);
KN_NODISCARD KnCode kn_document_from_view(const KnView *view, const char *location,
                                          KnDocument **ret, KnErr *err);

/* A bounded cache by location; the least recently used go first. Thread-safe. */
typedef struct KnDocumentCache KnDocumentCache;
KnDocumentCache *kn_document_cache_new(size_t max_bytes);
KnDocumentCache *kn_document_cache_free(KnDocumentCache *cache); /* accepts NULL, returns NULL */
KnDocument *kn_document_cache_find(KnDocumentCache *cache, const char *location); /* a reference */
void kn_document_cache_put(KnDocumentCache *cache, KnDocument *doc);
/** The document at location is of no use any more; those who hold it keep it. */
void kn_document_cache_drop(KnDocumentCache *cache, const char *location);
