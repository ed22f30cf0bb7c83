/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* cdc_args.h - what the cdc commands share: from where, to where, with which journal. */
#include "cdc/delivery.h"
#include "cli/command.h"

/** A delivery's options; the first members of each cdc command's struct. */
typedef struct KnCdcOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *sink, *target, *ref, *state;
    int mode; /* KnSinkMode */
    KnOptList keys;
    int64_t chunk_mb, parallel_loads, max_windows;
    uint64_t max_rewrite_bytes;
} KnCdcOptions;

/** Rows for KnCdcOptions, offsets from its start. */
extern const KnOptGroup kn_cdc_options;

/** Everything that a command about one delivery holds open. */
typedef struct KnCdcCall {
    KnCallTable source;
    KnJournal *journal;
    KnDelivery *delivery;
} KnCdcCall;

/** Opens table, journal and delivery. observer may be NULL. In KN_JOURNAL_READ an absent journal is
 * as an empty one. */
KN_NODISCARD KnCode kn_cdc_call_open(const KnCall *call, KnJournalMode mode,
                                     const KnDeliveryObserver *observer, KnCdcCall *ret,
                                     KnErr *err);
void kn_cdc_call_close(KnCdcCall *cc);
#define KN_CDC_CALL_AUTO __attribute__((cleanup(kn_cdc_call_close))) KnCdcCall
