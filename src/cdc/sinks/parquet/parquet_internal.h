/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_internal.h - what the files of this sink share.
 *
 *   ROOT/SCHEMA/TABLE/_knut.json                    whose folder it is, and how it is cut
 *   ROOT/SCHEMA/TABLE/knut_window=N/                a window; appears whole, in one step
 *       _knut.json                                  which one it is, and which load came before it
 *       _LABEL.json                                 a chunk: its rows and files
 *       [COLUMN=VALUE/...]LABEL[-I].parquet         its rows
 *   ROOT/SCHEMA/.knut-TABLE/window/                 the window that is being written
 *
 * A label's ':' is '.' in names of files, which no label has.
 */
#include "cdc/sink.h"
#include "engine/engine.h"
#include "storage/file_io.h"

typedef struct KnFilesSettings {
    const char *root;  /* absolute, and there */
    const char *codec; /* as the engine calls it; NULL = its choice */
    int64_t codec_level;
    int64_t group_rows;
    uint64_t file_bytes;
    const char *const *partition; /* columns that name folders */
    size_t n_partition;
} KnFilesSettings;

/* What is published: the newest window of the target. */
typedef struct KnFilesNewest {
    int64_t number; /* 0 = there is none */
    const char *id; /* of the window, as it was begun */
    const char *after;
} KnFilesNewest;

typedef struct KnFiles {
    KnSink base;
    KnArena *arena; /* lives as long as the sink */
    KnFilesSettings set;
    const char *delivery;
    const char *target, *work, *stage; /* folders */
    KnFileIO *io;
    KnEngine *eng;
    KnSession *ses;
    int lock;           /* of the work folder; -1 = not held */
    KnArena *win_arena; /* of the window that was begun */
    const char *win_id, *after;
    const KnSchema *schema; /* lives as long as the window: the caller's promise */
    KnFilesNewest newest;
} KnFiles;

/** The text behind "parquet:", in arena. */
KN_NODISCARD KnCode kn_files_settings_parse(KnArena *arena, const char *place, KnFilesSettings *ret,
                                            KnErr *err);
/** The table's folder below root, and the one beside it for what is not published. */
KN_NODISCARD KnCode kn_files_places(KnFiles *files, const char *target, KnErr *err);

/** The destination's half of the history check: takes, clears or finds the target. */
KN_NODISCARD KnCode kn_files_claim(KnFiles *files, const KnSinkWindow *win, KnErr *err);
/** Is a chunk's note in the window that is being written (staged) or published? */
KN_NODISCARD KnCode kn_files_find(KnFiles *files, const char *label, bool staged, bool *ret_found,
                                  int64_t *ret_rows, KnErr *err);
/** The folder of the window, ready to be written into. */
KN_NODISCARD KnCode kn_files_open_stage(KnFiles *files, KnErr *err);
/** Has this window been published? */
bool kn_files_is_published(const KnFiles *files);
/** The window appears, durably. Once it has, doing it again changes nothing. */
KN_NODISCARD KnCode kn_files_publish(KnFiles *files, KnErr *err);

/** Rows of a chunk to files of the stage, durable, and a note of them. */
KN_NODISCARD KnCode kn_files_write(KnFiles *files, const KnSinkChunk *chunk,
                                   const KnRowSource *rows, int64_t *ret_rows, KnErr *err);
/** May the window's columns be written, and cut as asked? */
KN_NODISCARD KnCode kn_files_check_columns(const KnFiles *files, const KnSinkWindow *win,
                                           KnErr *err);
/** A label as a file's name, in arena. */
const char *kn_files_label_name(KnArena *arena, const char *label);
#define KN_FILES_WINDOW "knut_window"
