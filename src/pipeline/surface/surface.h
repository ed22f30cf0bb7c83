/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * surface.h - the forms in which a pipeline is written down: one KnSurface each, one line in
 * surface.c. All make the same value.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "pipeline/ir/ir.h"

typedef struct KnSession KnSession;

/* Something to tell about a document that is no error: an unknown field, a thing that a surface
 * cannot say. */
typedef struct KnNote {
    size_t line, column; /* from 1; 0 = of no place */
    const char *text;    /* one line, without place and file */
} KnNote;

/* Collected in order; texts in arena, items by kn_notes_done(). */
typedef struct KnNotes {
    KnArena *arena;
    KN_VEC(KnNote) list;
} KnNotes;
void kn_notes_add(KnNotes *notes, size_t line, size_t column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void kn_notes_done(KnNotes *notes);
#define KN_NOTES_AUTO __attribute__((cleanup(kn_notes_done))) KnNotes

/* A document to read. */
typedef struct KnDocument {
    KnStr text;
    const char *origin; /* the file, for messages */
    const char *name;   /* the pipeline's, where the surface does not say it */
    KnSession *session; /* of an engine, where the surface needs one; else NULL */
} KnDocument;

typedef struct KnSurface {
    const char *name;       /* "ron": for --to and --from */
    const char *extensions; /* of files, separated by bars: "ron" */
    bool needs_engine;
    /** Read a document; the value and its texts go to arena. Messages begin with
     * "origin:line:column: ". Nothing is validated here but the document's form. */
    KnCode (*read)(KnArena *arena, const KnDocument *doc, KnNotes *notes, const KnPipeline **ret,
                   KnErr *err);
    /** Append the canonical text. What the surface cannot say is named in notes. session: of an
     * engine, where the surface needs one; else NULL. */
    KnCode (*write)(const KnPipeline *pipeline, KnSession *session, KnBuf *out, KnNotes *notes,
                    KnErr *err);
} KnSurface;

/** All surfaces, NULL at the end. */
extern const KnSurface *const kn_surfaces[];
/** By name, or by the extension of a file's name; KN_E_INVAL lists those that there are. */
KN_NODISCARD KnCode kn_surface_find(const char *name, const KnSurface **ret, KnErr *err);
KN_NODISCARD KnCode kn_surface_of_file(const char *file, const KnSurface **ret, KnErr *err);
