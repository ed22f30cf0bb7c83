/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* selftest.h - what the Doris sink relies on, tried out on a cluster. */
#include "base/err.h"

typedef struct KnDorisSelftest {
    const char *place;    /* what stands behind "doris:" of a sink */
    const char *database; /* must be there; tables are made in it and dropped */
    const char *spill_dir;
    /** Of each check: detail is what was found, or with !ok the reason. */
    void (*tell)(void *arg, const char *check, bool ok, const char *detail);
    void *arg;
} KnDorisSelftest;

/** Makes tables knut_selftest_..., loads, looks, drops them. KN_E_IO when a check failed; what
 * keeps all of them from being made (address, credentials) is an error of its own. Needs LOAD,
 * SELECT, CREATE and DROP. */
KN_NODISCARD KnCode kn_doris_selftest(const KnDorisSelftest *what, KnErr *err);
