/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.c - see document.h. Two threads that parse one document at the same time both do the
 * work, and one result is kept.
 */
#include "catalog/core/document.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/core/document_internal.h"
#include "catalog/metadata_file.h"

enum {
    PARSED_FACTOR = 8, /* a parsed document against its text, measured */
    MADE_FACTOR = 2,   /* what fronts make of it, at most: packed it is a fraction */
};

typedef struct Made {
    size_t len;
    char bytes[];
} Made;

struct KnDocument {
    atomic_size_t refs;
    char *location;
    char *bytes;
    size_t len;
    _Atomic(KnMetadata *) md;
    _Atomic(KnView *) view;
    _Atomic(Made *) made[KN_N_MADE];
};

KnDocument *kn_document_new(const char *location, char *bytes, size_t len)
{
    KnDocument *doc = calloc(1, sizeof(*doc));
    if (!doc)
        abort();
    atomic_init(&doc->refs, 1);
    doc->location = strdup(location);
    if (!doc->location)
        abort();
    doc->bytes = bytes;
    doc->len = len;
    return doc;
}

KnDocument *kn_document_ref(KnDocument *doc)
{
    atomic_fetch_add_explicit(&doc->refs, 1, memory_order_relaxed);
    return doc;
}

KnDocument *kn_document_unref(KnDocument *doc)
{
    if (doc && atomic_fetch_sub_explicit(&doc->refs, 1, memory_order_acq_rel) == 1) {
        kn_metadata_unref(atomic_load(&doc->md));
        kn_view_unref(atomic_load(&doc->view));
        for (size_t i = 0; i < KN_N_MADE; i++)
            free(atomic_load(&doc->made[i]));
        free(doc->location);
        free(doc->bytes);
        free(doc);
    }
    return NULL;
}

const char *kn_document_location(const KnDocument *doc)
{
    return doc->location;
}

KnStr kn_document_bytes(const KnDocument *doc)
{
    return (KnStr){doc->bytes, doc->len};
}

KnCode kn_document_metadata(KnDocument *doc, KnMetadata **ret, KnErr *err)
{
    KnMetadata *md = atomic_load(&doc->md);
    if (!md) {
        KN_TRY(kn_metadata_parse(kn_document_bytes(doc), doc->location, &md, err));
        kn_document_set_metadata(doc, md);
        kn_metadata_unref(md);
        md = atomic_load(&doc->md);
    }
    *ret = kn_metadata_ref(md);
    return KN_OK;
}

KnCode kn_document_view(KnDocument *doc, KnView **ret, KnErr *err)
{
    KnView *view = atomic_load(&doc->view);
    if (!view) {
        KN_TRY(kn_view_parse(kn_document_bytes(doc), doc->location, &view, err));
        kn_document_set_view(doc, view);
        kn_view_unref(view);
        view = atomic_load(&doc->view);
    }
    *ret = kn_view_ref(view);
    return KN_OK;
}

void kn_document_set_metadata(KnDocument *doc, const KnMetadata *md)
{
    KnMetadata *none = NULL, *ours = kn_metadata_ref(md);
    if (!atomic_compare_exchange_strong(&doc->md, &none, ours))
        kn_metadata_unref(ours);
}

void kn_document_set_view(KnDocument *doc, const KnView *view)
{
    KnView *none = NULL, *ours = kn_view_ref(view);
    if (!atomic_compare_exchange_strong(&doc->view, &none, ours))
        kn_view_unref(ours);
}

KnStr kn_document_made(const KnDocument *doc, KnMadeBytes which)
{
    const Made *made = atomic_load(&doc->made[which]);
    return made ? (KnStr){made->bytes, made->len} : (KnStr){NULL, 0};
}

KnStr kn_document_keep(KnDocument *doc, KnMadeBytes which, KnStr bytes)
{
    Made *none = NULL, *ours = malloc(sizeof(*ours) + bytes.len + 1);
    if (!ours)
        abort();
    ours->len = bytes.len;
    memcpy(ours->bytes, bytes.ptr, bytes.len);
    ours->bytes[bytes.len] = '\0';
    if (!atomic_compare_exchange_strong(&doc->made[which], &none, ours))
        free(ours);
    return kn_document_made(doc, which);
}

size_t kn_document_cost(const KnDocument *doc)
{
    return doc->len * (1 + PARSED_FACTOR + MADE_FACTOR) + 512;
}

KnCode kn_document_from_metadata(const KnMetadata *md, const char *location, KnDocument **ret,
                                 KnErr *err)
{
    KN_BUF_AUTO json = {0};
    kn_buf_init(&json, KN_METADATA_FILE_MAX);
    KN_TRY(kn_metadata_to_json(md, &json, err));
    size_t len = 0;
    char *bytes = kn_buf_steal(&json, &len);
    *ret = kn_document_new(location, bytes, len);
    kn_document_set_metadata(*ret, md);
    return KN_OK;
}

KnCode kn_document_from_view(const KnView *view, const char *location, KnDocument **ret, KnErr *err)
{
    KN_BUF_AUTO json = {0};
    kn_buf_init(&json, KN_METADATA_FILE_MAX);
    KN_TRY(kn_view_to_json(view, &json, err));
    size_t len = 0;
    char *bytes = kn_buf_steal(&json, &len);
    *ret = kn_document_new(location, bytes, len);
    kn_document_set_view(*ret, view);
    return KN_OK;
}
