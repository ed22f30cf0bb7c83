/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_many.c - see run_many.h.
 *
 * The main thread waits for signals while the service's workers deliver. SIGTERM and SIGINT: every
 * window in flight is finished, exit 0. SIGHUP: the file is read again; a wrong one is told and
 * changes nothing.
 */
#include "cli/cdc/run_many.h"

#include <poll.h>
#include <stdio.h>

#include "base/log.h"
#include "base/path.h"
#include "base/stop.h"
#include "cli/cdc/run_report.h"
#include "service/service.h"

typedef struct Many {
    const KnCall *call;
    KnServiceConfig *config;
    KnService *svc;
    const char *path; /* of the file, from its own folder */
    KnCode printed;
} Many;

static void tell_round(void *arg, const char *name, const KnDeliveryReport *report)
{
    Many *many = arg;
    KnErr err = {0};
    (void)name;
    KnCode rc = kn_run_report_print(many->call, report, &err);
    if (rc == KN_OK || many->printed != KN_OK)
        return;
    many->printed = rc;
    kn_log(KN_LOG_ERROR, "cdc", "output-lost", KN_F("error", err.msg));
}

static void reload(Many *many)
{
    KnServiceConfig *config = NULL;
    KnErr err = {0};
    bool restart = false;
    if (kn_service_config_load(many->path, &config, &err) != KN_OK) {
        kn_log(KN_LOG_ERROR, "cdc", "config-rejected", KN_F("error", err.msg),
               KN_F("message", "the former one stays in force"));
        return;
    }
    kn_service_reload(many->svc, config, &restart);
    kn_log(KN_LOG_INFO, "cdc", "config-reloaded", KN_FI("deliveries", (int64_t)config->n));
    if (restart)
        kn_log(KN_LOG_WARN, "cdc", "config-needs-restart",
               KN_F("message", "keys of the process itself (state, workers, memory-limit, threads, "
                               "spill-dir, listen, ...) are those of its start"));
    config = kn_service_config_unref(config);
}

static void serve(Many *many)
{
    while (!kn_stop_requested() && !kn_service_is_over(many->svc)) {
        struct pollfd fds[] = {{.fd = kn_stop_fd(), .events = POLLIN},
                               {.fd = kn_hangup_fd(), .events = POLLIN},
                               {.fd = kn_service_over_fd(many->svc), .events = POLLIN}};
        (void)poll(fds, 3, -1);
        if (kn_hangup_take())
            reload(many);
    }
}

static KnCode run_file(Many *many, bool once, KnErr *err)
{
    const KnCdcOptions *opts = many->call->options;
    const KnServiceStart start = {.config = many->config,
                                  .once = once,
                                  .only = opts->delivery,
                                  .hooks = {.round = tell_round, .arg = many}};
    KN_TRY(kn_service_start(&start, &many->svc, err));
    kn_log(KN_LOG_INFO, "cdc", "service-started", KN_F("config", opts->config),
           KN_FI("deliveries", (int64_t)many->config->n),
           KN_FI("workers", many->config->opts.workers));
    serve(many);
    if (kn_stop_requested())
        kn_log(KN_LOG_INFO, "cdc", "service-stopping", KN_FI("signal", kn_stop_signal()));
    KnCode rc = kn_service_stop(many->svc, err);
    kn_log(KN_LOG_INFO, "cdc", "service-stopped", KN_F("outcome", kn_code_name(rc)));
    if (rc == KN_OK && many->printed != KN_OK)
        rc = kn_err_set(err, many->printed, "standard output cannot be written");
    return rc;
}

KnCode kn_run_many(const KnCall *call, bool once, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    Many many = {.call = call};
    KnStr name = kn_path_basename(kn_str(opts->config));
    many.path = kn_arena_strndup(call->arena, name.ptr, name.len);
    KN_TRY(kn_cdc_config(opts, call->arena, &many.config, err));
    kn_hangup_install();
    KnCode rc = run_file(&many, once, err);
    many.config = kn_service_config_unref(many.config);
    return rc;
}
