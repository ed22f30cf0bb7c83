/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * settings.h - what one delivery needs to be told: by flags of a command, or by knut.yaml, through
 * the same rows.
 */
#include "base/option.h"
#include "catalog/catalog.h"
#include "cdc/delivery.h"

typedef struct KnDeliverySettings {
    KnLocator loc;
    const char *sink, *target, *ref, *state;
    int mode; /* KnSinkMode */
    KnOptList keys;
    int64_t chunk_mb, parallel_loads, max_windows;
    uint64_t max_rewrite_bytes;
    double interval, max_backoff; /* seconds */
    int64_t max_deliveries;       /* into this sink at the same time; 0 = no bound */
} KnDeliverySettings;

/** Rows for KnDeliverySettings, offsets from its start; the locator's rows are
 * kn_locator_groups with offsetof(KnDeliverySettings, loc). */
extern const KnOptGroup kn_delivery_setting_rows;
/** `max-deliveries`, of a sink that several deliveries share. */
extern const KnOptGroup kn_delivery_share_rows;
/** `interval` and `max-backoff`, for those that look again and again. */
extern const KnOptGroup kn_delivery_pace_rows;

/** The options of a delivery of tbl; limits (threads, memory, spill folder), stop and observer are
 * the caller's to fill in. Texts are borrowed from set and arena. */
KnDeliveryOptions kn_delivery_settings_options(const KnDeliverySettings *set, const KnTable *tbl,
                                               KnArena *arena);
/** A journal; in KN_JOURNAL_READ one that is not there is NULL. */
KN_NODISCARD KnCode kn_delivery_settings_journal(const char *state, KnJournalMode mode,
                                                 KnJournal **ret, KnErr *err);
