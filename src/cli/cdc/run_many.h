/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* run_many.h - `knut cdc run -c`: the deliveries of a file in one process. */
#include "cli/cdc/cdc_args.h"

/** Until a signal, or with `once` until each delivery has had its round. listen: where to answer
 * probes, in place of what the file says; NULL = that. */
KN_NODISCARD KnCode kn_run_many(const KnCall *call, bool once, const char *listen, KnErr *err);
