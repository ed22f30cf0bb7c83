/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ferry.h - a lake of one table, a journal, and a delivery of it into a DuckDB file: for tests of
 * deliveries. Rows are compared as texts, so that 0.0 and -0.0, NULL and absent are told apart.
 */
#include "cdc/delivery.h"
#include "unit/iceberg/lake.h"

typedef struct Ferry {
    Lake lake;
    char state[300], dest[300], sink[320];
    KnJournal *jn;
    KnDelivery *dlv;
    KnDeliveryOptions opts; /* as the next ferry_open_delivery() takes them */
    KnErr err;
} Ferry;

void ferry_open(Ferry *fy, const LakeTable *table);
void ferry_close(Ferry *fy);
/** Closes and opens journal and delivery, as a new process would. */
void ferry_restart(Ferry *fy);
/** A round that must succeed; the report. */
const KnDeliveryReport *ferry_round(Ferry *fy);
/** A round that must fail with code, with part in its message. */
void ferry_round_fails(Ferry *fy, KnCode code, const char *part);
/** The destination's answer to a query's first value, as text; static buffer. */
const char *ferry_text(Ferry *fy, const char *sql);
void ferry_exec(Ferry *fy, const char *sql);
/** The target's rows are the table's. */
void ferry_same_rows(Ferry *fy);
