/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - libyaml's events to a tree; see yaml.h.
 *
 * Depth, nodes and bytes are bounded, so that no text can make more of itself than it is. libyaml's
 * marks count from 0; ours from 1, as editors do.
 */
#include "service/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/vec.h"

typedef KN_VEC(KnYaml *) NodeVec;

typedef struct Loader {
    yaml_parser_t parser;
    yaml_event_t event; /* the last one taken; deleted before the next */
    bool has_event;
    KnArena *arena;
    const char *name;
    KnStr text;
    size_t nodes;
} Loader;

static KnCode fail_at(const Loader *ld, yaml_mark_t at, KnErr *err, const char *what)
{
    return kn_err_set(err, KN_E_INVAL, "%s:%zu:%zu: %s", ld->name, at.line + 1, at.column + 1,
                      what);
}

/* Between { } or [ ] a plain text ends at a brace, so "${NAME}" there is an error of syntax, about
 * which libyaml says nothing that helps. Marks count characters. */
static bool is_bare_reference(const Loader *ld)
{
    KnStr text = ld->text;
    size_t at = 0;
    for (size_t n = ld->parser.problem_mark.index; n > 0 && at < text.len; --n)
        do
            ++at;
        while (at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80);
    return at > 0 && at < text.len && text.ptr[at] == '{' && text.ptr[at - 1] == '$';
}

static KnCode next(Loader *ld, KnErr *err)
{
    if (ld->has_event)
        yaml_event_delete(&ld->event);
    ld->has_event = yaml_parser_parse(&ld->parser, &ld->event) != 0;
    if (ld->has_event)
        return KN_OK;
    if (ld->parser.error == YAML_MEMORY_ERROR)
        return kn_err_set(err, KN_E_NOMEM, "%s: memory is out", ld->name);
    const char *problem = ld->parser.problem ? ld->parser.problem : "cannot be read";
    if (ld->parser.error == YAML_READER_ERROR)
        return kn_err_set(err, KN_E_INVAL, "%s: byte %zu: %s", ld->name, ld->parser.problem_offset,
                          problem);
    if (is_bare_reference(ld))
        problem = "between { } or [ ] quote a reference: \"${NAME}\"";
    return fail_at(ld, ld->parser.problem_mark, err, problem);
}

static KnCode take_node(Loader *ld, int depth, KnYaml **ret, KnErr *err);

static KnCode check_plain(const Loader *ld, const yaml_char_t *anchor, const yaml_char_t *tag,
                          KnErr *err)
{
    if (anchor)
        return fail_at(ld, ld->event.start_mark, err, "anchors (&name) are not taken");
    if (tag)
        return fail_at(ld, ld->event.start_mark, err, "tags (!name) are not taken");
    return KN_OK;
}

static KnCode take_scalar(Loader *ld, KnYaml *node, KnErr *err)
{
    const char *text = (const char *)ld->event.data.scalar.value;
    size_t len = ld->event.data.scalar.length;
    bool plain = ld->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    KN_TRY(check_plain(ld, ld->event.data.scalar.anchor, ld->event.data.scalar.tag, err));
    if (memchr(text, 0, len) || !kn_str_is_utf8((KnStr){text, len}))
        return fail_at(ld, ld->event.start_mark, err, "a text with a NUL, or not UTF-8");
    node->kind = KN_YAML_SCALAR;
    node->text = kn_arena_try_strndup(ld->arena, text, len);
    if (!node->text)
        return kn_err_set(err, KN_E_NOMEM, "%s: memory is out", ld->name);
    node->empty = plain && (!len || !strcmp(text, "~") || !strcmp(text, "null"));
    return KN_OK;
}

static void take_items(const Loader *ld, KnYaml *node, const NodeVec *items)
{
    KnYaml **copy = kn_arena_zalloc(ld->arena, (items->len + 1) * sizeof(KnYaml *));
    if (items->len)
        memcpy(copy, items->items, items->len * sizeof(KnYaml *));
    node->items = copy;
    node->n = items->len;
}

static KnCode take_list(Loader *ld, int depth, NodeVec *items, KnErr *err)
{
    KN_TRY(check_plain(ld, ld->event.data.sequence_start.anchor, ld->event.data.sequence_start.tag,
                       err));
    for (;;) {
        KnYaml *item = NULL;
        KN_TRY(next(ld, err));
        if (ld->event.type == YAML_SEQUENCE_END_EVENT)
            return KN_OK;
        KN_TRY(take_node(ld, depth + 1, &item, err));
        *kn_vec_push(items) = item;
    }
}

static KnCode check_new_key(const Loader *ld, const NodeVec *items, const KnYaml *key, KnErr *err)
{
    for (size_t i = 0; i < items->len; i++)
        if (!strcmp(items->items[i]->key, key->text))
            return kn_err_set(err, KN_E_INVAL,
                              "%s:%d:%d: '%.100s' is here for the second time, "
                              "the first is in line %d",
                              ld->name, key->line, key->column, key->text,
                              items->items[i]->key_line);
    return KN_OK;
}

static KnCode take_map(Loader *ld, int depth, NodeVec *items, KnErr *err)
{
    KN_TRY(check_plain(ld, ld->event.data.mapping_start.anchor, ld->event.data.mapping_start.tag,
                       err));
    for (;;) {
        KnYaml *key = NULL, *value = NULL;
        KN_TRY(next(ld, err));
        if (ld->event.type == YAML_MAPPING_END_EVENT)
            return KN_OK;
        if (ld->event.type != YAML_SCALAR_EVENT)
            return fail_at(ld, ld->event.start_mark, err, "a key must be a plain word");
        KN_TRY(take_node(ld, depth + 1, &key, err));
        KN_TRY(check_new_key(ld, items, key, err));
        KN_TRY(next(ld, err));
        KN_TRY(take_node(ld, depth + 1, &value, err));
        value->key = key->text;
        value->key_line = key->line;
        value->key_column = key->column;
        *kn_vec_push(items) = value;
    }
}

/* The node that the last event begins. */
static KnCode take_node(Loader *ld, int depth, KnYaml **ret, KnErr *err)
{
    NodeVec items = {0};
    KnCode rc;
    KnYaml *node = kn_arena_zalloc(ld->arena, sizeof(*node));
    *ret = node;
    if (depth > KN_YAML_MAX_DEPTH)
        return fail_at(ld, ld->event.start_mark, err, "nested too deeply");
    if (++ld->nodes > KN_YAML_MAX_NODES)
        return fail_at(ld, ld->event.start_mark, err, "too many entries");
    node->line = (int)ld->event.start_mark.line + 1;
    node->column = (int)ld->event.start_mark.column + 1;
    node->text = "";
    switch (ld->event.type) {
    case YAML_SCALAR_EVENT:
        rc = take_scalar(ld, node, err);
        break;
    case YAML_SEQUENCE_START_EVENT:
        node->kind = KN_YAML_LIST;
        rc = take_list(ld, depth, &items, err);
        break;
    case YAML_MAPPING_START_EVENT:
        node->kind = KN_YAML_MAP;
        rc = take_map(ld, depth, &items, err);
        break;
    default:
        rc = fail_at(ld, ld->event.start_mark, err, "aliases (*name) are not taken");
        break;
    }
    take_items(ld, node, &items);
    kn_vec_done(&items);
    return rc;
}

static KnCode take_document(Loader *ld, KnYaml **ret, KnErr *err)
{
    do
        KN_TRY(next(ld, err));
    while (ld->event.type == YAML_STREAM_START_EVENT);
    if (ld->event.type == YAML_STREAM_END_EVENT) {
        *ret = kn_arena_zalloc(ld->arena, sizeof(**ret));
        **ret = (KnYaml){.kind = KN_YAML_MAP, .line = 1, .column = 1, .text = ""};
        return KN_OK;
    }
    KN_TRY(next(ld, err));
    KN_TRY(take_node(ld, 0, ret, err));
    KN_TRY(next(ld, err)); /* the document's end */
    KN_TRY(next(ld, err));
    if (ld->event.type != YAML_STREAM_END_EVENT)
        return fail_at(ld, ld->event.start_mark, err, "a second document begins; one is taken");
    return KN_OK;
}

KnCode kn_yaml_parse(KnArena *arena, const char *name, KnStr text, KnYaml **ret, KnErr *err)
{
    Loader ld = {.arena = arena, .name = name, .text = text};
    KnYaml *root = NULL;
    if (text.len > KN_YAML_MAX_BYTES)
        return kn_err_set(err, KN_E_INVAL, "%s: larger than %d MiB", name, KN_YAML_MAX_BYTES >> 20);
    if (!yaml_parser_initialize(&ld.parser))
        return kn_err_set(err, KN_E_NOMEM, "%s: memory is out", name);
    yaml_parser_set_input_string(&ld.parser, (const unsigned char *)text.ptr, text.len);
    KnCode rc = take_document(&ld, &root, err);
    if (ld.has_event)
        yaml_event_delete(&ld.event);
    yaml_parser_delete(&ld.parser);
    KN_TRY(rc);
    *ret = root;
    return KN_OK;
}

const KnYaml *kn_yaml_find(const KnYaml *map, const char *key)
{
    for (size_t i = 0; map->kind == KN_YAML_MAP && i < map->n; i++)
        if (!strcmp(map->items[i]->key, key))
            return map->items[i];
    return NULL;
}
