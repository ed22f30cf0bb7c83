/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * log.h - one line per event on stderr: text (`12:00:00.123 info cdc window-delivered table=ns.t`)
 * or JSON lines. Libraries log at debug only, by area (--debug=cdc,scan); the edge (command, daemon
 * loop) logs info and above, once. Thread-safe; a line is written with one write(2).
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum KnLogLevel { KN_LOG_ERROR, KN_LOG_WARN, KN_LOG_INFO, KN_LOG_DEBUG } KnLogLevel;
typedef enum KnLogFormat { KN_LOG_TEXT, KN_LOG_JSON } KnLogFormat;

/** A key=value pair of an event; make with KN_F / KN_FI. Keys and event names are stable. */
typedef struct KnLogField {
    const char *key;
    const char *text; /* NULL: the number counts */
    int64_t number;
} KnLogField;
#define KN_F(k, t)  ((KnLogField){.key = (k), .text = (t)})
#define KN_FI(k, n) ((KnLogField){.key = (k), .number = (n)})

void kn_log_set(KnLogLevel level, KnLogFormat format);
/** Comma-separated areas whose debug lines are wanted; "all" for every one. */
void kn_log_set_debug(const char *areas);
bool kn_log_wants(KnLogLevel level, const char *area);
KN_NODISCARD KnCode kn_log_level_parse(const char *name, KnLogLevel *ret, KnErr *err);
void kn_log_write(KnLogLevel level, const char *area, const char *event, const KnLogField *fields,
                  int n_fields);
#define kn_log(level, area, event, ...)                                                            \
    do {                                                                                           \
        if (kn_log_wants((level), (area))) {                                                       \
            const KnLogField kn_f_[] = {__VA_ARGS__};                                              \
            kn_log_write((level), (area), (event), kn_f_,                                          \
                         (int)(sizeof(kn_f_) / sizeof(kn_f_[0])));                                 \
        }                                                                                          \
    } while (0)
#define kn_debug(area, event, ...) kn_log(KN_LOG_DEBUG, (area), (event), __VA_ARGS__)
