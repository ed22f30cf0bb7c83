/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - from what stands in the file to the text that the engine gets.
 *
 * A query is the engine's but for a few words of Spark's, which are edits of the file's text:
 * STREAM(t) is t, WATERMARK ... is nothing, `a` is "a", window() in GROUP BY is nothing. The edits
 * are kept in order, so that a byte of the result can be traced to the file.
 */
#include <stdlib.h>

#include "pipeline/sql/sql_internal.h"

void kn_sdp_query_done(KnSdpQuery *query)
{
    kn_vec_done(&query->tokens);
    kn_vec_done(&query->streams);
    kn_vec_done(&query->edits);
}

/* A name between backticks as the engine quotes it. */
static char *requoted(KnArena *arena, KnStr text)
{
    KN_BUF_AUTO name = {.max = text.len + 1}, out = {.max = 2 * text.len + 8};
    kn_sdp_unquote_name(&name, text);
    kn_buf_char(&out, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '"')
            kn_buf_char(&out, '"');
        kn_buf_char(&out, name.data[i]);
    }
    kn_buf_char(&out, '"');
    return kn_arena_strndup(arena, out.data, out.len);
}

char *kn_sdp_engine_text(KnArena *arena, KnStr file, size_t at, size_t end)
{
    KnSdpLex lex = {.text = {file.ptr, end}, .at = at, .query = true};
    KN_BUF_AUTO out = {.max = 2 * (end - at) + 64};
    for (size_t from = at;;) {
        KnSdpToken token = kn_sdp_next(&lex);
        kn_buf_append(&out, file.ptr + from, token.at - from);
        from = token.end;
        if (token.kind == KN_SDP_END)
            break;
        if (token.kind == KN_SDP_QUOTED && file.ptr[token.at] == '`')
            kn_buf_text(&out, requoted(arena, kn_sdp_text(&lex, &token)));
        else
            kn_buf_str(&out, kn_sdp_text(&lex, &token));
    }
    return kn_arena_strndup(arena, out.data ? out.data : "", out.len);
}

static bool opens(const KnSdpParser *p)
{
    return kn_sdp_at(p, "(") || kn_sdp_at(p, "[") || kn_sdp_at(p, "{");
}

static bool closes(const KnSdpParser *p)
{
    return kn_sdp_at(p, ")") || kn_sdp_at(p, "]") || kn_sdp_at(p, "}");
}

/* An unclosed bracket must not swallow the next statement: `;` ends every query. */
static bool query_ends(const KnSdpParser *p, bool bracketed, size_t depth)
{
    if (p->tok.kind == KN_SDP_END || kn_sdp_at(p, ";"))
        return true;
    if (depth > 0)
        return false;
    return bracketed ? closes(p) : kn_sdp_at_end(p);
}

KnCode kn_sdp_query_tokens(KnSdpParser *p, bool bracketed, KnSdpQuery *ret)
{
    size_t depth = 0;
    kn_sdp_speak(p, true);
    ret->place = p->tok;
    while (!query_ends(p, bracketed, depth)) {
        if (p->tok.kind == KN_SDP_BAD)
            return kn_sdp_expected(p, "a query");
        if (opens(p) && ++depth > KN_SDP_MAX_DEPTH)
            return kn_sdp_fail(p, &p->tok, "brackets are nested more than %d deep",
                               KN_SDP_MAX_DEPTH);
        if (closes(p) && depth-- == 0)
            return kn_sdp_expected(p, "the end of the query");
        *kn_vec_push(&ret->tokens) = p->tok;
        kn_sdp_take(p);
    }
    if (ret->tokens.len == 0)
        return kn_sdp_expected(p, "a query");
    if (depth > 0)
        return kn_sdp_expected(p, "a bracket that closes the query's");
    kn_sdp_speak(p, false);
    return KN_OK;
}

static int by_place(const void *a, const void *b)
{
    const KnSdpEdit *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static void add_edit(KnSdpQuery *query, size_t at, size_t end, const char *text)
{
    *kn_vec_push(&query->edits) = (KnSdpEdit){at, end, text};
}

/* The text with its edits; those inside another (a quoted name in what goes) are dropped. */
static void apply_edits(KnSdpParser *p, KnSdpQuery *query)
{
    const KnSdpToken *tokens = query->tokens.items;
    size_t at = tokens[0].at, end = tokens[query->tokens.len - 1].end, kept = 0;
    KN_BUF_AUTO out = {.max = 4 * (end - at) + 4096};
    kn_vec_foreach (&query->tokens, token)
        if (token->kind == KN_SDP_QUOTED && p->lex.text.ptr[token->at] == '`')
            add_edit(query, token->at, token->end, requoted(p->arena, kn_sdp_text(&p->lex, token)));
    if (query->edits.len > 0)
        qsort(query->edits.items, query->edits.len, sizeof(KnSdpEdit), by_place);
    kn_vec_foreach (&query->edits, edit) {
        if (edit->at < at && edit->end > edit->at)
            continue;
        kn_buf_append(&out, p->lex.text.ptr + at, edit->at - at);
        kn_buf_text(&out, edit->text);
        at = edit->end;
        query->edits.items[kept++] = *edit;
    }
    query->edits.len = kept;
    kn_buf_append(&out, p->lex.text.ptr + at, end - at);
    query->text = kn_arena_strndup(p->arena, out.data ? out.data : "", out.len);
}

/* The byte of the file that byte pos of the query came from. */
static size_t place_in_file(const KnSdpQuery *query, size_t pos)
{
    size_t at = query->tokens.items[0].at, made = 0;
    kn_vec_foreach (&query->edits, edit) {
        size_t same = edit->at - at, len = strlen(edit->text);
        if (pos < made + same)
            break;
        made += same;
        at = edit->at;
        if (pos < made + len)
            return at;
        made += len;
        at = edit->end;
    }
    return at + (pos - made);
}

const char *kn_sdp_hint(KnSdpParser *p, size_t at)
{
    static const struct {
        const char *word;
        const char *hint;
    } words[] = {
        {"RLIKE", " (Spark's own; write regexp_matches(text, pattern))"},
        {"REGEXP", " (Spark's own; write regexp_matches(text, pattern))"},
        {"LATERAL", " (Spark's own; write CROSS JOIN UNNEST(list) AS t(x))"},
        {"ANTI", " (Spark's own; write ANTI JOIN, without LEFT)"},
        {"SEMI", " (Spark's own; write SEMI JOIN, without LEFT)"},
        {"SORT", " (Spark's own; write ORDER BY)"},
        {"DISTRIBUTE", " (Spark's own; leave it out)"},
        {"DIV", " (Spark's own; write a // b)"},
        {"WINDOW", " (window() is a term of the flow's own GROUP BY only)"},
        {"PARTITIONED", " (clauses stand before AS)"},
        {"CLUSTER", " (clauses stand before AS)"},
        {"COMMENT", " (clauses stand before AS)"},
        {"LOCATION", " (clauses stand before AS)"},
        {"TBLPROPERTIES", " (clauses stand before AS)"},
    };
    KnSdpLex lex = {.text = p->lex.text, .at = at, .query = true};
    KnSdpToken token = kn_sdp_next(&lex);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (token.kind == KN_SDP_WORD &&
            kn_str_eq_nocase(kn_sdp_text(&lex, &token), kn_str(words[i].word)))
            return words[i].hint;
    return "";
}

static bool listed(const KnSdpStrings *names, const char *name)
{
    kn_vec_foreach (names, at)
        if (strcmp(*at, name) == 0)
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is name a stream that comes from outside the pipeline, and so no edge of its graph? */
static bool is_outside(const KnSdpQuery *query, const char *name)
{
    kn_vec_foreach (&query->streams, stream)
        if (stream->source.tag != KNUT_SOURCE_CDC &&
            kn_str_eq_nocase(kn_str(stream->name), kn_str(name)))
            return true;
    return false;
}

static KnCode read_tables(KnSdpParser *p, KnSdpQuery *query)
{
    KnSdpTables tables = {0};
    KnSdpStrings names = {0};
    KnErr why = {0};
    size_t at = SIZE_MAX;
    KnCode rc = kn_sdp_tables(p->arena, p->session, query->text, &tables, &at, &why);
    if (rc != KN_OK) {
        at = at == SIZE_MAX ? query->place.at : place_in_file(query, at);
        rc = kn_sdp_fail_at(p, at, "%.300s%s", why.msg, kn_sdp_hint(p, at));
    } else {
        kn_vec_foreach (&tables, table)
            if (!is_outside(query, table->name) && !listed(&names, table->name))
                *kn_vec_push(&names) = table->name;
        if (names.len > 0)
            qsort(names.items, names.len, sizeof(char *), by_text);
        query->reads = kn_sdp_keep(p->arena, &names);
    }
    kn_vec_done(&tables);
    return rc;
}

KnCode kn_sdp_query(KnSdpParser *p, bool bracketed, KnSdpQuery *ret)
{
    KN_TRY(kn_sdp_query_tokens(p, bracketed, ret));
    KN_TRY(kn_sdp_query_streams(p, ret));
    KN_TRY(kn_sdp_query_window(p, ret));
    apply_edits(p, ret);
    return p->session ? read_tables(p, ret) : KN_OK;
}
