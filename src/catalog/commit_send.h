/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * commit_send.h - a commit to a catalog server: sent once, and what became of it found out.
 *
 * A conflict says that a requirement did not hold, or only that the server lost a race and does not
 * start over by itself. The newest metadata is asked for: where our snapshot is in it already, an
 * earlier sending of this commit was applied; where the requirements hold, it is sent again; else
 * the conflict is the caller's, who looks at the table anew.
 *
 * A lost answer is never taken for a failure: the files of the commit may be part of the table. The
 * table is asked, with the waits of its commit.status-check properties. It was applied when its
 * snapshot is there, or when nothing is left to change; it was not, for certain, only when its
 * requirements hold no more. Else it is KN_E_UNKNOWN.
 *
 * Two requirements of ours have no words on the wire (commit_json.h): they are checked here,
 * against the newest metadata, right before the commit; every ref is then required to be as it was
 * seen.
 */
#include "iceberg/table.h"

typedef struct KnCommitSend {
    KnTable *tbl; /* its catalog's load() asks the server */
    const KnTableCommit *commit;
    /* One sending of what has words on the wire (kn_requirement_is_rest); on success tbl shows the
     * new metadata. KN_E_CONFLICT or KN_E_EXISTS: a requirement does not hold, or a race was lost.
     * KN_E_UNKNOWN: it may have been applied. */
    KnCode (*send)(void *arg, KnTable *tbl, const KnTableCommit *sent, KnErr *err);
    void *arg;
} KnCommitSend;

KN_NODISCARD KnCode kn_commit_send(const KnCommitSend *how, KnErr *err);
/** now has what commit does: its snapshot, or nothing that it would change. */
bool kn_commit_is_applied(const KnMetadata *now, const KnTableCommit *commit);
/** All requirements have words on the wire. */
bool kn_commit_is_all_said(const KnTableCommit *commit);
