/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* view_internal.h - what the files that read and change view metadata share. */
#include "iceberg/view/view.h"

#define KN_VIEW_FORMAT_MAX 1

/** One version of a view, checked: ids, a schema id, SQL representations with a dialect, a default
 * namespace. */
KN_NODISCARD KnCode kn_view_version_parse(const json_t *json, KnViewVersion *ret, KnErr *err);
