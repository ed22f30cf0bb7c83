/* SPDX-License-Identifier: Apache-2.0 */
/* ron.c - the RON that serde writes of the published crate's Pipeline, and knut's own fields. */
#include "codec/ron.h"

#include "pipeline/ir/document.h"
#include "pipeline/surface/surfaces.h"

static KnCode read_ron(KnArena *arena, const KnDocument *doc, KnNotes *notes,
                       const KnPipeline **ret, KnErr *err)
{
    KnRonDocument parsed;
    KN_TRY(kn_ron_parse(arena, doc->text, doc->origin, &parsed, err));
    KnPipeline *pipeline = kn_arena_zalloc(arena, sizeof(*pipeline));
    KnDecoder dec = {.arena = arena,
                     .notation = KN_NOTATION_RON,
                     .extensions = parsed.extensions,
                     .origin = doc->origin,
                     .notes = notes,
                     .err = err};
    KN_TRY(kn_ir_decode(&dec, &kn_ir_pipeline, &parsed.value, pipeline));
    *ret = pipeline;
    return KN_OK;
}

static KnCode write_ron(const KnPipeline *pipeline, KnSession *session, KnBuf *out, KnNotes *notes,
                        KnErr *err)
{
    (void)session, (void)notes;
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    KnRon tree = kn_ir_encode(arena, KN_NOTATION_RON, &kn_ir_pipeline, pipeline);
    kn_ron_write(out, &tree);
    return kn_buf_check(out, err);
}

const KnSurface kn_surface_ron = {
    .name = "ron", .extensions = "ron", .read = read_ron, .write = write_ron};
