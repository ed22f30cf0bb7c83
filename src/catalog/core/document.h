/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * document.h - one metadata document of a table or a view, as it lies in the warehouse.
 *
 * Immutable and refcounted; thread-safe. A document never changes under its location, so that a
 * cache by location is never wrong (core.c keeps one of bounded size).
 */
#include "iceberg/metadata/metadata.h"
#include "iceberg/view/view.h"

typedef struct KnDocument KnDocument;

/** Takes over bytes (malloc'ed plain JSON text). md or view, where known, are referenced. */
KnDocument *kn_document_new(const char *location, char *bytes, size_t len);
KnDocument *kn_document_ref(KnDocument *doc);
KnDocument *kn_document_unref(KnDocument *doc); /* accepts NULL, returns NULL */
/** Where the document is; "" for a staged table, which has none. Lives as long as doc. */
const char *kn_document_location(const KnDocument *doc);
/** The JSON text, uncompressed, one object; lives as long as doc. */
KnStr kn_document_bytes(const KnDocument *doc);
/** Parsed at the first call, by whichever thread; a new reference. */
KN_NODISCARD KnCode kn_document_metadata(KnDocument *doc, KnMetadata **ret, KnErr *err);
KN_NODISCARD KnCode kn_document_view(KnDocument *doc, KnView **ret, KnErr *err);

/* ---- bytes that a front has made of a document, kept as long as it is ---- */
typedef enum KnMadeBytes {
    KN_MADE_REFS,        /* the document with the snapshots of refs only */
    KN_MADE_PACKED,      /* an answer around the document, gzip */
    KN_MADE_REFS_PACKED, /* the same around KN_MADE_REFS */
    KN_N_MADE,
} KnMadeBytes;
/** Empty (ptr NULL) when nothing is kept; lives as long as doc. */
KnStr kn_document_made(const KnDocument *doc, KnMadeBytes which);
/** Keeps a copy, if nobody was quicker; what is kept is returned. */
KnStr kn_document_keep(KnDocument *doc, KnMadeBytes which, KnStr bytes);

static inline void kn_document_freep(KnDocument **doc)
{
    *doc = kn_document_unref(*doc);
}
#define KN_DOCUMENT_AUTO __attribute__((cleanup(kn_document_freep))) KnDocument *
