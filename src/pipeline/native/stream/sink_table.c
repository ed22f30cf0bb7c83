/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_table.c - an Iceberg table; the epoch is in the summary of its snapshot.
 *
 * The last mark is looked for from the table's head back: snapshots of others may lie in between.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "iceberg/write/write.h"
#include "pipeline/native/stream/sink.h"

#define PIPELINE_KEY "knut.pipeline"
#define DATASET_KEY  "knut.pipeline.dataset"
#define FLOW_KEY     "knut.pipeline.flow"
#define STREAM_KEY   "knut.pipeline.stream"
#define EPOCH_KEY    "knut.pipeline.epoch"

typedef struct Own {
    KnTable *table;
} Own;

static KnCode table_open(KnStreamSink *sink, KnErr *err)
{
    Own *own = kn_arena_zalloc(sink->run->arena, sizeof(*own));
    sink->own = own;
    return kn_native_table_open(sink->run, sink->node->path, &own->table, err);
}

static const char *value(const KnSnapshot *snap, const char *key)
{
    const char *text = json_string_value(json_object_get(snap->summary, key));
    return text ? text : "";
}

static bool is_ours(const KnStreamSink *sink, const KnSnapshot *snap)
{
    return !strcmp(value(snap, PIPELINE_KEY), sink->run->pipeline->name) &&
           !strcmp(value(snap, FLOW_KEY), sink->flow->name);
}

static KnCode table_mark(KnStreamSink *sink, KnStreamMark *ret, KnErr *err)
{
    const Own *own = sink->own;
    KN_TRY(kn_table_refresh(own->table, err));
    const KnMetadata *md = own->table->md;
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    *ret = (KnStreamMark){.epoch = -1};
    for (size_t i = 0; snap && i <= md->n_snapshots; i++) {
        if (is_ours(sink, snap)) {
            (void)snprintf(ret->stream, sizeof(ret->stream), "%s", value(snap, STREAM_KEY));
            if (kn_str_to_i64(kn_str(value(snap, EPOCH_KEY)), &ret->epoch))
                return KN_OK;
            return kn_err_set(err, KN_E_CORRUPT,
                              "table %s: snapshot %" PRId64 ": '%.60s' is no number of an epoch",
                              own->table->name, snap->snapshot_id, value(snap, EPOCH_KEY));
        }
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return KN_OK;
}

static KnCode write_rows(KnStreamSink *sink, const KnStreamWrite *write, const KnWriteOptions *opts,
                         KnWriteResult *ret, KnErr *err)
{
    const Own *own = sink->own;
    KnSession *session = sink->run->session;
    const KnutNames *keys = &sink->node->dataset->keys;
    KnOverwrite all = {.select_sql = write->select};
    KnUpsert upsert = {.select_sql = write->select, .keys = keys->items, .n_keys = keys->len};
    switch (write->how) {
    case KN_STREAM_APPEND:
        return kn_write_append(own->table, session, write->select, opts, ret, err);
    case KN_STREAM_UPSERT:
        return kn_write_upsert(own->table, session, &upsert, opts, ret, err);
    case KN_STREAM_REPLACE:
        KN_TRY(kn_expr_parse(sink->run->arena, KN_STR_LIT("TRUE"),
                             kn_metadata_schema(own->table->md), &all.filter, err));
        return kn_write_overwrite(own->table, session, &all, opts, ret, err);
    }
    return KN_OK;
}

static KnCode table_commit(KnStreamSink *sink, const KnStreamWrite *write, int64_t *ret_rows,
                           KnErr *err)
{
    char epoch[24];
    KnWriteResult result = {.snapshot_id = -1};
    (void)snprintf(epoch, sizeof(epoch), "%" PRId64, write->mark.epoch);
    const char *summary[] = {PIPELINE_KEY, sink->run->pipeline->name,
                             DATASET_KEY,  sink->node->dataset->name,
                             FLOW_KEY,     sink->flow->name,
                             STREAM_KEY,   write->mark.stream,
                             EPOCH_KEY,    epoch};
    const KnWriteOptions opts = {
        .summary = summary, .n_summary = 5, .cancelled = sink->run->opts->cancelled};
    KN_FAULT("pipeline-commit", err);
    KN_TRY(write_rows(sink, write, &opts, &result, err));
    KN_FAULT("pipeline-committed", err);
    if (result.snapshot_id < 0) {
        *ret_rows = -1;
        return KN_OK;
    }
    *ret_rows = write->how == KN_STREAM_UPSERT ? result.updated_rows + result.inserted_rows
                                               : result.added_rows;
    sink->node->rows = *ret_rows;
    return KN_OK;
}

static KnCode table_rows(KnStreamSink *sink, const char **ret_sql, KnErr *err)
{
    return kn_native_table_sql(sink->run, sink->node->path, ret_sql, err);
}

static void table_close(KnStreamSink *sink)
{
    Own *own = sink->own;
    if (own && own->table)
        kn_table_free(own->table);
    sink->own = NULL;
}

const KnStreamSinkOps kn_stream_table = {.kind = "iceberg",
                                         .upserts = true,
                                         .open = table_open,
                                         .mark = table_mark,
                                         .commit = table_commit,
                                         .rows = table_rows,
                                         .close = table_close};
