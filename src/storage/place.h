/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* place.h - files and folders that take one another's place. Local paths. */
#include <stdbool.h>

#include "base/err.h"

/** A file, or a folder with all that is in it; none is fine. Links are removed, not followed. */
KN_NODISCARD KnCode kn_place_remove(const char *path, KnErr *err);
/** Every file below from gets a second name below to, in folders that are made. A name that is
 * taken is KN_E_EXISTS. */
KN_NODISCARD KnCode kn_place_link_tree(const char *from, const char *to, KnErr *err);
/** from takes the place of to, in one step: after it, to is what from was, and what to was is gone
 * from its name. An old folder is left under from: the caller removes it. The folder of both is
 * made durable. */
KN_NODISCARD KnCode kn_place_swap(const char *from, const char *to, KnErr *err);
