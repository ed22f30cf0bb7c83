/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - `knut table stats` and `knut table partition-stats`: statistics of a snapshot, computed
 * and set. */
#include "iceberg/stats/stats.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "iceberg/schema/partition.h"

typedef struct StatsCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnOptList columns;
    KnSnapshotChoice snapshot;
} StatsCommandOptions;

#define SNAPSHOT_ROW                                                                               \
    {                                                                                              \
        .name = "snapshot", .type = KN_OPT_TEXT,                                                   \
        .offset = offsetof(StatsCommandOptions, snapshot.snapshot), .value = "ID",                 \
        .doc = "Snapshot that is described (default: the current one)"                             \
    }
#define REF_ROW                                                                                    \
    {                                                                                              \
        .name = "ref", .type = KN_OPT_TEXT, .offset = offsetof(StatsCommandOptions, snapshot.ref), \
        .value = "NAME", .doc = "Branch or tag whose snapshot is described"                        \
    }
static const KnOption stats_rows[] = {
    {.name = "columns",
     .type = KN_OPT_LIST,
     .offset = offsetof(StatsCommandOptions, columns),
     .value = "COL,...",
     .doc = "Columns to count (default: all of the top level that hold single values); st.a too"},
    SNAPSHOT_ROW,
    REF_ROW,
};
static const KnOption partition_rows[] = {SNAPSHOT_ROW, REF_ROW};

static KnCode print_columns(const KnCall *call, int64_t snapshot_id, const KnStatsFile *file,
                            KnErr *err)
{
    static const KnOutColumn columns[] = {{"snapshot", true}, {"field", true},  {"column", false},
                                          {"distinct", true}, {"exact", false}, {"file", false},
                                          {"bytes", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 7);

    for (size_t i = 0; i < file->n_columns; i++) {
        kn_out_int(out, snapshot_id);
        kn_out_int(out, file->columns[i].field_id);
        kn_out_text(out, file->columns[i].column);
        kn_out_int(out, file->columns[i].ndv);
        kn_out_bool(out, file->columns[i].exact);
        kn_out_text(out, file->path);
        kn_out_bytes(out, file->bytes);
    }
    return kn_out_close(out, err);
}

static KnCode print_partitions(const KnCall *call, int64_t snapshot_id, const KnStatsFile *file,
                               KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"snapshot", true}, {"partitions", true}, {"file", false}, {"bytes", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 4);

    kn_out_int(out, snapshot_id);
    kn_out_int(out, file->n_partitions);
    kn_out_text(out, file->path);
    kn_out_bytes(out, file->bytes);
    return kn_out_close(out, err);
}

static KnCode run(KnCall *call, bool partitions, KnErr *err)
{
    const StatsCommandOptions *opts = call->options;
    KnStatsOptions stats = {.n_columns = opts->columns.len,
                            .columns = (const char *const *)opts->columns.items,
                            .cancelled = kn_stop_requested,
                            .arena = call->arena};
    KN_CALL_TABLE_AUTO ct = {0};
    KN_CALL_ENGINE_AUTO ce = {0};
    KnStatsFile file = {0};

    KN_TRY(kn_call_table_open(call, &ct, err));
    if (ct.catalog->ops->read_only)
        return kn_err_set(
            err, KN_E_INVAL,
            "a bare table is read-only; statistics are set with --warehouse DIR --table NS.NAME");
    KN_TRY(kn_table_choose_snapshot(ct.table, &opts->snapshot, &stats.snapshot, err));
    if (!stats.snapshot)
        return kn_err_set(err, KN_E_INVAL, "table %s has no snapshot: there is nothing to count",
                          ct.table->name);
    int64_t snapshot_id = stats.snapshot->snapshot_id;
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KN_TRY(kn_transform_register(ce.engine, err));
    if (partitions) {
        KN_TRY(kn_partition_stats_compute(ct.table, ce.session, &stats, &file, err));
        return print_partitions(call, snapshot_id, &file, err);
    }
    KN_TRY(kn_stats_compute(ct.table, ce.session, &stats, &file, err));
    return print_columns(call, snapshot_id, &file, err);
}

static KnCode run_stats(KnCall *call, KnErr *err)
{
    return run(call, false, err);
}

static KnCode run_partition_stats(KnCall *call, KnErr *err)
{
    return run(call, true, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_stats = {
    .group = "table",
    .name = "stats",
    .summary = "Count the distinct values of columns, and set that as a snapshot's statistics",
    .about = "  knut table stats --warehouse /data/wh --table shop.orders --columns id,name\n\n"
             "Sketches (Apache DataSketches theta) in a Puffin file, as Iceberg's "
             "compute_table_stats\nmakes them: exact up to 4096 values, then within about 2 %.",
    .options_size = sizeof(StatsCommandOptions),
    .locator = offsetof(StatsCommandOptions, loc),
    .rows = stats_rows,
    .n_rows = COUNT(stats_rows),
    .run = run_stats,
};
const KnCommand kn_cmd_table_partition_stats = {
    .group = "table",
    .name = "partition-stats",
    .summary = "Count rows, files and deletes of each partition, for a snapshot's statistics",
    .about = "  knut table partition-stats --warehouse /data/wh --table shop.orders\n\n"
             "A Parquet file, as Iceberg's compute_partition_stats makes it, from manifests alone.",
    .options_size = sizeof(StatsCommandOptions),
    .locator = offsetof(StatsCommandOptions, loc),
    .rows = partition_rows,
    .n_rows = COUNT(partition_rows),
    .run = run_partition_stats,
};
