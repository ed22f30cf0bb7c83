/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what the native backend does not do, said before anything is touched.
 *
 * One line for each thing. What is not refused here is done as the document says.
 */
#include "pipeline/native/stream/check.h"

#include <string.h>

#include "pipeline/native/native.h"
#include "pipeline/sql/sql_internal.h"

typedef struct Check {
    const KnPipeline *pipeline;
    const KnRunOptions *opts;
    const KnGraph *graph;
    KnNotes *notes;
    KnArena *arena;
} Check;

#define REFUSE(c, ...) kn_notes_add((c)->notes, 0, 0, __VA_ARGS__)

static bool is_local(const char *path)
{
    return kn_native_place(KN_NATIVE_PARQUET, path) == KN_NATIVE_LOCAL;
}

/* A local file, or one of an object store. */
static bool is_file_place(const char *path)
{
    return kn_native_place(KN_NATIVE_PARQUET, path) <= KN_NATIVE_OBJECTS;
}

static bool supplied(const KnRunOptions *opts, const char *name)
{
    for (size_t i = 0; opts && i < opts->n_memory; i++)
        if (!strcmp(opts->memory[i].name, name))
            return true;
    for (size_t i = 0; opts && i < opts->n_arrow; i++)
        if (!strcmp(opts->arrow[i].name, name))
            return true;
    return false;
}

static void check_schema(const Check *c, const char *what, const char *name,
                         const KnutSchema *schema)
{
    for (size_t i = 0; i < schema->len; i++)
        if (!kn_native_sql_type(c->arena, schema->items[i].arrow_type))
            REFUSE(c, "%s %s: column %s is declared %s, a type that is not known", what, name,
                   schema->items[i].name, schema->items[i].arrow_type);
}

static void check_name(const Check *c, const char *what, const char *name)
{
    size_t parts = 1;
    bool empty = !name[0] || name[0] == '.' || name[strlen(name) - 1] == '.' || strstr(name, "..");
    for (const char *at = name; *at; at++)
        parts += *at == '.';
    if (empty || parts > 3)
        REFUSE(c, "%s '%s': a name has one to three parts, none of them empty", what, name);
}

static void check_partition(const Check *c, const KnutDataset *dataset)
{
    if (dataset->partition_cols.len && dataset->path && kn_native_is_file(dataset->path))
        REFUSE(c, "dataset %s: it is partitioned, so that its path is a folder's: %s",
               dataset->name, dataset->path);
    if (dataset->partition_cols.len && dataset->path &&
        kn_native_format(dataset->format, dataset->path) == KN_NATIVE_JSON)
        REFUSE(c, "dataset %s: folders of partitions are written as parquet or csv", dataset->name);
}

static void check_table(const Check *c, const KnutDataset *dataset)
{
    if (c->opts && !c->opts->tables)
        REFUSE(c, "dataset %s: table %s: in which catalog? give --warehouse or another",
               dataset->name, dataset->path);
    if (dataset->partition_cols.len)
        REFUSE(c, "dataset %s: table %s is partitioned as its own metadata says", dataset->name,
               dataset->path);
}

#define FORMATS "parquet, csv, json, iceberg and postgres"

static void check_database(const Check *c, const KnutDataset *dataset)
{
    if (kn_native_place(KN_NATIVE_POSTGRES, dataset->path) != KN_NATIVE_DATABASE)
        REFUSE(c, "dataset %s: %s: expected postgresql://HOST:PORT/DATABASE?table=SCHEMA.TABLE",
               dataset->name, dataset->path);
    if (dataset->partition_cols.len)
        REFUSE(c, "dataset %s: tables of PostgreSQL are not partitioned here", dataset->name);
}

static void check_files(const Check *c, const KnutDataset *dataset, KnNativeFormat format)
{
    if (c->opts && c->opts->run_id && dataset->write_mode == KNUT_WRITE_APPEND &&
        dataset->output_type != KNUT_OUTPUT_MATERIALIZED_VIEW && !is_local(dataset->path))
        REFUSE(c, "dataset %s: a run with an id adds no rows to object stores", dataset->name);
    if (!is_file_place(dataset->path))
        REFUSE(c, "dataset %s: %s: files are written locally and to s3://", dataset->name,
               dataset->path);
    else if (format == KN_NATIVE_UNKNOWN)
        REFUSE(c, "dataset %s: %s%s: the formats written are " FORMATS, dataset->name,
               dataset->format ? "format " : "no format, and none to be seen in ",
               dataset->format ? dataset->format : dataset->path);
    check_partition(c, dataset);
}

static void check_target(const Check *c, const KnutDataset *dataset)
{
    if (!dataset->path) {
        if (dataset->output_type == KNUT_OUTPUT_SINK)
            REFUSE(c, "sink %s: where to? it has no path", dataset->name);
        return;
    }
    KnNativeFormat format = kn_native_format(dataset->format, dataset->path);
    if (format == KN_NATIVE_ICEBERG)
        check_table(c, dataset);
    else if (format == KN_NATIVE_POSTGRES)
        check_database(c, dataset);
    else
        check_files(c, dataset, format);
}

static bool is_applied(const Check *c, size_t dataset)
{
    const KnIndexes *writers = &c->graph->writers[dataset];
    return writers->len && c->pipeline->flows.items[writers->items[0]].kind.tag == KNUT_FLOW_CDC;
}

static bool is_streamed(const Check *c, size_t dataset)
{
    const KnIndexes *writers = &c->graph->writers[dataset];
    return writers->len &&
           c->pipeline->flows.items[writers->items[0]].kind.tag == KNUT_FLOW_STREAMING;
}

static void check_dataset(const Check *c, size_t i)
{
    const KnutDatasets *all = &c->pipeline->datasets;
    const KnutDataset *dataset = &all->items[i];
    check_name(c, "dataset", dataset->name);
    check_schema(c, "dataset", dataset->name, &dataset->schema);
    check_target(c, dataset);
    if (dataset->cluster_by.len)
        REFUSE(c, "dataset %s: files are not clustered", dataset->name);
    if (dataset->keys.len && !is_applied(c, i) && !is_streamed(c, i))
        REFUSE(c, "dataset %s: keys: rows of files are not updated by a batch flow", dataset->name);
    for (size_t j = 0; j < i; j++) {
        if (kn_str_eq_nocase(kn_str(all->items[j].name), kn_str(dataset->name)))
            REFUSE(c, "dataset %s: the engine does not tell its name from %s", dataset->name,
                   all->items[j].name);
        if (dataset->path && all->items[j].path && !strcmp(dataset->path, all->items[j].path))
            REFUSE(c, "dataset %s: %s is dataset %s's path too", dataset->name, dataset->path,
                   all->items[j].name);
    }
}

static void check_input_place(const Check *c, const KnutInput *input, KnNativeFormat format)
{
    if (format == KN_NATIVE_ICEBERG && c->opts && !c->opts->tables)
        REFUSE(c, "input %s: table %s: in which catalog? give --warehouse or another", input->name,
               input->path);
    else if (format == KN_NATIVE_POSTGRES &&
             kn_native_place(format, input->path) != KN_NATIVE_DATABASE)
        REFUSE(c, "input %s: %s: expected postgresql://HOST:PORT/DATABASE?table=SCHEMA.TABLE",
               input->name, input->path);
    else if (format == KN_NATIVE_UNKNOWN)
        REFUSE(c, "input %s: %s%s: the formats read are " FORMATS, input->name,
               input->format ? "format " : "no format, and none to be seen in ",
               input->format ? input->format : input->path);
    else if (format <= KN_NATIVE_JSON && !is_file_place(input->path))
        REFUSE(c, "input %s: %s: files are read locally and from s3://", input->name, input->path);
}

static void check_input(const Check *c, const KnutInput *input)
{
    check_name(c, "input", input->name);
    check_schema(c, "input", input->name, &input->schema);
    if (!input->path) {
        REFUSE(c, "input %s: where from? it has no path", input->name);
        return;
    }
    KnNativeFormat format = kn_native_format(input->format, input->path);
    check_input_place(c, input, format);
    if (format != KN_NATIVE_UNKNOWN && kn_native_unknown_option(input))
        REFUSE(c, "input %s: %s has no option %s of this value", input->name,
               kn_native_format_name(format), kn_native_unknown_option(input));
}

static bool is_stream_of(const Check *c, const KnutFlow *flow, const char *name)
{
    return flow->kind.tag == KNUT_FLOW_STREAMING &&
           !strcmp(name, kn_sdp_source_name(c->arena, &flow->kind.streaming.source));
}

static bool is_endless(const Check *c, size_t dataset)
{
    const KnIndexes *writers = &c->graph->writers[dataset];
    const KnutFlow *flow = &c->pipeline->flows.items[writers->items[0]];
    return c->opts && !c->opts->once &&
           flow->kind.streaming.trigger.tag != KNUT_TRIGGER_AVAILABLE_NOW;
}

static void check_read(const Check *c, const KnutFlow *flow, const KnGraphRead *read)
{
    if (is_stream_of(c, flow, read->name))
        return;
    if (read->dataset != KN_GRAPH_NONE && is_streamed(c, read->dataset) &&
        is_endless(c, read->dataset))
        REFUSE(c,
               "flow %s: it reads dataset %s, whose stream does not end: run with --once, or give "
               "the stream the trigger available_now",
               flow->name, read->name);
    if (read->dataset != KN_GRAPH_NONE && !c->graph->writers[read->dataset].len)
        REFUSE(c, "flow %s: it reads dataset %s, which no flow makes", flow->name, read->name);
    if (read->dataset == KN_GRAPH_NONE && read->input == KN_GRAPH_NONE &&
        !supplied(c->opts, read->name))
        REFUSE(c, "flow %s: it reads %s, and nothing supplies that: give --input %s=PATH",
               flow->name, read->name, read->name);
}

/* Changes are applied to a Parquet file, or to a table whose deletes have a place of their own. */
static void check_cdc_target(const Check *c, const KnutFlow *flow, const KnutDataset *dataset)
{
    const char *storage = c->pipeline->storage;
    KnNativeFormat format = kn_native_format(dataset->format, dataset->path);
    if (format == KN_NATIVE_ICEBERG && (!storage || !is_local(storage)))
        REFUSE(c,
               "CDC flow `%s`: deletes from table %s are remembered in the pipeline's `storage`: "
               "name a local folder there",
               flow->name, dataset->path);
    if (format != KN_NATIVE_ICEBERG && (format != KN_NATIVE_PARQUET || !is_local(dataset->path) ||
                                        !kn_native_is_file(dataset->path)))
        REFUSE(c,
               "CDC flow `%s`: changes are applied to a local Parquet file or an Iceberg table, "
               "not to %s",
               flow->name, dataset->path);
}

static void check_cdc(const Check *c, const KnutFlow *flow, size_t target)
{
    const KnutCdc *cdc = &flow->kind.cdc;
    const KnutDataset *dataset =
        target == KN_GRAPH_NONE ? NULL : &c->pipeline->datasets.items[target];
    bool keyed = false;
    for (size_t i = 0; i < cdc->keys.len; i++)
        keyed |= kn_str_eq_nocase(kn_str(cdc->keys.items[i]), kn_str(cdc->sequence_by));
    if (cdc->apply_as_truncates && (cdc->scd_type == KNUT_SCD_TYPE2 || keyed))
        REFUSE(c, "CDC flow `%s`: truncates are of type 1, by a sequence that is no key",
               flow->name);
    if (cdc->ignore_null_updates)
        REFUSE(c, "CDC flow `%s`: updates that leave NULLs out are not applied", flow->name);
    if (cdc->track_history.len || cdc->track_history_except.len)
        REFUSE(c, "CDC flow `%s`: every change makes a version, whatever column it is in",
               flow->name);
    if (dataset && c->graph->writers[target].len > 1)
        REFUSE(c, "CDC flow `%s`: it must be the only flow into %s", flow->name, dataset->name);
    if (dataset && dataset->path)
        check_cdc_target(c, flow, dataset);
}

static bool is_elsewhere(const KnutDataset *dataset)
{
    return dataset->path && kn_native_place(kn_native_format(dataset->format, dataset->path),
                                            dataset->path) != KN_NATIVE_LOCAL;
}

static void check_flow(const Check *c, size_t i)
{
    const KnutFlow *flow = &c->pipeline->flows.items[i];
    const KnGraphReads *reads = &c->graph->reads[i];
    if (flow->kind.tag == KNUT_FLOW_STREAMING)
        kn_stream_check(&(KnStreamCheck){c->pipeline, c->opts, c->graph, c->notes, c->arena}, i);
    if (flow->kind.tag == KNUT_FLOW_CDC)
        check_cdc(c, flow, c->graph->targets[i]);
    size_t target = c->graph->targets[i];
    if (flow->once && target != KN_GRAPH_NONE && is_elsewhere(&c->pipeline->datasets.items[target]))
        REFUSE(c, "flow %s: a backfill (once) is of a local target, not of %s", flow->name,
               c->pipeline->datasets.items[target].path);
    if (flow->kind.tag != KNUT_FLOW_STREAMING && !flow->query && flow->reads.len != 1)
        REFUSE(c, "flow %s: it has no query, and so must read one thing, not %zu", flow->name,
               flow->reads.len);
    for (size_t r = 0; r < reads->len; r++)
        check_read(c, flow, &reads->items[r]);
}

static void check_names(const Check *c, const char *flag, const KnutNames *names)
{
    for (size_t i = 0; i < names->len; i++)
        if (strcmp(names->items[i], "all") != 0 &&
            kn_graph_dataset(c->graph, names->items[i]) == KN_GRAPH_NONE)
            REFUSE(c, "%s %s: no dataset of this name", flag, names->items[i]);
}

void kn_native_check(const KnPipeline *pipeline, const KnRunOptions *opts, KnNotes *refusals)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Check c = {.pipeline = pipeline,
               .opts = opts,
               .notes = refusals,
               .arena = arena,
               .graph = kn_graph_new(arena, pipeline)};
    for (size_t i = 0; i < pipeline->inputs.len; i++)
        check_input(&c, &pipeline->inputs.items[i]);
    for (size_t i = 0; i < pipeline->datasets.len; i++)
        check_dataset(&c, i);
    for (size_t i = 0; i < pipeline->flows.len; i++)
        check_flow(&c, i);
    if (opts && opts->run_id && strpbrk(opts->run_id, "\r\n"))
        REFUSE(&c, "--run-id: it is one line of text");
    if (opts) {
        check_names(&c, "--select", &opts->select);
        check_names(&c, "--full-refresh", &opts->full_refresh);
    }
}
