/* SPDX-License-Identifier: Apache-2.0 */
/* rest_reply.c - answers of the REST front, and what its requests have in common. */
#include "base/hash.h"
#include "base/path.h"
#include "catalog/server/rest_internal.h"

enum { REPLY_MAX = 1 << 30, PAGE_MAX = 1000000 };

static void buf_done(void *arg)
{
    kn_buf_done(arg);
}

KnBuf *kn_rest_buf(KnRestCall *call)
{
    KnBuf *buf = kn_arena_zalloc(call->arena, sizeof(*buf));
    kn_buf_init(buf, REPLY_MAX);
    kn_arena_defer(call->arena, buf_done, buf);
    return buf;
}

static void json_done(void *arg)
{
    json_decref(arg);
}

json_t *kn_rest_keep(KnRestCall *call, json_t *doc)
{
    kn_arena_defer(call->arena, json_done, doc);
    return doc;
}

KnCode kn_rest_reply_json(KnRestCall *call, const KnBuf *body, KnErr *err)
{
    KN_TRY(kn_buf_check(body, err));
    call->rsp->status = 200;
    kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    kn_httpd_response_piece(call->rsp, (KnStr){body->data, body->len});
    return KN_OK;
}

KnCode kn_rest_reply_object(KnRestCall *call, const json_t *doc, KnErr *err)
{
    KnBuf *body = kn_rest_buf(call);
    kn_json_dump(body, doc);
    return kn_rest_reply_json(call, body, err);
}

KnCode kn_rest_reply_empty(KnRestCall *call, int status)
{
    call->rsp->status = status;
    if (status >= 400) /* of a HEAD: the type that the body would have */
        kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    return KN_OK;
}

static void document_done(void *arg)
{
    (void)kn_document_unref(arg);
}

typedef struct Packing {
    KnDocument *doc;
    KnMadeBytes which;
} Packing;

static void keep_packed(void *arg, KnStr packed)
{
    const Packing *packing = arg;
    (void)kn_document_keep(packing->doc, packing->which, packed);
}

/* The answer around a document is the same for everybody: packed once, it is kept with it. Not so
 * one with what was lent: that is for this caller alone. */
static void use_packed(KnRestCall *call, KnDocument *doc, KnMadeBytes which)
{
    if (call->lent)
        return;
    Packing *packing = kn_arena_alloc(call->arena, sizeof(*packing));
    *packing = (Packing){doc, which};
    call->rsp->packed = kn_document_made(doc, which);
    call->rsp->on_packed = keep_packed;
    call->rsp->on_packed_arg = packing;
}

static void put_pairs(KnBuf *out, const KnTextPair *pairs, size_t n, bool first)
{
    for (size_t i = 0; i < n; i++) {
        kn_buf_text(out, first && !i ? "" : ",");
        kn_json_quote(out, kn_str(pairs[i].name));
        kn_buf_char(out, ':');
        kn_json_quote(out, kn_str(pairs[i].value));
    }
}

static void put_config(KnBuf *out, const KnRestCall *call, const KnRestLent *lent)
{
    const KnFrontContext *ctx = &call->rest->ctx;
    kn_buf_char(out, '{');
    put_pairs(out, ctx->client_config, ctx->n_client_config, true);
    if (lent)
        put_pairs(out, lent->config, lent->n, !ctx->n_client_config);
    kn_buf_char(out, '}');
}

void kn_rest_write_credentials(KnBuf *out, const KnRestCall *call, const KnRestLent *lent)
{
    kn_buf_text(out, "\"storage-credentials\":[");
    if (lent && lent->prefix) {
        kn_buf_text(out, "{\"prefix\":");
        kn_json_quote(out, kn_str(lent->prefix));
        kn_buf_text(out, ",\"config\":");
        put_config(out, call, lent);
        kn_buf_char(out, '}');
    }
    kn_buf_char(out, ']');
}

/* Metadata-location, the document's own bytes, config: nothing is copied, nothing parsed. */
static KnCode reply_document(KnRestCall *call, KnDocument *doc, KnStr metadata, KnErr *err)
{
    const char *location = kn_document_location(doc);
    KnBuf *head = kn_rest_buf(call), *tail = kn_rest_buf(call);
    kn_buf_text(head, "{\"metadata-location\":");
    if (*location)
        kn_json_quote(head, kn_str(location));
    else
        kn_buf_text(head, "null");
    kn_buf_text(head, ",\"metadata\":");
    kn_buf_text(tail, ",\"config\":");
    put_config(tail, call, call->lent);
    if (call->lent && call->lent->prefix) {
        kn_buf_char(tail, ',');
        kn_rest_write_credentials(tail, call, call->lent);
        kn_httpd_response_header(call->rsp, "Cache-Control", "no-store");
    }
    kn_buf_char(tail, '}');
    KN_TRY(kn_buf_check(head, err));
    kn_arena_defer(call->arena, document_done, kn_document_ref(doc));
    call->rsp->status = 200;
    kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    kn_httpd_response_piece(call->rsp, (KnStr){head->data, head->len});
    kn_httpd_response_piece(call->rsp, metadata);
    kn_httpd_response_piece(call->rsp, (KnStr){tail->data, tail->len});
    return KN_OK;
}

KnCode kn_rest_reply_table(KnRestCall *call, KnDocument *doc, KnErr *err)
{
    const char *location = kn_document_location(doc);
    if (*location)
        kn_httpd_response_header(call->rsp, "ETag", kn_rest_etag(call, location, false));
    use_packed(call, doc, KN_MADE_PACKED);
    return reply_document(call, doc, kn_document_bytes(doc), err);
}

KnCode kn_rest_reply_refs(KnRestCall *call, KnDocument *doc, KnStr metadata, KnErr *err)
{
    use_packed(call, doc, KN_MADE_REFS_PACKED);
    return reply_document(call, doc, metadata, err);
}

KnCode kn_rest_reply_view(KnRestCall *call, KnDocument *doc, KnErr *err)
{
    return reply_document(call, doc, kn_document_bytes(doc), err);
}

const char *kn_rest_etag(KnRestCall *call, const char *location, bool refs_only)
{
    char hex[17];
    return kn_arena_printf(call->arena, "\"%s%s%s\"",
                           kn_hex64(kn_hash64(location, strlen(location), 0), hex),
                           refs_only ? "-refs" : "", call->lent ? call->lent->mark : "");
}

void kn_rest_write_levels(KnBuf *buf, const char *const *levels, size_t n)
{
    kn_buf_char(buf, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            kn_buf_char(buf, ',');
        kn_json_quote(buf, kn_str(levels[i]));
    }
    kn_buf_char(buf, ']');
}

/* ---- requests ---------------------------------------------------------------------------------
 */

KnCode kn_rest_asked(KnCode code, KnErr *err)
{
    if (code != KN_E_CORRUPT)
        return code;
    err->code = KN_E_INVAL;
    return KN_E_INVAL;
}

KnCode kn_rest_page(KnRestCall *call, KnPage *ret, KnErr *err)
{
    const char *token = kn_httpd_request_query(call->req, "pageToken");
    const char *size = kn_httpd_request_query(call->req, "pageSize");
    int64_t n = 0;
    if (size && (!kn_str_to_i64(kn_str(size), &n) || n < 1))
        return kn_err_set(err, KN_E_INVAL, "pageSize '%.40s': expected a number from 1 on", size);
    *ret = (KnPage){token, size && token ? (size_t)(n > PAGE_MAX ? PAGE_MAX : n) : 0};
    return KN_OK;
}

KnCode kn_rest_levels(KnRestCall *call, const json_t *array, KnNamespace *ret, KnErr *err)
{
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot parse namespace: expected an array with at least one level");
    const char **levels = kn_arena_try_array(call->arena, n, sizeof(*levels));
    if (!levels)
        return kn_err_set(err, KN_E_NOMEM, "namespace: %zu levels", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *level = json_array_get(array, i);
        if (!json_is_string(level) || !json_string_length(level) || n > 64)
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot parse namespace: a level is a text that is not empty, and "
                              "there are at most 64");
        levels[i] = json_string_value(level);
    }
    *ret = (KnNamespace){levels, n};
    return KN_OK;
}

KnCode kn_rest_ident(KnRestCall *call, const json_t *obj, const char *key, KnTableIdent *ret,
                     KnErr *err)
{
    json_t *ident = NULL;
    const char *name = NULL;
    KnNamespace ns = {0};
    KN_TRY(kn_rest_asked(kn_json_get_object(obj, key, &ident, err), err));
    KN_TRY(kn_rest_asked(kn_json_get_str(ident, "name", &name, err), err));
    KN_TRY(kn_rest_levels(call, json_object_get(ident, "namespace"), &ns, err));
    if (!*name)
        return kn_err_set(err, KN_E_INVAL, "Cannot parse %s: the name is empty", key);
    *ret = (KnTableIdent){ns.levels, ns.n_levels, name};
    return KN_OK;
}

KnCode kn_rest_need(const KnRestCall *call, const KnNamespace *ns, KnRight right, KnErr *err)
{
    static const char *const words[] = {"see", "read", "write", "administer"};
    if (kn_principal_right(call->who, ns) >= right)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED, "%s may not %s this namespace",
                      kn_principal_name(call->who), words[right]);
}

const char *kn_rest_own_folder(const KnRestCall *call)
{
    return kn_core_own_folder(call->rest->ctx.core, call->arena, call->ns.levels,
                              call->ns.n_levels);
}

KnRight kn_rest_right_at(const KnRestCall *call, const char *place)
{
    const char *own = kn_rest_own_folder(call);
    bool below = kn_path_is_within(kn_str(place), kn_str(own)) && strcmp(place, own) != 0;
    return kn_principal_right(call->who, below ? &call->ns : NULL);
}

KnCode kn_rest_need_place(KnRestCall *call, const char *location, KnErr *err)
{
    const char *place = NULL;
    if (kn_principal_right(call->who, NULL) == KN_RIGHT_ADMIN)
        return KN_OK; /* what is no place at all is told by who reads it */
    KN_TRY(kn_core_place(call->rest->ctx.core, call->arena, kn_str(location), &place, err));
    if (kn_rest_right_at(call, place) == KN_RIGHT_ADMIN)
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "%s may register only what lies below the folder of the namespace ('%.400s'): "
        "more is for who administers the whole catalog",
        kn_principal_name(call->who), kn_rest_own_folder(call));
}
