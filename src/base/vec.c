/* SPDX-License-Identifier: Apache-2.0 */
/* vec.c - the growth of KN_VEC: doubling, new elements zeroed, abort when memory is out. */
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 8 };

void *kn_vec_grow(void *items, size_t *cap, size_t len, size_t size)
{
    if (len == *cap) {
        size_t next, bytes;
        if (__builtin_mul_overflow(*cap ? *cap : FIRST_CAP / 2, 2, &next) ||
            __builtin_mul_overflow(next, size, &bytes))
            abort();
        items = realloc(items, bytes);
        if (!items)
            abort();
        *cap = next;
    }
    memset((char *)items + len * size, 0, size);
    return items;
}
