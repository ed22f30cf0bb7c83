/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.c - the SQL surface's reader: statements one after the other, and what they make.
 *
 * A statement that cannot be read ends at its `;` and the next ones are read all the same, so that
 * one go names all that is wrong: the first as the error, the others as notes.
 */
#include "pipeline/sql/sql_internal.h"
#include "pipeline/surface/surfaces.h"

#define MAX_SCRIPT   ((size_t)64 << 20)
#define MAX_FAILURES 50

/* ---- SET and USE ---- */

/* 'text', or what stands there up to the end of the statement. */
static KnCode set_value(KnSdpParser *p, const char **ret)
{
    if (p->tok.kind == KN_SDP_TEXT)
        return kn_sdp_literal(p, "a value", ret);
    size_t at = p->tok.at, end = at;
    while (!kn_sdp_at_end(p)) {
        if (p->tok.kind == KN_SDP_BAD)
            return kn_sdp_expected(p, "a value");
        end = p->tok.end;
        kn_sdp_take(p);
    }
    if (end == at)
        return kn_sdp_expected(p, "a value");
    *ret = kn_arena_strndup(p->arena, p->lex.text.ptr + at, end - at);
    return KN_OK;
}

static void add_property(KnSdpScript *s, KnutPair pair)
{
    KnutPairs *old = &s->builder->spec.properties;
    KnutPair *items = kn_arena_alloc(s->p.arena, (old->len + 1) * sizeof(*items));
    size_t n = 0, at = 0;
    while (at < old->len && strcmp(old->items[at].key, pair.key) < 0)
        items[n++] = old->items[at++];
    items[n++] = pair;
    if (at < old->len && strcmp(old->items[at].key, pair.key) == 0)
        at++;
    while (at < old->len)
        items[n++] = old->items[at++];
    *old = (KnutPairs){items, n};
}

static KnCode set_statement(KnSdpScript *s)
{
    KnutPair pair;
    KN_TRY(kn_sdp_key(&s->p, &pair.key));
    KN_TRY(kn_sdp_expect(&s->p, "="));
    KN_TRY(set_value(&s->p, &pair.value));
    if (strcmp(pair.key, "pipeline.name") == 0)
        s->builder->spec.name = pair.value;
    else if (strcmp(pair.key, "pipeline.storage") == 0)
        s->builder->spec.storage = pair.value;
    else
        add_property(s, pair);
    return KN_OK;
}

static KnCode use_statement(KnSdpScript *s)
{
    KnSdpToken at = s->p.tok;
    const char *name;
    bool catalog = kn_sdp_accept(&s->p, "CATALOG");
    if (!catalog && !kn_sdp_accept(&s->p, "DATABASE") && !kn_sdp_accept(&s->p, "SCHEMA"))
        (void)kn_sdp_accept(&s->p, "NAMESPACE");
    KN_TRY(kn_sdp_name(&s->p, &name));
    if (s->datasets.len > 0 || s->flows.len > 0)
        return kn_sdp_fail(&s->p, &at,
                           "USE holds for the whole pipeline: write it before the "
                           "first definition");
    if (catalog)
        s->builder->spec.default_catalog = name;
    else
        s->builder->spec.default_database = name;
    return KN_OK;
}

/* ---- statements ---- */

static KnCode create(KnSdpScript *s)
{
    static const struct {
        const char *words;
        KnSdpForm form;
    } kinds[] = {
        {"MATERIALIZED VIEW", KN_SDP_MATERIALIZED_VIEW},
        {"STREAMING TABLE", KN_SDP_STREAMING_TABLE},
        {"STREAMING LIVE TABLE", KN_SDP_STREAMING_TABLE},
        {"TEMPORARY VIEW", KN_SDP_VIEW},
        {"TEMP VIEW", KN_SDP_VIEW},
        {"VIEW", KN_SDP_VIEW},
        {"TABLE", KN_SDP_TABLE},
        {"SINK", KN_SDP_SINK},
        {"INPUT", KN_SDP_INPUT},
    };
    KnSdpParser *p = &s->p;
    if (kn_sdp_accept(p, "FLOW"))
        return kn_sdp_flow(s);
    if (kn_sdp_at(p, "OR") && !kn_sdp_accept(p, "OR REFRESH") && !kn_sdp_accept(p, "OR REPLACE")) {
        kn_sdp_take(p);
        return kn_sdp_expected(p, "REFRESH or REPLACE after CREATE OR");
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kn_sdp_accept(p, kinds[i].words))
            return kn_sdp_define(s, kinds[i].form);
    return kn_sdp_expected(p, "MATERIALIZED VIEW, STREAMING TABLE, TABLE, [TEMPORARY] VIEW, SINK, "
                              "INPUT or FLOW after CREATE");
}

static KnCode statement(KnSdpScript *s)
{
    KnSdpParser *p = &s->p;
    if (kn_sdp_at(p, "AUTO CDC") || kn_sdp_at(p, "APPLY CHANGES"))
        return kn_sdp_flow(s);
    if (kn_sdp_accept(p, "CREATE"))
        return create(s);
    if (kn_sdp_accept(p, "SET"))
        return set_statement(s);
    if (kn_sdp_accept(p, "USE"))
        return use_statement(s);
    return kn_sdp_expected(p, "a definition (CREATE ..., AUTO CDC INTO ...), SET or USE: a script "
                              "says what a pipeline is");
}

/* ---- the whole ---- */

typedef struct Failures {
    size_t n;
    KnErr first, last; /* last: where the parser writes, and note */
    KnNote note;
} Failures;

/* Counts what failed; the first is kept, the others become notes. */
static void note_failure(KnSdpScript *s, Failures *failures)
{
    if (failures->n++ == 0)
        failures->first = failures->last;
    else if (failures->n <= MAX_FAILURES)
        kn_notes_add(s->p.notes, failures->note.line, failures->note.column, "%s",
                     failures->note.text);
}

static void skip_statement(KnSdpParser *p)
{
    kn_sdp_speak(p, false);
    while (p->tok.kind != KN_SDP_END && !kn_sdp_at(p, ";"))
        kn_sdp_take(p);
}

static void statements(KnSdpScript *s, Failures *failures)
{
    KnSdpParser *p = &s->p;
    for (;;) {
        while (kn_sdp_accept(p, ";"))
            ;
        if (p->tok.kind == KN_SDP_END)
            return;
        KnCode rc = statement(s);
        if (rc == KN_OK && !kn_sdp_at_end(p))
            rc = kn_sdp_expected(p, "';'");
        if (rc != KN_OK) {
            note_failure(s, failures);
            skip_statement(p);
        }
    }
}

static void resolve(KnSdpScript *s, Failures *failures)
{
    for (size_t i = 0; i < s->datasets.len; i++) {
        if (kn_sdp_resolve_dataset(s, i) != KN_OK)
            note_failure(s, failures);
        (void)kn_pipeline_add_dataset(s->builder, &s->datasets.items[i].it);
    }
    for (size_t i = 0; i < s->flows.len; i++) {
        if (kn_sdp_resolve_flow(s, i) != KN_OK)
            note_failure(s, failures);
        (void)kn_pipeline_add_flow(s->builder, &s->flows.items[i].it);
    }
}

static void script_done(KnSdpScript *s)
{
    kn_vec_foreach (&s->flows, flow)
        kn_sdp_query_done(&flow->query);
    kn_vec_done(&s->flows);
    kn_vec_done(&s->datasets);
}

static KnCode check_text(const KnDocument *doc, KnErr *err)
{
    if (doc->text.len > MAX_SCRIPT)
        return kn_err_set(err, KN_E_CORRUPT, "%s: a script of more than 64 MiB", doc->origin);
    if (!kn_str_is_utf8(doc->text) ||
        (doc->text.len > 0 && memchr(doc->text.ptr, 0, doc->text.len)))
        return kn_err_set(err, KN_E_CORRUPT, "%s: is not UTF-8 text", doc->origin);
    return KN_OK;
}

KnCode kn_sdp_read(KnArena *arena, const KnDocument *doc, KnNotes *notes, const KnPipeline **ret,
                   KnErr *err)
{
    KN_TRY(check_text(doc, err));
    KnSdpScript s = {.p = {.arena = arena,
                           .origin = doc->origin,
                           .session = doc->session,
                           .notes = notes,
                           .lex = kn_sdp_lex(doc->text)},
                     .builder = kn_pipeline_builder_new(arena, doc->name ? doc->name : "pipeline")};
    Failures failures = {0};
    s.p.err = &failures.last;
    s.p.failure = &failures.note;
    kn_sdp_take(&s.p);
    statements(&s, &failures);
    if (failures.n == 0) /* else what is missing may be what failed */
        resolve(&s, &failures);
    script_done(&s);
    if (failures.n > 0) {
        KnCode rc = failures.first.code;
        if (err)
            *err = failures.first;
        return rc;
    }
    *ret = &s.builder->spec;
    return KN_OK;
}

static KnCode read_sql(KnArena *arena, const KnDocument *doc, KnNotes *notes,
                       const KnPipeline **ret, KnErr *err)
{
    if (!doc->session)
        return kn_err_set(err, KN_E_INVAL, "%s: SQL is read with an engine", doc->origin);
    return kn_sdp_read(arena, doc, notes, ret, err);
}

const KnSurface kn_surface_sql = {.name = "sql",
                                  .extensions = "sql",
                                  .needs_engine = true,
                                  .read = read_sql,
                                  .write = kn_sdp_write};
