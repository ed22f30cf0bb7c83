/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database_place.c - the text that names a database and a table in it.
 *
 * The table is in the text (`?table=SCHEMA.TABLE`, percent-escaped), so that one word of a command
 * line names it, or an option beside it. The rest is libpq's to read (postgres/place.h).
 */
#include <string.h>

#include "net/url.h"
#include "pipeline/native/database.h"

#define TABLE "table="

const char *kn_database_setting(const KnutPairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->len; i++)
        if (!strcmp(pairs->items[i].key, key))
            return pairs->items[i].value;
    return NULL;
}

/* Cuts `table=...` out of the text; NULL = it is not there. */
static KnCode take_table(KnArena *arena, char *uri, const char **ret, KnErr *err)
{
    for (char *at = strchr(uri, '?'); at; at = strchr(at + 1, '&')) {
        if (strncmp(at + 1, TABLE, strlen(TABLE)) != 0)
            continue;
        size_t len = strcspn(at + 1, "&");
        KN_BUF_AUTO name = {.max = 1 << 16};
        KN_TRY(kn_url_decode(&name, (KnStr){at + 1 + strlen(TABLE), len - strlen(TABLE)}, err));
        *ret = kn_arena_strndup(arena, name.data ? name.data : "", name.len);
        if (at[1 + len] == '&')
            memmove(at + 1, at + 2 + len, strlen(at + 2 + len) + 1);
        else
            *at = '\0';
        return KN_OK;
    }
    return KN_OK;
}

static KnCode split_table(KnArena *arena, const char *text, KnDatabasePlace *ret, KnErr *err)
{
    const char *dot = strchr(text, '.');
    const char *schema = dot ? kn_arena_strndup(arena, text, (size_t)(dot - text)) : "";
    const char *name = dot ? dot + 1 : text;
    if (!name[0] || (dot && !schema[0]) || strchr(name, '.'))
        return kn_err_set(err, KN_E_INVAL, "table '%s': expected TABLE or SCHEMA.TABLE", text);
    KN_TRY(kn_pg_check_name("table", name, err));
    if (dot)
        KN_TRY(kn_pg_check_name("schema", schema, err));
    ret->schema = dot ? kn_arena_printf(arena, "%s.", kn_sql_ident_of(arena, schema)) : "";
    ret->table = kn_sql_ident_of(arena, name);
    return KN_OK;
}

KnCode kn_database_place_parse(KnArena *arena, const char *uri, const char *table,
                               KnDatabasePlace *ret, KnErr *err)
{
    KnDatabasePlace out = {.schema = ""};
    const char *in_text = NULL;
    const char *colon = strchr(uri, ':');
    char *rest = kn_arena_strdup(arena, colon ? colon + 1 : uri);
    KN_TRY(take_table(arena, rest, &in_text, err));
    KN_TRY(kn_pg_place_parse(arena, rest, &out.place, err));
    if (table || in_text)
        KN_TRY(split_table(arena, table ? table : in_text, &out, err));
    *ret = out;
    return KN_OK;
}
