/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the pipeline as a whole: names, inputs, rings; parts that several things have. */
#include "pipeline/check/check.h"

#include "base/map.h"
#include "pipeline/check/checker.h"
#include "pipeline/ir/arrow_type.h"
#include "pipeline/ir/decode_parts.h"

/* ---- parts ---- */

void kn_check_given(const KnChecker *c, const char *text, const char *what)
{
    if (!text[0])
        kn_breach(c, "empty-text", "%s is empty", what);
}

static KnStr folded(KnArena *arena, const char *name)
{
    char *copy = kn_arena_strdup(arena, name);
    for (char *p = copy; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    return kn_str(copy);
}

/* True when name, in any case, was not in seen before. */
static bool is_first(KnArena *arena, KnMap *seen, const char *name)
{
    bool is_new;
    void **slot = kn_map_get_or_add(seen, folded(arena, name), &is_new);
    *slot = seen; /* any value */
    return is_new;
}

void kn_check_names(const KnChecker *c, const KnutNames *names, const char *what)
{
    if (names->len == 0)
        return;
    KN_MAP_AUTO seen = kn_map_new();
    for (size_t i = 0; i < names->len; i++) {
        if (!names->items[i][0])
            kn_breach(c, "empty-name", "%s[%zu] is empty", what, i);
        else if (!is_first(c->flaws->arena, seen, names->items[i]))
            kn_breach(c, "duplicate-column", "%s name `%.100s` twice", what, names->items[i]);
    }
}

void kn_check_schema(const KnChecker *c, const KnutSchema *schema)
{
    if (schema->len == 0)
        return;
    KN_MAP_AUTO seen = kn_map_new();
    for (size_t i = 0; i < schema->len; i++) {
        const KnutSchemaField *field = &schema->items[i];
        KN_BUF_AUTO sql = {.max = 1 << 20};
        KnErr err = {0};
        if (!field->name[0])
            kn_breach(c, "empty-name", "column %zu of the schema has no name", i + 1);
        else if (!is_first(c->flaws->arena, seen, field->name))
            kn_breach(c, "duplicate-column", "the schema has the column `%.100s` twice",
                      field->name);
        if (kn_arrow_type_sql(kn_str(field->arrow_type), &sql, &err) == KN_E_INVAL)
            kn_breach(c, "bad-type", "column `%.100s`: %s", field->name, err.msg);
    }
}

void kn_check_expectations(const KnChecker *c, const KnutExpectations *expectations)
{
    if (expectations->len == 0)
        return;
    KN_MAP_AUTO seen = kn_map_new();
    for (size_t i = 0; i < expectations->len; i++) {
        const KnutExpectation *expectation = &expectations->items[i];
        if (!expectation->name[0])
            kn_breach(c, "empty-name", "expectation %zu has no name", i + 1);
        else if (!is_first(c->flaws->arena, seen, expectation->name))
            kn_breach(c, "duplicate-name", "there are two expectations `%.100s`",
                      expectation->name);
        if (!expectation->constraint[0])
            kn_breach(c, "empty-text", "the constraint of expectation `%.100s` is empty",
                      expectation->name);
    }
}

void kn_check_pairs(const KnChecker *c, const KnutPairs *pairs, const char *what)
{
    for (size_t i = 0; i < pairs->len; i++)
        if (!pairs->items[i].key[0])
            kn_breach(c, "empty-name", "%s have a key that is empty", what);
}

const KnutSchemaField *kn_schema_find(const KnutSchema *schema, KnStr column)
{
    for (size_t i = 0; i < schema->len; i++)
        if (kn_str_eq_nocase(kn_str(schema->items[i].name), column))
            return &schema->items[i];
    return NULL;
}

void kn_check_column(const KnChecker *c, const KnutSchema *schema, const char *column,
                     const char *what)
{
    if (!schema || schema->len == 0 || !column[0] || kn_schema_find(schema, kn_str(column)))
        return;
    KN_BUF_AUTO near = {.max = 400};
    if (*c->hints_left > 0) {
        const char *names[64];
        size_t n = 0;
        for (; n < schema->len && n < 64; n++)
            names[n] = schema->items[n].name;
        kn_ir_nearest(&near, kn_str(column), names, n);
        --*c->hints_left;
    }
    kn_breach(c, "unknown-column", "%s `%.100s` is not in the declared schema%s", what, column,
              near.len ? near.data : "");
}

const KnutSchema *kn_read_schema(const KnChecker *c, const KnGraphRead *read)
{
    const KnutSchema *schema = NULL;
    if (read->dataset != KN_GRAPH_NONE)
        schema = &c->pipeline->datasets.items[read->dataset].schema;
    else if (read->input != KN_GRAPH_NONE)
        schema = &c->pipeline->inputs.items[read->input].schema;
    return schema && schema->len > 0 ? schema : NULL;
}

void kn_hint_name(const KnChecker *c, KnBuf *buf, const char *name)
{
    if (*c->hints_left == 0)
        return;
    --*c->hints_left;
    size_t best = SIZE_MAX, len = strlen(name);
    const char *nearest = NULL;
    size_t n = c->pipeline->datasets.len, total = n + c->pipeline->inputs.len;
    for (size_t i = 0; i < total; i++) {
        const char *known =
            i < n ? c->pipeline->datasets.items[i].name : c->pipeline->inputs.items[i - n].name;
        size_t distance = kn_str_distance(kn_str(name), kn_str(known));
        if (distance < best) {
            best = distance;
            nearest = known;
        }
    }
    if (nearest && best <= 1 + len / 6 && best < len)
        kn_buf_printf(buf, "; did you mean `%.100s`?", nearest);
}

/* ---- the whole ---- */

/* seen: names so far; folded: the same in lower case, NULL where case tells names apart. */
static void check_name(const KnChecker *c, KnMap *seen, KnMap *folded_names, const char *name)
{
    if (!name[0]) {
        kn_breach(c, "empty-name", "the name is empty");
        return;
    }
    bool is_new;
    void **slot = kn_map_get_or_add(seen, kn_str(name), &is_new);
    *slot = seen; /* any value */
    if (!is_new)
        kn_breach(c, "duplicate-name", "the name is used twice");
    else if (folded_names && !is_first(c->flaws->arena, folded_names, name))
        kn_breach(c, "names-differ-in-case",
                  "the name differs from another in case only: engines take both for one table");
}

static const char *called(const KnChecker *c, const char *kind, const char *name)
{
    return kn_arena_printf(c->flaws->arena, "%s `%.200s`", kind, name);
}

static void check_inputs(KnChecker *c, KnMap *seen, KnMap *folded_names)
{
    const KnutInputs *inputs = &c->pipeline->inputs;
    if (inputs->len == 0)
        return;
    bool *used = kn_arena_zalloc(c->flaws->arena, inputs->len);
    for (size_t f = 0; f < c->pipeline->flows.len; f++)
        for (size_t i = 0; i < c->graph->reads[f].len; i++)
            if (c->graph->reads[f].items[i].input != KN_GRAPH_NONE)
                used[c->graph->reads[f].items[i].input] = true;
    for (size_t i = 0; i < inputs->len; i++) {
        const KnutInput *input = &inputs->items[i];
        c->where = called(c, "input", input->name);
        check_name(c, seen, folded_names, input->name);
        kn_check_given(c, input->path, "the path");
        kn_check_schema(c, &input->schema);
        kn_check_names(c, &input->partition_cols, "the partition columns");
        kn_check_pairs(c, &input->options, "the options");
        if (!used[i])
            kn_breach(c, "unused-input", "no flow reads it");
    }
}

static void check_rings(KnChecker *c)
{
    if (c->graph->order.len == c->pipeline->datasets.len)
        return;
    KnRings rings = kn_graph_rings(c->graph);
    for (size_t i = 0; i < rings.len; i++) {
        KN_BUF_AUTO text = {.max = 500};
        for (size_t k = 0; k < rings.items[i].len && text.len < 400; k++)
            kn_buf_printf(&text, "%s`%.60s`", k ? " -> " : "",
                          c->pipeline->datasets.items[rings.items[i].items[k]].name);
        c->where = called(c, "pipeline", c->pipeline->name);
        kn_breach(c, "cycle", "datasets need one another: %s%s", text.data,
                  text.len >= 400 ? " ..." : "");
    }
}

void kn_pipeline_check(const KnGraph *graph, KnFlaws *flaws)
{
    size_t hints = 50;
    KnChecker c = {
        .graph = graph, .pipeline = graph->pipeline, .flaws = flaws, .hints_left = &hints};
    KN_MAP_AUTO seen = kn_map_new();
    KN_MAP_AUTO folded_names = kn_map_new();
    KN_MAP_AUTO flows = kn_map_new();
    c.where = called(&c, "pipeline", c.pipeline->name);
    if (!c.pipeline->name[0])
        kn_breach(&c, "empty-name", "the name is empty");
    kn_check_pairs(&c, &c.pipeline->properties, "the properties");
    check_inputs(&c, seen, folded_names);
    for (size_t i = 0; i < c.pipeline->datasets.len; i++) {
        const KnutDataset *dataset = &c.pipeline->datasets.items[i];
        c.where = called(&c, "dataset", dataset->name);
        check_name(&c, seen, folded_names, dataset->name);
        kn_check_dataset(&c, dataset, i);
    }
    for (size_t i = 0; i < c.pipeline->flows.len; i++) {
        const KnutFlow *flow = &c.pipeline->flows.items[i];
        c.where = called(&c, "flow", flow->name);
        check_name(&c, flows, NULL, flow->name);
        kn_check_flow(&c, flow, i);
    }
    check_rings(&c);
}

KnCode kn_pipeline_validate(KnArena *arena, const KnPipeline *pipeline, const KnGraph **ret_graph,
                            KnErr *err)
{
    KN_FLAWS_AUTO flaws = {.arena = arena};
    const KnGraph *graph = kn_graph_new(arena, pipeline);
    kn_pipeline_check(graph, &flaws);
    KN_TRY(kn_flaws_fail(&flaws, err));
    if (ret_graph)
        *ret_graph = graph;
    return KN_OK;
}
