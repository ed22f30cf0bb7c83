/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_s3_sign.c - requests that somebody wants signed: lines METHOD, URI, header name, header
 * value, body. What would be touched never leaves the bucket by dot or empty segments. */
#include <stdlib.h>

#include "storage/s3/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line, cut off from *text. */
static const char *line(char **text)
{
    char *from = *text;
    char *end = strchr(from, '\n');
    if (end)
        *end++ = '\0';
    *text = end ? end : from + strlen(from);
    return from;
}

static void check_touch(const KnS3Touch *touch)
{
    const char *at = touch->location;
    if (strncmp(at, "s3://", 5) != 0 || strstr(at + 5, "//") || strstr(at, "/../") ||
        strstr(at, "/./"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const KnS3Keys keys = {"key", "secret", NULL, 0};
    static KnFileIO *io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Options options = {.endpoint = "http://h:1", .region = "r", .keys = &keys};
    KnS3Intent intent = {0};
    KnS3Signed made = {0};
    KnErr err = {0};
    if (!io && kn_io_s3_open(&options, &io, NULL) != KN_OK)
        abort();
    char *text = kn_arena_strndup(arena, (const char *)data, size);
    KnHttpHeader header;
    KnS3Foreign req = {.headers = &header, .n_headers = 1};
    req.method = line(&text);
    req.uri = line(&text);
    header.name = line(&text);
    header.value = line(&text);
    req.body = text;
    KnCode rc = kn_s3_intent(io, arena, &req, &intent, &err);
    if (rc != KN_OK && (rc != err.code || !err.msg[0]))
        abort();
    if (rc != KN_OK)
        return 0;
    for (size_t i = 0; i < intent.n; i++)
        check_touch(&intent.touches[i]);
    if (kn_s3_sign_for(io, arena, &req, &intent, &made, &err) != KN_OK || made.n < 4)
        abort();
    return 0;
}
