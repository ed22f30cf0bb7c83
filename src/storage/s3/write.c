/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - objects that are created or replaced.
 *
 * A PUT is atomic and durable: readers see the old object, or none, or the whole new one. CREATE is
 * If-None-Match: *, so that the store decides who was first. Each create carries a random token as
 * metadata of the object: when the store says "taken" (412, 409), or a try's answer was lost, the
 * object's token tells whether it is our own earlier try or somebody else's object.
 */
#include "base/fault.h"
#include "base/random.h"
#include "storage/s3/s3_internal.h"

KnCode kn_s3_is_ours(KnS3 *s3, const KnS3Put *put, bool *ret_ours, KnErr *err)
{
    KN_S3_CALL_AUTO call = {.operation = "HeadObject", .method = "HEAD", .place = *put->place};
    KN_TRY(kn_io_settled(kn_s3_call(s3, &call, err), err));
    const char *token = kn_http_header(&call.resp, KN_S3_TOKEN_HEADER, 0);
    *ret_ours = token && put->token && strcmp(token, put->token) == 0;
    return KN_OK;
}

static KnCode lost_for_good(const KnS3Put *put, KnErr *err)
{
    KnErr cause = err ? *err : (KnErr){0};
    return kn_err_set(err, KN_E_UNKNOWN,
                      "'" KN_STR_FMT "' may or may not have been written: %.250s",
                      KN_STR_ARG(put->place->location), cause.msg);
}

KnCode kn_s3_settle(KnS3 *s3, const KnS3Put *put, const KnS3Outcome *outcome, KnErr *err)
{
    KnErr why = {0};
    bool ours = false;
    if (outcome->code != KN_E_EXISTS && !outcome->maybe)
        return outcome->code;
    KnCode rc = kn_s3_is_ours(s3, put, &ours, &why);
    if (rc == KN_OK && ours)
        return KN_OK;
    if (rc == KN_OK && put->create)
        return kn_err_set(err, KN_E_EXISTS, "cannot create '" KN_STR_FMT "': it exists already",
                          KN_STR_ARG(put->place->location));
    if (outcome->code == KN_E_EXISTS) /* by an object that went meanwhile or cannot be looked at */
        return KN_E_EXISTS;
    if ((rc == KN_OK || rc == KN_E_NOTFOUND) && outcome->code != KN_E_UNKNOWN)
        return outcome->code; /* the store said no to the last try, and no other took effect */
    return lost_for_good(put, err);
}

static KnS3Outcome put_once(KnS3 *s3, const KnS3Put *put, KnErr *err)
{
    KN_S3_CALL_AUTO call = {
        .operation = "PutObject", .method = "PUT", .place = *put->place, .body = put->bytes};
    if (put->create)
        kn_s3_call_header(&call, "If-None-Match", "*");
    kn_s3_call_header(&call, KN_S3_TOKEN_HEADER, put->token);
    kn_s3_call_header(&call, "Content-Type", "application/octet-stream");
    KnCode code = kn_s3_call(s3, &call, err);
    return (KnS3Outcome){code, code != KN_OK && call.lost_before};
}

KnCode kn_s3_upload(KnS3 *s3, const KnS3Place *place, KnStr bytes, KnWriteMode mode, KnErr *err)
{
    char uuid[37];
    KnS3Put put = {.place = place, .bytes = bytes, .create = mode != KN_IO_REPLACE};
    put.token = kn_random_uuid4(uuid);
    if (bytes.len > s3->part_bytes + s3->part_bytes / 2)
        return kn_s3_upload_parts(s3, &put, err);
    KnS3Outcome outcome = put_once(s3, &put, err);
    return kn_s3_settle(s3, &put, &outcome, err);
}

static KnCode after_write(KnErr *err)
{
    KN_FAULT("io-write-after", err);
    return KN_OK;
}

KnCode kn_s3_write(KnFileIO *io, KnStr location, const void *bytes, size_t len, KnWriteMode mode,
                   KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Place place;
    KN_TRY(kn_s3_object_place(s3, location, &place, err));
    KN_FAULT("io-write-before", err);
    KN_TRY(kn_s3_upload(s3, &place, (KnStr){bytes, len}, mode, err));
    KnErr cause = {0};
    if (after_write(&cause) != KN_OK)
        return kn_err_set(err, KN_E_UNKNOWN, "'" KN_STR_FMT "' is written, and then: %.200s",
                          KN_STR_ARG(location), cause.msg);
    return KN_OK;
}
