/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_sign.c - remote signing: a client sends the S3 request that it is about to make, and gets
 * back the headers that sign it, when it may do there what the request does.
 *
 * What the request does is found out in storage/s3/sign.c. Reading needs the right to read, all
 * else that to write; and every object lies in a folder of the table (kn_rest_reach()), or where
 * the caller has that right anyway (places.h): PyIceberg has one signer for all tables of a process
 * and sends it to the table that was loaded last.
 */
#include "base/path.h"
#include "catalog/server/places.h"
#include "catalog/server/rest_internal.h"
#include "storage/s3/sign.h"

enum { HEADERS_MAX = 100 };

/* ---- the request ---- */

/* {"Name": ["value", ...]}: several values are one line. */
static KnCode take_headers(KnRestCall *call, const json_t *headers, KnS3Foreign *ret, KnErr *err)
{
    size_t n = json_object_size(headers), at = 0;
    const char *name;
    json_t *values;
    if (n > HEADERS_MAX)
        return kn_err_set(err, KN_E_INVAL, "headers: more than %d", HEADERS_MAX);
    KnHttpHeader *out = kn_arena_alloc(call->arena, (n + 1) * sizeof(*out));
    json_object_foreach((json_t *)(uintptr_t)headers, name, values)
    {
        KnBuf *line = kn_rest_buf(call);
        for (size_t i = 0; i < json_array_size(values); i++) {
            const char *value = json_string_value(json_array_get(values, i));
            if (!value)
                return kn_err_set(err, KN_E_INVAL, "headers: a value of '%.100s' is no text", name);
            kn_buf_printf(line, "%s%s", i ? "," : "", value);
        }
        if (!json_is_array(values))
            return kn_err_set(err, KN_E_INVAL, "headers: '%.100s' has no list of values", name);
        if (line->len)
            out[at++] = (KnHttpHeader){name, line->data};
    }
    ret->headers = out;
    ret->n_headers = at;
    return KN_OK;
}

static KnCode take_request(KnRestCall *call, KnS3Foreign *ret, KnErr *err)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    json_t *headers = NULL;
    const char *region = NULL, *provider = "s3";
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "method", &ret->method, err), err));
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "uri", &ret->uri, err), err));
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "region", &region, err), err));
    KN_TRY(kn_rest_asked(kn_json_get_object(call->body, "headers", &headers, err), err));
    KN_TRY(kn_rest_asked(kn_json_opt_str(call->body, "body", &ret->body, err), err));
    KN_TRY(kn_rest_asked(kn_json_opt_str(call->body, "provider", &provider, err), err));
    if (strcmp(provider, "s3") != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "requests to '%.40s' are not signed: only to s3",
                          provider);
    bool known = false;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        known = known || !strcmp(ret->method, methods[i]);
    if (!known)
        return kn_err_set(err, KN_E_REFUSED, "the method '%.20s' is not signed", ret->method);
    return take_headers(call, headers, ret, err);
}

/* ---- the answer ---- */

static KnCode reply_signed(KnRestCall *call, KnFileIO *io, const KnS3Foreign *req,
                           const KnS3Intent *intent, KnErr *err)
{
    KnS3Signed made = {0};
    KN_TRY(kn_s3_sign_for(io, call->arena, req, intent, &made, err));
    KnBuf *body = kn_rest_buf(call);
    kn_buf_text(body, "{\"uri\":");
    kn_json_quote(body, kn_str(req->uri));
    kn_buf_text(body, ",\"headers\":{");
    for (size_t i = 0; i < made.n; i++) {
        kn_buf_text(body, i ? "," : "");
        kn_json_quote(body, kn_str(made.headers[i].name));
        kn_buf_text(body, ":[");
        kn_json_quote(body, kn_str(made.headers[i].value));
        kn_buf_char(body, ']');
    }
    kn_buf_text(body, "}}");
    bool reads = !strcmp(req->method, "GET") || !strcmp(req->method, "HEAD");
    kn_httpd_response_header(call->rsp, "Cache-Control", reads ? "private" : "no-cache");
    return kn_rest_reply_json(call, body, err);
}

/* ---- who may ---- */

static KnCode refuse_touch(const KnS3Touch *touch, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "'%.400s' is not a file of this table, nor one of yours: not signed",
                      touch->location);
}

static bool same_bucket(const char *folder, const char *bucket)
{
    const char *from = strstr(folder, "://") + 3;
    size_t len = strcspn(from, "/");
    return len == strlen(bucket) && !strncmp(from, bucket, len);
}

static bool may_touch(KnRestCall *call, const KnRestReach *reach, const KnS3Touch *touch)
{
    const KnPlaceAsker asker = {call->rest->ctx.core, call->arena, call->who, &call->ident};
    for (size_t i = 0; i < reach->n; i++)
        if (kn_path_is_within(kn_str(touch->location), kn_str(reach->folders[i])))
            return true;
    return kn_place_lies_in_namespace(&asker, touch->location,
                                      touch->write ? KN_RIGHT_WRITE : KN_RIGHT_READ);
}

static KnCode check_touches(KnRestCall *call, const KnRestReach *reach, const KnS3Intent *intent,
                            KnErr *err)
{
    for (size_t i = 0; i < intent->n; i++)
        if (!may_touch(call, reach, &intent->touches[i]))
            return refuse_touch(&intent->touches[i], err);
    bool known = !intent->bucket_only;
    for (size_t j = 0; j < reach->n; j++)
        known = known || same_bucket(reach->folders[j], intent->bucket);
    if (!known)
        return kn_err_set(err, KN_E_REFUSED, "the table has no files in bucket '%.100s'",
                          intent->bucket);
    return KN_OK;
}

/* A table that is being made is not there yet, and its maker writes files before it is. */
static KnCode reach_table(KnRestCall *call, bool write, KnRestReach *ret, KnErr *err)
{
    KnCatalogCore *core = call->rest->ctx.core;
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    const char *location = NULL;
    KnCode rc = kn_core_table_load(core, &call->ident, &doc, err);
    if (rc == KN_E_NOTFOUND && err->about == KN_ABOUT_TABLE &&
        kn_principal_right(call->who, &call->ns) >= KN_RIGHT_WRITE) {
        KN_TRY(kn_core_default_location(core, call->arena, &call->ident, &location, err));
        KN_TRY(kn_rest_reach(call, location, NULL, ret, err));
    } else {
        KN_TRY(rc);
        KN_TRY(kn_document_metadata(doc, &md, err));
        KN_TRY(kn_rest_reach(call, md->location, md->properties, ret, err));
    }
    if (write && !ret->write)
        return kn_err_set(err, KN_E_REFUSED, "%s may not write where this table's files are",
                          kn_principal_name(call->who));
    return KN_OK;
}

typedef KnCode (*CheckFn)(KnRestCall *call, const KnS3Intent *intent, KnErr *err);

static KnCode sign(KnRestCall *call, CheckFn check, KnErr *err)
{
    const KnFrontContext *ctx = &call->rest->ctx;
    KnS3Foreign req = {0};
    KnS3Intent intent = {0};
    KnFileIO *io = NULL;
    KnS3Where where;
    if (!ctx->remote_signing)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "this server signs no requests (it was started without "
                          "--remote-signing)");
    KN_TRY(take_request(call, &req, err));
    KN_TRY(kn_core_io(ctx->core, kn_str(kn_core_warehouse(ctx->core)), &io, err));
    if (!kn_s3_where(io, &where))
        return kn_err_set(err, KN_E_UNSUPPORTED, "the warehouse is not in an object store");
    KN_TRY(kn_s3_intent(io, call->arena, &req, &intent, err));
    KN_TRY(check(call, &intent, err));
    return reply_signed(call, io, &req, &intent, err);
}

static KnCode check_table(KnRestCall *call, const KnS3Intent *intent, KnErr *err)
{
    KnRestReach reach = {0};
    if (intent->write)
        KN_TRY(kn_rest_need(call, &call->ns, KN_RIGHT_WRITE, err));
    KN_TRY(reach_table(call, intent->write, &reach, err));
    return check_touches(call, &reach, intent, err);
}

KnCode kn_rest_sign_request(KnRestCall *call, KnErr *err)
{
    return sign(call, check_table, err);
}

/* The older path does not say which table: it is for those who have the right everywhere. */
static KnCode check_any(KnRestCall *call, const KnS3Intent *intent, KnErr *err)
{
    KnRight need = intent->write ? KN_RIGHT_WRITE : KN_RIGHT_READ;
    const char *folder = NULL;
    if (kn_principal_right(call->who, NULL) < need)
        return kn_err_set(err, KN_E_REFUSED,
                          "this path does not say which table is meant, and %s has no right on the "
                          "whole catalog: use the signer.endpoint that comes with a table",
                          kn_principal_name(call->who));
    for (size_t i = 0; i < intent->n; i++)
        if (kn_core_place(call->rest->ctx.core, call->arena, kn_str(intent->touches[i].location),
                          &folder, NULL) != KN_OK)
            return refuse_touch(&intent->touches[i], err);
    return KN_OK;
}

KnCode kn_rest_sign_any(KnRestCall *call, KnErr *err)
{
    return sign(call, check_any, err);
}
