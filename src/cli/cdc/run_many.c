/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_many.c - see run_many.h.
 *
 * The main thread waits for signals while the service's workers deliver. SIGTERM and SIGINT: every
 * window in flight is finished, exit 0. SIGHUP: the file is read again; a wrong one is told and
 * changes nothing.
 */
#include "cli/cdc/run_many.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/stop.h"
#include "cli/cdc/run_report.h"
#include "service/front.h"
#include "service/notify.h"
#include "service/service.h"

typedef struct Many {
    const KnCall *call;
    KnServiceConfig *config;
    KnService *svc;
    KnServiceFront *front;
    const char *listen;
    bool told_ready;  /* systemd, that the deliveries were looked at */
    const char *path; /* of the file, from its own folder */
    KnCode printed;
} Many;

static void tell_round(void *arg, const char *name, const KnDeliveryReport *report)
{
    Many *many = arg;
    KnErr err = {0};
    KnDeliveryReport named = *report;
    named.name = name;
    KnCode rc = kn_run_report_print(many->call, &named, &err);
    if (rc == KN_OK || many->printed != KN_OK)
        return;
    many->printed = rc;
    kn_log(KN_LOG_ERROR, "cdc", "output-lost", KN_F("error", err.msg));
}

static void tell_reloading(void)
{
    char lines[96];
    (void)snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                   kn_clock_mono_us());
    (void)kn_notify(lines);
}

static void reload(Many *many)
{
    KnServiceConfig *config = NULL;
    KnErr err = {0};
    bool restart = false;
    tell_reloading();
    if (kn_service_config_load(many->path, &config, &err) != KN_OK) {
        kn_log(KN_LOG_ERROR, "cdc", "config-rejected", KN_F("error", err.msg),
               KN_F("message", "the former one stays in force"));
        (void)kn_notify("READY=1");
        return;
    }
    kn_service_reload(many->svc, config, &restart);
    kn_log(KN_LOG_INFO, "cdc", "config-reloaded", KN_FI("deliveries", (int64_t)config->n));
    if (restart)
        kn_log(KN_LOG_WARN, "cdc", "config-needs-restart",
               KN_F("message", "keys of the process itself (state, workers, memory-limit, threads, "
                               "spill-dir, listen, ...) are those of its start"));
    config = kn_service_config_unref(config);
    (void)kn_notify("READY=1");
}

/* systemd hears that the service has begun once each delivery was looked at, whatever came of it:
 * one that must wait for its destination is no reason to start the others again and again. */
static void tell_systemd(Many *many)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    size_t n = 0, ready = 0;
    char lines[128];
    const KnServiceState *states = kn_service_states(many->svc, arena, &n);
    for (size_t i = 0; i < n; i++)
        ready += states[i].ready;
    if (!many->told_ready && !kn_service_has_looked(many->svc))
        return;
    (void)snprintf(lines, sizeof(lines), "READY=1\nWATCHDOG=1\nSTATUS=%zu of %zu deliveries ready",
                   ready, n);
    (void)kn_notify(many->told_ready ? lines + sizeof("READY=1") : lines);
    many->told_ready = true;
}

/* Half of what the watchdog allows; a quick look before that is known. */
static int pause_ms(const Many *many)
{
    int64_t watchdog = kn_notify_watchdog();
    if (!many->told_ready)
        return 200;
    return watchdog && watchdog < INT64_C(20000000) ? (int)(watchdog / 2000) : 10000;
}

static void serve(Many *many)
{
    while (!kn_stop_requested() && !kn_service_is_over(many->svc)) {
        struct pollfd fds[] = {{.fd = kn_stop_fd(), .events = POLLIN},
                               {.fd = kn_hangup_fd(), .events = POLLIN},
                               {.fd = kn_service_over_fd(many->svc), .events = POLLIN}};
        tell_systemd(many);
        (void)poll(fds, 3, pause_ms(many));
        if (kn_hangup_take())
            reload(many);
    }
}

/* Windows in flight may take their time: probes and the watchdog are answered until they are done.
 */
static void finish(const Many *many)
{
    (void)kn_notify("STOPPING=1");
    if (kn_stop_requested())
        kn_log(KN_LOG_INFO, "cdc", "service-stopping", KN_FI("signal", kn_stop_signal()));
    kn_service_end(many->svc);
    while (!kn_service_has_ended(many->svc)) {
        struct pollfd over = {.fd = kn_service_over_fd(many->svc), .events = POLLIN};
        (void)poll(&over, 1, 1000);
        (void)kn_notify("WATCHDOG=1");
    }
}

static KnCode open_front(Many *many, KnErr *err)
{
    KnListen listening = {.fd = -1};
    KnErr local = {0};
    KnCode rc = kn_listen_open(many->listen, &listening, &local);
    if (rc != KN_OK)
        return kn_err_set(err, rc, "listen: %s", local.msg);
    kn_log(KN_LOG_INFO, "cdc", "listening", KN_F("address", listening.text));
    return kn_service_front_open(&listening, many->svc, &many->front, err);
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
    KnCode opened = many->listen ? open_front(many, err) : KN_OK;
    if (opened == KN_OK)
        serve(many);
    finish(many);
    many->front = kn_service_front_close(many->front);
    KnCode rc = kn_service_stop(many->svc, opened == KN_OK ? err : NULL);
    rc = opened == KN_OK ? rc : opened;
    kn_log(KN_LOG_INFO, "cdc", "service-stopped", KN_F("outcome", kn_code_name(rc)));
    if (rc == KN_OK && many->printed != KN_OK)
        rc = kn_err_set(err, many->printed, "standard output cannot be written");
    return rc;
}

KnCode kn_run_many(const KnCall *call, bool once, const char *listen, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    Many many = {.call = call};
    KnStr name = kn_path_basename(kn_str(opts->config));
    many.path = kn_arena_strndup(call->arena, name.ptr, name.len);
    KN_TRY(kn_cdc_config(opts, call->arena, &many.config, err));
    many.listen = listen ? listen : many.config->opts.listen;
    kn_hangup_install();
    KnCode rc = run_file(&many, once, err);
    many.config = kn_service_config_unref(many.config);
    return rc;
}
