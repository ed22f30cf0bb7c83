/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* clock.h - time: wall in milliseconds (Iceberg's unit), monotonic in microseconds. Thread-safe. */
#include <stdint.h>

#include "base/err.h"

int64_t kn_clock_wall_ms(void);
int64_t kn_clock_mono_us(void);
/** "2026-01-31T12:00:00.123Z" of milliseconds since the epoch. */
const char *kn_clock_format_ms(int64_t ms, char out[32]);
/** ISO 8601 date or date-time (zone Z or ±hh:mm; none = UTC), or plain milliseconds, to
 * milliseconds. */
KN_NODISCARD KnCode kn_clock_parse_ms(const char *text, int64_t *ret_ms, KnErr *err);
