/* SPDX-License-Identifier: Apache-2.0 */
/* cdc_args.c - see cdc_args.h. */
#include "cli/cdc/cdc_args.h"

#include <string.h>

#include "base/path.h"

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(KnCdcOptions, f), .value = (v), .doc = (d)    \
    }
static const KnOption rows[] = {
    ROW("sink", KN_OPT_TEXT, sink, "KIND:PLACE",
        "Destination: duckdb:FILE, postgresql://HOST:PORT/DATABASE, "
        "doris:http://FE:8030[?SETTING=VALUE&...], or null: (counts and checks, keeps nothing)"),
    ROW("target", KN_OPT_TEXT, target, "[SCHEMA.]NAME",
        "Table in the destination (default: the source table's name)"),
    {.name = "mode",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnCdcOptions, mode),
     .value = "upsert|append",
     .dflt = "upsert",
     .doc = "upsert: deletes and updates are applied, by key where there is one; append: a delete "
            "refuses the window"},
    ROW("key", KN_OPT_LIST, keys, "COL,...",
        "Key of a row (default: the table's identifier fields, else whole rows)"),
    {.name = "ref",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnCdcOptions, ref),
     .value = "BRANCH",
     .dflt = "main",
     .doc = "Branch whose snapshots are delivered"},
    {.name = "state",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnCdcOptions, state),
     .value = "FILE",
     .dflt = "knut-state.db",
     .doc = "Journal: cursors, plans and the state of each chunk; keep it with the deployment"},
    {.name = "chunk-mb",
     .type = KN_OPT_INT,
     .offset = offsetof(KnCdcOptions, chunk_mb),
     .value = "N",
     .dflt = "64",
     .min = 1,
     .max = 65536,
     .doc = "Size of a chunk, one transaction of the destination, in MiB of source file"},
    {.name = "parallel-loads",
     .type = KN_OPT_INT,
     .offset = offsetof(KnCdcOptions, parallel_loads),
     .value = "N",
     .dflt = "4",
     .min = 1,
     .max = 256,
     .doc = "Chunks in flight, where the destination takes several"},
    {.name = "max-windows",
     .type = KN_OPT_INT,
     .offset = offsetof(KnCdcOptions, max_windows),
     .value = "N",
     .dflt = "0",
     .min = 0,
     .max = INT32_MAX,
     .doc = "Snapshots in one round; 0 is all"},
    {.name = "max-rewrite-bytes",
     .type = KN_OPT_BYTES,
     .offset = offsetof(KnCdcOptions, max_rewrite_bytes),
     .value = "SIZE",
     .dflt = "1GiB",
     .doc = "A snapshot that rewrites more than this is refused before anything is read"},
};

const KnOptGroup kn_cdc_options = {
    .title = "What is delivered where",
    .options = rows,
    .n_options = sizeof(rows) / sizeof(rows[0]),
};

/* "orders" of "shop.orders", of "/wh/shop/orders". */
static const char *default_target(KnArena *arena, const KnTable *tbl)
{
    if (tbl->ident.name)
        return tbl->ident.name;
    KnStr last = kn_path_basename(kn_str(tbl->md->location));
    return kn_arena_strndup(arena, last.ptr, last.len);
}

static KnCode open_journal(const KnCdcOptions *opts, KnJournalMode mode, KnJournal **ret,
                           KnErr *err)
{
    KnErr local = {0};
    KnCode rc = kn_journal_sqlite_open(opts->state, mode, ret, &local);
    if (rc == KN_E_NOTFOUND && mode == KN_JOURNAL_READ)
        return KN_OK;
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

static KnCode open_all(const KnCall *call, KnJournalMode mode, const KnDeliveryObserver *observer,
                       KnCdcCall *cc, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    if (!opts->sink)
        return kn_err_set(err, KN_E_INVAL,
                          "where to? give --sink duckdb:FILE or "
                          "postgresql://HOST:PORT/DATABASE");
    KN_TRY(kn_call_table_open(call, &cc->source, err));
    KN_TRY(open_journal(opts, mode, &cc->journal, err));
    KnDeliveryOptions dlv = {
        .sink = opts->sink,
        .target = opts->target ? opts->target : default_target(call->arena, cc->source.table),
        .mode = (KnSinkMode)opts->mode,
        .keys = opts->keys.items,
        .n_keys = opts->keys.len,
        .ref = opts->ref,
        .chunk_bytes = (uint64_t)opts->chunk_mb << 20,
        .parallel_loads = (int)opts->parallel_loads,
        .max_windows = opts->max_windows,
        .max_rewrite_bytes = opts->max_rewrite_bytes,
        .threads = (int)opts->common.threads,
        .memory_limit = opts->common.memory_limit,
        .spill_dir = opts->common.spill_dir,
    };
    if (observer)
        dlv.observer = *observer;
    return kn_delivery_open(cc->source.table, cc->journal, &dlv, &cc->delivery, err);
}

KnCode kn_cdc_call_open(const KnCall *call, KnJournalMode mode, const KnDeliveryObserver *observer,
                        KnCdcCall *ret, KnErr *err)
{
    KnCdcCall cc = {0};
    KnCode rc = open_all(call, mode, observer, &cc, err);
    if (rc != KN_OK) {
        kn_cdc_call_close(&cc);
        return rc;
    }
    *ret = cc;
    return KN_OK;
}

void kn_cdc_call_close(KnCdcCall *cc)
{
    cc->delivery = kn_delivery_close(cc->delivery);
    cc->journal = kn_journal_close(cc->journal);
    kn_call_table_close(&cc->source);
}
