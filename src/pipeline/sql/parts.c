/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - what statements are made of: names, texts, lists, expressions, pairs, intervals. */
#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/sql/sql_internal.h"

#define MAX_NAME ((size_t)64 << 10)

KnutNames kn_sdp_keep(KnArena *arena, KnSdpStrings *strings)
{
    const char **items = NULL;
    size_t len = strings->len;
    if (len > 0) {
        items = kn_arena_alloc(arena, len * sizeof(*items));
        memcpy(items, strings->items, len * sizeof(*items));
    }
    kn_vec_done(strings);
    return (KnutNames){items, len};
}

KnCode kn_sdp_ident(KnSdpParser *p, const char **ret)
{
    KnStr text = kn_sdp_here(p);
    if (!kn_sdp_at_name(p))
        return kn_sdp_expected(p, "a name");
    if (p->tok.kind == KN_SDP_WORD) {
        *ret = kn_arena_strndup(p->arena, text.ptr, text.len);
    } else {
        KN_BUF_AUTO name = {.max = MAX_NAME};
        kn_sdp_unquote_name(&name, text);
        if (name.len == 0 || name.failed)
            return kn_sdp_fail(p, &p->tok, "a name that is empty or too long");
        *ret = kn_arena_strndup(p->arena, name.data, name.len);
    }
    kn_sdp_take(p);
    return KN_OK;
}

void kn_sdp_name_part(KnBuf *out, KnStr part)
{
    bool quote = false;
    for (size_t i = 0; i < part.len; i++)
        quote = quote || part.ptr[i] == '.' || part.ptr[i] == '"';
    if (!quote) {
        kn_buf_str(out, part);
        return;
    }
    kn_buf_char(out, '"');
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == '"')
            kn_buf_char(out, '"');
        kn_buf_char(out, part.ptr[i]);
    }
    kn_buf_char(out, '"');
}

KnCode kn_sdp_name(KnSdpParser *p, const char **ret)
{
    KN_BUF_AUTO name = {.max = MAX_NAME};
    KnSdpToken first = p->tok;
    do {
        const char *part = NULL;
        KN_TRY(kn_sdp_ident(p, &part));
        if (name.len > 0)
            kn_buf_char(&name, '.');
        kn_sdp_name_part(&name, kn_str(part));
    } while (kn_sdp_accept(p, "."));
    if (name.failed)
        return kn_sdp_fail(p, &first, "a name that is too long");
    *ret = kn_arena_strndup(p->arena, name.data, name.len);
    return KN_OK;
}

/* One text between quotes at the token at hand, appended. */
static KnCode literal_part(KnSdpParser *p, KnBuf *out)
{
    if (!kn_sdp_unquote_text(out, kn_sdp_here(p)))
        return kn_sdp_fail(p, &p->tok,
                           "a text with an escape that is none: \\ stands for itself "
                           "when doubled");
    kn_sdp_take(p);
    return KN_OK;
}

/* A word that a plain name may be: none that ends a name's place in a definition or a query. */
static bool is_plain(KnStr part)
{
    static const char *const reserved[] = {
        "AS",          "SELECT",    "FROM",       "WHERE",   "GROUP",      "BY",     "ORDER",
        "HAVING",      "LIMIT",     "UNION",      "EXCEPT",  "JOIN",       "ON",     "USING",
        "WITH",        "VALUES",    "TABLE",      "CREATE",  "STREAM",     "ONCE",   "IF",
        "NOT",         "NULL",      "CONSTRAINT", "PRIMARY", "AND",        "OR",     "IN",
        "IS",          "CASE",      "WHEN",       "THEN",    "ELSE",       "END",    "ALL",
        "DISTINCT",    "LEFT",      "RIGHT",      "INNER",   "FULL",       "CROSS",  "WINDOW",
        "OFFSET",      "INTERSECT", "TRUE",       "FALSE",   "DEFAULT",    "CHECK",  "DESC",
        "ASC",         "USER",      "INTO",       "LATERAL", "ANY",        "SOME",   "ARRAY",
        "NATURAL",     "OUTER",     "QUALIFY",    "FOR",     "TO",         "COLUMN", "WATERMARK",
        "FLOW",        "INTERVAL",  "CAST",       "COLLATE", "ONLY",       "UNIQUE", "REFERENCES",
        "FOREIGN",     "ANTI",      "SEMI",       "ASOF",    "POSITIONAL", "PIVOT",  "UNPIVOT",
        "TABLESAMPLE", "BETWEEN",   "LIKE"};
    bool plain = part.len > 0 && kn_sdp_is_word_start((unsigned char)part.ptr[0]);
    for (size_t i = 0; i < part.len; i++)
        plain = plain && kn_sdp_is_word_part((unsigned char)part.ptr[i]) && part.ptr[i] != '$';
    for (size_t i = 0; plain && i < sizeof(reserved) / sizeof(*reserved); i++)
        plain = !kn_str_eq_nocase(part, kn_str(reserved[i]));
    return plain;
}

static void print_part(KnBuf *out, KnStr part, char quote)
{
    if (is_plain(part)) {
        kn_buf_str(out, part);
        return;
    }
    kn_buf_char(out, quote);
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == quote)
            kn_buf_char(out, quote);
        kn_buf_char(out, part.ptr[i]);
    }
    kn_buf_char(out, quote);
}

/* The part of a name at *at, without the quotes it may have there; *at moves behind its dot. */
static void take_part(const char **at, KnBuf *part)
{
    const char *c = *at;
    kn_buf_reset(part);
    const char *close = *c == '"' ? strchr(c + 1, '"') : NULL;
    while (close && close[1] == '"')
        close = strchr(close + 2, '"');
    if (close && (close[1] == '.' || close[1] == '\0')) {
        kn_sdp_unquote_name(part, (KnStr){c, (size_t)(close - c) + 1});
        c = close + 1;
    } else {
        size_t len = strcspn(c, ".");
        kn_buf_append(part, c, len);
        c += len;
    }
    *at = *c == '.' ? c + 1 : c;
}

void kn_sdp_print_name(KnBuf *out, const char *name, char quote)
{
    KN_BUF_AUTO part = {.max = strlen(name) + 1};
    const char *at = name;
    do {
        if (at != name)
            kn_buf_char(out, '.');
        take_part(&at, &part);
        print_part(out, (KnStr){part.data ? part.data : "", part.len}, quote);
    } while (*at);
}

KnCode kn_sdp_literal(KnSdpParser *p, const char *what, const char **ret)
{
    KnSdpToken first = p->tok;
    KN_BUF_AUTO text = {.max = p->lex.text.len + 64};
    bool quoted = p->tok.kind == KN_SDP_QUOTED && kn_sdp_here(p).ptr[0] == '"';
    if (p->tok.kind != KN_SDP_TEXT && !quoted)
        return kn_sdp_expected(p, what);
    KN_TRY(literal_part(p, &text));
    while (p->tok.kind == KN_SDP_TEXT) /* texts side by side are one */
        KN_TRY(literal_part(p, &text));
    if (text.len > 0 && memchr(text.data, '\0', text.len))
        return kn_sdp_fail(p, &first, "a text may not hold the character NUL");
    *ret = kn_arena_strndup(p->arena, text.data ? text.data : "", text.len);
    return KN_OK;
}

KnCode kn_sdp_names(KnSdpParser *p, KnutNames *ret)
{
    KnSdpStrings names = {0};
    KnCode rc = kn_sdp_expect(p, "(");
    while (rc == KN_OK) {
        const char *name = NULL;
        rc = kn_sdp_name(p, &name);
        if (rc != KN_OK)
            break;
        *kn_vec_push(&names) = name;
        if (!kn_sdp_accept(p, ","))
            break;
    }
    if (rc == KN_OK)
        rc = kn_sdp_expect(p, ")");
    *ret = kn_sdp_keep(p->arena, &names);
    return rc;
}

/* The engine parses it; a name between backticks is as long as between double quotes, so that its
 * bytes are those of the file (but for the quotes within names). */
static KnCode check_expr(KnSdpParser *p, size_t at, const char *text)
{
    static const char before[] = "SELECT (";
    KN_BUF_AUTO query = {.max = strlen(text) + 64};
    KnSdpTables tables = {0};
    KnErr why = {0};
    size_t pos;
    kn_buf_printf(&query, "%s%s)", before, text);
    KnCode rc = kn_sdp_tables(p->arena, p->session, query.data, &tables, &pos, &why);
    kn_vec_done(&tables);
    if (rc == KN_OK)
        return KN_OK;
    size_t end = at + strlen(text);
    at = pos == SIZE_MAX || pos < strlen(before) ? at : at + pos - strlen(before);
    at = at < end ? at : end;
    return kn_sdp_fail_at(p, at, "%.300s%s", why.msg, kn_sdp_hint(p, at));
}

KnCode kn_sdp_expr(KnSdpParser *p, bool (*stop)(const KnSdpParser *p), const char *what,
                   const char **ret)
{
    kn_sdp_speak(p, true);
    size_t at = p->tok.at, end = at, depth = 0;
    while (p->tok.kind != KN_SDP_END && p->tok.kind != KN_SDP_BAD) {
        if (depth == 0 && stop(p))
            break;
        if (kn_sdp_at(p, ";"))
            break;
        if (kn_sdp_at(p, "(") || kn_sdp_at(p, "["))
            depth++;
        if ((kn_sdp_at(p, ")") || kn_sdp_at(p, "]")) && depth-- == 0)
            break;
        end = p->tok.end;
        kn_sdp_take(p);
    }
    if (p->tok.kind == KN_SDP_BAD || end == at || (depth > 0 && depth != SIZE_MAX))
        return kn_sdp_expected(p, end == at ? what : ")");
    *ret = kn_sdp_engine_text(p->arena, p->lex.text, at, end);
    kn_sdp_speak(p, false);
    return p->session ? check_expr(p, at, *ret) : KN_OK;
}

static bool at_comma_or_bracket(const KnSdpParser *p)
{
    return kn_sdp_at(p, ",") || kn_sdp_at(p, ")");
}

KnCode kn_sdp_exprs(KnSdpParser *p, KnutNames *ret)
{
    KnSdpStrings exprs = {0};
    KnCode rc = kn_sdp_expect(p, "(");
    while (rc == KN_OK) {
        const char *text = NULL;
        rc = kn_sdp_expr(p, at_comma_or_bracket, "a column or a transform of one", &text);
        if (rc != KN_OK)
            break;
        KnStr word = kn_str(text);
        bool quoted =
            word.len > 2 && word.ptr[0] == '"' && !memchr(word.ptr + 1, '"', word.len - 2);
        if (quoted) /* a column between quotes is its name */
            text = kn_arena_strndup(p->arena, word.ptr + 1, word.len - 2);
        *kn_vec_push(&exprs) = text;
        if (!kn_sdp_accept(p, ","))
            break;
    }
    if (rc == KN_OK)
        rc = kn_sdp_expect(p, ")");
    *ret = kn_sdp_keep(p->arena, &exprs);
    return rc;
}

/* ---- pairs ---- */

typedef KN_VEC(KnutPair) Pairs;

KnCode kn_sdp_key(KnSdpParser *p, const char **ret)
{
    KN_BUF_AUTO key = {.max = MAX_NAME};
    if (p->tok.kind == KN_SDP_TEXT) { /* one: the next text is the value */
        KN_TRY(literal_part(p, &key));
        *ret = kn_arena_strndup(p->arena, key.data ? key.data : "", key.len);
        return KN_OK;
    }
    if (!kn_sdp_at_name(p))
        return kn_sdp_expected(p, "a property's key");
    do {
        const char *part = NULL;
        KN_TRY(kn_sdp_ident(p, &part));
        if (key.len > 0)
            kn_buf_char(&key, '.');
        kn_buf_text(&key, part);
    } while (kn_sdp_accept(p, "."));
    *ret = kn_arena_strndup(p->arena, key.data, key.len);
    return KN_OK;
}

static KnCode pair_value(KnSdpParser *p, const char **ret)
{
    if (p->tok.kind == KN_SDP_TEXT || p->tok.kind == KN_SDP_QUOTED)
        return kn_sdp_literal(p, "a value", ret);
    size_t at = p->tok.at;
    if (kn_sdp_at(p, "-"))
        kn_sdp_take(p);
    if (p->tok.kind != KN_SDP_NUMBER && (p->tok.kind != KN_SDP_WORD || at != p->tok.at))
        return kn_sdp_expected(p, "a property's value");
    *ret = kn_arena_strndup(p->arena, p->lex.text.ptr + at, p->tok.end - at);
    kn_sdp_take(p);
    return KN_OK;
}

static void put_pair(Pairs *pairs, KnutPair pair)
{
    size_t at = 0;
    while (at < pairs->len && strcmp(pairs->items[at].key, pair.key) < 0)
        at++;
    if (at < pairs->len && strcmp(pairs->items[at].key, pair.key) == 0) {
        pairs->items[at] = pair;
        return;
    }
    (void)kn_vec_push(pairs);
    memmove(&pairs->items[at + 1], &pairs->items[at], (pairs->len - 1 - at) * sizeof(pair));
    pairs->items[at] = pair;
}

static KnCode pairs_in(KnSdpParser *p, Pairs *pairs)
{
    KN_TRY(kn_sdp_expect(p, "("));
    while (!kn_sdp_at(p, ")")) {
        KnutPair pair = {0};
        KN_TRY(kn_sdp_key(p, &pair.key));
        if (!kn_sdp_accept(p, "=>"))
            (void)kn_sdp_accept(p, "=");
        KN_TRY(pair_value(p, &pair.value));
        put_pair(pairs, pair);
        if (!kn_sdp_accept(p, ","))
            break;
    }
    return kn_sdp_expect(p, ")");
}

KnCode kn_sdp_pairs(KnSdpParser *p, KnutPairs *ret)
{
    Pairs pairs = {0};
    KnCode rc = pairs_in(p, &pairs);
    if (rc == KN_OK && pairs.len > 0) {
        KnutPair *items = kn_arena_alloc(p->arena, pairs.len * sizeof(*items));
        memcpy(items, pairs.items, pairs.len * sizeof(*items));
        *ret = (KnutPairs){items, pairs.len};
    } else if (rc == KN_OK) {
        *ret = (KnutPairs){0};
    }
    kn_vec_done(&pairs);
    return rc;
}

/* ---- intervals ---- */

static const struct {
    const char *name; /* singular */
    uint64_t ms;
} units[] = {{"MILLISECOND", 1}, {"SECOND", 1000},  {"MINUTE", 60000},
             {"HOUR", 3600000},  {"DAY", 86400000}, {"WEEK", 604800000}};

static uint64_t unit_ms(KnStr word)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        KnStr unit = kn_str(units[i].name);
        KnStr stem = {word.ptr, word.len > 0 ? word.len - 1 : 0};
        bool plural = word.len > 0 && (word.ptr[word.len - 1] | 0x20) == 's';
        if (kn_str_eq_nocase(word, unit) || (plural && kn_str_eq_nocase(stem, unit)))
            return units[i].ms;
    }
    return 0;
}

/* "1.5" of a unit in milliseconds; false: no such number, a part of a millisecond, too much. */
static bool amount(KnStr number, uint64_t ms, uint64_t *sum)
{
    uint64_t value = 0, scale = 1;
    bool point = false, any = false;
    for (size_t i = 0; i < number.len; i++) {
        char c = number.ptr[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return false;
        any = true;
        if (point && __builtin_mul_overflow(scale, 10, &scale))
            return false;
    }
    return any && !__builtin_mul_overflow(value, ms, &value) && value % scale == 0 &&
           !__builtin_add_overflow(*sum, value / scale, sum);
}

bool kn_sdp_parse_interval(KnStr text, uint64_t *ret_ms)
{
    KnSdpLex lex = kn_sdp_lex(text);
    uint64_t sum = 0;
    KnSdpToken token = kn_sdp_next(&lex);
    if (kn_str_eq_nocase(kn_sdp_text(&lex, &token), KN_STR_LIT("INTERVAL")))
        token = kn_sdp_next(&lex);
    if (token.kind == KN_SDP_END)
        return false;
    while (token.kind == KN_SDP_NUMBER) {
        KnSdpToken unit = kn_sdp_next(&lex);
        uint64_t ms = unit.kind == KN_SDP_WORD ? unit_ms(kn_sdp_text(&lex, &unit)) : 0;
        if (ms == 0 || !amount(kn_sdp_text(&lex, &token), ms, &sum))
            return false;
        token = kn_sdp_next(&lex);
    }
    *ret_ms = sum;
    return token.kind == KN_SDP_END;
}

static KnCode interval_text(KnSdpParser *p, KnSdpToken first, const char *text, uint64_t *ret_ms)
{
    if (kn_sdp_parse_interval(kn_str(text), ret_ms))
        return KN_OK;
    return kn_sdp_fail(
        p, &first, "expected an interval like '10 seconds' (milliseconds to weeks), found '%.60s'",
        text);
}

/* '10' SECONDS, 10 SECONDS, again and again; after INTERVAL. */
static KnCode interval_parts(KnSdpParser *p, KnSdpToken first, uint64_t *ret_ms)
{
    KN_BUF_AUTO text = {.max = 1000};
    do {
        const char *number = NULL;
        if (p->tok.kind == KN_SDP_TEXT) {
            KN_TRY(kn_sdp_literal(p, "a number", &number));
            kn_buf_text(&text, number);
        } else if (p->tok.kind == KN_SDP_NUMBER) {
            kn_buf_str(&text, kn_sdp_here(p));
            kn_sdp_take(p);
        } else {
            return kn_sdp_expected(p, "a number of an interval");
        }
        kn_buf_char(&text, ' ');
        if (p->tok.kind == KN_SDP_WORD && unit_ms(kn_sdp_here(p)) != 0) {
            kn_buf_str(&text, kn_sdp_here(p));
            kn_sdp_take(p);
        } else if (!number) {
            return kn_sdp_expected(p, "a unit from MILLISECONDS to WEEKS");
        }
        kn_buf_char(&text, ' ');
    } while (p->tok.kind == KN_SDP_NUMBER);
    return interval_text(p, first, text.data, ret_ms);
}

KnCode kn_sdp_interval(KnSdpParser *p, uint64_t *ret_ms)
{
    KnSdpToken first = p->tok;
    const char *text = NULL;
    if (kn_sdp_accept(p, "INTERVAL"))
        return interval_parts(p, first, ret_ms);
    KN_TRY(kn_sdp_literal(p, "an interval", &text));
    return interval_text(p, first, text, ret_ms);
}

void kn_sdp_print_interval(KnBuf *out, uint64_t ms)
{
    size_t i = sizeof(units) / sizeof(*units) - 1;
    while (i > 0 && (ms == 0 || ms % units[i].ms != 0))
        i--;
    uint64_t n = ms / units[i].ms;
    kn_buf_printf(out, "%" PRIu64 " %s%s", n, units[i].name, n == 1 ? "" : "S");
}
