/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_s3_xml.c - the XML answers of object stores and STS. */
#include <stdlib.h>

#include "storage/s3/credentials.h"
#include "storage/s3/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static KnCode take_object(void *arg, const KnS3Object *object, KnErr *err)
{
    (void)err;
    size_t *total = arg;
    *total += strlen(object->key);
    return KN_OK;
}

static KnCode take_error(void *arg, KnStr key, const KnS3Error *error, KnErr *err)
{
    (void)err;
    size_t *total = arg;
    *total += key.len + strlen(error->code);
    return KN_OK;
}

static void check(KnCode code, const KnErr *err)
{
    if (code != KN_OK && (!err->msg[0] || code != err->code))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStr body = {(const char *)data, size};
    size_t total = 0;
    const char *text = NULL;
    KnS3Error error;
    KnS3Keys keys;
    KnErr err = {0};
    (void)kn_s3_error_parse(body, &error);
    check(kn_s3_list_parse(arena, body, take_object, &total, &text, &err), &err);
    check(kn_s3_delete_parse(body, take_error, &total, &err), &err);
    check(kn_s3_upload_parse(arena, body, &text, &err), &err);
    check(kn_s3_sts_parse(arena, body, &keys, &err), &err);
    (void)kn_s3_root_is(body, "CompleteMultipartUploadResult");
    (void)kn_s3_ini_find(arena, body, "default", "region");
    return 0;
}
