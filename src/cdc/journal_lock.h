/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * journal_lock.h - one writer per journal file: flock(2) on FILE.lock, which the kernel gives back
 * when the holder dies. The file's text names the holder; it is never removed (a second opener
 * could otherwise lock a name that is gone).
 */
#include "cdc/journal.h"

/** A descriptor that holds the lock until it is closed. KN_E_BUSY names the holder. */
KN_NODISCARD KnCode kn_journal_lock_take(const char *journal, int *ret_fd, KnErr *err);
