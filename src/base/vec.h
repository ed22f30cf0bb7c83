/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * vec.h - the one growing array. KN_VEC(T) declares the struct; memory out aborts (sizes that come
 * from outside are checked against limits before they reach a vec). One thread at a time.
 *
 *     KN_VEC(int) v = {0};
 *     *kn_vec_push(&v) = 7;       // a pointer to the new, zeroed element
 *     kn_vec_foreach(&v, p) sum += *p;
 *     kn_vec_done(&v);
 */
#include <stddef.h>
#include <stdlib.h> /* free() in kn_vec_done */

#define KN_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/** Make room for one more element of size; returns the (moved) array. Used by kn_vec_push. */
void *kn_vec_grow(void *items, size_t *cap, size_t len, size_t size)
    __attribute__((returns_nonnull));

#define kn_vec_push(v)                                                                             \
    ((v)->items = kn_vec_grow((v)->items, &(v)->cap, (v)->len, sizeof(*(v)->items)),               \
     &(v)->items[(v)->len++])
#define kn_vec_foreach(v, p)                                                                       \
    for (__typeof__(&*(v)->items) p = (v)->items; p && p != (v)->items + (v)->len; ++p)
#define kn_vec_done(v)                                                                             \
    do {                                                                                           \
        free((v)->items);                                                                          \
        (v)->items = NULL;                                                                         \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)
