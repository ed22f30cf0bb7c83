/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - window() and session_window() among the terms of a query's GROUP BY.
 *
 * A window is the flow's, not the query's: the run groups by it and puts window_start and
 * window_end in front of the query's columns. So the term goes, and with it what SELECT says of
 * these two: window, window.start, window.end (AS window_start, AS window_end). Anything else that
 * is done with window is refused where it stands.
 */
#include "pipeline/sql/sql_internal.h"

typedef struct Window {
    KnSdpParser *p;
    KnSdpQuery *query;
    const KnSdpToken *tokens;
    size_t n;
} Window;

typedef struct Range {
    size_t from, to; /* tokens */
} Range;

static bool is(const Window *w, size_t i, const char *word)
{
    return i < w->n && kn_sdp_token_is(w->p, &w->tokens[i], word);
}

static bool opens(const Window *w, size_t i)
{
    return is(w, i, "(") || is(w, i, "[") || is(w, i, "{");
}

static bool closes(const Window *w, size_t i)
{
    return is(w, i, ")") || is(w, i, "]") || is(w, i, "}");
}

/* Behind the token at i, or the bracketed text that begins there. */
static size_t behind(const Window *w, size_t i)
{
    size_t depth = 0;
    for (; i < w->n; i++) {
        depth += opens(w, i);
        if (closes(w, i) && depth > 0)
            depth--;
        if (depth == 0)
            return i + 1;
    }
    return w->n;
}

/* The first of the words at depth 0 from i on; words end with NULL. */
static size_t find(const Window *w, size_t i, const char *const *words)
{
    for (; i < w->n; i = behind(w, i))
        for (const char *const *word = words; *word; word++)
            if (is(w, i, *word))
                return i;
    return w->n;
}

static Range item_at(const Window *w, size_t from, size_t end)
{
    static const char *const comma[] = {",", NULL};
    size_t to = find(w, from, comma);
    return (Range){from, to < end ? to : end};
}

/* Take an item of the list [from, to) out; before is the token that a lonely item goes with. */
static void drop(Window *w, Range list, Range item, size_t before)
{
    size_t at, end;
    if (item.to < list.to) { /* with the comma behind it */
        at = w->tokens[item.from].at;
        end = item.to + 1 < w->n ? w->tokens[item.to + 1].at : w->tokens[item.to].end;
    } else {
        at = w->tokens[before - 1].end;
        end = w->tokens[item.to - 1].end;
    }
    *kn_vec_push(&w->query->edits) = (KnSdpEdit){at, end, ""};
}

/* ---- the term of GROUP BY ---- */

static KnCode interval_at(Window *w, size_t i, uint64_t *ret)
{
    KN_BUF_AUTO text = {.max = 1000};
    if (i < w->n && w->tokens[i].kind == KN_SDP_TEXT &&
        kn_sdp_unquote_text(&text, kn_sdp_text(&w->p->lex, &w->tokens[i])) && text.data &&
        kn_sdp_parse_interval((KnStr){text.data, text.len}, ret))
        return KN_OK;
    return kn_sdp_fail(w->p, &w->tokens[i < w->n ? i : w->n - 1],
                       "expected an interval like '10 seconds' (milliseconds to weeks)");
}

/* window(column, 'size' [, 'slide']) and session_window(column, 'gap'), the tokens of item. */
static KnCode window_of(Window *w, Range item, KnutWindow *ret)
{
    bool session = is(w, item.from, "session_window");
    size_t at = item.from + 2;
    uint64_t size = 0, slide;
    w->query->window_place = w->tokens[item.from];
    w->query->window_column = w->tokens[at];
    if (w->tokens[at].kind != KN_SDP_WORD && w->tokens[at].kind != KN_SDP_QUOTED)
        return kn_sdp_fail(w->p, &w->tokens[at], "expected the event-time column of the window");
    if (!is(w, at + 1, ","))
        return kn_sdp_fail(w->p, &w->tokens[at + 1], "expected ',' and the window's size");
    KN_TRY(interval_at(w, at + 2, &size));
    slide = size;
    if (is(w, at + 3, ",") && !session) {
        KN_TRY(interval_at(w, at + 4, &slide));
        at += 2;
    }
    if (!is(w, at + 3, ")") || at + 4 != item.to)
        return kn_sdp_fail(w->p, &w->tokens[at + 3 < w->n ? at + 3 : w->n - 1],
                           "expected the end of the window and of its term");
    if (session)
        *ret = (KnutWindow){.tag = KNUT_WINDOW_SESSION, .session = {size}};
    else if (at > item.from + 2)
        *ret = (KnutWindow){.tag = KNUT_WINDOW_HOPPING, .hopping = {size, slide}};
    else
        *ret = (KnutWindow){.tag = KNUT_WINDOW_TUMBLING, .tumbling = {size}};
    return KN_OK;
}

static bool is_window(const Window *w, size_t i)
{
    return (is(w, i, "window") || is(w, i, "session_window")) && is(w, i + 1, "(");
}

static KnCode group_terms(Window *w, size_t group)
{
    static const char *const ends[] = {"HAVING", "ORDER",  "LIMIT",     "OFFSET", "QUALIFY",
                                       "UNION",  "EXCEPT", "INTERSECT", "SELECT", NULL};
    Range list = {group + 2, find(w, group + 2, ends)};
    for (size_t from = list.from; from < list.to;) {
        Range item = item_at(w, from, list.to);
        from = item.to + 1;
        if (item.from >= item.to || !is_window(w, item.from))
            continue;
        if (w->query->window)
            return kn_sdp_fail(w->p, &w->tokens[item.from], "a flow has one window");
        KnutWindow *window = kn_arena_zalloc(w->p->arena, sizeof(*window));
        KN_TRY(window_of(w, item, window));
        w->query->window = window;
        bool lonely = item.from == list.from && item.to == list.to;
        drop(w, list, item, lonely ? group : item.from - 1);
    }
    return KN_OK;
}

/* ---- what SELECT says of it ---- */

static bool names_window(const Window *w, Range item)
{
    size_t at = item.from;
    if (!is(w, at, "window") && !is(w, at, "session_window"))
        return false;
    if (at + 1 == item.to)
        return true;
    bool start = is(w, at + 2, "start");
    if (!is(w, at + 1, ".") || (!start && !is(w, at + 2, "end")))
        return false;
    if (at + 3 == item.to)
        return true;
    return at + 5 == item.to && is(w, at + 3, "AS") &&
           is(w, at + 4, start ? "window_start" : "window_end");
}

static KnCode no_other_use(Window *w, Range item)
{
    for (size_t i = item.from; i < item.to; i++)
        if ((is(w, i, "window") || is(w, i, "session_window")) && is(w, i + 1, "."))
            return kn_sdp_fail(w->p, &w->tokens[i],
                               "window.start and window.end can only be selected, AS window_start "
                               "and window_end: the run adds these two to every row");
    return KN_OK;
}

static KnCode select_items(Window *w)
{
    static const char *const select[] = {"SELECT", NULL}, *const from[] = {"FROM", NULL};
    size_t at = find(w, 0, select);
    Range list = {at + 1, find(w, at, from)};
    size_t kept = 0, last_kept = at;
    for (size_t i = list.from; i < list.to;) {
        Range item = item_at(w, i, list.to);
        i = item.to + 1;
        if (!names_window(w, item)) {
            KN_TRY(no_other_use(w, item));
            kept++;
            last_kept = item.to - 1;
        } else if (i <= list.to) {
            drop(w, list, item, item.from);
        } else { /* the last: with the comma before it */
            *kn_vec_push(&w->query->edits) =
                (KnSdpEdit){w->tokens[last_kept].end, w->tokens[item.to - 1].end, ""};
        }
    }
    if (kept == 0 && list.from < list.to)
        return kn_sdp_fail(w->p, &w->tokens[list.from],
                           "nothing but the window is selected: add a column or an aggregate");
    return KN_OK;
}

KnCode kn_sdp_query_window(KnSdpParser *p, KnSdpQuery *query)
{
    static const char *const group[] = {"GROUP", NULL};
    Window w = {.p = p, .query = query, .tokens = query->tokens.items, .n = query->tokens.len};
    for (size_t at = find(&w, 0, group); at < w.n; at = find(&w, at + 1, group))
        if (at > 0 && is(&w, at + 1, "BY"))
            KN_TRY(group_terms(&w, at));
    return query->window ? select_items(&w) : KN_OK;
}
