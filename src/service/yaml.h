/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * yaml.h - a YAML document as a tree whose every node knows its line and column.
 *
 * A configuration's part of YAML 1.1 (libyaml): one document of maps, lists and scalars. Anchors,
 * aliases, tags and repeated keys are refused: each would make a file mean something that is not
 * written where one looks. Scalars stay text; who asks for a number parses it. The tree lives in
 * the arena given. Thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

typedef enum KnYamlKind { KN_YAML_SCALAR, KN_YAML_LIST, KN_YAML_MAP } KnYamlKind;

typedef struct KnYaml KnYaml;
struct KnYaml {
    KnYamlKind kind;
    int line, column; /* from 1 */
    const char *text; /* SCALAR: valid UTF-8 without NUL; "" also for an empty value */
    bool empty;       /* SCALAR: nothing, `~` or `null` is written there */
    const char *key;  /* of an entry of a MAP; else NULL */
    int key_column;   /* where the key is; its line is key_line */
    int key_line;
    size_t n; /* LIST, MAP: entries in the order of the file */
    KnYaml *const *items;
};

enum { KN_YAML_MAX_BYTES = 4 << 20, KN_YAML_MAX_NODES = 100000, KN_YAML_MAX_DEPTH = 32 };

/** `name` is what messages call the text ("knut.yaml:3:5: ..."). KN_E_INVAL: it is not YAML, or
 * more than this takes. An empty document is an empty map. */
KN_NODISCARD KnCode kn_yaml_parse(KnArena *arena, const char *name, KnStr text, KnYaml **ret,
                                  KnErr *err);
/** The value of a key of a map; NULL = absent. */
const KnYaml *kn_yaml_find(const KnYaml *map, const char *key);
