/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * option.h - options as table rows: one row gives the flag, its check, its line in --help and in
 * docs/reference.md, and its key in configuration files.
 *
 * A command has a list of option groups (tables shared between commands: locator, engine,
 * output...). Parsing fills the fields of a caller's struct at `offset`. Values are borrowed from
 * argv. An unknown flag names the nearest known one. `--flag value`, `--flag=value`, `--` ends
 * options; a repeated flag is an error unless the row is a list.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

typedef enum KnOptType {
    KN_OPT_FLAG,    /* bool; no value */
    KN_OPT_TEXT,    /* const char * */
    KN_OPT_LIST,    /* KnOptList: may be repeated, each value may hold commas */
    KN_OPT_REPEAT,  /* KnOptList: may be repeated, values taken whole */
    KN_OPT_INT,     /* int64_t within min..max */
    KN_OPT_BYTES,   /* uint64_t, "64MiB" */
    KN_OPT_SECONDS, /* double >= 0, "1.5", "500ms", "2m" */
    KN_OPT_CHOICE,  /* int: index into choices "a|b|c" */
} KnOptType;

typedef struct KnOptList {
    const char **items;
    size_t len;
} KnOptList;

typedef struct KnOption {
    const char *name; /* without the dashes */
    KnOptType type;
    char letter;       /* `-c VALUE` means the same; 0 = no short form */
    size_t offset;     /* offsetof(struct, field) */
    const char *value; /* placeholder in help: "DIR"; for CHOICE the choices */
    const char *dflt;  /* text of the default, parsed like a given value; NULL = zero/absent */
    const char *doc;   /* one line, a sentence without the final stop */
    int64_t min, max;  /* KN_OPT_INT only; both 0 = no bound */
} KnOption;

typedef struct KnOptGroup {
    const char *title; /* heading in help: "Where the table is" */
    const KnOption *options;
    size_t n_options;
    size_t base; /* added to each row's offset: where this group's struct lies in the caller's */
} KnOptGroup;

typedef struct KnOptSpec {
    const KnOptGroup *groups;
    size_t n_groups;
    const char *positional; /* e.g. "FILE..."; NULL = none allowed */
} KnOptSpec;

/** The words to parse: argv[0..argc), without the program's and the command's name. */
typedef struct KnArgs {
    int argc;
    char **argv;
} KnArgs;

/** Defaults first, then the words. Lists and positionals are arena memory; texts are borrowed from
 * argv or from the table. KN_E_INVAL names the flag and says what would be right; target may be
 * half-filled then, ret_positional is untouched. */
KN_NODISCARD KnCode kn_options_parse(const KnOptSpec *spec, KnArgs args, KnArena *arena,
                                     void *target, KnOptList *ret_positional, KnErr *err);
/** One value through one row, as configuration files need it; `origin` ("--rows", "knut.yaml:
 * rows") is what messages call it. NULL is only for a FLAG (true). A list row gets value appended
 * (LIST: cut at commas). target already has the group's base added. */
KN_NODISCARD KnCode kn_option_set(const KnOption *option, const char *origin, const char *value,
                                  KnArena *arena, void *target, KnErr *err);
/** The row of a name, and what its group adds to the offset; NULL = none. */
const KnOption *kn_option_find(const KnOptSpec *spec, KnStr name, size_t *ret_base);
void kn_options_help(const KnOptSpec *spec, KnBuf *out);     /* aligned text for --help */
void kn_options_markdown(const KnOptSpec *spec, KnBuf *out); /* tables for docs/reference.md */
