/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* look_many.h - `knut cdc status -c` and `knut cdc check -c`: one line for each delivery. */
#include "cli/cdc/cdc_args.h"

KN_NODISCARD KnCode kn_status_many(const KnCall *call, KnErr *err);
/** The worst of the deliveries' codes after all lines. */
KN_NODISCARD KnCode kn_check_many(const KnCall *call, KnErr *err);
