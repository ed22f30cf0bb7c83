/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * path.h - the text of locations: `file:///a/b`, `file:/a/b`, `/a/b`, `s3://bucket/key`.
 *
 * Iceberg compares paths of position deletes as raw strings; everything else here works on the
 * normal form (`file:` locations become absolute local paths, no `.`/`..`/`//`). Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/** The scheme ("file" for plain paths), lower case, in out; KN_E_INVAL for a malformed one. */
KN_NODISCARD KnCode kn_path_scheme(KnStr location, char out[16], KnErr *err);
/** Absolute local path of a file location; percent-escapes are NOT decoded (Iceberg writes raw
 * names).
 * `.` and `..` are resolved textually. KN_E_UNSUPPORTED for other schemes, KN_E_INVAL for relative.
 */
KN_NODISCARD KnCode kn_path_local(KnArena *arena, KnStr location, const char **ret, KnErr *err);
/** True when normal path `path` is `dir` or lies below it (whole components). */
bool kn_path_is_within(KnStr path, KnStr dir);
/** dir + "/" + name without doubling the slash. */
const char *kn_path_join(KnArena *arena, KnStr dir, KnStr name);
KnStr kn_path_basename(KnStr path);
/** Without the final slash ("/a" gives "/"); "" when there is none, also for "s3://bucket". */
KnStr kn_path_dirname(KnStr path);
