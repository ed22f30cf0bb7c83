/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_args.c - see pipeline_args.h. */
#include "cli/pipeline/pipeline_args.h"

#include <stdio.h>

const char *kn_args_file(const KnCall *call)
{
    return call->args.items[0];
}

KnCode kn_args_pipeline(const KnCall *call, const char *from, KnNotes *notes,
                        const KnPipeline **ret, KnErr *err)
{
    KnLoad load = {0};
    if (call->args.len != 1)
        return kn_err_set(err, KN_E_INVAL, "give one FILE that holds a pipeline");
    load.file = call->args.items[0];
    if (from)
        KN_TRY(kn_surface_find(from, &load.surface, err));
    else
        KN_TRY(kn_surface_of_file(load.file, &load.surface, err));
    KN_CALL_ENGINE_AUTO ce = {0};
    if (load.surface->needs_engine) {
        KN_TRY(kn_call_engine_open(call, &ce, err));
        load.session = ce.session;
    }
    KnCode rc = kn_pipeline_load(call->arena, &load, notes, ret, err);
    if (rc != KN_OK) /* what else is wrong stands in the notes */
        kn_args_notes(call, notes);
    return rc;
}

void kn_args_notes(const KnCall *call, const KnNotes *notes)
{
    kn_vec_foreach (&notes->list, note) {
        if (note->line > 0)
            (void)fprintf(stderr, "%s:%zu:%zu: %s\n", kn_args_file(call), note->line, note->column,
                          note->text);
        else
            (void)fprintf(stderr, "%s: %s\n", kn_args_file(call), note->text);
    }
}
