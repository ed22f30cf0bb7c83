/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_parse.c - changes as a person types them: the tail of ALTER TABLE, in Spark's words.
 *
 *     changes   = change {";" change}
 *     change    = "add" ["column" | "columns"] (column | "(" column {"," column} ")")
 *               | "drop" ("column" | "columns") (path | "(" path {"," path} ")")
 *               | "rename" "column" path "to" name
 *               | ("alter" | "change") ["column"] path alteration
 *               | "add" "partition" "field" term ["as" name]
 *               | "drop" "partition" "field" term
 *               | "replace" "partition" "field" term "with" term ["as" name]
 *               | "rename" "partition" "field" name "to" name
 *               | ("set" | "drop") "identifier" "fields" path {"," path}
 *               | "write" ["locally"] "ordered" "by" sort {"," sort} | "write" "unordered"
 *               | "write" "distributed" "by" "partition" [["locally"] "ordered" "by" sort {","
 * sort}]
 *               | "set" "tblproperties" "(" text "=" text {"," ...} ")"
 *               | "unset" "tblproperties" ["if" "exists"] "(" text {"," text} ")"
 *               | "set" "format" "version" N | "set" "location" text
 *     column    = path type {"not" "null" | "default" literal | "comment" text | place}
 *     alteration= ["set" "data"] "type" type | ("set" | "drop") "not" "null"
 *               | "comment" text | place | "set" "default" literal | "drop" "default"
 *     place     = "first" | ("after" | "before") path
 *     literal   = text | a word as it stands (-1.5e3, true, 0x00ff) | ["date" | ...] text | "null"
 *
 * Types are those of schema_text.c, terms those of partition_text.c.
 */
#include <ctype.h>
#include <string.h>

#include "base/vec.h"
#include "iceberg/alter/alter.h"

#define CHANGES_MAX ((size_t)10000)

typedef KN_VEC(KnChange) ChangeVec;

typedef KN_VEC(const char *) NameVec;

static const char *const *copy_names(KnArena *arena, NameVec *names)
{
    const char **copy = kn_arena_zalloc(arena, (names->len + 1) * sizeof(*copy));

    if (names->len > 0)
        memcpy(copy, names->items, names->len * sizeof(*copy));
    kn_vec_done(names);
    return copy;
}

static KnCode expect_word(KnTextCursor *cur, const char *word, KnErr *err)
{
    const char *quoted = kn_arena_printf(cur->arena, "'%s'", word);

    return kn_cursor_eat_word(cur, word) ? KN_OK : kn_cursor_fail(cur, quoted, err);
}

/* A text in quotes, or the word as it stands. */
static KnCode parse_text(KnTextCursor *cur, const char **ret, KnErr *err)
{
    if (kn_cursor_at_end(cur) || cur->text.ptr[cur->at] != '\'')
        return kn_cursor_fail(cur, "a text in single quotes", err);
    return kn_cursor_quoted(cur, ret, err);
}

/* ---- columns ---- */

static bool is_literal_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '+' || c == '-' || c == '.' || c == ':' ||
           (unsigned char)c >= 0x80;
}

static bool eat_literal_prefix(KnTextCursor *cur)
{
    static const char *const words[] = {"date",        "time",         "timestamp",
                                        "timestamptz", "timestamp_ns", "timestamptz_ns",
                                        "uuid",        "decimal"};
    KnTextCursor ahead = *cur;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!kn_cursor_eat_word(&ahead, words[i]))
            continue;
        if (kn_cursor_at_end(&ahead) || ahead.text.ptr[ahead.at] != '\'')
            return false;
        *cur = ahead;
        return true;
    }
    return false;
}

/* NULL in *ret for the word NULL. */
static KnCode parse_literal(KnTextCursor *cur, const char **ret, KnErr *err)
{
    size_t end;

    *ret = NULL;
    if (kn_cursor_eat_word(cur, "null"))
        return KN_OK;
    (void)eat_literal_prefix(cur);
    if (!kn_cursor_at_end(cur) && cur->text.ptr[cur->at] == '\'')
        return kn_cursor_quoted(cur, ret, err);
    for (end = cur->at; end < cur->text.len && is_literal_byte(cur->text.ptr[end]);)
        end++;
    if (end == cur->at)
        return kn_cursor_fail(cur, "a literal", err);
    *ret = kn_arena_strndup(cur->arena, cur->text.ptr + cur->at, end - cur->at);
    if (!kn_str_is_utf8(kn_str(*ret)))
        return kn_err_set(err, KN_E_INVAL, "position %zu: the literal is not UTF-8", cur->at + 1);
    cur->at = end;
    return KN_OK;
}

static bool eat_place(KnTextCursor *cur, KnChange *change)
{
    if (kn_cursor_eat_word(cur, "first"))
        change->place = KN_PLACE_FIRST;
    else if (kn_cursor_eat_word(cur, "after"))
        change->place = KN_PLACE_AFTER;
    else if (kn_cursor_eat_word(cur, "before"))
        change->place = KN_PLACE_BEFORE;
    else
        return false;
    return true;
}

static KnCode parse_beside(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    if (change->place == KN_PLACE_FIRST)
        return KN_OK;
    return kn_cursor_path(cur, &change->beside, err);
}

static bool eat_not_null(KnTextCursor *cur)
{
    KnTextCursor ahead = *cur;

    if (!kn_cursor_eat_word(&ahead, "not") || !kn_cursor_eat_word(&ahead, "null"))
        return false;
    *cur = ahead;
    return true;
}

static KnCode parse_new_column(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    change->kind = KN_CHANGE_ADD_COLUMN;
    KN_TRY(kn_cursor_path_split(cur, &change->parent, &change->column, err));
    KN_TRY(kn_cursor_type(cur, &change->type, err));
    for (;;) {
        if (eat_not_null(cur) || kn_cursor_eat_word(cur, "required"))
            change->required = true;
        else if (kn_cursor_eat_word(cur, "default"))
            KN_TRY(parse_literal(cur, &change->literal, err));
        else if (kn_cursor_eat_word(cur, "comment"))
            KN_TRY(parse_text(cur, &change->doc, err));
        else if (eat_place(cur, change))
            KN_TRY(parse_beside(cur, change, err));
        else
            return KN_OK;
    }
}

static KnCode parse_old_column(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    change->kind = KN_CHANGE_DROP_COLUMN;
    return kn_cursor_path(cur, &change->column, err);
}

typedef KnCode (*ParseOne)(KnTextCursor *cur, KnChange *change, KnErr *err);

/* One, or several in brackets or with commas between: a change each. */
static KnCode parse_columns(KnTextCursor *cur, ChangeVec *out, ParseOne parse, KnErr *err)
{
    bool brackets = kn_cursor_eat(cur, '(');

    do {
        KN_TRY(parse(cur, kn_vec_push(out), err));
    } while (kn_cursor_eat(cur, ','));
    return brackets ? kn_cursor_expect(cur, ')', err) : KN_OK;
}

static KnCode parse_rename(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    if (kn_cursor_eat_word(cur, "partition")) {
        change->kind = KN_CHANGE_RENAME_PARTITION;
        KN_TRY(expect_word(cur, "field", err));
        KN_TRY(kn_cursor_path(cur, &change->column, err));
    } else {
        change->kind = KN_CHANGE_RENAME_COLUMN;
        if (!kn_cursor_eat_word(cur, "column"))
            return kn_cursor_fail(cur, "'column' or 'partition'", err);
        KN_TRY(kn_cursor_path(cur, &change->column, err));
    }
    KN_TRY(expect_word(cur, "to", err));
    return kn_cursor_name(cur, &change->name, err);
}

/* After "set": what a column may be set to. */
static KnCode parse_column_set(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    if (kn_cursor_eat_word(cur, "data")) {
        change->kind = KN_CHANGE_COLUMN_TYPE;
        KN_TRY(expect_word(cur, "type", err));
        return kn_cursor_type(cur, &change->type, err);
    }
    if (kn_cursor_eat_word(cur, "default")) {
        change->kind = KN_CHANGE_COLUMN_DEFAULT;
        return parse_literal(cur, &change->literal, err);
    }
    change->kind = KN_CHANGE_COLUMN_REQUIRED;
    change->required = true;
    return eat_not_null(cur) ? KN_OK
                             : kn_cursor_fail(cur, "'not null', 'default' or 'data type'", err);
}

static KnCode parse_column_drop(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    change->kind = KN_CHANGE_COLUMN_DEFAULT;
    if (kn_cursor_eat_word(cur, "default"))
        return KN_OK;
    change->kind = KN_CHANGE_COLUMN_REQUIRED;
    return eat_not_null(cur) ? KN_OK : kn_cursor_fail(cur, "'not null' or 'default'", err);
}

static KnCode parse_alter(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    kn_cursor_eat_word(cur, "column");
    KN_TRY(kn_cursor_path(cur, &change->column, err));
    if (kn_cursor_eat_word(cur, "type")) {
        change->kind = KN_CHANGE_COLUMN_TYPE;
        return kn_cursor_type(cur, &change->type, err);
    }
    if (kn_cursor_eat_word(cur, "comment")) {
        change->kind = KN_CHANGE_COLUMN_COMMENT;
        return parse_text(cur, &change->doc, err);
    }
    if (kn_cursor_eat_word(cur, "set"))
        return parse_column_set(cur, change, err);
    if (kn_cursor_eat_word(cur, "drop"))
        return parse_column_drop(cur, change, err);
    change->kind = KN_CHANGE_COLUMN_PLACE;
    if (!eat_place(cur, change))
        return kn_cursor_fail(cur, "'type', 'set', 'drop', 'comment', 'first', 'after' or 'before'",
                              err);
    return parse_beside(cur, change, err);
}

static KnCode parse_identifier(KnTextCursor *cur, KnChange *change, KnChangeKind kind, KnErr *err)
{
    NameVec names = {0};
    KnCode rc;

    change->kind = kind;
    if (!kn_cursor_eat_word(cur, "fields") && !kn_cursor_eat_word(cur, "field"))
        return kn_cursor_fail(cur, "'fields'", err);
    do {
        rc = kn_cursor_path(cur, kn_vec_push(&names), err);
    } while (rc == KN_OK && kn_cursor_eat(cur, ','));
    change->n_names = names.len;
    change->names = copy_names(cur->arena, &names);
    return rc;
}

/* ---- partition fields ---- */

static KnCode parse_as(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    return kn_cursor_eat_word(cur, "as") ? kn_cursor_name(cur, &change->name, err) : KN_OK;
}

static KnCode parse_partition(KnTextCursor *cur, KnChange *change, KnChangeKind kind, KnErr *err)
{
    change->kind = kind;
    KN_TRY(expect_word(cur, "field", err));
    KN_TRY(kn_cursor_term(cur, &change->term, err));
    if (kind == KN_CHANGE_DROP_PARTITION)
        return KN_OK;
    if (kind == KN_CHANGE_REPLACE_PARTITION) {
        KN_TRY(expect_word(cur, "with", err));
        KN_TRY(kn_cursor_term(cur, &change->with, err));
    }
    return parse_as(cur, change, err);
}

/* ---- order ---- */

static KnCode parse_order(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    KN_VEC(KnSortTerm) terms = {0};
    KnSortTerm *copy;
    KnCode rc = expect_word(cur, "ordered", err);

    if (rc == KN_OK)
        rc = expect_word(cur, "by", err);
    while (rc == KN_OK) {
        rc = kn_cursor_sort_term(cur, kn_vec_push(&terms), err);
        if (rc != KN_OK || !kn_cursor_eat(cur, ','))
            break;
    }
    copy = kn_arena_zalloc(cur->arena, (terms.len + 1) * sizeof(*copy));
    if (terms.len > 0)
        memcpy(copy, terms.items, terms.len * sizeof(*copy));
    change->sort = copy;
    change->n_sort = terms.len;
    kn_vec_done(&terms);
    return rc;
}

static KnCode parse_distributed(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    KN_TRY(expect_word(cur, "by", err));
    KN_TRY(expect_word(cur, "partition", err));
    change->distribution_mode = "hash";
    kn_cursor_eat_word(cur, "locally");
    if (kn_str_eq_nocase(kn_cursor_peek_word(cur), KN_STR_LIT("ordered")))
        return parse_order(cur, change, err);
    change->keep_order = true;
    return KN_OK;
}

/* As Spark's extensions: an order for the whole table asks for range distribution. */
static KnCode parse_write(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    change->kind = KN_CHANGE_WRITE_ORDER;
    change->distribution_mode = "none";
    if (kn_cursor_eat_word(cur, "unordered"))
        return KN_OK;
    if (kn_cursor_eat_word(cur, "distributed"))
        return parse_distributed(cur, change, err);
    if (!kn_cursor_eat_word(cur, "locally"))
        change->distribution_mode = "range";
    if (!kn_str_eq_nocase(kn_cursor_peek_word(cur), KN_STR_LIT("ordered")))
        return kn_cursor_fail(
            cur, "'ordered by', 'locally ordered by', 'distributed by' or 'unordered'", err);
    return parse_order(cur, change, err);
}

/* ---- the table ---- */

/* In brackets: 'key' = 'value', or only keys. */
static KnCode parse_properties(KnTextCursor *cur, KnChange *change, bool set, KnErr *err)
{
    NameVec names = {0}, values = {0};
    KnCode rc = kn_cursor_expect(cur, '(', err);

    change->kind = set ? KN_CHANGE_SET_PROPERTIES : KN_CHANGE_UNSET_PROPERTIES;
    while (rc == KN_OK) {
        rc = parse_text(cur, kn_vec_push(&names), err);
        if (rc == KN_OK && set)
            rc = kn_cursor_expect(cur, '=', err);
        if (rc == KN_OK && set)
            rc = parse_text(cur, kn_vec_push(&values), err);
        if (rc != KN_OK || !kn_cursor_eat(cur, ','))
            break;
    }
    change->n_names = names.len;
    change->names = copy_names(cur->arena, &names);
    change->values = copy_names(cur->arena, &values);
    return rc == KN_OK ? kn_cursor_expect(cur, ')', err) : rc;
}

static KnCode parse_unset(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    KN_TRY(expect_word(cur, "tblproperties", err));
    if (kn_cursor_eat_word(cur, "if"))
        KN_TRY(expect_word(cur, "exists", err));
    return parse_properties(cur, change, false, err);
}

static KnCode parse_set(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    if (kn_cursor_eat_word(cur, "identifier"))
        return parse_identifier(cur, change, KN_CHANGE_SET_IDENTIFIER, err);
    if (kn_cursor_eat_word(cur, "tblproperties"))
        return parse_properties(cur, change, true, err);
    if (kn_cursor_eat_word(cur, "location")) {
        change->kind = KN_CHANGE_LOCATION;
        return parse_text(cur, &change->location, err);
    }
    change->kind = KN_CHANGE_FORMAT_VERSION;
    if (!kn_cursor_eat_word(cur, "format"))
        return kn_cursor_fail(
            cur, "'identifier fields', 'tblproperties', 'format version' or 'location'", err);
    KN_TRY(expect_word(cur, "version", err));
    return kn_cursor_number(cur, &change->number, err);
}

static KnCode parse_add(KnTextCursor *cur, ChangeVec *out, KnErr *err)
{
    if (kn_cursor_eat_word(cur, "partition"))
        return parse_partition(cur, kn_vec_push(out), KN_CHANGE_ADD_PARTITION, err);
    if (!kn_cursor_eat_word(cur, "column") && !kn_cursor_eat_word(cur, "columns"))
        return kn_cursor_fail(cur, "'column' or 'partition field'", err);
    return parse_columns(cur, out, parse_new_column, err);
}

static KnCode parse_drop(KnTextCursor *cur, ChangeVec *out, KnErr *err)
{
    if (kn_cursor_eat_word(cur, "partition"))
        return parse_partition(cur, kn_vec_push(out), KN_CHANGE_DROP_PARTITION, err);
    if (kn_cursor_eat_word(cur, "identifier"))
        return parse_identifier(cur, kn_vec_push(out), KN_CHANGE_DROP_IDENTIFIER, err);
    if (!kn_cursor_eat_word(cur, "column") && !kn_cursor_eat_word(cur, "columns"))
        return kn_cursor_fail(cur, "'column', 'partition field' or 'identifier fields'", err);
    return parse_columns(cur, out, parse_old_column, err);
}

static KnCode parse_replace(KnTextCursor *cur, KnChange *change, KnErr *err)
{
    KN_TRY(expect_word(cur, "partition", err));
    return parse_partition(cur, change, KN_CHANGE_REPLACE_PARTITION, err);
}

static KnCode parse_change(KnTextCursor *cur, ChangeVec *out, KnErr *err)
{
    static const struct {
        const char *word;
        ParseOne parse;
    } verbs[] = {{"rename", parse_rename},  {"alter", parse_alter}, {"change", parse_alter},
                 {"write", parse_write},    {"set", parse_set},     {"unset", parse_unset},
                 {"replace", parse_replace}};

    if (kn_cursor_eat_word(cur, "add"))
        return parse_add(cur, out, err);
    if (kn_cursor_eat_word(cur, "drop"))
        return parse_drop(cur, out, err);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (kn_cursor_eat_word(cur, verbs[i].word))
            return verbs[i].parse(cur, kn_vec_push(out), err);
    return kn_cursor_fail(cur,
                          "'add', 'drop', 'rename', 'alter', 'replace', 'write', 'set' or "
                          "'unset'",
                          err);
}

static KnCode parse_all(KnTextCursor *cur, ChangeVec *out, KnErr *err)
{
    do {
        KN_TRY(parse_change(cur, out, err));
        if (out->len > CHANGES_MAX)
            return kn_err_set(err, KN_E_INVAL, "more than %zu changes", CHANGES_MAX);
    } while (kn_cursor_eat(cur, ';') && !kn_cursor_at_end(cur));
    return kn_cursor_at_end(cur) ? KN_OK : kn_cursor_fail(cur, "';' or the end", err);
}

KnCode kn_changes_parse(KnArena *arena, KnStr text, KnChanges *ret, KnErr *err)
{
    KnTextCursor cur = {.arena = arena, .text = text};
    ChangeVec changes = {0};
    KnCode rc = parse_all(&cur, &changes, err);

    if (rc == KN_OK && changes.len > 0) {
        KnChange *copy = kn_arena_alloc(arena, changes.len * sizeof(*copy));
        memcpy(copy, changes.items, changes.len * sizeof(*copy));
        *ret = (KnChanges){changes.len, copy};
    }
    kn_vec_done(&changes);
    return rc;
}
