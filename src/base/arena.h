/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * arena.h - memory that dies together: one per request, per scan, per plan, per batch.
 *
 * Nothing taken from an arena is freed on its own. kn_arena_defer() ties a resource that is not
 * memory (a file, a connection, a reference) to the same end. Not thread safe: an arena belongs to
 * one thread at a time.
 */
#include <stddef.h>

typedef struct KnArena KnArena;

KnArena *kn_arena_new(size_t first_block);
KnArena *kn_arena_free(KnArena *arena); /* accepts NULL, returns NULL */

/* Sizes we choose: abort when memory is out, never NULL. */
void *kn_arena_alloc(KnArena *arena, size_t size) __attribute__((returns_nonnull));
void kn_arena_defer(KnArena *arena, void (*fn)(void *), void *arg);

/* Sizes that outside bytes choose: NULL when memory is out or the size cannot be. */
void *kn_arena_try_alloc(KnArena *arena, size_t size);
char *kn_arena_try_strndup(KnArena *arena, const char *s, size_t len);
void *kn_arena_try_array(KnArena *arena, size_t count, size_t size); /* zeroed; overflow-safe */

/* Copies of text that is already in memory (its size is ours): abort when memory is out. */
char *kn_arena_strdup(KnArena *arena, const char *s) __attribute__((returns_nonnull));
char *kn_arena_strndup(KnArena *arena, const char *s, size_t len) __attribute__((returns_nonnull));
void *kn_arena_zalloc(KnArena *arena, size_t size) __attribute__((returns_nonnull));
char *kn_arena_printf(KnArena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

static inline void kn_arena_freep(KnArena **arena)
{
    *arena = kn_arena_free(*arena);
}
#define KN_ARENA_AUTO __attribute__((cleanup(kn_arena_freep))) KnArena *
