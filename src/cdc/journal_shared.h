/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* journal_shared.h - one journal for deliveries on several threads: one call at a time. */
#include "cdc/journal.h"

/** Takes over the journal; closing the returned one closes it. Thread-safe but for close. */
KnJournal *kn_journal_share(KnJournal *inner);
