/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the value as JSON, spelled as serde's JSON is: a variant without members is a string,
 * one with members an object of one key. For programs and the graph editor.
 */
#include "base/json.h"

#include "pipeline/ir/document.h"
#include "pipeline/surface/surfaces.h"

#define MAX_DEPTH 128

/* ---- reading ---- */

static KnCode tree_of(KnArena *arena, const json_t *json, size_t depth, KnRon *ret, KnErr *err);

static KnCode text_of(KnArena *arena, KnStr from, KnStr *ret, KnErr *err)
{
    if (from.len > 0 && memchr(from.ptr, '\0', from.len))
        return kn_err_set(err, KN_E_CORRUPT, "a text may not hold the character NUL");
    *ret = (KnStr){kn_arena_strndup(arena, from.ptr, from.len), from.len};
    return KN_OK;
}

static KnCode object_of(KnArena *arena, const json_t *json, size_t depth, KnRon *ret, KnErr *err)
{
    size_t n = json_object_size(json);
    KnRonItem *items = kn_arena_zalloc(arena, (n + 1) * sizeof(*items));
    KnRon *keys = kn_arena_zalloc(arena, (n + 1) * sizeof(*keys));
    const char *key;
    json_t *member;
    size_t len = 0;
    json_object_foreach((json_t *)json, key, member)
    {
        keys[len] = (KnRon){.kind = KN_RON_TEXT};
        KN_TRY(text_of(arena, kn_str(key), &keys[len].text, err));
        items[len].name = keys[len].text;
        items[len].key = &keys[len];
        KN_TRY(tree_of(arena, member, depth + 1, &items[len].value, err));
        len++;
    }
    *ret = (KnRon){.kind = KN_RON_MAP, .items = items, .len = len};
    return KN_OK;
}

static KnCode array_of(KnArena *arena, const json_t *json, size_t depth, KnRon *ret, KnErr *err)
{
    size_t n = json_array_size(json);
    KnRonItem *items = kn_arena_zalloc(arena, (n + 1) * sizeof(*items));
    for (size_t i = 0; i < n; i++)
        KN_TRY(tree_of(arena, json_array_get(json, i), depth + 1, &items[i].value, err));
    *ret = (KnRon){.kind = KN_RON_LIST, .items = items, .len = n};
    return KN_OK;
}

static KnCode tree_of(KnArena *arena, const json_t *json, size_t depth, KnRon *ret, KnErr *err)
{
    if (depth > MAX_DEPTH)
        return kn_err_set(err, KN_E_CORRUPT, "values are nested more than %d deep", MAX_DEPTH);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return object_of(arena, json, depth, ret, err);
    case JSON_ARRAY:
        return array_of(arena, json, depth, ret, err);
    case JSON_STRING:
        ret->kind = KN_RON_TEXT;
        return text_of(arena, (KnStr){json_string_value(json), json_string_length(json)},
                       &ret->text, err);
    case JSON_INTEGER:
        *ret = (KnRon){.kind = KN_RON_NUMBER,
                       .text = kn_str(kn_arena_printf(arena, "%" JSON_INTEGER_FORMAT,
                                                      json_integer_value(json)))};
        return KN_OK;
    case JSON_REAL:
        *ret = (KnRon){.kind = KN_RON_NUMBER,
                       .text = kn_str(kn_arena_printf(arena, "%#g", json_real_value(json)))};
        return KN_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = (KnRon){.kind = KN_RON_BOOL, .text = kn_str(json_is_true(json) ? "true" : "false")};
        return KN_OK;
    case JSON_NULL:
        *ret = (KnRon){.kind = KN_RON_WORD, .name = KN_STR_LIT("None")};
        return KN_OK;
    }
    return KN_OK;
}

static KnCode read_json(KnArena *arena, const KnDocument *doc, KnNotes *notes,
                        const KnPipeline **ret, KnErr *err)
{
    KN_JSON_AUTO json = NULL;
    KnRon tree = {0};
    KnCode rc = kn_json_parse(doc->text.ptr, doc->text.len, &json, err);
    if (rc == KN_OK)
        rc = tree_of(arena, json, 0, &tree, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s", doc->origin);
    KnPipeline *pipeline = kn_arena_zalloc(arena, sizeof(*pipeline));
    KnDecoder dec = {.arena = arena,
                     .notation = KN_NOTATION_JSON,
                     .origin = doc->origin,
                     .notes = notes,
                     .err = err};
    KN_TRY(kn_ir_decode(&dec, &kn_ir_pipeline, &tree, pipeline));
    *ret = pipeline;
    return KN_OK;
}

/* ---- writing ---- */

static void line(KnBuf *out, size_t depth)
{
    kn_buf_char(out, '\n');
    for (size_t i = 0; i < depth; i++)
        kn_buf_text(out, "  ");
}

static void write_tree(KnBuf *out, const KnRon *tree, size_t depth);

static void write_items(KnBuf *out, const KnRon *tree, size_t depth)
{
    const char *brackets = tree->kind == KN_RON_LIST ? "[]" : "{}";
    kn_buf_char(out, brackets[0]);
    for (size_t i = 0; i < tree->len; i++) {
        const KnRonItem *item = &tree->items[i];
        if (i > 0)
            kn_buf_char(out, ',');
        line(out, depth + 1);
        if (tree->kind != KN_RON_LIST) {
            kn_json_quote(out, tree->kind == KN_RON_MAP ? item->key->text : item->name);
            kn_buf_text(out, ": ");
        }
        write_tree(out, &item->value, depth + 1);
    }
    if (tree->len > 0)
        line(out, depth);
    kn_buf_char(out, brackets[1]);
}

static void write_tree(KnBuf *out, const KnRon *tree, size_t depth)
{
    if (tree->kind == KN_RON_TEXT) {
        kn_json_quote(out, tree->text);
    } else if (tree->kind == KN_RON_NUMBER || tree->kind == KN_RON_BOOL) {
        kn_buf_str(out, tree->text);
    } else if (tree->kind == KN_RON_WORD) {
        if (kn_str_eq(tree->name, KN_STR_LIT("None")))
            kn_buf_text(out, "null");
        else
            kn_json_quote(out, tree->name);
    } else if (tree->name.len > 0) {
        kn_buf_char(out, '{');
        line(out, depth + 1);
        kn_json_quote(out, tree->name);
        kn_buf_text(out, ": ");
        write_items(out, tree, depth + 1);
        line(out, depth);
        kn_buf_char(out, '}');
    } else {
        write_items(out, tree, depth);
    }
}

static KnCode write_json(const KnPipeline *pipeline, KnSession *session, KnBuf *out, KnNotes *notes,
                         KnErr *err)
{
    (void)session, (void)notes;
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    KnRon tree = kn_ir_encode(arena, KN_NOTATION_JSON, &kn_ir_pipeline, pipeline);
    write_tree(out, &tree, 0);
    kn_buf_char(out, '\n');
    return kn_buf_check(out, err);
}

const KnSurface kn_surface_json = {
    .name = "json", .extensions = "json", .read = read_json, .write = write_json};
