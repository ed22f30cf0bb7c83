/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * command.h - what a command is: one file, one KnCommand, one line in commands.c.
 *
 * Options are rows (base/option.h) that fill the command's own struct, whose first member is
 * KnCommonOptions. The parser, --help, docs/reference.md and "did you mean" come from the rows.
 * run() returns a code; main prints the one line of the error and turns the code into the exit
 * status. One thread.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/progress.h"
#include "catalog/catalog.h"
#include "engine/engine.h"

typedef enum KnOutputFormat { KN_OUTPUT_TEXT, KN_OUTPUT_JSON } KnOutputFormat;

/** The options that every command has. */
typedef struct KnCommonOptions {
    int output;            /* KnOutputFormat */
    int log_level;         /* KnLogLevel */
    int log_format;        /* KnLogFormat */
    const char *debug;     /* areas */
    int64_t threads;       /* 0 = all processors */
    uint64_t memory_limit; /* bytes for the engine */
    const char *spill_dir;
    int progress; /* KnProgressMode */
    bool help;
} KnCommonOptions;

/** Rows for KnCommonOptions at the start of a command's struct. */
extern const KnOptGroup kn_common_options;
typedef struct KnCommand KnCommand;
typedef struct KnCall {
    const KnCommand *command;
    KnArena *arena;                /* lives as long as the process runs the command */
    void *options;                 /* the command's struct, filled */
    const KnCommonOptions *common; /* its first member */
    KnOptList args;                /* positionals */
} KnCall;

struct KnCommand {
    const char *group; /* "table", "cdc"; NULL for a command of the program itself */
    const char *name;
    const char *summary; /* one line for lists of commands */
    const char *about;   /* paragraphs for --help, with an example; may be NULL */
    size_t options_size;
    size_t locator;       /* offset of a KnLocator in the struct, 0 = none */
    const KnOption *rows; /* the command's own rows */
    size_t n_rows;
    const KnOptGroup *extra; /* rows shared with other commands, or NULL */
    size_t extra_base;       /* where its struct lies in options */
    const char *positional;  /* as KnOptSpec */
    KnCode (*run)(KnCall *call, KnErr *err);
};

/** All commands, in the order of help. */
extern const KnCommand *const kn_commands[];
extern const size_t kn_n_commands;

/** How many words name a command at the start of the list ("table", "scan"): 0 = none does. */
int kn_command_find(const char *const *words, size_t n, const KnCommand **ret);
/** True for the first word of commands of two. */
bool kn_command_is_group(const char *word);

/** The command's groups (own, locator, common) as a spec; memory in arena. */
KnOptSpec kn_command_spec(KnArena *arena, const KnCommand *command);
void kn_command_help(KnArena *arena, const KnCommand *command, KnBuf *out);
/** The commands, those of one group when group is not NULL. */
void kn_program_help(const char *group, KnBuf *out);
/** docs/reference.md: every command with its options. */
void kn_reference_markdown(KnArena *arena, KnBuf *out);

/** An in-memory engine with a session, as the common options say; both are closed by
 * kn_call_engine_close(). */
typedef struct KnCallEngine {
    KnEngine *engine;
    KnSession *session;
} KnCallEngine;
KN_NODISCARD KnCode kn_call_engine_open(const KnCall *call, KnCallEngine *ret, KnErr *err);
void kn_call_engine_close(KnCallEngine *ce);
#define KN_CALL_ENGINE_AUTO __attribute__((cleanup(kn_call_engine_close))) KnCallEngine

/** A table by the call's locator, and everything to close after it. */
typedef struct KnCallTable {
    KnCatalog *catalog;
    KnTable *table;
} KnCallTable;
KN_NODISCARD KnCode kn_call_table_open(const KnCall *call, KnCallTable *ret, KnErr *err);
void kn_call_table_close(KnCallTable *ct);
#define KN_CALL_TABLE_AUTO __attribute__((cleanup(kn_call_table_close))) KnCallTable

/** The command's locator. */
const KnLocator *kn_call_locator(const KnCall *call);
