/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ack.h - proof that a window has arrived, the only thing that can move a cursor.
 *
 * A KnLoadAck is made in delivery.c and nowhere else, out of verdicts that are all proven and whose
 * row counts match the plan. A journal reads the new position off it; it takes it from nowhere
 * else.
 */
#include <stdint.h>

typedef struct KnLoadAck KnLoadAck;

int64_t kn_load_ack_window(const KnLoadAck *ack); /* the journal's id of the window */
int64_t kn_load_ack_from(const KnLoadAck *ack);   /* the cursor it moves from; -1 = none */
int64_t kn_load_ack_to(const KnLoadAck *ack);     /* the cursor it moves to */
int64_t kn_load_ack_epoch(const KnLoadAck *ack);
int64_t kn_load_ack_upserts(const KnLoadAck *ack);
int64_t kn_load_ack_deletes(const KnLoadAck *ack);
int64_t kn_load_ack_duplicates(const KnLoadAck *ack); /* chunks found to have arrived before */
int64_t kn_load_ack_bytes(const KnLoadAck *ack);
double kn_load_ack_seconds(const KnLoadAck *ack);
const char *kn_load_ack_last_label(const KnLoadAck *ack); /* of its last load; never NULL */
