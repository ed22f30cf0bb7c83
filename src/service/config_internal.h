/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* config_internal.h - sections of knut.yaml, key by key (config_section.c). */
#include "service/config.h"
#include "service/yaml.h"

/* Where a key may stand: rows but the denied ones, and words that the caller reads itself. */
typedef struct KnSection {
    const char *what; /* "a source" */
    KnOptSpec spec;
    const char *const *denied; /* NULL-terminated, or NULL */
    const char *const *words;  /* NULL-terminated, or NULL */
} KnSection;

typedef struct KnConfigFile {
    KnArena *arena;
    const char *name; /* what messages call it */
} KnConfigFile;

/** "knut.yaml:3:5: chunk-mb", in the file's arena. */
const char *kn_config_place(const KnConfigFile *file, const KnYaml *node);
/** KN_E_INVAL at the node's place. */
#define kn_config_wrong(file, node, err, ...)                                                      \
    ({                                                                                             \
        KnErr *wrong_err_ = (err);                                                                 \
        (void)kn_err_set(wrong_err_, KN_E_INVAL, __VA_ARGS__);                                     \
        kn_err_wrap(wrong_err_, KN_E_INVAL, "%s", kn_config_place((file), (node)));                \
    })
/** The map's keys through the section's rows into target; an unknown key names the nearest.
 * *print (may be NULL) is mixed with what was set. */
KN_NODISCARD KnCode kn_config_apply(const KnConfigFile *file, const KnYaml *map,
                                    const KnSection *section, void *target, uint64_t *print,
                                    KnErr *err);
/** A scalar with its references filled in. */
KN_NODISCARD KnCode kn_config_text(const KnConfigFile *file, const KnYaml *node, const char **ret,
                                   KnErr *err);
/** ": did you mean 'x'?" of the map's keys for a word, or "". */
const char *kn_config_nearest(const KnConfigFile *file, const KnYaml *map, const char *word);
