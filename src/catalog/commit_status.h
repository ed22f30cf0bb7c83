/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * commit_status.h - did a commit take effect whose answer was lost?
 *
 * After Java's BaseMetastoreOperations.checkCommitStatus: the document is current, or the current
 * one has it in its log. Where the log does not reach back far enough, the snapshots that the
 * commit has added tell. Asked again with waits, by the table's commit.status-check properties.
 */
#include "iceberg/metadata/metadata.h"
#include "storage/file_io.h"

typedef struct KnLostCommit {
    KnFileIO *io;
    const KnMetadata *before; /* the document at `from` */
    const KnMetadata *after;  /* the one at `to` */
    const char *from;
    const char *to;
    /* Where the pointer is now, in arena. KN_E_NOTFOUND: there is no such table. */
    KnCode (*find)(void *arg, KnArena *arena, const char **ret, KnErr *err);
    void *arg;
} KnLostCommit;

typedef enum KnCommitStatus {
    KN_COMMIT_APPLIED,
    KN_COMMIT_NOT_APPLIED,
    KN_COMMIT_UNKNOWN, /* the pointer could not be read, or tells neither */
} KnCommitStatus;

/** Waits as the properties say; a stop of the process ends that as KN_COMMIT_UNKNOWN. */
KnCommitStatus kn_commit_status(const KnLostCommit *lost);
