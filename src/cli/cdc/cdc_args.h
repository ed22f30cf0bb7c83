/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* cdc_args.h - what the cdc commands share: from where, to where, with which journal. */
#include "cdc/delivery.h"
#include "cli/command.h"
#include "service/config.h"

/** A delivery's options; the first members of each cdc command's struct. */
typedef struct KnCdcOptions {
    KnCommonOptions common;
    KnDeliverySettings what;
    const char *config, *delivery;
} KnCdcOptions;

/** Rows `config` and `delivery`, offsets from the start of KnCdcOptions. */
enum { KN_CDC_ROWS = 2 };
extern const KnOption kn_cdc_rows[KN_CDC_ROWS];
#define KN_CDC_ROW_CONFIG                                                                          \
    {                                                                                              \
        .name = "config", .type = KN_OPT_TEXT, .letter = 'c',                                      \
        .offset = offsetof(KnCdcOptions, config), .value = "FILE",                                 \
        .doc = "knut.yaml with many deliveries (docs/many-tables.md), instead of the options "     \
               "below"                                                                             \
    }
#define KN_CDC_ROW_DELIVERY                                                                        \
    {                                                                                              \
        .name = "delivery", .type = KN_OPT_TEXT, .offset = offsetof(KnCdcOptions, delivery),       \
        .value = "NAME", .doc = "One delivery of that file"                                        \
    }
/** The places where a command's struct has the shared rows. */
#define KN_CDC_LOCATOR    offsetof(KnCdcOptions, what.loc)
#define KN_CDC_EXTRA_BASE offsetof(KnCdcOptions, what)

/** Everything that a command about one delivery holds open. */
typedef struct KnCdcCall {
    KnCallTable source;
    KnJournal *journal;
    KnDelivery *delivery;
} KnCdcCall;

/** The settings of the one delivery that flags or --config and --delivery name; they live as long
 * as the call's arena. */
KN_NODISCARD KnCode kn_cdc_settings(const KnCall *call, const KnDeliverySettings **ret, KnErr *err);
/** --config was given: reads the file, whose folder becomes the current one, because its relative
 * paths count from there. Flags that name a table or a sink beside it are KN_E_INVAL. */
KN_NODISCARD KnCode kn_cdc_config(const KnCdcOptions *opts, KnArena *arena, KnServiceConfig **ret,
                                  KnErr *err);

/** Opens table, journal and delivery. observer may be NULL. In KN_JOURNAL_READ an absent journal is
 * as an empty one. set's texts must outlive ret. */
KN_NODISCARD KnCode kn_cdc_delivery_open(const KnCall *call, const KnDeliverySettings *set,
                                         KnJournalMode mode, const KnDeliveryObserver *observer,
                                         KnCdcCall *ret, KnErr *err);
/** The same by kn_cdc_settings(). */
KN_NODISCARD KnCode kn_cdc_call_open(const KnCall *call, KnJournalMode mode,
                                     const KnDeliveryObserver *observer, KnCdcCall *ret,
                                     KnErr *err);
void kn_cdc_call_close(KnCdcCall *cc);
#define KN_CDC_CALL_AUTO __attribute__((cleanup(kn_cdc_call_close))) KnCdcCall
