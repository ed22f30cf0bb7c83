/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.c - what is staged takes its place.
 *
 * Each target changes in one step: tables by their commits, then what goes to object stores, then
 * what is local, which changes as one (journal.c). A run that is killed between two of the others
 * has changed the first and not the second, each of them whole.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/fault.h"
#include "pipeline/native/native.h"
#include "storage/place.h"

static KnCode publish_one(KnNativeRun *run, const KnNativeStaged *staged, KnErr *err)
{
    const KnNativeNode *node = staged->node;
    KN_FAULT("pipeline-publish", err);
    if (node && node->place == KN_NATIVE_OBJECTS)
        KN_TRY(kn_native_objects_publish(run, staged, err));
    else
        KN_TRY(kn_place_swap(staged->stage, staged->target, err));
    KN_FAULT("pipeline-published", err);
    KN_TRY(kn_place_remove(staged->stage, err));
    if (!node)
        return KN_OK;
    if (node->mark) /* the epoch is told by its stream */
        return KN_OK;
    KnRunMetrics metrics = {.rows = node->rows};
    kn_native_tell(run,
                   &(KnRunEvent){.element = node->dataset->name,
                                 .phase = KN_PHASE_COMPLETED,
                                 .metrics = &metrics},
                   "sink `%s`: wrote %" PRId64 " row(s) -> %s (%s)", node->dataset->name,
                   node->rows, node->dataset->path, kn_native_format_name(node->format));
    return KN_OK;
}

typedef enum Phase { EARLY, OBJECTS, LOCAL } Phase;

static KnCode publish_staged(KnNativeRun *run, Phase phase, KnErr *err)
{
    kn_vec_foreach (&run->staged, staged) {
        Phase its = staged->early ? EARLY : kn_native_stays(staged) ? LOCAL : OBJECTS;
        if (its == phase)
            KN_TRY(publish_one(run, staged, err));
    }
    return KN_OK;
}

KnCode kn_native_publish(KnNativeRun *run, KnErr *err)
{
    KN_TRY(publish_staged(run, EARLY, err));
    kn_vec_foreach (&run->commits, node) {
        KN_TRY((*node)->place == KN_NATIVE_DATABASE ? kn_native_database_write(run, *node, err)
                                                    : kn_native_table_write(run, *node, err));
    }
    KN_TRY(publish_staged(run, OBJECTS, err));
    KN_TRY(kn_native_journal_begin(run, err));
    KN_TRY(publish_staged(run, LOCAL, err));
    KN_TRY(kn_native_journal_end(run, err));
    run->commits.len = 0;
    kn_native_unstage(run); /* there is nothing left of it: locks go */
    return KN_OK;
}

void kn_native_unstage(KnNativeRun *run)
{
    kn_vec_foreach (&run->staged, staged) {
        /* The next run removes what cannot be removed now, and finishes what was decided. */
        if (!run->decided || !kn_native_stays(staged))
            KN_IGNORE(kn_place_remove(staged->stage, NULL));
    }
    kn_vec_foreach (&run->locks, fd) {
        (void)close(*fd);
    }
    kn_vec_done(&run->staged);
    kn_vec_done(&run->locks);
}
