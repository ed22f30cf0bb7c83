/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - a table as SHOW CREATE TABLE tells it.
 *
 * The text has one column a line:
 *
 *     CREATE TABLE `t` (
 *       `k` bigint NOT NULL COMMENT 'it''s',
 *       `v` varchar(20) NULL DEFAULT "x",
 *       INDEX idx (`v`) USING INVERTED
 *     ) ENGINE=OLAP
 *     UNIQUE KEY(`k`)
 *     DISTRIBUTED BY HASH(`k`) BUCKETS 10
 *     PROPERTIES (
 *     "function_column.sequence_type" = "bigint"
 *     );
 *
 * Only what decides about loads is read; the rest passes. Texts in quotes may hold anything but
 * line ends, which the server escapes.
 */
#include <strings.h>

#include "base/str.h"
#include "base/vec.h"
#include "doris_internal.h"

enum { MAX_COLUMNS = 10000 };

typedef struct Lines {
    KnStr rest;
} Lines;

static bool next_line(Lines *in, KnStr *ret)
{
    if (in->rest.len == 0)
        return false;
    const char *end = memchr(in->rest.ptr, '\n', in->rest.len);
    size_t len = end ? (size_t)(end - in->rest.ptr) : in->rest.len;
    *ret = (KnStr){in->rest.ptr, len};
    size_t taken = end ? len + 1 : len;
    in->rest = (KnStr){in->rest.ptr + taken, in->rest.len - taken};
    while (ret->len && (ret->ptr[0] == ' ' || ret->ptr[0] == '\t'))
        *ret = (KnStr){ret->ptr + 1, ret->len - 1};
    while (ret->len && strchr(" \t\r", ret->ptr[ret->len - 1]))
        --ret->len;
    return true;
}

/* Position of word at the top level of line (outside of quotes), standing alone; SIZE_MAX. */
static size_t find_word(KnStr line, const char *word)
{
    size_t n = strlen(word);
    char quote = 0;
    for (size_t i = 0; i < line.len; ++i) {
        char c = line.ptr[i];
        if (quote) {
            if (c == '\\')
                ++i;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (c == '\'' || c == '"' || c == '`')
            quote = c;
        bool starts = i == 0 || line.ptr[i - 1] == ' ';
        if (starts && line.len - i >= n && strncasecmp(line.ptr + i, word, n) == 0 &&
            (line.len - i == n || strchr(" ,(", line.ptr[i + n])))
            return i;
    }
    return SIZE_MAX;
}

/* The type: up to the first space outside of brackets. */
static KnStr type_text(KnStr rest)
{
    int depth = 0;
    size_t i = 0;
    for (; i < rest.len; ++i) {
        depth += rest.ptr[i] == '(' || rest.ptr[i] == '<';
        depth -= rest.ptr[i] == ')' || rest.ptr[i] == '>';
        if (depth == 0 && (rest.ptr[i] == ' ' || rest.ptr[i] == ','))
            break;
    }
    return (KnStr){rest.ptr, i};
}

static KnCode parse_column(KnArena *arena, KnStr line, KnDorisColumn *ret, KnErr *err)
{
    const char *end = memchr(line.ptr + 1, '`', line.len - 1);
    if (!end)
        return kn_err_set(err, KN_E_CORRUPT, "SHOW CREATE TABLE: a column's name does not end");
    size_t len = (size_t)(end - line.ptr) - 1;
    ret->name = kn_arena_strndup(arena, line.ptr + 1, len);
    KnStr rest = {end + 1, line.len - len - 2};
    while (rest.len && rest.ptr[0] == ' ')
        rest = (KnStr){rest.ptr + 1, rest.len - 1};
    KnStr type = type_text(rest);
    ret->type_text = kn_arena_strndup(arena, type.ptr, type.len);
    KnStr more = {rest.ptr + type.len, rest.len - type.len};
    ret->not_null = find_word(more, "NOT NULL") != SIZE_MAX;
    ret->has_default =
        find_word(more, "DEFAULT") != SIZE_MAX || find_word(more, "AUTO_INCREMENT") != SIZE_MAX ||
        find_word(more, "GENERATED") != SIZE_MAX || find_word(more, "AS") != SIZE_MAX;
    KnCode rc = kn_doris_type_parse(arena, type, &ret->type, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "SHOW CREATE TABLE: column %s", ret->name);
}

/* "UNIQUE KEY(`a`, `b`)". */
static void parse_model(KnArena *arena, KnStr line, KnDorisModel model, KnDorisTable *table)
{
    size_t most = 0;
    for (size_t i = 0; i < line.len; ++i)
        most += line.ptr[i] == '`';
    table->model = model;
    table->keys = kn_arena_zalloc(arena, (most + 1) * sizeof(*table->keys));
    table->n_keys = 0;
    const char *p = line.ptr, *end = line.ptr + line.len;
    while (p < end && (p = memchr(p, '`', (size_t)(end - p)))) {
        const char *close = p + 1 < end ? memchr(p + 1, '`', (size_t)(end - p - 1)) : NULL;
        if (!close)
            return;
        table->keys[table->n_keys++] = kn_arena_strndup(arena, p + 1, (size_t)(close - p) - 1);
        p = close + 1;
    }
}

/* "name" = "value" */
static void parse_property(KnArena *arena, KnStr line, KnDorisTable *table)
{
    const struct {
        const char *name;
        const char **at;
    } wanted[] = {{"\"function_column.sequence_type\"", &table->sequence_type},
                  {"\"function_column.sequence_col\"", &table->sequence_col},
                  {"\"group_commit_mode\"", &table->group_commit}};
    for (size_t i = 0; i < 3; ++i) {
        size_t n = strlen(wanted[i].name);
        if (line.len <= n || strncasecmp(line.ptr, wanted[i].name, n) != 0)
            continue;
        const char *open = memchr(line.ptr + n, '"', line.len - n), *end = line.ptr + line.len;
        const char *close = open ? memchr(open + 1, '"', (size_t)(end - open) - 1) : NULL;
        if (close)
            *wanted[i].at = kn_arena_strndup(arena, open + 1, (size_t)(close - open) - 1);
    }
}

static void parse_tail(KnArena *arena, KnStr line, KnDorisTable *table)
{
    if (kn_str_starts_with(line, KN_STR_LIT("UNIQUE KEY")))
        parse_model(arena, line, KN_DORIS_UNIQUE, table);
    else if (kn_str_starts_with(line, KN_STR_LIT("DUPLICATE KEY")))
        parse_model(arena, line, KN_DORIS_DUPLICATE, table);
    else if (kn_str_starts_with(line, KN_STR_LIT("AGGREGATE KEY")))
        parse_model(arena, line, KN_DORIS_AGGREGATE, table);
    else
        parse_property(arena, line, table);
}

KnCode kn_doris_table_parse(KnArena *arena, KnStr ddl, KnDorisTable *ret, KnErr *err)
{
    KnDorisTable table = {0};
    KN_VEC(KnDorisColumn) columns = {0};
    Lines in = {ddl};
    KnStr line;
    KnCode rc = KN_OK;
    bool inside = false;
    while (rc == KN_OK && next_line(&in, &line)) {
        if (line.len && line.ptr[0] == ')')
            inside = false;
        else if (kn_str_starts_with(line, KN_STR_LIT("CREATE ")))
            inside = true;
        else if (inside && line.len && line.ptr[0] == '`' && columns.len < MAX_COLUMNS)
            rc = parse_column(arena, line, kn_vec_push(&columns), err);
        else if (!inside)
            parse_tail(arena, line, &table);
    }
    if (rc == KN_OK && columns.len == 0)
        rc = kn_err_set(err, KN_E_CORRUPT, "SHOW CREATE TABLE: no columns (is it a view?)");
    if (rc == KN_OK) {
        table.n_columns = columns.len;
        table.columns = kn_arena_zalloc(arena, columns.len * sizeof(*table.columns));
        memcpy(table.columns, columns.items, columns.len * sizeof(*table.columns));
        *ret = table;
    }
    kn_vec_done(&columns);
    return rc;
}

const KnDorisColumn *kn_doris_table_find(const KnDorisTable *table, const char *name)
{
    for (size_t i = 0; i < table->n_columns; ++i)
        if (strcasecmp(table->columns[i].name, name) == 0)
            return &table->columns[i];
    return NULL;
}
