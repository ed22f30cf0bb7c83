/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * workers.h - threads for calls that wait for a disk, a database or another machine.
 *
 * Threads are made when there is work for them and nobody idle, up to the limit, and stay. Jobs are
 * taken in order. Thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct KnWorkers KnWorkers;
typedef void (*KnJobFn)(void *arg);

KnWorkers *kn_workers_new(unsigned max_threads, size_t max_queued);
/** False when max_queued jobs wait already, or after kn_workers_free() began: fn is not called. */
bool kn_workers_submit(KnWorkers *workers, KnJobFn fn, void *arg);
/** Runs what is queued to its end, joins. Takes NULL, returns NULL. */
KnWorkers *kn_workers_free(KnWorkers *workers);
