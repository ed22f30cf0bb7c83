/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - `knut catalog serve`: one catalog, served over REST and gRPC until a signal comes.
 *
 * The order is that of what is cheap to find out: which flags go together, before anything is
 * opened and before credentials are looked for; then certificates, tokens and the database; then
 * the sockets, whose addresses are printed; then the fronts. A signal closes the fronts, which
 * finish what is in flight, and then the rest.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/stop.h"
#include "catalog/server/front.h"
#include "cli/catalog/serve_args.h"
#include "cli/commands.h"
#include "cli/output.h"

enum { MALLOC_ARENAS = 4, MALLOC_TRIM = 4 << 20, MALLOC_MMAP = 1 << 20, MALLOC_PAD = 128 << 10 };

/* What is open, in the order in which it is closed. */
typedef struct Serving {
    const KnServeOptions *opts;
    KnFrontContext ctx;
    KnServeFront fronts[KN_SERVE_FRONTS];
    size_t n_fronts;
} Serving;

static void log_start(const Serving *serving)
{
    const KnFrontContext *ctx = &serving->ctx;
    for (size_t i = 0; i < serving->n_fronts; i++) {
        const KnServeFront *front = &serving->fronts[i];
        kn_log(KN_LOG_INFO, "catalog", "serving", KN_F("front", front->ops->name),
               KN_F("address", front->listening.text), KN_F("catalog", ctx->catalog),
               KN_F("warehouse", kn_core_warehouse(ctx->core)),
               KN_F("store", kn_core_id(ctx->core)),
               KN_F("tls", !ctx->tls.cert_file       ? "no"
                           : ctx->tls.client_ca_file ? "mutual"
                                                     : "yes"),
               KN_F("tokens", kn_auth_is_on(ctx->auth) ? "yes" : "no"));
        bool loopback = !strncmp(front->listening.text, "127.", 4) ||
                        !strncmp(front->listening.text, "[::1]", 5);
        if (!loopback && !kn_auth_is_on(ctx->auth) && !ctx->tls.client_ca_file)
            kn_log(KN_LOG_WARN, "catalog", "open-to-all", KN_F("address", front->listening.text),
                   KN_F("message", "anybody who reaches this address may change the catalog; "
                                   "--tokens or --tls-client-ca would prevent that"));
    }
}

/* How clients get at files in an object store; a warning where they cannot without keys of their
 * own. */
static void log_access(const Serving *serving)
{
    bool lends = serving->ctx.lender != NULL, signs = serving->opts->remote_signing;
    if (!serving->opts->s3.bucket)
        return;
    kn_log(lends || signs ? KN_LOG_INFO : KN_LOG_WARN, "catalog", "file-access",
           KN_F("keys", lends ? "lent" : "none"), KN_F("signing", signs ? "yes" : "no"),
           KN_F("message", lends ? "clients that ask for it get keys for a table's folder from STS"
                           : signs ? "clients' requests to the store are signed for them"
                                   : "clients need keys of their own for the store: none are lent "
                                     "without --sts-endpoint or --sts-role-arn, and requests are "
                                     "not signed without --remote-signing"));
}

static KnCode open_core(Serving *serving, KnArena *arena, KnErr *err)
{
    KnCoreOptions core = {0};
    KN_TRY(kn_serve_core_options(serving->opts, arena, &core, err));
    KN_TRY(kn_core_open(&core, &serving->ctx.core, err));
    KnStr db = kn_str(core.db), warehouse = kn_str(core.warehouse);
    serving->ctx.quick_reads = !kn_str_starts_with(db, KN_STR_LIT("postgres")) &&
                               kn_str_starts_with(warehouse, KN_STR_LIT("file:"));
    kn_serve_client_config(core.io, arena, &serving->ctx.client_config,
                           &serving->ctx.n_client_config);
    return KN_OK;
}

static KnCode open_shared(Serving *serving, KnArena *arena, KnErr *err)
{
    const KnServeOptions *opts = serving->opts;
    KnFrontContext *ctx = &serving->ctx;
    KnAuthOptions auth = {opts->tokens, getenv("KNUT_TOKEN_KEY"), (int64_t)opts->token_lifetime};
    ctx->catalog = opts->catalog;
    ctx->max_body = opts->max_body;
    ctx->cors_origins = opts->cors_origins.items;
    ctx->n_cors_origins = opts->cors_origins.len;
    ctx->tls = (KnHttpdTls){opts->tls_cert, opts->tls_key, opts->tls_client_ca};
    ctx->remote_signing = opts->remote_signing;
    KN_TRY(kn_serve_open_lender(opts, &ctx->lender, err));
    KN_TRY(kn_auth_open(&auth, &ctx->auth, err));
    if (opts->audit_log)
        KN_TRY(kn_audit_open(opts->audit_log, &ctx->audit, err));
    return open_core(serving, arena, err);
}

static KnCode open_fronts(Serving *serving, KnErr *err)
{
    for (size_t i = 0; i < serving->n_fronts; i++) {
        KnServeFront *front = &serving->fronts[i];
        KN_TRY(front->ops->open(&serving->ctx, &front->listening, &front->front, err));
    }
    return KN_OK;
}

/* Where the fronts are: in the file that scripts wait for, and then on standard output, so that who
 * has read that finds the file. */
static KnCode tell_addresses(const KnCall *call, const Serving *serving, KnErr *err)
{
    static const KnOutColumn columns[] = {{"front", false}, {"url", false}};
    const KnServeOptions *opts = serving->opts;
    if (opts->port_file)
        KN_TRY(kn_serve_write_ports(opts->port_file, serving->fronts, serving->n_fronts,
                                    call->arena, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 2);
    for (size_t i = 0; i < serving->n_fronts; i++) {
        const KnServeFront *front = &serving->fronts[i];
        kn_out_text(out, front->ops->name);
        kn_out_text(out, kn_arena_printf(call->arena, "%s://%s", opts->tls_cert ? "https" : "http",
                                         front->listening.text));
    }
    return kn_out_close(out, err);
}

static KnCode close_all(Serving *serving, KnErr *err)
{
    bool all = true;
    if (serving->ctx.core)
        kn_core_stop(serving->ctx.core);
    for (size_t i = 0; i < serving->n_fronts; i++) {
        KnServeFront *front = &serving->fronts[i];
        if (front->front)
            all = front->ops->close(front->front, (int64_t)(serving->opts->drain * 1e6)) && all;
        kn_listen_close(&front->listening);
    }
    serving->ctx.core = kn_core_close(serving->ctx.core);
    serving->ctx.lender = kn_s3_lender_close(serving->ctx.lender);
    serving->ctx.auth = kn_auth_close(serving->ctx.auth);
    serving->ctx.audit = kn_audit_close(serving->ctx.audit);
    if (all)
        return KN_OK;
    return kn_err_set(err, KN_E_IO, "requests were cut off after %.0f s (--drain)",
                      serving->opts->drain);
}

static KnCode serve(KnCall *call, Serving *serving, KnErr *err)
{
    enum { AN_HOUR_US = 3600 * 1000000L };
    const KnServeOptions *opts = serving->opts;
    KN_TRY(kn_serve_check(opts, err));
    KN_TRY(kn_serve_listen(opts, serving->fronts, &serving->n_fronts, err));
    KN_TRY(open_shared(serving, call->arena, err));
    KN_TRY(open_fronts(serving, err));
    log_start(serving);
    log_access(serving);
    KN_TRY(tell_addresses(call, serving, err));
    while (!kn_stop_wait(AN_HOUR_US))
        (void)malloc_trim(0);
    kn_log(KN_LOG_INFO, "catalog", "stopping", KN_FI("signal", kn_stop_signal()));
    return KN_OK;
}

/* Many threads, little memory each; what one request frees the next one takes, and does not go to
 * the system and back in between. */
static void set_malloc(void)
{
    (void)mallopt(M_ARENA_MAX, MALLOC_ARENAS);
    (void)mallopt(M_TRIM_THRESHOLD, MALLOC_TRIM);
    (void)mallopt(M_MMAP_THRESHOLD, MALLOC_MMAP);
    (void)mallopt(M_TOP_PAD, MALLOC_PAD);
}

static KnCode run(KnCall *call, KnErr *err)
{
    Serving serving = {.opts = call->options};
    set_malloc();
    KnCode rc = serve(call, &serving, err);
    KnCode closed = close_all(&serving, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : closed;
}

static const KnOptGroup s3_group = {
    .title = "Object storage",
    .options = kn_s3_option_rows,
    .n_options = KN_N_S3_OPTIONS,
};

const KnCommand kn_cmd_catalog_serve = {
    .group = "catalog",
    .name = "serve",
    .summary = "Serve a catalog to other programs (Iceberg REST, gRPC)",
    .about =
        "Serves the tables of a warehouse to every engine that speaks the Iceberg REST protocol\n"
        "(Spark, Trino, PyIceberg, DuckDB, Flink, ...) until SIGTERM or Ctrl-C, which lets "
        "requests\n"
        "in flight finish. The warehouse and its database may be in use by other knut commands at\n"
        "the same time. Credentials for S3 come from the environment only. With --tokens every\n"
        "request needs a bearer token; 'knut catalog token' makes them.\n"
        "/health, /ready and /metrics are for probes and monitoring.\n\n"
        "  knut catalog serve --warehouse /data/lake --rest 127.0.0.1:8181\n"
        "  knut catalog serve --warehouse-uri s3://lake/wh --s3-bucket lake --s3-endpoint\n"
        "      http://127.0.0.1:9000 --db /var/lib/knut/catalog.db --rest :8181 --tokens "
        "tokens.txt",
    .options_size = sizeof(KnServeOptions),
    .rows = kn_serve_rows,
    .n_rows = KN_SERVE_ROWS,
    .extra = &s3_group,
    .extra_base = offsetof(KnServeOptions, s3),
    .run = run,
};
