/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - what the XML answers of S3 and STS mean.
 *
 * Unknown elements are skipped: stores add their own. What knut relies on is checked: a listing
 * whose sizes are no numbers, or that says "truncated" without saying how to go on, is corrupt
 * rather than short.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "storage/s3/s3.h"
#include "storage/s3/xml.h"

static bool is(KnStr path, const char *name)
{
    return kn_str_eq(path, kn_str(name));
}

static void take(char *out, size_t cap, KnStr text)
{
    size_t n = text.len < cap ? text.len : cap - 1;
    if (n)
        memcpy(out, text.ptr, n);
    out[n] = '\0';
}

/* ---- errors ----------------------------------------------------------------------------- */

typedef struct ErrorParse {
    KnS3Error *error;
    bool seen;
} ErrorParse;

static KnCode error_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    (void)err;
    ErrorParse *p = arg;
    KnS3Error *e = p->error;
    if (is(path, "Error") || is(path, "ErrorResponse"))
        p->seen = true;
    else if (is(path, "Error/Code") || is(path, "ErrorResponse/Error/Code"))
        take(e->code, sizeof(e->code), text);
    else if (is(path, "Error/Message") || is(path, "ErrorResponse/Error/Message"))
        take(e->message, sizeof(e->message), text);
    else if (is(path, "Error/Region"))
        take(e->region, sizeof(e->region), text);
    else if (is(path, "Error/RequestId") || is(path, "ErrorResponse/RequestId"))
        take(e->request_id, sizeof(e->request_id), text);
    return KN_OK;
}

bool kn_s3_error_parse(KnStr body, KnS3Error *ret)
{
    *ret = (KnS3Error){.code = ""};
    ErrorParse p = {.error = ret};
    return kn_s3_xml_parse(body, error_element, &p, NULL) == KN_OK && p.seen;
}

/* ---- listings --------------------------------------------------------------------------- */

typedef struct ListParse {
    KnArena *arena;
    KnS3ObjectFn fn;
    void *arg;
    KnS3Object object;
    bool has_size;
    bool seen;
    bool truncated;
    const char *next;
} ListParse;

static KnCode object_done(ListParse *p, KnErr *err)
{
    KnS3Object object = p->object;
    bool whole = object.key && p->has_size;
    p->object = (KnS3Object){0};
    p->has_size = false;
    if (!whole)
        return kn_err_set(err, KN_E_CORRUPT, "the listing has an object without key or size");
    return p->fn(p->arg, &object, err);
}

static KnCode object_element(ListParse *p, KnStr name, KnStr text, KnErr *err)
{
    if (is(name, "Key")) {
        if (memchr(text.ptr, '\0', text.len))
            return kn_err_set(err, KN_E_CORRUPT, "the listing has a key with a zero byte");
        p->object.key = kn_arena_strndup(p->arena, text.ptr, text.len);
    } else if (is(name, "Size")) {
        int64_t size = -1;
        if (!kn_str_to_i64(text, &size) || size < 0)
            return kn_err_set(err, KN_E_CORRUPT, "the listing has a size '%.40s'",
                              kn_arena_strndup(p->arena, text.ptr, text.len));
        p->object.size = (uint64_t)size;
        p->has_size = true;
    } else if (is(name, "LastModified")) {
        const char *time = kn_arena_strndup(p->arena, text.ptr, text.len);
        KN_TRY(kn_clock_parse_ms(time, &p->object.modified_ms, err));
    }
    return KN_OK;
}

static KnCode list_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    static const KnStr contents = {"ListBucketResult/Contents", 25};
    ListParse *p = arg;
    if (kn_str_eq(path, contents))
        return object_done(p, err);
    if (kn_str_starts_with(path, contents) && path.ptr[contents.len] == '/')
        return object_element(p, (KnStr){path.ptr + contents.len + 1, path.len - contents.len - 1},
                              text, err);
    if (is(path, "ListBucketResult"))
        p->seen = true;
    else if (is(path, "ListBucketResult/IsTruncated"))
        p->truncated = is(text, "true");
    else if (is(path, "ListBucketResult/NextContinuationToken") && text.len)
        p->next = kn_arena_strndup(p->arena, text.ptr, text.len);
    return KN_OK;
}

KnCode kn_s3_list_parse(KnArena *arena, KnStr body, KnS3ObjectFn fn, void *arg,
                        const char **ret_next, KnErr *err)
{
    ListParse p = {.arena = arena, .fn = fn, .arg = arg};
    KN_TRY(kn_s3_xml_parse(body, list_element, &p, err));
    if (!p.seen)
        return kn_err_set(err, KN_E_CORRUPT, "the answer is no ListBucketResult");
    if (p.truncated && !p.next)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the listing is truncated and has no continuation token");
    *ret_next = p.truncated ? p.next : NULL;
    return KN_OK;
}

/* ---- deleting --------------------------------------------------------------------------- */

typedef struct DeleteParse {
    KnS3DeleteErrorFn fn;
    void *arg;
    KnBuf key;
    KnS3Error error;
    bool seen;
} DeleteParse;

static KnCode delete_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    DeleteParse *p = arg;
    if (is(path, "DeleteResult")) {
        p->seen = true;
    } else if (is(path, "DeleteResult/Error/Key")) {
        kn_buf_reset(&p->key);
        kn_buf_str(&p->key, text);
    } else if (is(path, "DeleteResult/Error/Code")) {
        take(p->error.code, sizeof(p->error.code), text);
    } else if (is(path, "DeleteResult/Error/Message")) {
        take(p->error.message, sizeof(p->error.message), text);
    } else if (is(path, "DeleteResult/Error")) {
        KN_TRY(p->fn(p->arg, (KnStr){p->key.data, p->key.len}, &p->error, err));
        kn_buf_reset(&p->key);
        p->error = (KnS3Error){.code = ""};
    }
    return KN_OK;
}

KnCode kn_s3_delete_parse(KnStr body, KnS3DeleteErrorFn fn, void *arg, KnErr *err)
{
    DeleteParse p = {.fn = fn, .arg = arg};
    kn_buf_init(&p.key, 64 << 10);
    KnCode rc = kn_s3_xml_parse(body, delete_element, &p, err);
    kn_buf_done(&p.key);
    if (rc == KN_OK && !p.seen)
        rc = kn_err_set(err, KN_E_CORRUPT, "the answer is no DeleteResult");
    return rc;
}

/* ---- single elements -------------------------------------------------------------------- */

typedef struct FindParse {
    KnArena *arena;
    const char *path;
    const char *found;
} FindParse;

static KnCode find_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    (void)err;
    FindParse *p = arg;
    if (is(path, p->path) && text.len)
        p->found = kn_arena_strndup(p->arena, text.ptr, text.len);
    return KN_OK;
}

KnCode kn_s3_upload_parse(KnArena *arena, KnStr body, const char **ret, KnErr *err)
{
    FindParse p = {.arena = arena, .path = "InitiateMultipartUploadResult/UploadId"};
    KN_TRY(kn_s3_xml_parse(body, find_element, &p, err));
    if (!p.found)
        return kn_err_set(err, KN_E_CORRUPT, "the answer names no UploadId");
    *ret = p.found;
    return KN_OK;
}

typedef struct RootParse {
    const char *name;
    bool found;
} RootParse;

static KnCode root_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    (void)text, (void)err;
    RootParse *p = arg;
    p->found = p->found || is(path, p->name);
    return KN_OK;
}

bool kn_s3_root_is(KnStr body, const char *root)
{
    RootParse p = {.name = root};
    return kn_s3_xml_parse(body, root_element, &p, NULL) == KN_OK && p.found;
}

typedef struct StsParse {
    KnArena *arena;
    KnS3Keys keys;
} StsParse;

static KnCode sts_element(void *arg, KnStr path, KnStr text, KnErr *err)
{
    static const char *const bases[] = {
        "AssumeRoleResponse/AssumeRoleResult/Credentials/",
        "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/"};
    StsParse *p = arg;
    KnStr base = kn_str(bases[0]);
    if (!kn_str_starts_with(path, base))
        base = kn_str(bases[1]);
    if (!kn_str_starts_with(path, base) || !text.len)
        return KN_OK;
    KnStr name = {path.ptr + base.len, path.len - base.len};
    const char *value = kn_arena_strndup(p->arena, text.ptr, text.len);
    if (is(name, "AccessKeyId"))
        p->keys.access_key_id = value;
    else if (is(name, "SecretAccessKey"))
        p->keys.secret_access_key = value;
    else if (is(name, "SessionToken"))
        p->keys.session_token = value;
    else if (is(name, "Expiration"))
        return kn_clock_parse_ms(value, &p->keys.expires_ms, err);
    return KN_OK;
}

KnCode kn_s3_sts_parse(KnArena *arena, KnStr body, KnS3Keys *ret, KnErr *err)
{
    StsParse p = {.arena = arena};
    KN_TRY(kn_s3_xml_parse(body, sts_element, &p, err));
    if (!p.keys.access_key_id || !p.keys.secret_access_key)
        return kn_err_set(err, KN_E_CORRUPT, "the answer holds no credentials");
    *ret = p.keys;
    return KN_OK;
}
