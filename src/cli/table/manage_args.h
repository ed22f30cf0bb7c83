/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* manage_args.h - what the commands that manage snapshots, refs and files read and print alike. */
#include "cli/command.h"
#include "iceberg/maintain/reach.h"
#include "iceberg/maintain/refs.h"

/** The call's table; a bare one, which cannot be committed to, is KN_E_INVAL. */
KN_NODISCARD KnCode kn_args_open_writable(const KnCall *call, KnCallTable *ret, KnErr *err);
/** "7d", "90m": milliseconds, above 0; text NULL leaves *ret_ms alone. flag is for messages. */
KN_NODISCARD KnCode kn_args_duration_ms(const KnCall *call, const char *flag, const char *text,
                                        int64_t *ret_ms, KnErr *err);
/** A time, or a duration before now; milliseconds since 1970. text NULL leaves *ret_ms alone. */
KN_NODISCARD KnCode kn_args_moment_ms(const KnCall *call, const char *flag, const char *text,
                                      int64_t *ret_ms, KnErr *err);
/** The one word of a call; what: "a branch's name", for the message when it is missing. */
KN_NODISCARD KnCode kn_args_one_word(const KnCall *call, const char *what, const char **ret,
                                     KnErr *err);

typedef struct KnMoveLine {
    const char *operation, *ref;
    const KnRefMove *move;
} KnMoveLine;
/** One line about a ref that was set, moved or dropped. */
KN_NODISCARD KnCode kn_args_print_move(const KnCall *call, const KnTable *tbl,
                                       const KnMoveLine *line, KnErr *err);

/** A failure when files that should have gone were left: how many, and why the first. */
KN_NODISCARD KnCode kn_args_report_left(const KnSweepResult *files, KnErr *err);
