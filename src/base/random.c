/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - ids from the kernel's generator, and splitmix64 for what must be repeatable.
 *
 * getrandom(2) cannot fail on a running Linux but for a signal before it starts; anything else
 * aborts, because a predictable id could overwrite somebody's file.
 */
#include "base/random.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

static void fill(void *out, size_t len)
{
    unsigned char *p = out;
    while (len) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno != EINTR)
            abort();
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
}

int64_t kn_random_id(void)
{
    int64_t id;
    do {
        fill(&id, sizeof(id));
        id &= INT64_MAX;
    } while (id == 0);
    return id;
}

/* Version and variant bits (RFC 9562 section 4) over 16 bytes, then the text form. */
static const char *uuid_text(unsigned char b[16], unsigned version, char out[37])
{
    b[6] = (unsigned char)((b[6] & 0x0f) | version << 4);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *p = out;
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = "0123456789abcdef"[b[i] >> 4];
        *p++ = "0123456789abcdef"[b[i] & 15];
    }
    *p = '\0';
    return out;
}

const char *kn_random_uuid4(char out[37])
{
    unsigned char b[16];
    fill(b, sizeof(b));
    return uuid_text(b, 4, out);
}

const char *kn_random_uuid7(char out[37])
{
    unsigned char b[16];
    fill(b, sizeof(b));
    uint64_t ms = (uint64_t)kn_clock_wall_ms();
    for (int i = 5; i >= 0; --i, ms >>= 8)
        b[i] = (unsigned char)(ms & 0xff);
    return uuid_text(b, 7, out);
}

uint64_t kn_rng_next(KnRng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

uint64_t kn_rng_below(KnRng *rng, uint64_t bound)
{
    /* the high half of a 128-bit product: no division, bias below 2^-64 * bound */
    return (uint64_t)((unsigned __int128)kn_rng_next(rng) * bound >> 64);
}

double kn_rng_unit(KnRng *rng)
{
    return (double)(kn_rng_next(rng) >> 11) * 0x1.0p-53;
}
