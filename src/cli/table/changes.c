/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes.c - `knut table changes`: the rows that came and went, snapshot by snapshot or net over a
 * range.
 *
 * Rows are shown under the table's current schema. A snapshot's changes are the multiset difference
 * to its parent;
 * --raw keeps rows that a rewrite removed and wrote again unchanged.
 */
#include <inttypes.h>
#include <string.h>

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/table/rows_out.h"
#include "iceberg/changes/changelog.h"

typedef struct ChangesOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *from, *to;
    KnOptList keys;
    int64_t limit;
    bool net, raw, images;
} ChangesOptions;

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(ChangesOptions, f), .value = (v), .doc = (d)  \
    }
static const KnOption rows[] = {
    ROW("from", KN_OPT_TEXT, from, "ID",
        "Changes after this snapshot (default: from the table's first one on)"),
    ROW("to", KN_OPT_TEXT, to, "ID",
        "Changes up to and including this snapshot (default: the current one)"),
    ROW("net", KN_OPT_FLAG, net, NULL,
        "One difference over the whole range, not one for each snapshot"),
    ROW("raw", KN_OPT_FLAG, raw, NULL,
        "Keep rows that a rewrite removed and wrote again unchanged"),
    ROW("before-images", KN_OPT_FLAG, images, NULL,
        "Pair a delete and an insert of one key as update_before, update_after"),
    ROW("key", KN_OPT_LIST, keys, "COL,...",
        "Key for --before-images (default: the table's identifier fields)"),
    {.name = "limit",
     .type = KN_OPT_INT,
     .offset = offsetof(ChangesOptions, limit),
     .value = "N",
     .dflt = "-1",
     .min = -1,
     .max = INT64_MAX,
     .doc = "At most so many rows; -1 is all"},
};

/* The windows that are shown, one behind the other, as one source of batches. */
typedef struct Feed {
    const KnTable *tbl;
    KnSession *ses;
    const KnSnapshot **chain; /* newest first; chain[n] is the start (may be NULL) */
    size_t n, done;
    KnChangeRowsOptions opts;
    const KnSchema *current; /* of the table */
    const KnSchema *shown;   /* of the window's rows, with the columns about the change */
    KnArena *arena;
    KnWindow *window;
    KnChangeRows *changes;
    KnStream *stream;
} Feed;

static void close_window(Feed *feed)
{
    feed->stream = kn_stream_close(feed->stream);
    feed->changes = kn_change_rows_close(feed->changes);
    feed->window = kn_window_free(feed->window);
}

/* The table's columns and the three that tell about the change. */
static const KnSchema *shown_schema(KnArena *arena, const KnSchema *schema)
{
    static const KnType text = {.kind = KN_TYPE_STRING}, bigint = {.kind = KN_TYPE_LONG};
    size_t n = schema->root.n_fields;
    KnField *fields = kn_arena_alloc(arena, (n + 3) * sizeof(*fields));
    if (n)
        memcpy(fields, schema->root.fields, n * sizeof(*fields));
    fields[n] = (KnField){.id = -1, .name = "_change_type", .type = &text};
    fields[n + 1] = (KnField){.id = -2, .name = "_commit_snapshot_id", .type = &bigint};
    fields[n + 2] = (KnField){.id = -3, .name = "_change_ordinal", .type = &bigint};
    KnSchema *wide = kn_arena_alloc(arena, sizeof(*wide));
    *wide = *schema;
    wide->root.fields = fields;
    wide->root.n_fields = n + 3;
    return wide;
}

/* The current schema; where a column had a type then that cannot become today's (a replaced table),
 * the type of then. */
static const KnSchema *window_schema(const Feed *feed, const KnSnapshot *to)
{
    const KnSchema *then = kn_metadata_snapshot_schema(feed->tbl->md, to), *now = feed->current;
    KnSchema *mixed = kn_arena_alloc(feed->arena, sizeof(*mixed));
    KnField *fields = kn_arena_alloc(feed->arena, (now->root.n_fields + 1) * sizeof(*fields));
    *mixed = *now;
    mixed->root.fields = fields;
    for (size_t i = 0; i < now->root.n_fields; i++) {
        fields[i] = now->root.fields[i];
        const KnField *old = kn_schema_find_id(then, fields[i].id);
        if (old && !kn_type_is_nested(old->type) && !kn_type_is_nested(fields[i].type) &&
            !kn_type_promotes(old->type, fields[i].type))
            fields[i].type = old->type;
    }
    return mixed;
}

static KnCode open_window(Feed *feed, KnErr *err)
{
    size_t at = feed->n - feed->done - 1;
    feed->opts.schema = window_schema(feed, feed->chain[at]);
    feed->shown = shown_schema(feed->arena, feed->opts.schema);
    KN_TRY(kn_window_plan(feed->tbl, feed->chain[at + 1], feed->chain[at], &feed->window, err));
    feed->opts.ordinal = (int64_t)feed->done;
    KN_TRY(kn_window_change_rows(feed->window, feed->ses, &feed->opts, &feed->changes, err));
    KN_TRY(kn_session_query(feed->ses, kn_change_rows_sql(feed->changes), &feed->stream, err));
    feed->done++;
    return KN_OK;
}

static const KnSchema *shown_now(void *arg)
{
    const Feed *feed = arg;
    return feed->shown;
}

static KnCode next_batch(void *arg, KnBatch **ret, KnErr *err)
{
    Feed *feed = arg;
    for (;;) {
        if (kn_stop_requested())
            return kn_err_set(err, KN_E_CANCELLED, "stopped by a signal");
        if (feed->stream) {
            KnBatch *batch = NULL;
            KN_TRY(kn_stream_next(feed->stream, &batch, err));
            if (batch) {
                *ret = batch;
                return KN_OK;
            }
            close_window(feed);
        }
        if (feed->done == feed->n) {
            *ret = NULL;
            return KN_OK;
        }
        KN_TRY(open_window(feed, err));
    }
}

static KnCode find_end(const KnTable *tbl, const char *text, const KnSnapshot **ret, KnErr *err)
{
    KnSnapshotChoice choice = {.snapshot = text};
    return kn_table_choose_snapshot(tbl, &choice, ret, err);
}

/* Ancestors of `to` down to `from` (exclusive), newest first, with the start behind the last. */
static KnCode find_chain(KnArena *arena, const KnTable *tbl, const KnSnapshot *from,
                         const KnSnapshot *to, Feed *feed, KnErr *err)
{
    const KnMetadata *md = tbl->md;
    feed->chain = kn_arena_alloc(arena, (md->n_snapshots + 1) * sizeof(KnSnapshot *));
    const KnSnapshot *snap = to;
    while (snap && snap != from) {
        if (feed->n == md->n_snapshots)
            return kn_err_set(err, KN_E_CORRUPT,
                              "the parents of snapshot %" PRId64 " go round in a circle",
                              to->snapshot_id);
        feed->chain[feed->n++] = snap;
        if (snap->parent_id < 0)
            break;
        const KnSnapshot *parent = kn_metadata_find_snapshot(md, snap->parent_id);
        if (!parent)
            return kn_err_set(err, KN_E_REFUSED,
                              "snapshot %" PRId64 ", the parent of %" PRId64
                              ", has expired, so its changes are not "
                              "known; give --from %" PRId64 " to start behind it",
                              snap->parent_id, snap->snapshot_id, snap->snapshot_id);
        snap = parent;
    }
    if (from && snap != from)
        return kn_err_set(err, KN_E_INVAL,
                          "--from %" PRId64 " is not an ancestor of snapshot %" PRId64,
                          from->snapshot_id, to->snapshot_id);
    feed->chain[feed->n] = from;
    return KN_OK;
}

static void make_net(Feed *feed)
{
    if (feed->n < 2)
        return;
    feed->chain[1] = feed->chain[feed->n];
    feed->n = 1;
}

static void identifier_names(KnArena *arena, const KnSchema *schema, KnChangeRowsOptions *opts)
{
    const char **names = kn_arena_alloc(arena, (schema->n_identifier_ids + 1) * sizeof(*names));
    for (size_t i = 0; i < schema->n_identifier_ids; i++) {
        const KnField *field = kn_schema_find_id(schema, schema->identifier_ids[i]);
        names[i] = field ? field->name : "";
    }
    opts->keys = names;
    opts->n_keys = schema->n_identifier_ids;
}

static KnCode print_changes(const KnCall *call, Feed *feed, KnErr *err)
{
    const ChangesOptions *opts = call->options;
    KN_CALL_ENGINE_AUTO ce = {0};
    if (feed->n)
        KN_TRY(kn_call_engine_open(call, &ce, err));
    feed->ses = ce.session;
    KnRowsOut print = {
        .format = (KnOutputFormat)call->common->output,
        .schema = shown_schema(call->arena, feed->current),
        .batch_schema = shown_now,
        .limit = opts->limit,
        .next = next_batch,
        .arg = feed,
    };
    KnCode rc = kn_rows_out(&print, err);
    close_window(feed);
    return rc;
}

static KnCode run_changes(KnCall *call, KnErr *err)
{
    const ChangesOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    const KnSchema *schema = kn_metadata_schema(ct.table->md);
    const KnSnapshot *from = NULL, *to = NULL;
    KN_TRY(find_end(ct.table, opts->to, &to, err));
    if (opts->from)
        KN_TRY(find_end(ct.table, opts->from, &from, err));
    Feed feed = {.tbl = ct.table,
                 .arena = call->arena,
                 .current = schema,
                 .opts = {.schema = schema, .raw = opts->raw, .images = opts->images}};
    if (opts->keys.len) {
        feed.opts.keys = opts->keys.items;
        feed.opts.n_keys = opts->keys.len;
    } else {
        identifier_names(call->arena, schema, &feed.opts);
    }
    if (to)
        KN_TRY(find_chain(call->arena, ct.table, from, to, &feed, err));
    if (opts->net)
        make_net(&feed);
    return print_changes(call, &feed, err);
}

const KnCommand kn_cmd_table_changes = {
    .group = "table",
    .name = "changes",
    .summary = "Print the rows that each snapshot inserted and deleted",
    .about = "  knut table changes --warehouse /data/wh --table shop.orders --from 1042 --to 1043 "
             "--output json\n\n"
             "Each row has the table's columns, _change_type (insert, delete, update_before, "
             "update_after),\n"
             "_commit_snapshot_id and _change_ordinal (the snapshot's place in the range, from 0).",
    .options_size = sizeof(ChangesOptions),
    .locator = offsetof(ChangesOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run_changes,
};
