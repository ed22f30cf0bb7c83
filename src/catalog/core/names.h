/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * names.h - names of namespaces and tables, and how the database and folders spell them.
 *
 * The JDBC schema joins levels by dots. A dot inside a level is spelled `%2E`, and a `%` that would
 * read as such an escape `%25`; so every other name is spelled as Java and PyIceberg spell it. In
 * folders a slash is `%2F`. Thread-safe.
 */
#include "iceberg/table.h"

/** KN_E_INVAL for an empty name, one that is not UTF-8, has control characters, or has a part "."
 * or ".." between slashes. what: "namespace level", "table name". */
KN_NODISCARD KnCode kn_name_check(KnStr name, const char *what, KnErr *err);
/** The database's text for a namespace, in arena; checks every level. */
KN_NODISCARD KnCode kn_names_join(KnArena *arena, const char *const *levels, size_t n,
                                  const char **ret, KnErr *err);
/** The levels of such a text, in arena. */
void kn_names_split(KnArena *arena, const char *text, const char *const **ret, size_t *ret_n);
/** A name as one component of a location, in arena. */
const char *kn_name_folder(KnArena *arena, const char *name);
