/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - the SQL surface's writer: settings, inputs, datasets with the flow that is theirs,
 * other flows where their turn comes, so that a reader finds the lists in the same order.
 */
#include "engine/engine.h"
#include "pipeline/sql/write_internal.h"

static void write_head(KnSdpWriter *w)
{
    const KnPipeline *p = w->p;
    kn_buf_text(w->out, "SET pipeline.name = ");
    kn_sdp_write_text(w->out, p->name);
    kn_buf_text(w->out, ";\n");
    if (p->storage) {
        kn_buf_text(w->out, "SET pipeline.storage = ");
        kn_sdp_write_text(w->out, p->storage);
        kn_buf_text(w->out, ";\n");
    }
    for (size_t i = 0; i < p->properties.len; i++) {
        kn_buf_text(w->out, "SET ");
        kn_sdp_write_text(w->out, p->properties.items[i].key);
        kn_buf_text(w->out, " = ");
        kn_sdp_write_text(w->out, p->properties.items[i].value);
        kn_buf_text(w->out, ";\n");
    }
    if (p->default_catalog) {
        kn_buf_text(w->out, "USE CATALOG ");
        kn_sdp_print_name(w->out, p->default_catalog, '`');
        kn_buf_text(w->out, ";\n");
    }
    if (p->default_database) {
        kn_buf_text(w->out, "USE DATABASE ");
        kn_sdp_print_name(w->out, p->default_database, '`');
        kn_buf_text(w->out, ";\n");
    }
}

/* Begins the list's next item: the bracket or a comma. */
static void next_item(KnBuf *out, size_t *n)
{
    kn_buf_text(out, (*n)++ == 0 ? " (\n  " : ",\n  ");
}

static void write_schema(KnBuf *out, KnutSchema schema, size_t *n)
{
    for (size_t i = 0; i < schema.len; i++) {
        const KnutSchemaField *field = &schema.items[i];
        next_item(out, n);
        KN_BUF_AUTO name = {.max = 4 * strlen(field->name) + 16};
        kn_sdp_name_part(&name, kn_str(field->name)); /* one part, whatever is in it */
        kn_sdp_print_name(out, name.data ? name.data : "", '`');
        kn_buf_char(out, ' ');
        (void)kn_sdp_print_type(out, kn_str(field->arrow_type), 0); /* lower.c left those it can */
        kn_buf_text(out, field->nullable ? "" : " NOT NULL");
        if (field->comment) {
            kn_buf_text(out, " COMMENT ");
            kn_sdp_write_text(out, field->comment);
        }
    }
}

static void write_pairs(KnBuf *out, const char *words, KnutPairs pairs)
{
    for (size_t i = 0; i < pairs.len; i++) {
        kn_buf_printf(out, i == 0 ? "\n%s (" : ", ", words);
        kn_sdp_write_text(out, pairs.items[i].key);
        kn_buf_text(out, " = ");
        kn_sdp_write_text(out, pairs.items[i].value);
    }
    kn_buf_text(out, pairs.len > 0 ? ")" : "");
}

static void write_text_clause(KnBuf *out, const char *words, const char *text)
{
    if (!text)
        return;
    kn_buf_printf(out, "\n%s ", words);
    kn_sdp_write_text(out, text);
}

/* Columns by name, transforms as they are. */
static void write_partition(KnBuf *out, KnutNames columns)
{
    for (size_t i = 0; i < columns.len; i++) {
        const char *column = columns.items[i];
        kn_buf_text(out, i == 0 ? "\nPARTITIONED BY (" : ", ");
        if (strchr(column, '('))
            kn_sdp_write_engine(out, column);
        else
            kn_sdp_print_name(out, column, '`');
    }
    kn_buf_text(out, columns.len > 0 ? ")" : "");
}

static void write_format(KnBuf *out, const char *format)
{
    if (!format)
        return;
    kn_buf_text(out, "\nUSING ");
    kn_sdp_print_name(out, format, '`');
}

static void write_input(KnSdpWriter *w, const KnutInput *input)
{
    KnBuf *out = w->out;
    size_t n = 0;
    kn_buf_text(out, "\nCREATE INPUT ");
    kn_sdp_print_name(out, input->name, '`');
    write_schema(out, input->schema, &n);
    kn_buf_text(out, n > 0 ? "\n)" : "");
    write_format(out, input->format);
    write_partition(out, input->partition_cols);
    write_text_clause(out, "LOCATION", input->path);
    write_pairs(out, "OPTIONS", input->options);
    write_text_clause(out, "COMMENT", input->comment);
    kn_buf_text(out, ";\n");
}

/* The part of a definition before AS. */
static void write_header(KnSdpWriter *w, const KnutDataset *d, const KnutFlow *own)
{
    static const char *const kinds[] = {
        "MATERIALIZED VIEW", "STREAMING TABLE", "TABLE", "TEMPORARY VIEW", "SINK", "INPUT"};
    KnutExpectations expectations = own ? own->expectations : d->expectations;
    KnBuf *out = w->out;
    size_t n = 0;
    kn_buf_printf(out, "\nCREATE %s ", kinds[kn_sdp_form_of(w->p, d)]);
    kn_sdp_print_name(out, d->name, '`');
    write_schema(out, d->schema, &n);
    for (size_t i = 0; i < expectations.len; i++) {
        next_item(out, &n);
        kn_sdp_write_expectation(out, &expectations.items[i]);
    }
    if (d->keys.len > 0) {
        next_item(out, &n);
        kn_buf_text(out, "PRIMARY KEY ");
        kn_sdp_write_names(out, d->keys);
    }
    kn_buf_text(out, n > 0 ? "\n)" : "");
}

static void write_dataset(KnSdpWriter *w, const KnutDataset *d, const KnutFlow *own)
{
    KnBuf *out = w->out;
    write_header(w, d, own);
    write_format(out, d->format);
    write_partition(out, d->partition_cols);
    if (d->cluster_by.len > 0) {
        kn_buf_text(out, "\nCLUSTER BY ");
        kn_sdp_write_names(out, d->cluster_by);
    }
    write_text_clause(out, "LOCATION", d->path);
    write_text_clause(out, "COMMENT", d->comment);
    write_pairs(out, "TBLPROPERTIES", d->properties);
    kn_buf_text(out, d->write_mode == KNUT_WRITE_OVERWRITE ? "\nWRITE MODE OVERWRITE" : "");
    kn_buf_text(out, d->materialization == KNUT_MATERIALIZATION_INCREMENTAL
                         ? "\nREFRESH POLICY INCREMENTAL"
                         : "");
    if (own) {
        kn_sdp_write_settings(w, own);
        kn_buf_text(out, "\nAS ");
        kn_sdp_write_query(w, own);
    }
    kn_buf_text(out, ";\n");
}

/* ---- order ---- */

/* Can the dataset's definition hold the flow as its own query? */
static bool is_own(const KnutDataset *d, const KnutFlow *flow)
{
    return strcmp(flow->target, d->name) == 0 && strncmp(flow->name, "f_", 2) == 0 &&
           strcmp(flow->name + 2, d->name) == 0 && flow->kind.tag != KNUT_FLOW_CDC &&
           !flow->comment && !flow->once && d->expectations.len == 0;
}

/* Is there a dataset from i on whose own query the flow is? */
static bool is_own_later(const KnPipeline *p, size_t i, const KnutFlow *flow)
{
    for (; i < p->datasets.len; i++)
        if (is_own(&p->datasets.items[i], flow))
            return true;
    return false;
}

/* Is the flow's target defined before dataset i (or nowhere)? Then its turn has come. */
static bool has_definition(const KnPipeline *p, size_t i, const KnutFlow *flow)
{
    for (; i < p->datasets.len; i++)
        if (strcmp(p->datasets.items[i].name, flow->target) == 0)
            return false;
    return true;
}

static void write_definitions(KnSdpWriter *w)
{
    const KnPipeline *p = w->p;
    size_t next = 0; /* flow that is to be written */
    for (size_t i = 0; i < p->inputs.len; i++)
        write_input(w, &p->inputs.items[i]);
    for (size_t i = 0; i < p->datasets.len; i++) {
        const KnutDataset *d = &p->datasets.items[i];
        while (next < p->flows.len && !is_own_later(p, i, &p->flows.items[next]) &&
               has_definition(p, i, &p->flows.items[next]))
            kn_sdp_write_flow(w, &p->flows.items[next++]);
        bool own = next < p->flows.len && is_own(d, &p->flows.items[next]);
        write_dataset(w, d, own ? &p->flows.items[next] : NULL);
        next += own;
    }
    while (next < p->flows.len)
        kn_sdp_write_flow(w, &p->flows.items[next++]);
}

/* ---- proof ---- */

static void differs(KnSdpWriter *w, const char *what, const char *name, const KnBuf *why)
{
    kn_notes_add(w->notes, 0, 0, "%s '%.100s': SQL reads back otherwise: %.300s", what, name,
                 why->data ? why->data : "");
}

static void compare_head(KnSdpWriter *w, const KnPipeline *back)
{
    KnPipeline a = *w->p, b = *back;
    KN_BUF_AUTO why = {.max = 4096};
    a.datasets = b.datasets = (KnutDatasets){0};
    a.flows = b.flows = (KnutFlows){0};
    a.inputs = b.inputs = (KnutInputs){0};
    if (!kn_pipeline_equal(&a, &b, &why))
        differs(w, "pipeline", a.name, &why);
}

static void compare(KnSdpWriter *w, const KnPipeline *back)
{
    const KnPipeline *p = w->p;
    KN_BUF_AUTO why = {.max = 4096};
    compare_head(w, back);
    if (back->datasets.len != p->datasets.len || back->flows.len != p->flows.len ||
        back->inputs.len != p->inputs.len) {
        kn_buf_printf(&why, "%zu datasets, %zu flows and %zu inputs", back->datasets.len,
                      back->flows.len, back->inputs.len);
        differs(w, "pipeline", p->name, &why);
        return;
    }
    for (size_t i = 0; i < p->inputs.len; i++, kn_buf_reset(&why))
        if (!kn_ir_equal(&kn_ir_input, &p->inputs.items[i], &back->inputs.items[i], &why))
            differs(w, "input", p->inputs.items[i].name, &why);
    for (size_t i = 0; i < p->datasets.len; i++, kn_buf_reset(&why))
        if (!kn_ir_equal(&kn_ir_dataset, &p->datasets.items[i], &back->datasets.items[i], &why))
            differs(w, "dataset", p->datasets.items[i].name, &why);
    for (size_t i = 0; i < p->flows.len; i++, kn_buf_reset(&why))
        if (!kn_ir_equal(&kn_ir_flow, &p->flows.items[i], &back->flows.items[i], &why))
            differs(w, "flow", p->flows.items[i].name, &why);
}

static void prove(KnSdpWriter *w)
{
    KN_NOTES_AUTO notes = {.arena = w->arena};
    KnErr err = {0};
    const KnPipeline *back;
    KnDocument doc = {.text = {w->out->data, w->out->len},
                      .origin = "written",
                      .name = "",
                      .session = w->session};
    if (kn_sdp_read(w->arena, &doc, &notes, &back, &err) == KN_OK)
        compare(w, back);
    else
        kn_notes_add(w->notes, 0, 0, "the script cannot be read back: %.400s", err.msg);
}

KnCode kn_sdp_write(const KnPipeline *pipeline, KnSession *session, KnBuf *out, KnNotes *notes,
                    KnErr *err)
{
    if (!session)
        return kn_err_set(err, KN_E_INVAL, "SQL is written with an engine");
    KN_ARENA_AUTO arena = kn_arena_new((size_t)64 << 10);
    KN_BUF_AUTO text = {.max = (size_t)64 << 20};
    KnSdpWriter w = {.arena = arena,
                     .session = session,
                     .notes = notes,
                     .p = kn_pipeline_copy(arena, pipeline),
                     .out = &text};
    kn_sdp_lower(&w);
    write_head(&w);
    write_definitions(&w);
    KN_TRY(kn_buf_check(&text, err));
    prove(&w);
    kn_buf_append(out, text.data, text.len);
    return kn_buf_check(out, err);
}
