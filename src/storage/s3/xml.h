/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * xml.h - the XML answers of S3 and STS.
 *
 * kn_s3_xml_parse() hands each element's text with its path to a function when the element ends;
 * what the answers mean is above it. Limits: depth 16, 64 KiB of text an element, no DTD.
 * Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/** path: "ListBucketResult/Contents/Key", without namespaces; text: what is directly inside. */
typedef KnCode (*KnS3XmlFn)(void *arg, KnStr path, KnStr text, KnErr *err);
/** KN_E_CORRUPT with line and column. */
KN_NODISCARD KnCode kn_s3_xml_parse(KnStr bytes, KnS3XmlFn fn, void *arg, KnErr *err);

/** An <Error> (S3) or <ErrorResponse> (STS). Texts are cut to size; "" = not there. */
typedef struct KnS3Error {
    char code[64];
    char message[200];
    char region[40];
    char request_id[72];
} KnS3Error;
/** False when the body is no such document. */
bool kn_s3_error_parse(KnStr body, KnS3Error *ret);

typedef struct KnS3Object {
    const char *key;
    uint64_t size;
    int64_t modified_ms;
} KnS3Object;
typedef KnCode (*KnS3ObjectFn)(void *arg, const KnS3Object *object, KnErr *err);
/** A page of ListObjectsV2; *ret_next: the continuation token, in arena, NULL on the last page. The
 * object's key lives in arena. */
KN_NODISCARD KnCode kn_s3_list_parse(KnArena *arena, KnStr body, KnS3ObjectFn fn, void *arg,
                                     const char **ret_next, KnErr *err);
/** What DeleteObjects could not delete. */
typedef KnCode (*KnS3DeleteErrorFn)(void *arg, KnStr key, const KnS3Error *error, KnErr *err);
KN_NODISCARD KnCode kn_s3_delete_parse(KnStr body, KnS3DeleteErrorFn fn, void *arg, KnErr *err);
/** The upload id of CreateMultipartUpload, in arena. */
KN_NODISCARD KnCode kn_s3_upload_parse(KnArena *arena, KnStr body, const char **ret, KnErr *err);
/** Whether the document's root element is this (CompleteMultipartUpload answers 200 and an error).
 */
bool kn_s3_root_is(KnStr body, const char *root);

struct KnS3Keys;
/** The credentials of AssumeRole and AssumeRoleWithWebIdentity, in arena. */
KN_NODISCARD KnCode kn_s3_sts_parse(KnArena *arena, KnStr body, struct KnS3Keys *ret, KnErr *err);
