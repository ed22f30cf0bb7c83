/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * httpd_pool.h - threads for handlers that wait. They are made when there is more work than idle
 * threads, up to a maximum, and stay. Thread-safe.
 */
#include <stddef.h>

typedef struct KnHttpdPool KnHttpdPool;
/** Lives in what it works on. */
typedef struct KnHttpdJob {
    struct KnHttpdJob *next;
    void (*run)(struct KnHttpdJob *job);
} KnHttpdJob;

KnHttpdPool *kn_httpd_pool_new(size_t max_threads);
/** Every job is run; without a thread to be had, here and now. */
void kn_httpd_pool_run(KnHttpdPool *pool, KnHttpdJob *job);
/** Runs what is queued, ends the threads. Accepts NULL, returns NULL. */
KnHttpdPool *kn_httpd_pool_free(KnHttpdPool *pool);
