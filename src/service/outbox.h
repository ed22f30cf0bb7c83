/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * outbox.h - events for others (OpenLineage, Airflow): sent by a thread of its own, in order, as
 * well as it goes. What a delivery does never waits for them and never fails by them: the queue is
 * bounded, what does not fit or does not arrive after three tries is dropped, counted and told.
 */
#include "base/err.h"
#include "base/str.h"

typedef struct KnOutbox KnOutbox;

typedef struct KnOutboxOptions {
    const char *name;      /* "lineage": for logs and metrics */
    const char *to;        /* http(s)://..., or file:PATH (one event a line) */
    const char *token_env; /* the variable that holds the bearer token, if any */
} KnOutboxOptions;

/** KN_E_INVAL: no such place; KN_E_IO: the file cannot be opened. */
KN_NODISCARD KnCode kn_outbox_open(const KnOutboxOptions *opts, KnOutbox **ret, KnErr *err);
/** body is copied. Accepts NULL (nobody listens). Thread-safe. */
void kn_outbox_send(KnOutbox *box, KnStr body);
/** Sends what waits, for at most five seconds. Accepts NULL, returns NULL. */
KnOutbox *kn_outbox_close(KnOutbox *box);
