/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of HTTP requests. What is taken apart is UTF-8 without NUL, and has its bounds. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/http_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnHttpTarget target = {0};
    KnErr err = {0};
    KnCode rc = kn_http_target_parse(arena, (KnStr){(const char *)data, size}, &target, &err);
    if (rc != KN_OK) {
        if (err.code != rc || !err.msg[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < target.n_segments; i++) {
        KnStr part = target.segments[i];
        if (!kn_str_is_utf8(part) || memchr(part.ptr, '\0', part.len) || part.ptr[part.len])
            abort();
    }
    for (size_t i = 0; i < target.n_query; i++) {
        if (!kn_str_is_utf8(target.query[i].name) || !kn_str_is_utf8(target.query[i].value))
            abort();
    }
    return 0;
}
