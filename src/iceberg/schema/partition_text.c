/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition_text.c - partition specs and sort orders as a person types them.
 *
 *     spec  = term ["as" name] {"," term ["as" name]}
 *     order = term ["asc" | "desc"] ["nulls" ("first" | "last")] {"," ...}
 *     term  = column | ("year" | "month" | "day" | "hour" | "void" | "identity") "(" column ")"
 *           | Spark's "years", "months", "days", "hours"
 *           | ("bucket" | "truncate") "(" N "," column ")", the two in either order
 *
 * Names of partition fields are those that Java's builder gives ("ts_day", "id_bucket"). Nulls are
 * first in an ascending order and last in a descending one, unless said.
 */
#include <ctype.h>
#include <string.h>

#include "base/vec.h"
#include "iceberg/schema/partition.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/text_cursor.h"

static KnCode parse_column(KnTextCursor *cur, KnTerm *term, KnErr *err)
{
    kn_cursor_at_end(cur); /* blanks do not belong to the column's position */
    term->at = cur->at;
    return kn_cursor_path(cur, &term->column, err);
}

/* "16, id" or "id, 16": after the bracket of bucket or truncate. */
static KnCode parse_arguments(KnTextCursor *cur, KnTerm *term, int64_t *ret_param, KnErr *err)
{
    KnStr word = kn_cursor_peek_word(cur);

    if (word.len > 0 && isdigit((unsigned char)word.ptr[0])) {
        KN_TRY(kn_cursor_number(cur, ret_param, err));
        KN_TRY(kn_cursor_expect(cur, ',', err));
        return parse_column(cur, term, err);
    }
    KN_TRY(parse_column(cur, term, err));
    KN_TRY(kn_cursor_expect(cur, ',', err));
    return kn_cursor_number(cur, ret_param, err);
}

/* Spark's "years", "months", "days", "hours" are those without the "s". */
static size_t singular_len(const char *text)
{
    static const char *const plurals[] = {"years", "months", "days", "hours"};

    for (size_t i = 0; i < sizeof(plurals) / sizeof(plurals[0]); i++)
        if (strcmp(text, plurals[i]) == 0)
            return strlen(text) - 1;
    return strlen(text);
}

static KnCode parse_call(KnTextCursor *cur, KnTerm *term, KnErr *err)
{
    KnStr word = kn_cursor_peek_word(cur);
    bool has_param = kn_str_eq_nocase(word, KN_STR_LIT("bucket")) ||
                     kn_str_eq_nocase(word, KN_STR_LIT("truncate"));
    size_t at = cur->at;
    int64_t param = 0;
    char *text;

    cur->at += word.len;
    KN_TRY(kn_cursor_expect(cur, '(', err));
    if (has_param)
        KN_TRY(parse_arguments(cur, term, &param, err));
    else
        KN_TRY(parse_column(cur, term, err));
    KN_TRY(kn_cursor_expect(cur, ')', err));
    text = has_param ? kn_arena_printf(cur->arena, KN_STR_FMT "[%lld]", KN_STR_ARG(word),
                                       (long long)param)
                     : kn_arena_strndup(cur->arena, word.ptr, word.len);
    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    text[singular_len(text)] = '\0';
    term->call = true;
    if (kn_transform_parse(cur->arena, kn_str(text), &term->transform, err) != KN_OK)
        return kn_err_set(err, KN_E_INVAL, "position %zu: %s is not a transform", at + 1, text);
    if (term->transform.kind == KN_TRANSFORM_UNKNOWN)
        return kn_err_set(err, KN_E_INVAL,
                          "position %zu: '" KN_STR_FMT "' is not a transform (identity, bucket, "
                          "truncate, year, month, day, hour, void are)",
                          at + 1, KN_STR_ARG(word));
    return KN_OK;
}

KnCode kn_cursor_term(KnTextCursor *cur, KnTerm *ret, KnErr *err)
{
    KnTextCursor ahead = *cur;
    KnStr word = kn_cursor_peek_word(&ahead);

    *ret = (KnTerm){0};
    ahead.at += word.len;
    if (word.len > 0 && kn_cursor_eat(&ahead, '('))
        return parse_call(cur, ret, err);
    KN_TRY(parse_column(cur, ret, err));
    return kn_transform_parse(cur->arena, KN_STR_LIT("identity"), &ret->transform, err);
}

KnCode kn_cursor_sort_term(KnTextCursor *cur, KnSortTerm *ret, KnErr *err)
{
    KN_TRY(kn_cursor_term(cur, &ret->term, err));
    ret->descending = kn_cursor_eat_word(cur, "desc");
    if (!ret->descending)
        kn_cursor_eat_word(cur, "asc");
    ret->nulls_last = ret->descending;
    if (kn_cursor_eat_word(cur, "nulls")) {
        ret->nulls_last = kn_cursor_eat_word(cur, "last");
        if (!ret->nulls_last && !kn_cursor_eat_word(cur, "first"))
            return kn_cursor_fail(cur, "'first' or 'last'", err);
    }
    return KN_OK;
}

KnCode kn_term_bind(const KnTerm *term, const KnSchema *schema, const KnField **ret, KnErr *err)
{
    *ret = kn_schema_find_name(schema, kn_str(term->column));
    if (!*ret)
        return kn_err_set(err, KN_E_INVAL, "position %zu: column '%s' does not exist", term->at + 1,
                          term->column);
    return KN_OK;
}

static const char *partition_name(KnArena *arena, const KnTerm *term)
{
    static const char *const suffixes[] = {
        [KN_TRANSFORM_BUCKET] = "_bucket", [KN_TRANSFORM_TRUNCATE] = "_trunc",
        [KN_TRANSFORM_YEAR] = "_year",     [KN_TRANSFORM_MONTH] = "_month",
        [KN_TRANSFORM_DAY] = "_day",       [KN_TRANSFORM_HOUR] = "_hour",
        [KN_TRANSFORM_VOID] = "_null"};

    if (term->transform.kind == KN_TRANSFORM_IDENTITY)
        return term->column;
    return kn_arena_printf(arena, "%s%s", term->column, suffixes[term->transform.kind]);
}

static KnCode parse_partition_field(KnTextCursor *cur, const KnSchema *schema,
                                    KnPartitionField *ret, KnErr *err)
{
    const KnField *source;
    KnTerm term;

    KN_TRY(kn_cursor_term(cur, &term, err));
    KN_TRY(kn_term_bind(&term, schema, &source, err));
    ret->source_id = source->id;
    ret->transform = term.transform;
    ret->name = partition_name(cur->arena, &term);
    if (kn_cursor_eat_word(cur, "as"))
        KN_TRY(kn_cursor_name(cur, &ret->name, err));
    return KN_OK;
}

static KnCode check_names(const KnPartitionSpec *spec, KnErr *err)
{
    for (size_t i = 0; i < spec->n_fields; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(spec->fields[i].name, spec->fields[j].name) == 0)
                return kn_err_set(err, KN_E_INVAL, "Cannot use partition name more than once: %s",
                                  spec->fields[i].name);
    return KN_OK;
}

KnCode kn_partition_spec_parse_text(KnArena *arena, const KnSchema *schema, KnStr text,
                                    KnPartitionSpec **ret, KnErr *err)
{
    KnTextCursor cur = {.arena = arena, .text = text};
    KN_VEC(KnPartitionField) fields = {0};
    KnPartitionSpec *spec = kn_arena_zalloc(arena, sizeof(*spec));
    KnPartitionField *copy;
    KnCode rc = KN_OK;

    while (rc == KN_OK && !kn_cursor_at_end(&cur)) {
        KnPartitionField *field = kn_vec_push(&fields);
        field->field_id = KN_PARTITION_ID_FIRST + (int32_t)(fields.len - 1);
        rc = parse_partition_field(&cur, schema, field, err);
        if (rc == KN_OK && !kn_cursor_at_end(&cur))
            rc = kn_cursor_expect(&cur, ',', err);
    }
    copy = kn_arena_zalloc(arena, (fields.len + 1) * sizeof(*copy));
    if (fields.len > 0)
        memcpy(copy, fields.items, fields.len * sizeof(*copy));
    spec->fields = copy;
    spec->n_fields = fields.len;
    kn_vec_done(&fields);
    KN_TRY(rc);
    KN_TRY(check_names(spec, err));
    KN_TRY(kn_partition_spec_check(spec, schema, err));
    *ret = spec;
    return KN_OK;
}

static KnCode parse_sort_field(KnTextCursor *cur, const KnSchema *schema, KnSortField *ret,
                               KnErr *err)
{
    const KnField *source;
    KnSortTerm sort = {0};

    KN_TRY(kn_cursor_sort_term(cur, &sort, err));
    KN_TRY(kn_term_bind(&sort.term, schema, &source, err));
    *ret = (KnSortField){source->id, sort.term.transform, sort.descending, sort.nulls_last};
    return KN_OK;
}

KnCode kn_sort_order_parse_text(KnArena *arena, const KnSchema *schema, KnStr text,
                                KnSortOrder **ret, KnErr *err)
{
    KnTextCursor cur = {.arena = arena, .text = text};
    KN_VEC(KnSortField) fields = {0};
    KnSortOrder *order = kn_arena_zalloc(arena, sizeof(*order));
    KnSortField *copy;
    KnCode rc = KN_OK;

    while (rc == KN_OK && !kn_cursor_at_end(&cur)) {
        rc = parse_sort_field(&cur, schema, kn_vec_push(&fields), err);
        if (rc == KN_OK && !kn_cursor_at_end(&cur))
            rc = kn_cursor_expect(&cur, ',', err);
    }
    copy = kn_arena_zalloc(arena, (fields.len + 1) * sizeof(*copy));
    if (fields.len > 0)
        memcpy(copy, fields.items, fields.len * sizeof(*copy));
    *order = (KnSortOrder){fields.len > 0, fields.len, copy};
    kn_vec_done(&fields);
    KN_TRY(rc);
    KN_TRY(kn_sort_order_check(order, schema, err));
    *ret = order;
    return KN_OK;
}
