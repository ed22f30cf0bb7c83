/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* reach.h - the engine is told how to open a location that a FileIO knows. */
#include "engine/engine.h"
#include "storage/file_io.h"

/** From now on eng opens names like this one (kn_io_engine_path()). Local ones need nothing.
 * Credentials may change with time: call it before each use; what is known already costs no
 * statement. Thread-safe. */
KN_NODISCARD KnCode kn_engine_reach(KnEngine *eng, KnFileIO *io, KnStr location, KnErr *err);
