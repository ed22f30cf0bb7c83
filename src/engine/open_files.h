/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * open_files.h - which database files this process has open.
 *
 * The engine locks a file with fcntl(2), which never stops a second opener in the same process: two
 * instances on one file would destroy it. Thread-safe.
 */
#include <stdbool.h>

#include "base/err.h"

typedef struct KnOpenFile KnOpenFile;

/** Begin to open path (it need not exist): KN_E_BUSY when this process has it open, unless both
 * opens only read. Other begins wait until kn_open_file_end(). */
KN_NODISCARD KnCode kn_open_file_begin(const char *path, bool read_only, KnErr *err);
/** The open is done; opened = it succeeded. NULL when it did not. */
KnOpenFile *kn_open_file_end(const char *path, bool read_only, bool opened);
KnOpenFile *kn_open_file_forget(KnOpenFile *file); /* accepts NULL, returns NULL */
