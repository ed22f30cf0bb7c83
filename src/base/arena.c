/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - a chain of blocks and a pointer that moves.
 *
 * The newest block is at the head; a request that does not fit gets a new block. A request larger
 * than the block size goes into a block of its own *behind* the head, so that the head's free tail
 * is not lost. Blocks double up to 1 MiB. Deferred calls run last-in first-out before any memory
 * goes. Under AddressSanitizer the unused part of a block is poisoned, so that running over is
 * seen.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define KN_ARENA_POISON 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define KN_ARENA_POISON 1
#endif
#ifdef KN_ARENA_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = alignof(max_align_t), MIN_BLOCK = 4096, MAX_BLOCK = 1 << 20 };

typedef struct Block {
    struct Block *next;
    size_t used;
    size_t cap;
    alignas(max_align_t) unsigned char data[];
} Block;

typedef struct Deferred {
    struct Deferred *next;
    void (*fn)(void *);
    void *arg;
} Deferred;

struct KnArena {
    Block *blocks;
    Deferred *deferred;
    size_t next_size;
};

KnArena *kn_arena_new(size_t first_block)
{
    KnArena *arena = calloc(1, sizeof(*arena));
    if (!arena)
        abort();
    arena->next_size = first_block < MIN_BLOCK ? MIN_BLOCK : first_block;
    return arena;
}

KnArena *kn_arena_free(KnArena *arena)
{
    if (!arena)
        return NULL;
    while (arena->deferred) {
        Deferred *d = arena->deferred;
        arena->deferred = d->next;
        d->fn(d->arg);
    }
    for (Block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        ASAN_UNPOISON_MEMORY_REGION(b->data, b->cap);
        free(b);
    }
    free(arena);
    return NULL;
}

static Block *block_new(size_t cap)
{
    if (cap > PTRDIFF_MAX - sizeof(Block)) /* no object can be larger */
        return NULL;
    Block *b = malloc(sizeof(Block) + cap);
    if (!b)
        return NULL;
    *b = (Block){.cap = cap};
    ASAN_POISON_MEMORY_REGION(b->data, cap);
    return b;
}

static Block *block_add(KnArena *arena, size_t need)
{
    bool own = arena->blocks && need > arena->next_size;
    Block *b = block_new(need > arena->next_size ? need : arena->next_size);
    if (!b)
        return NULL;
    if (own) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
        return b;
    }
    b->next = arena->blocks;
    arena->blocks = b;
    if (arena->next_size < MAX_BLOCK)
        arena->next_size *= 2;
    return b;
}

void *kn_arena_try_alloc(KnArena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGN)
        return NULL;
    size_t need = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    Block *b = arena->blocks;
    if (!b || b->cap - b->used < need)
        b = block_add(arena, need);
    if (!b)
        return NULL;
    void *p = b->data + b->used;
    b->used += need;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

void *kn_arena_alloc(KnArena *arena, size_t size)
{
    void *p = kn_arena_try_alloc(arena, size);
    if (!p)
        abort();
    return p;
}

void *kn_arena_zalloc(KnArena *arena, size_t size)
{
    return memset(kn_arena_alloc(arena, size), 0, size);
}

void *kn_arena_try_array(KnArena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    void *p = kn_arena_try_alloc(arena, total);
    return p ? memset(p, 0, total) : NULL;
}

char *kn_arena_try_strndup(KnArena *arena, const char *s, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *p = kn_arena_try_alloc(arena, len + 1);
    if (!p)
        return NULL;
    if (len)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *kn_arena_strndup(KnArena *arena, const char *s, size_t len)
{
    char *p = kn_arena_try_strndup(arena, s, len);
    if (!p)
        abort();
    return p;
}

char *kn_arena_strdup(KnArena *arena, const char *s)
{
    return kn_arena_strndup(arena, s, strlen(s));
}

char *kn_arena_printf(KnArena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort(); /* a broken format is our own mistake */
    char *p = kn_arena_alloc(arena, (size_t)n + 1);
    (void)vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void kn_arena_defer(KnArena *arena, void (*fn)(void *), void *arg)
{
    Deferred *d = kn_arena_alloc(arena, sizeof(*d));
    *d = (Deferred){.next = arena->deferred, .fn = fn, .arg = arg};
    arena->deferred = d;
}
