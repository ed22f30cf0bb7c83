/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lineage.h - a window as others hear of it: OpenLineage run events (spec 2-0-2) and Airflow asset
 * events. Text only; outbox.h sends it.
 */
#include "cdc/delivery.h"

typedef struct KnLineageRun {
    const char *namespace; /* of the job */
    const char *job;       /* the delivery's name */
    const char *run_id;    /* a UUID, the same from START to COMPLETE or FAIL */
    const char *source;    /* the catalog's id: the input's namespace */
    const char *table;
    const char *sink; /* its identity: the output's namespace */
    const char *target;
    int64_t time_ms;
} KnLineageRun;

typedef enum KnLineageEvent {
    KN_LINEAGE_START,
    KN_LINEAGE_COMPLETE,
    KN_LINEAGE_FAIL
} KnLineageEvent;

/** win may be NULL (a failure before there was one); message is for FAIL. */
void kn_lineage_write(KnBuf *out, KnLineageEvent event, const KnLineageRun *run,
                      const KnWindowReport *win, const char *message);
/** {"asset_uri": PREFIX TABLE, "extra": {...}}: docs/service.md. */
void kn_airflow_write(KnBuf *out, const char *prefix, const KnLineageRun *run,
                      const KnDeliveryReport *report);
