/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - STREAM and WATERMARK in a query.
 *
 *     STREAM(t) | STREAM t | STREAM(read_files('dir', format => 'csv')) | STREAM read_kafka(...)
 *     ... [WATERMARK column DELAY OF interval [IDLE AFTER interval]]     before or behind an alias
 *
 * STREAM is a word of FROM only: a column or an alias of that name stays what it is.
 */
#include "pipeline/sql/sql_internal.h"

/* A walk over the tokens of a query. */
typedef struct Walk {
    KnSdpParser *p;
    KnSdpQuery *query;
    size_t i;
    size_t depth;
    bool from[KN_SDP_MAX_DEPTH + 2]; /* inside FROM, by depth */
} Walk;

static const KnSdpToken *tok(const Walk *w, size_t ahead)
{
    static const KnSdpToken none = {.kind = KN_SDP_END};
    return w->i + ahead < w->query->tokens.len ? &w->query->tokens.items[w->i + ahead] : &none;
}

static bool is(const Walk *w, size_t ahead, const char *word)
{
    return kn_sdp_token_is(w->p, tok(w, ahead), word);
}

static bool is_name(const Walk *w, size_t ahead)
{
    return tok(w, ahead)->kind == KN_SDP_WORD || tok(w, ahead)->kind == KN_SDP_QUOTED;
}

/* The parser at a token of the query, to use its functions; the walk goes on behind. */
static KnSdpParser parser_at(Walk *w)
{
    KnSdpParser p = *w->p;
    const KnSdpToken *at = tok(w, 0);
    if (at->kind == KN_SDP_END)
        return p;
    p.lex.at = at->at;
    p.lex.query = false;
    p.tok = kn_sdp_next(&p.lex);
    return p;
}

static void walk_to(Walk *w, const KnSdpParser *p)
{
    while (w->i < w->query->tokens.len && w->query->tokens.items[w->i].at < p->tok.at)
        w->i++;
}

/* ---- sources that are calls ---- */

/* "orders" of "file:///in/orders.csv", "/in/orders/", "/in/orders/x*.csv". */
static const char *name_of_path(KnArena *arena, const char *path)
{
    KnStr rest = kn_str(path);
    for (;;) {
        while (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
            rest.len--;
        size_t at = rest.len;
        while (at > 0 && rest.ptr[at - 1] != '/')
            at--;
        KnStr last = {rest.ptr + at, rest.len - at};
        bool glob = false;
        size_t len = 0;
        for (size_t i = 0; i < last.len; i++) {
            glob = glob || strchr("*?[{", last.ptr[i]);
            if (len == i && last.ptr[i] != '.')
                len++;
        }
        if (!glob || at == 0)
            return kn_arena_strndup(arena, last.ptr, len > 0 ? len : last.len);
        rest.len = at;
    }
}

/* A name of one part, as names of reads are written. */
static const char *as_part(KnArena *arena, const char *name)
{
    KN_BUF_AUTO part = {.max = 2 * strlen(name) + 8};
    kn_sdp_name_part(&part, kn_str(name));
    return kn_arena_strndup(arena, part.data ? part.data : "", part.len);
}

static const char *name_of_table(KnArena *arena, const char *table)
{
    const char *dot = strrchr(table, '.');
    if (strchr(table, '/'))
        return name_of_path(arena, table);
    return dot ? dot + 1 : table;
}

const char *kn_sdp_source_name(KnArena *arena, const KnutSource *source)
{
    switch (source->tag) {
    case KNUT_SOURCE_CDC:
        return source->cdc.source;
    case KNUT_SOURCE_KAFKA:
        return as_part(arena, source->kafka.topic);
    case KNUT_SOURCE_BATCH:
        return as_part(arena, name_of_path(arena, source->batch.uri));
    case KNUT_SOURCE_FILE_DROP:
        return as_part(arena, name_of_path(arena, source->file_drop.dir));
    case KNUT_SOURCE_ICEBERG:
        return as_part(arena, name_of_table(arena, source->iceberg.table));
    }
    return "";
}

typedef struct Call {
    const char *function;
    KnSdpToken place;
    const char *first; /* the argument without a name */
    const char *bootstrap, *topic, *format;
    bool once;
} Call;

static KnCode named_argument(KnSdpParser *p, Call *call)
{
    static const struct {
        const char *name;
        size_t at;
    } names[] = {{"bootstrapServers", offsetof(Call, bootstrap)},
                 {"subscribe", offsetof(Call, topic)},
                 {"format", offsetof(Call, format)}};
    KnSdpToken at = p->tok;
    const char *name;
    KN_TRY(kn_sdp_ident(p, &name));
    KN_TRY(kn_sdp_expect(p, "=>"));
    if (kn_str_eq_nocase(kn_str(name), KN_STR_LIT("once"))) {
        call->once = kn_sdp_accept(p, "true");
        return call->once || kn_sdp_accept(p, "false") ? KN_OK
                                                       : kn_sdp_expected(p, "true or false");
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (kn_str_eq_nocase(kn_str(name), kn_str(names[i].name)))
            return kn_sdp_literal(p, "a text", (const char **)((char *)call + names[i].at));
    return kn_sdp_fail(p, &at,
                       "no argument '%.60s': expected format, once, bootstrapServers or "
                       "subscribe",
                       name);
}

static KnCode arguments(KnSdpParser *p, Call *call)
{
    KN_TRY(kn_sdp_expect(p, "("));
    while (!kn_sdp_at(p, ")")) {
        bool quoted = p->tok.kind == KN_SDP_QUOTED && kn_sdp_here(p).ptr[0] == '"';
        if ((p->tok.kind == KN_SDP_TEXT || quoted) && !call->first)
            KN_TRY(kn_sdp_literal(p, "a text", &call->first));
        else
            KN_TRY(named_argument(p, call));
        if (!kn_sdp_accept(p, ","))
            break;
    }
    return kn_sdp_expect(p, ")");
}

static KnCode source_of_files(KnSdpParser *p, const Call *call, KnutSource *ret)
{
    const char *format = call->format;
    const char *dot = call->first ? strrchr(call->first, '.') : NULL;
    if (!call->first)
        return kn_sdp_fail(p, &call->place,
                           "read_files needs a folder: read_files('/in', "
                           "format => 'csv')");
    if (!format && dot && !strchr(dot, '/'))
        format = dot + 1;
    if (!format)
        return kn_sdp_fail(p, &call->place,
                           "read_files needs format => 'csv' or the like where "
                           "no extension says it");
    if (call->once)
        *ret = (KnutSource){.tag = KNUT_SOURCE_BATCH, .batch = {call->first, format}};
    else
        *ret = (KnutSource){.tag = KNUT_SOURCE_FILE_DROP, .file_drop = {call->first, format}};
    return KN_OK;
}

static KnCode source_of_topic(KnSdpParser *p, const Call *call, KnutSource *ret)
{
    if (!call->bootstrap || !call->topic)
        return kn_sdp_fail(p, &call->place,
                           "read_kafka needs bootstrapServers => 'host:9092' and subscribe => "
                           "'topic'");
    *ret =
        (KnutSource){.tag = KNUT_SOURCE_KAFKA,
                     .kafka = {call->bootstrap, call->topic, call->format ? call->format : "json"}};
    return KN_OK;
}

static KnCode source_of_table(KnSdpParser *p, const Call *call, KnutSource *ret)
{
    if (!call->first)
        return kn_sdp_fail(p, &call->place,
                           "read_iceberg needs a table: "
                           "read_iceberg('namespace.table')");
    *ret = (KnutSource){.tag = KNUT_SOURCE_ICEBERG, .iceberg = {call->first}};
    return KN_OK;
}

/* At the bracket behind the function's name. */
static KnCode source_of_call(KnSdpParser *p, Call *call, KnutSource *ret)
{
    static const struct {
        const char *name;
        KnCode (*source)(KnSdpParser *p, const Call *call, KnutSource *ret);
    } functions[] = {{"read_files", source_of_files},
                     {"read_kafka", source_of_topic},
                     {"read_iceberg", source_of_table}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (kn_str_eq_nocase(kn_str(call->function), kn_str(functions[i].name))) {
            KN_TRY(arguments(p, call));
            return functions[i].source(p, call, ret);
        }
    return kn_sdp_fail(p, &call->place,
                       "expected STREAM of a name, read_files('dir'), read_kafka(...) or "
                       "read_iceberg('ns.table'), found '%.60s'",
                       call->function);
}

/* ---- STREAM ---- */

/* The stream of this source, made when it is new; the first is the flow's source. */
static KnSdpStream *stream_of(Walk *w, const KnSdpStream *stream)
{
    kn_vec_foreach (&w->query->streams, at)
        if (kn_str_eq_nocase(kn_str(at->name), kn_str(stream->name)))
            return at;
    KnSdpStream *added = kn_vec_push(&w->query->streams);
    *added = *stream;
    return added;
}

static void edit(Walk *w, size_t at, size_t end, const char *text)
{
    *kn_vec_push(&w->query->edits) = (KnSdpEdit){at, end, text};
}

static const char *in_query(KnArena *arena, const char *name)
{
    KN_BUF_AUTO out = {.max = 2 * strlen(name) + 8};
    kn_sdp_print_name(&out, name, '"');
    return kn_arena_strndup(arena, out.data ? out.data : "", out.len);
}

/* What is read, between STREAM [(] and [)]. */
static KnCode stream_target(Walk *w, KnSdpStream *stream, size_t start)
{
    KnSdpParser p = parser_at(w);
    bool bracket = kn_sdp_accept(&p, "(");
    KnSdpToken place = p.tok;
    const char *name;
    if (!kn_sdp_at_name(&p))
        return kn_sdp_expected(&p, "a name behind STREAM");
    KN_TRY(kn_sdp_name(&p, &name));
    size_t name_end = p.last_end;
    if (kn_sdp_at(&p, "(")) {
        Call call = {.function = name, .place = place};
        KN_TRY(source_of_call(&p, &call, &stream->source));
        stream->name = kn_sdp_source_name(w->p->arena, &stream->source);
        if (!*stream->name)
            return kn_sdp_fail(&p, &place, "a stream without a name: the path has no last part");
        if (bracket)
            KN_TRY(kn_sdp_expect(&p, ")"));
        edit(w, start, p.last_end, in_query(w->p->arena, stream->name));
    } else {
        stream->source = (KnutSource){.tag = KNUT_SOURCE_CDC, .cdc = {name}};
        stream->name = name;
        edit(w, start, place.at, "");
        if (bracket) {
            KN_TRY(kn_sdp_expect(&p, ")"));
            edit(w, name_end, p.last_end, "");
        }
    }
    walk_to(w, &p);
    return KN_OK;
}

/* Behind WATERMARK. */
static KnCode watermark(Walk *w, KnSdpStream *stream)
{
    KnSdpToken at = *tok(w, 0);
    size_t before = w->query->tokens.items[w->i - 1].end;
    KnutWatermark mark = {0};
    w->i++;
    KnSdpParser p = parser_at(w);
    KN_TRY(kn_sdp_ident(&p, &mark.event_time_column));
    KN_TRY(kn_sdp_expect(&p, "DELAY OF"));
    KN_TRY(kn_sdp_interval(&p, &mark.allowed_lateness_ms));
    if (kn_sdp_accept(&p, "IDLE AFTER"))
        KN_TRY(kn_sdp_interval(&p, &mark.idle_timeout_ms));
    if (stream->watermark)
        return kn_sdp_fail(&p, &at, "the stream '%.100s' has a second WATERMARK", stream->name);
    KnutWatermark *copy = kn_arena_alloc(w->p->arena, sizeof(*copy));
    *copy = mark;
    stream->watermark = copy;
    edit(w, before, p.last_end, "");
    walk_to(w, &p);
    return KN_OK;
}

/* An alias that WATERMARK follows: tokens of it, 0 = none. */
static size_t alias(const Walk *w)
{
    size_t n = is(w, 0, "AS") ? 1 : 0;
    return is_name(w, n) && !is(w, n, "WATERMARK") && is(w, n + 1, "WATERMARK") ? n + 1 : 0;
}

static KnCode stream(Walk *w)
{
    KnSdpStream stream = {.place = *tok(w, 0)};
    size_t start = stream.place.at;
    w->i++;
    KN_TRY(stream_target(w, &stream, start));
    KnSdpStream *known = stream_of(w, &stream);
    if (!is(w, 0, "WATERMARK"))
        w->i += alias(w);
    return is(w, 0, "WATERMARK") ? watermark(w, known) : KN_OK;
}

/* FROM begins where tables stand; these end it at their depth. */
static void follow_from(Walk *w)
{
    static const char *const ends[] = {"SELECT",    "WHERE",  "GROUP",   "HAVING",
                                       "ORDER",     "LIMIT",  "UNION",   "EXCEPT",
                                       "INTERSECT", "WINDOW", "QUALIFY", "WITH"};
    if (is(w, 0, "(") || is(w, 0, "[") || is(w, 0, "{")) {
        bool inside = w->from[w->depth];
        w->from[++w->depth] = inside;
    } else if ((is(w, 0, ")") || is(w, 0, "]") || is(w, 0, "}")) && w->depth > 0) {
        w->depth--;
    } else if (is(w, 0, "FROM")) {
        w->from[w->depth] = true;
    } else {
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            if (is(w, 0, ends[i]))
                w->from[w->depth] = false;
    }
}

/* Behind FROM, JOIN, a comma or a bracket of FROM, and before what it could be the stream of. */
static bool at_stream(const Walk *w)
{
    if (w->i == 0 || !w->from[w->depth] || !is(w, 0, "STREAM"))
        return false;
    const KnSdpToken *before = &w->query->tokens.items[w->i - 1];
    bool table = kn_sdp_token_is(w->p, before, "FROM") || kn_sdp_token_is(w->p, before, "JOIN") ||
                 kn_sdp_token_is(w->p, before, ",") || kn_sdp_token_is(w->p, before, "(");
    bool keyword = is(w, 1, "AS") || is(w, 1, "WHERE") || is(w, 1, "JOIN") || is(w, 1, "GROUP") ||
                   is(w, 1, "ORDER") || is(w, 1, "LIMIT") || is(w, 1, "ON") || is(w, 1, "USING") ||
                   is(w, 1, "INNER") || is(w, 1, "LEFT") || is(w, 1, "RIGHT") || is(w, 1, "FULL") ||
                   is(w, 1, "CROSS") || is(w, 1, "HAVING") || is(w, 1, "UNION");
    return table && (is(w, 1, "(") || (is_name(w, 1) && !keyword));
}

static bool at_watermark(const Walk *w)
{
    return is(w, 0, "WATERMARK") && is_name(w, 1) && is(w, 2, "DELAY") && is(w, 3, "OF");
}

KnCode kn_sdp_query_streams(KnSdpParser *p, KnSdpQuery *query)
{
    Walk w = {.p = p, .query = query};
    while (w.i < query->tokens.len) {
        if (at_stream(&w)) {
            KN_TRY(stream(&w));
            continue;
        }
        if (at_watermark(&w))
            return kn_sdp_fail(p, tok(&w, 0), "WATERMARK stands behind STREAM(...) only");
        follow_from(&w);
        w.i++;
    }
    return KN_OK;
}
