/* SPDX-License-Identifier: Apache-2.0 */
/* check_kind.c - what only streaming flows have, and what only cdc flows have. */
#include "pipeline/check/checker.h"

/* ---- streaming ---- */

static void check_source(const KnChecker *c, const KnutSource *source)
{
    size_t n;
    const KnIrField *fields = kn_ir_fields(&kn_ir_source, source, &n);
    for (size_t i = 0; i < n; i++) {
        const char *text = kn_ir_pointer(&fields[i], source);
        if (!text || !text[0])
            kn_breach(c, "empty-text", "the %s of its source is empty", fields[i].name);
    }
}

static void check_duration(const KnChecker *c, uint64_t ms, const char *what)
{
    if (ms > INT64_MAX)
        kn_breach(c, "huge-duration", "%s is more than 2^63 milliseconds", what);
}

static void check_watermark(const KnChecker *c, const KnutWatermark *watermark,
                            const KnutSchema *schema)
{
    static const char *const types[] = {"Timestamp(", "Int64", "Date32", "Date64"};
    if (!watermark)
        return;
    kn_check_given(c, watermark->event_time_column, "the event-time column");
    check_duration(c, watermark->allowed_lateness_ms, "the allowed lateness");
    check_duration(c, watermark->idle_timeout_ms, "the idle time-out");
    kn_check_column(c, schema, watermark->event_time_column, "the event-time column");
    const KnutSchemaField *field =
        schema ? kn_schema_find(schema, kn_str(watermark->event_time_column)) : NULL;
    for (size_t i = 0; field && i < sizeof(types) / sizeof(types[0]); i++)
        if (strncmp(field->arrow_type, types[i], strlen(types[i])) == 0)
            return;
    if (field)
        kn_breach(c, "bad-event-time",
                  "the event-time column `%.100s` is %.80s: expected a Timestamp, a date, or Int64 "
                  "(milliseconds)",
                  field->name, field->arrow_type);
}

static void check_size(const KnChecker *c, uint64_t ms, const char *what)
{
    if (ms == 0)
        kn_breach(c, "zero-window", "%s of its window is 0", what);
    check_duration(c, ms, what);
}

static void check_window(const KnChecker *c, const KnutStreaming *streaming)
{
    const KnutWindow *window = streaming->window;
    if (!window)
        return;
    if (!streaming->watermark)
        kn_breach(c, "window-without-watermark", "its windows never close: it has no watermark");
    if (window->tag == KNUT_WINDOW_TUMBLING) {
        check_size(c, window->tumbling.size_ms, "the size");
    } else if (window->tag == KNUT_WINDOW_SESSION) {
        check_size(c, window->session.gap_ms, "the gap");
    } else {
        check_size(c, window->hopping.size_ms, "the size");
        check_size(c, window->hopping.slide_ms, "the slide");
        if (window->hopping.slide_ms > window->hopping.size_ms)
            kn_breach(c, "slide-beyond-size",
                      "its window slides further than its size: rows between are in no window");
    }
}

static const KnutSchema *schema_of(const KnChecker *c, size_t place, const char *name)
{
    const KnGraphReads *reads = &c->graph->reads[place];
    for (size_t i = 0; name && i < reads->len; i++)
        if (strcmp(reads->items[i].name, name) == 0)
            return kn_read_schema(c, &reads->items[i]);
    return NULL;
}

static const char *source_name(const KnutSource *source)
{
    return source->tag == KNUT_SOURCE_CDC     ? source->cdc.source
           : source->tag == KNUT_SOURCE_KAFKA ? source->kafka.topic
                                              : NULL;
}

void kn_check_streaming(const KnChecker *c, const KnutFlow *flow, size_t place)
{
    const KnutStreaming *streaming = &flow->kind.streaming;
    const KnutSchema *schema = schema_of(c, place, source_name(&streaming->source));
    check_source(c, &streaming->source);
    check_watermark(c, streaming->watermark, schema);
    if (streaming->trigger.tag == KNUT_TRIGGER_PROCESSING_TIME)
        check_duration(c, streaming->trigger.processing_time.interval_ms,
                       "the interval of its trigger");
    check_window(c, streaming);
    for (size_t i = 0; i < streaming->streams.len; i++)
        check_watermark(c, streaming->streams.items[i].watermark,
                        schema_of(c, place, streaming->streams.items[i].name));
    kn_check_names(c, &streaming->deduplicate, "the columns to deduplicate by");
    if (streaming->deduplicate.len > 0 && !streaming->watermark)
        kn_breach(c, "deduplicate-without-watermark",
                  "all keys seen are kept for ever: it deduplicates and has no watermark");
}

/* ---- cdc ---- */

static bool has_name(const KnutNames *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++)
        if (kn_str_eq_nocase(kn_str(names->items[i]), kn_str(name)))
            return true;
    return false;
}

static void check_cdc_columns(const KnChecker *c, const KnutCdc *cdc)
{
    kn_check_names(c, &cdc->columns, "the columns");
    kn_check_names(c, &cdc->except_columns, "the excepted columns");
    if (cdc->columns.len > 0 && cdc->except_columns.len > 0)
        kn_breach(c, "cdc-columns", "columns are listed and excepted: one of both is meant");
    for (size_t i = 0; i < cdc->keys.len; i++)
        if (has_name(&cdc->except_columns, cdc->keys.items[i]) ||
            (cdc->columns.len > 0 && !has_name(&cdc->columns, cdc->keys.items[i])))
            kn_breach(c, "cdc-columns", "the key `%.100s` is not among the columns that are kept",
                      cdc->keys.items[i]);
    kn_check_names(c, &cdc->track_history, "the columns whose history is tracked");
    kn_check_names(c, &cdc->track_history_except, "the columns whose history is not tracked");
    bool tracked = cdc->track_history.len > 0 || cdc->track_history_except.len > 0;
    if (tracked && cdc->scd_type == KNUT_SCD_TYPE1)
        kn_breach(c, "cdc-history", "type1 keeps no history to track");
    if (cdc->track_history.len > 0 && cdc->track_history_except.len > 0)
        kn_breach(c, "cdc-history", "history is tracked by a list and by all but a list");
}

/* The next word of a query, quotes around it left out; an empty one at its end. */
static KnStr next_word(const char **at)
{
    *at += strspn(*at, " \t\r\n");
    bool quoted = **at == '"';
    *at += quoted;
    KnStr word = {*at, strcspn(*at, quoted ? "\"" : " \t\r\n;\"")};
    *at += word.len;
    *at += quoted && **at == '"';
    return word;
}

/* True for no query, and for `SELECT * FROM name`, which is what the SQL surface makes of one. */
static bool takes_all(const char *query, const char *name)
{
    static const char *const words[] = {"SELECT", "*", "FROM"};
    if (!query)
        return true;
    for (size_t i = 0; i < 3; i++)
        if (!kn_str_eq_nocase(next_word(&query), kn_str(words[i])))
            return false;
    return kn_str_eq_nocase(next_word(&query), kn_str(name)) &&
           query[strspn(query, " \t\r\n;")] == '\0';
}

/* Columns of the changes, where what is read declares them and no query changes them. */
static void check_changes(const KnChecker *c, const KnutFlow *flow, size_t place)
{
    const KnutCdc *cdc = &flow->kind.cdc;
    const KnGraphReads *reads = &c->graph->reads[place];
    bool all = reads->len == 1 && takes_all(flow->query, reads->items[0].name);
    const KnutSchema *schema = all ? kn_read_schema(c, &reads->items[0]) : NULL;
    bool plain = cdc->sequence_by[0] != '\0';
    for (const char *p = cdc->sequence_by; *p; p++)
        plain = plain && !strchr(" (),+*\"`", *p);
    for (size_t i = 0; i < cdc->keys.len; i++)
        kn_check_column(c, schema, cdc->keys.items[i], "the key");
    if (plain)
        kn_check_column(c, schema, cdc->sequence_by, "sequence_by");
    for (size_t i = 0; i < cdc->columns.len; i++)
        kn_check_column(c, schema, cdc->columns.items[i], "the column");
}

static bool same_keys(const KnutNames *a, const KnutNames *b)
{
    for (size_t i = 0; i < a->len; i++)
        if (!has_name(b, a->items[i]))
            return false;
    return a->len == b->len;
}

static void check_cdc_target(const KnChecker *c, const KnutFlow *flow, size_t target)
{
    if (target == KN_GRAPH_NONE)
        return;
    const KnutDataset *dataset = &c->pipeline->datasets.items[target];
    if (dataset->output_type == KNUT_OUTPUT_TEMPORARY_VIEW)
        kn_breach(c, "cdc-target", "its target is a temporary view, which keeps no rows to change");
    for (size_t i = 0; i < flow->kind.cdc.keys.len; i++)
        kn_check_column(c, &dataset->schema, flow->kind.cdc.keys.items[i], "the key");
    /* Against the first writer only: what differs from it is named once. */
    const KnutFlow *first = &c->pipeline->flows.items[c->graph->writers[target].items[0]];
    if (first->kind.tag != KNUT_FLOW_CDC)
        kn_breach(c, "cdc-target", "the flow `%.100s`, which is no cdc flow, writes its target too",
                  first->name);
    else if (!same_keys(&first->kind.cdc.keys, &flow->kind.cdc.keys))
        kn_breach(c, "cdc-keys", "its keys are not those of `%.100s`, which writes its target too",
                  first->name);
}

void kn_check_cdc(const KnChecker *c, const KnutFlow *flow, size_t place)
{
    const KnutCdc *cdc = &flow->kind.cdc;
    if (cdc->keys.len == 0)
        kn_breach(c, "cdc-keys", "it has no keys");
    kn_check_names(c, &cdc->keys, "the keys");
    kn_check_given(c, cdc->sequence_by, "sequence_by");
    if (cdc->apply_as_deletes)
        kn_check_given(c, cdc->apply_as_deletes, "apply_as_deletes");
    if (cdc->apply_as_truncates)
        kn_check_given(c, cdc->apply_as_truncates, "apply_as_truncates");
    check_cdc_columns(c, cdc);
    check_changes(c, flow, place);
    check_cdc_target(c, flow, c->graph->targets[place]);
}
