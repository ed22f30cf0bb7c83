/* SPDX-License-Identifier: Apache-2.0 */
/* write_flow.c - flows and their queries as SQL. */
#include <stdlib.h>

#include "pipeline/sql/write_internal.h"

void kn_sdp_write_text(KnBuf *out, const char *text)
{
    kn_buf_char(out, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\')
            kn_buf_char(out, *c);
        kn_buf_char(out, *c);
    }
    kn_buf_char(out, '\'');
}

void kn_sdp_write_names(KnBuf *out, KnutNames names)
{
    kn_buf_char(out, '(');
    for (size_t i = 0; i < names.len; i++) {
        kn_buf_text(out, i > 0 ? ", " : "");
        kn_sdp_print_name(out, names.items[i], '`');
    }
    kn_buf_char(out, ')');
}

/* A token of the engine; names between double quotes get backticks. */
static void write_token(KnBuf *out, KnStr token, bool quoted)
{
    if (!quoted || token.ptr[0] != '"') {
        kn_buf_str(out, token);
        return;
    }
    KN_BUF_AUTO name = {.max = token.len + 1};
    kn_sdp_unquote_name(&name, token);
    kn_buf_char(out, '`');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '`')
            kn_buf_char(out, '`');
        kn_buf_char(out, name.data[i]);
    }
    kn_buf_char(out, '`');
}

void kn_sdp_write_engine(KnBuf *out, const char *text)
{
    KnSdpLex lex = {.text = kn_str(text), .query = true};
    for (size_t from = 0;;) {
        KnSdpToken token = kn_sdp_next(&lex);
        kn_buf_append(out, text + from, token.at - from);
        from = token.end;
        if (token.kind == KN_SDP_END)
            return;
        write_token(out, kn_sdp_text(&lex, &token), token.kind == KN_SDP_QUOTED);
    }
}

void kn_sdp_write_expectation(KnBuf *out, const KnutExpectation *expectation)
{
    static const char *const actions[] = {"", " ON VIOLATION DROP ROW",
                                          " ON VIOLATION FAIL UPDATE"};
    kn_buf_text(out, "CONSTRAINT ");
    kn_sdp_print_name(out, expectation->name, '`');
    kn_buf_text(out, " EXPECT (");
    kn_sdp_write_engine(out, expectation->constraint);
    kn_buf_char(out, ')');
    kn_buf_text(out, actions[expectation->on_violation]);
}

void kn_sdp_write_settings(KnSdpWriter *w, const KnutFlow *flow)
{
    static const char *const modes[] = {"", "\nOUTPUT MODE UPDATE", "\nOUTPUT MODE COMPLETE"};
    const KnutStreaming *it = &flow->kind.streaming;
    if (flow->kind.tag != KNUT_FLOW_STREAMING)
        return;
    if (it->trigger.tag == KNUT_TRIGGER_AVAILABLE_NOW)
        kn_buf_text(w->out, "\nTRIGGER AVAILABLE NOW");
    if (it->trigger.tag == KNUT_TRIGGER_PROCESSING_TIME) {
        kn_buf_text(w->out, "\nTRIGGER EVERY INTERVAL ");
        kn_sdp_print_interval(w->out, it->trigger.processing_time.interval_ms);
    }
    kn_buf_text(w->out, modes[it->output_mode]);
    if (it->deduplicate.len > 0) {
        kn_buf_text(w->out, "\nDEDUPLICATE BY ");
        kn_sdp_write_names(w->out, it->deduplicate);
    }
}

/* ---- queries ---- */

static void write_call(KnBuf *out, const KnutSource *source)
{
    switch (source->tag) {
    case KNUT_SOURCE_CDC:
        return;
    case KNUT_SOURCE_KAFKA:
        kn_buf_text(out, "read_kafka(bootstrapServers => ");
        kn_sdp_write_text(out, source->kafka.bootstrap);
        kn_buf_text(out, ", subscribe => ");
        kn_sdp_write_text(out, source->kafka.topic);
        kn_buf_text(out, ", format => ");
        kn_sdp_write_text(out, source->kafka.format);
        break;
    case KNUT_SOURCE_BATCH:
    case KNUT_SOURCE_FILE_DROP: {
        bool once = source->tag == KNUT_SOURCE_BATCH;
        kn_buf_text(out, "read_files(");
        kn_sdp_write_text(out, once ? source->batch.uri : source->file_drop.dir);
        kn_buf_text(out, ", format => ");
        kn_sdp_write_text(out, once ? source->batch.format : source->file_drop.format);
        kn_buf_text(out, once ? ", once => true" : "");
        break;
    }
    case KNUT_SOURCE_ICEBERG:
        kn_buf_text(out, "read_iceberg(");
        kn_sdp_write_text(out, source->iceberg.table);
        break;
    }
    kn_buf_char(out, ')');
}

static void write_watermark(KnBuf *out, const KnutWatermark *mark)
{
    kn_buf_text(out, " WATERMARK ");
    kn_sdp_print_name(out, mark->event_time_column, '`');
    kn_buf_text(out, " DELAY OF INTERVAL ");
    kn_sdp_print_interval(out, mark->allowed_lateness_ms);
    if (mark->idle_timeout_ms > 0) {
        kn_buf_text(out, " IDLE AFTER INTERVAL ");
        kn_sdp_print_interval(out, mark->idle_timeout_ms);
    }
}

static void write_window(KnBuf *out, const KnutStreaming *it)
{
    const KnutWindow *window = it->window;
    bool session = window->tag == KNUT_WINDOW_SESSION;
    uint64_t size = session                              ? window->session.gap_ms
                    : window->tag == KNUT_WINDOW_HOPPING ? window->hopping.size_ms
                                                         : window->tumbling.size_ms;
    kn_buf_text(out, session ? "session_window(" : "window(");
    kn_sdp_print_name(out, it->watermark->event_time_column, '`');
    kn_buf_text(out, ", '");
    kn_sdp_print_interval(out, size);
    if (window->tag == KNUT_WINDOW_HOPPING) {
        kn_buf_text(out, "', '");
        kn_sdp_print_interval(out, window->hopping.slide_ms);
    }
    kn_buf_text(out, "')");
}

/* What a name in the query is to the flow. */
typedef struct Mark {
    size_t at, end; /* bytes of the query; end 0 = none */
    const KnutSource *call;
    const KnutWatermark *watermark;
} Mark;

typedef struct QueryWriter {
    KnSdpWriter *w;
    const KnutFlow *flow;
    KN_VEC(Mark) marks; /* by place */
    size_t group;       /* the byte at which the window goes in */
    bool has_group;     /* behind a GROUP BY that is there */
} QueryWriter;

/* The end of the dotted name at a byte of the query. */
static size_t name_end(const char *query, size_t at)
{
    KnSdpLex lex = {.text = kn_str(query), .at = at, .query = true};
    size_t end = at;
    for (;;) {
        KnSdpToken part = kn_sdp_next(&lex);
        if (part.kind != KN_SDP_WORD && part.kind != KN_SDP_QUOTED)
            return 0;
        end = part.end;
        KnSdpLex ahead = lex;
        KnSdpToken dot = kn_sdp_next(&ahead);
        if (dot.kind != KN_SDP_SIGN || query[dot.at] != '.')
            return end;
        lex = ahead;
    }
}

/* The stream that table is, with a watermark the first time it comes. */
static bool stream_at(QueryWriter *q, const KnSdpTable *table, bool *seen, Mark *ret)
{
    const KnutStreaming *it = &q->flow->kind.streaming;
    KnStr name = kn_str(table->name);
    bool outside = it->source.tag != KNUT_SOURCE_CDC;
    const char *source = kn_sdp_source_name(q->w->arena, &it->source);
    *ret = (Mark){.at = table->at, .end = name_end(q->flow->query, table->at)};
    if (kn_str_eq_nocase(name, kn_str(source))) {
        ret->call = outside ? &it->source : NULL;
        ret->watermark = seen[0] ? NULL : it->watermark;
        seen[0] = true;
        return ret->end > 0;
    }
    for (size_t i = 0; i < it->streams.len; i++)
        if (kn_str_eq_nocase(name, kn_str(it->streams.items[i].name))) {
            ret->watermark = seen[i + 1] ? NULL : it->streams.items[i].watermark;
            seen[i + 1] = true;
            return ret->end > 0;
        }
    return false;
}

static int by_place(const void *a, const void *b)
{
    const KnSdpTable *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void find_streams(QueryWriter *q)
{
    KnSdpTables tables = {0};
    size_t at;
    bool *seen = kn_arena_zalloc(q->w->arena, q->flow->kind.streaming.streams.len + 1);
    KN_IGNORE(kn_sdp_tables(q->w->arena, q->w->session, q->flow->query, &tables, &at,
                            NULL)); /* lower.c has told */
    if (tables.len > 0)
        qsort(tables.items, tables.len, sizeof(KnSdpTable), by_place);
    kn_vec_foreach (&tables, table) {
        Mark mark;
        if (stream_at(q, table, seen, &mark))
            *kn_vec_push(&q->marks) = mark;
    }
    kn_vec_done(&tables);
}

static bool is_one_of(const KnSdpLex *lex, const KnSdpToken *token, const char *const *words)
{
    for (; token->kind == KN_SDP_WORD && *words; words++)
        if (kn_str_eq_nocase(kn_sdp_text(lex, token), kn_str(*words)))
            return true;
    return false;
}

/* Behind GROUP BY of the query itself, or where one would be. */
static void find_group(QueryWriter *q)
{
    static const char *const ends[] = {"HAVING", "ORDER",  "LIMIT",     "OFFSET", "QUALIFY",
                                       "UNION",  "EXCEPT", "INTERSECT", "WINDOW", NULL};
    static const char *const group[] = {"GROUP", NULL}, *const from[] = {"FROM", NULL};
    KnSdpLex lex = {.text = kn_str(q->flow->query), .query = true};
    size_t depth = 0, last_end = 0;
    bool in_from = false;
    for (KnSdpToken token = kn_sdp_next(&lex); token.kind != KN_SDP_END;
         last_end = token.end, token = kn_sdp_next(&lex)) {
        char c = lex.text.ptr[token.at];
        if (token.kind == KN_SDP_SIGN && strchr("([{", c))
            depth++;
        if (token.kind == KN_SDP_SIGN && strchr(")]}", c) && depth > 0)
            depth--;
        if (depth > 0)
            continue;
        in_from = in_from || is_one_of(&lex, &token, from);
        if (is_one_of(&lex, &token, group)) {
            (void)kn_sdp_next(&lex); /* BY */
            q->group = kn_sdp_next(&lex).at;
            q->has_group = true;
            return;
        }
        if (in_from && is_one_of(&lex, &token, ends))
            break;
    }
    q->group = last_end;
}

static void write_marks(QueryWriter *q, size_t *from, size_t to)
{
    const char *query = q->flow->query;
    KnBuf *out = q->w->out;
    kn_vec_foreach (&q->marks, mark) {
        if (mark->at < *from || mark->at >= to)
            continue;
        KN_BUF_AUTO part = {.max = mark->end + 1};
        kn_buf_append(&part, query + *from, mark->at - *from);
        kn_sdp_write_engine(out, part.data ? part.data : "");
        kn_buf_text(out, "STREAM(");
        kn_buf_reset(&part);
        kn_buf_append(&part, query + mark->at, mark->end - mark->at);
        if (mark->call)
            write_call(out, mark->call);
        else
            kn_sdp_write_engine(out, part.data);
        kn_buf_char(out, ')');
        if (mark->watermark)
            write_watermark(out, mark->watermark);
        *from = mark->end;
    }
    KN_BUF_AUTO rest = {.max = strlen(query) + 1};
    kn_buf_append(&rest, query + *from, to - *from);
    kn_sdp_write_engine(out, rest.data ? rest.data : "");
    *from = to;
}

void kn_sdp_write_query(KnSdpWriter *w, const KnutFlow *flow)
{
    QueryWriter q = {.w = w, .flow = flow};
    size_t from = 0;
    if (flow->kind.tag == KNUT_FLOW_STREAMING) {
        find_streams(&q);
        if (flow->kind.streaming.window) {
            find_group(&q);
            write_marks(&q, &from, q.group);
            kn_buf_text(w->out, q.has_group ? "" : " GROUP BY ");
            write_window(w->out, &flow->kind.streaming);
            kn_buf_text(w->out, q.has_group ? ", " : "");
        }
    }
    write_marks(&q, &from, strlen(flow->query));
    kn_vec_done(&q.marks);
}

/* ---- flows ---- */

static void write_columns(KnBuf *out, const char *words, KnutNames columns, KnutNames except)
{
    if (columns.len == 0 && except.len == 0)
        return;
    kn_buf_printf(out, "\n%s ", words);
    kn_buf_text(out, columns.len > 0 ? "" : "* EXCEPT ");
    kn_sdp_write_names(out, columns.len > 0 ? columns : except);
}

/* STREAM(t) where the query is SELECT * FROM t, else the query. */
static void write_changes(KnSdpWriter *w, const KnutFlow *flow)
{
    KN_BUF_AUTO plain = {.max = strlen(flow->query) + 1000};
    if (flow->reads.len == 1) {
        kn_buf_text(&plain, "SELECT * FROM ");
        kn_sdp_print_name(&plain, flow->reads.items[0], '"');
    }
    if (plain.data && strcmp(plain.data, flow->query) == 0) {
        kn_buf_text(w->out, "STREAM(");
        kn_sdp_print_name(w->out, flow->reads.items[0], '`');
    } else {
        kn_buf_text(w->out, "(");
        kn_sdp_write_query(w, flow);
    }
    kn_buf_text(w->out, ")");
}

static void write_condition(KnBuf *out, const char *words, const char *condition)
{
    if (!condition)
        return;
    kn_buf_printf(out, "\n%s ", words);
    kn_sdp_write_engine(out, condition);
}

static void write_cdc(KnSdpWriter *w, const KnutFlow *flow)
{
    const KnutCdc *cdc = &flow->kind.cdc;
    KnBuf *out = w->out;
    kn_buf_printf(out, "\nAS AUTO CDC %sINTO ", flow->once ? "ONCE " : "");
    kn_sdp_print_name(out, flow->target, '`');
    kn_buf_text(out, "\nFROM ");
    write_changes(w, flow);
    kn_buf_text(out, "\nKEYS ");
    kn_sdp_write_names(out, cdc->keys);
    kn_buf_text(out, cdc->ignore_null_updates ? "\nIGNORE NULL UPDATES" : "");
    write_condition(out, "APPLY AS DELETE WHEN", cdc->apply_as_deletes);
    write_condition(out, "APPLY AS TRUNCATE WHEN", cdc->apply_as_truncates);
    write_condition(out, "SEQUENCE BY", cdc->sequence_by);
    write_columns(out, "COLUMNS", cdc->columns, cdc->except_columns);
    kn_buf_text(out, cdc->scd_type == KNUT_SCD_TYPE2 ? "\nSTORED AS SCD TYPE 2"
                                                     : "\nSTORED AS SCD TYPE 1");
    write_columns(out, "TRACK HISTORY ON", cdc->track_history, cdc->track_history_except);
}

void kn_sdp_write_flow(KnSdpWriter *w, const KnutFlow *flow)
{
    KnBuf *out = w->out;
    kn_buf_text(out, "\nCREATE FLOW ");
    kn_sdp_print_name(out, flow->name, '`');
    for (size_t i = 0; i < flow->expectations.len; i++) {
        kn_buf_text(out, i == 0 ? " (\n  " : ",\n  ");
        kn_sdp_write_expectation(out, &flow->expectations.items[i]);
    }
    kn_buf_text(out, flow->expectations.len > 0 ? "\n)" : "");
    if (flow->comment) {
        kn_buf_text(out, "\nCOMMENT ");
        kn_sdp_write_text(out, flow->comment);
    }
    kn_sdp_write_settings(w, flow);
    if (flow->kind.tag == KNUT_FLOW_CDC) {
        write_cdc(w, flow);
    } else {
        kn_buf_printf(out, "\nAS INSERT INTO %s", flow->once ? "ONCE " : "");
        kn_sdp_print_name(out, flow->target, '`');
        kn_buf_text(out, " BY NAME\n");
        kn_sdp_write_query(w, flow);
    }
    kn_buf_text(out, ";\n");
}
