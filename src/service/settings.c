/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h. */
#include "service/settings.h"

#include "base/path.h"

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(KnDeliverySettings, f), .value = (v),         \
        .doc = (d)                                                                                 \
    }
static const KnOption rows[] = {
    ROW("sink", KN_OPT_TEXT, sink, "KIND:PLACE",
        "Destination: duckdb:FILE, postgresql://HOST:PORT/DATABASE, "
        "doris:http://FE:8030[?SETTING=VALUE&...], parquet:/FOLDER[?SETTING=VALUE&...], "
        "or null: (counts and checks, keeps nothing)"),
    ROW("target", KN_OPT_TEXT, target, "[SCHEMA.]NAME",
        "Table in the destination (default: the source table's name)"),
    {.name = "mode",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnDeliverySettings, mode),
     .value = "upsert|append",
     .dflt = "upsert",
     .doc = "upsert: deletes and updates are applied, by key where there is one; append: a delete "
            "refuses the window"},
    ROW("key", KN_OPT_LIST, keys, "COL,...",
        "Key of a row (default: the table's identifier fields, else whole rows)"),
    {.name = "ref",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnDeliverySettings, ref),
     .value = "BRANCH",
     .dflt = "main",
     .doc = "Branch whose snapshots are delivered"},
    {.name = "state",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnDeliverySettings, state),
     .value = "FILE",
     .dflt = "knut-state.db",
     .doc = "Journal: cursors, plans and the state of each chunk; keep it with the deployment"},
    {.name = "chunk-mb",
     .type = KN_OPT_INT,
     .offset = offsetof(KnDeliverySettings, chunk_mb),
     .value = "N",
     .dflt = "64",
     .min = 1,
     .max = 65536,
     .doc = "Size of a chunk, one transaction of the destination, in MiB of source file"},
    {.name = "parallel-loads",
     .type = KN_OPT_INT,
     .offset = offsetof(KnDeliverySettings, parallel_loads),
     .value = "N",
     .dflt = "4",
     .min = 1,
     .max = 256,
     .doc = "Chunks in flight, where the destination takes several"},
    {.name = "max-windows",
     .type = KN_OPT_INT,
     .offset = offsetof(KnDeliverySettings, max_windows),
     .value = "N",
     .dflt = "0",
     .min = 0,
     .max = INT32_MAX,
     .doc = "Snapshots in one round; 0 is all"},
    {.name = "max-rewrite-bytes",
     .type = KN_OPT_BYTES,
     .offset = offsetof(KnDeliverySettings, max_rewrite_bytes),
     .value = "SIZE",
     .dflt = "1GiB",
     .doc = "A snapshot that rewrites more than this is refused before anything is read"},
};

const KnOptGroup kn_delivery_setting_rows = {
    .title = "What is delivered where",
    .options = rows,
    .n_options = sizeof(rows) / sizeof(rows[0]),
};

static const KnOption pace_rows[] = {
    {.name = "interval",
     .type = KN_OPT_SECONDS,
     .offset = offsetof(KnDeliverySettings, interval),
     .value = "SECONDS",
     .dflt = "5",
     .doc = "Pause between looks at the table"},
    {.name = "max-backoff",
     .type = KN_OPT_SECONDS,
     .offset = offsetof(KnDeliverySettings, max_backoff),
     .value = "SECONDS",
     .dflt = "300",
     .doc = "Longest pause when nothing happens or all fails"},
};

const KnOptGroup kn_delivery_pace_rows = {
    .title = "When to look",
    .options = pace_rows,
    .n_options = sizeof(pace_rows) / sizeof(pace_rows[0]),
};

static const KnOption share_rows[] = {
    {.name = "max-deliveries",
     .type = KN_OPT_INT,
     .offset = offsetof(KnDeliverySettings, max_deliveries),
     .value = "N",
     .dflt = "0",
     .min = 0,
     .max = 64,
     .doc = "Deliveries into this sink at the same time; 0 is as many as there are workers"},
};

const KnOptGroup kn_delivery_share_rows = {
    .title = "A sink that several deliveries share",
    .options = share_rows,
    .n_options = sizeof(share_rows) / sizeof(share_rows[0]),
};

/* "orders" of "shop.orders", of "/wh/shop/orders". */
static const char *default_target(KnArena *arena, const KnTable *tbl)
{
    if (tbl->ident.name)
        return tbl->ident.name;
    KnStr last = kn_path_basename(kn_str(tbl->md->location));
    return kn_arena_strndup(arena, last.ptr, last.len);
}

KnCode kn_delivery_settings_journal(const char *state, KnJournalMode mode, KnJournal **ret,
                                    KnErr *err)
{
    KnErr local = {0};
    KnCode rc = kn_journal_sqlite_open(state, mode, ret, &local);
    if (rc == KN_E_NOTFOUND && mode == KN_JOURNAL_READ)
        return KN_OK;
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

KnDeliveryOptions kn_delivery_settings_options(const KnDeliverySettings *set, const KnTable *tbl,
                                               KnArena *arena)
{
    return (KnDeliveryOptions){
        .sink = set->sink,
        .target = set->target ? set->target : default_target(arena, tbl),
        .mode = (KnSinkMode)set->mode,
        .keys = set->keys.items,
        .n_keys = set->keys.len,
        .ref = set->ref,
        .chunk_bytes = (uint64_t)set->chunk_mb << 20,
        .parallel_loads = (int)set->parallel_loads,
        .max_windows = set->max_windows,
        .max_rewrite_bytes = set->max_rewrite_bytes,
    };
}
