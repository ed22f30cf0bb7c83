/* SPDX-License-Identifier: Apache-2.0 */
/* cdc_args.c - see cdc_args.h. */
#include "cli/cdc/cdc_args.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

const KnOption kn_cdc_rows[KN_CDC_ROWS] = {KN_CDC_ROW_CONFIG, KN_CDC_ROW_DELIVERY};

static KnCode enter_folder(KnArena *arena, const char *path, KnErr *err)
{
    KnStr dir = kn_path_dirname(kn_str(path));
    if (!dir.len)
        return KN_OK;
    const char *folder = kn_arena_strndup(arena, dir.ptr, dir.len);
    if (chdir(folder) != 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", folder, kn_errno_text(errno));
    return KN_OK;
}

static bool names_a_table(const KnLocator *loc)
{
    return loc->warehouse || loc->warehouse_uri || loc->root || loc->metadata || loc->table ||
           loc->rest.uri || loc->grpc.uri;
}

KnCode kn_cdc_config(const KnCdcOptions *opts, KnArena *arena, KnServiceConfig **ret, KnErr *err)
{
    if (opts->what.sink || names_a_table(&opts->what.loc))
        return kn_err_set(err, KN_E_INVAL,
                          "--config has tables and sinks of its own: give either it or their "
                          "options");
    KN_TRY(kn_service_config_load(opts->config, ret, err));
    KnCode rc = enter_folder(arena, opts->config, err);
    if (rc != KN_OK)
        *ret = kn_service_config_unref(*ret);
    return rc;
}

static KnCode one_of(const KnCdcOptions *opts, const KnServiceConfig *config,
                     const KnDeliverySettings **ret, KnErr *err)
{
    const KnServiceDelivery *found = NULL;
    if (opts->delivery)
        KN_TRY(kn_service_config_find(config, opts->delivery, &found, err));
    else if (config->n == 1)
        found = &config->deliveries[0];
    else
        return kn_err_set(err, KN_E_INVAL, "which delivery of %s? give --delivery NAME",
                          config->path);
    *ret = &found->set;
    return KN_OK;
}

static void unref_config(void *config)
{
    (void)kn_service_config_unref(config);
}

KnCode kn_cdc_settings(const KnCall *call, const KnDeliverySettings **ret, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    KnServiceConfig *config = NULL;
    if (opts->config) {
        KN_TRY(kn_cdc_config(opts, call->arena, &config, err));
        kn_arena_defer(call->arena, unref_config, config);
        return one_of(opts, config, ret, err);
    }
    if (opts->delivery)
        return kn_err_set(err, KN_E_INVAL, "--delivery goes with --config");
    if (!opts->what.sink)
        return kn_err_set(err, KN_E_INVAL,
                          "where to? give --sink duckdb:FILE, postgresql://HOST:PORT/DATABASE, "
                          "doris:http://FE:8030 or parquet:/FOLDER");
    *ret = &opts->what;
    return KN_OK;
}

static KnCode open_all(const KnCall *call, const KnDeliverySettings *set, KnJournalMode mode,
                       const KnDeliveryObserver *observer, KnCdcCall *cc, KnErr *err)
{
    KN_TRY(kn_locator_load(&set->loc, &cc->source.catalog, &cc->source.table, err));
    KN_TRY(kn_delivery_settings_journal(set->state, mode, &cc->journal, err));
    KnDeliveryOptions dlv = kn_delivery_settings_options(set, cc->source.table, call->arena);
    dlv.threads = (int)call->common->threads;
    dlv.memory_limit = call->common->memory_limit;
    dlv.spill_dir = call->common->spill_dir;
    if (observer)
        dlv.observer = *observer;
    return kn_delivery_open(cc->source.table, cc->journal, &dlv, &cc->delivery, err);
}

KnCode kn_cdc_delivery_open(const KnCall *call, const KnDeliverySettings *set, KnJournalMode mode,
                            const KnDeliveryObserver *observer, KnCdcCall *ret, KnErr *err)
{
    KnCdcCall cc = {0};
    KnCode rc = open_all(call, set, mode, observer, &cc, err);
    if (rc != KN_OK) {
        kn_cdc_call_close(&cc);
        return rc;
    }
    *ret = cc;
    return KN_OK;
}

KnCode kn_cdc_call_open(const KnCall *call, KnJournalMode mode, const KnDeliveryObserver *observer,
                        KnCdcCall *ret, KnErr *err)
{
    const KnDeliverySettings *set = NULL;
    KN_TRY(kn_cdc_settings(call, &set, err));
    return kn_cdc_delivery_open(call, set, mode, observer, ret, err);
}

void kn_cdc_call_close(KnCdcCall *cc)
{
    cc->delivery = kn_delivery_close(cc->delivery);
    cc->journal = kn_journal_close(cc->journal);
    kn_call_table_close(&cc->source);
}
