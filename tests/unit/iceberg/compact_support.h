/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* compact_support.h - what the tests of compacting do to a lake. */
#include "iceberg/maintain/compact.h"
#include "unit/iceberg/unchanged.h"

/** Must succeed. */
KnCompactResult lake_compact(Lake *lake, KnCompactOptions opts);
/** Options that rewrite all files. */
KnCompactOptions compact_all(void);
/** A snapshot of position deletes: of every file the positions p for which the condition holds. */
void lake_delete_positions(Lake *lake, const char *condition);
/** Adds a partition spec and makes it the default; its text is the CLI's. */
void lake_set_spec(Lake *lake, const char *text);
void lake_set_default_spec(Lake *lake, int32_t id);
