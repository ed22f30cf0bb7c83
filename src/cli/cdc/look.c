/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - `knut cdc status`, `check` and `reload`: what was delivered, what would be, and starting
 * over. */
#include <inttypes.h>

#include "base/clock.h"
#include "cli/cdc/cdc_args.h"
#include "cli/cdc/look_many.h"
#include "cli/commands.h"
#include "cli/output.h"

static void out_snapshot(KnOut *out, int64_t id)
{
    if (id < 0)
        kn_out_null(out);
    else
        kn_out_int(out, id);
}

/* ---- status ---- */

static const KnOutColumn status_columns[] = {
    {"table", false},       {"sink", false},          {"target", false}, {"status", false},
    {"cursor", true},       {"head", true},           {"behind", true},  {"rows_behind", true},
    {"bytes_behind", true}, {"seconds_behind", true}, {"epoch", true},   {"updated_at", false},
    {"message", false},
};
enum { N_STATUS = sizeof(status_columns) / sizeof(status_columns[0]) };

static void out_status(KnOut *out, const KnDeliveryRow *row, const KnDeliveryLag *lag)
{
    char when[32];
    kn_out_text(out, row->table);
    kn_out_text(out, row->key.sink);
    kn_out_text(out, row->key.target);
    kn_out_text(out, row->status);
    out_snapshot(out, row->cursor);
    out_snapshot(out, lag ? lag->head : -1);
    kn_out_opt_int(out, lag ? lag->snapshots : -1);
    kn_out_opt_int(out, lag ? lag->rows : -1);
    kn_out_opt_int(out, lag ? lag->bytes : -1);
    kn_out_opt_int(out, lag ? kn_delivery_lag_seconds(lag) : -1);
    kn_out_int(out, row->epoch);
    kn_out_text(out, row->updated_ms > 0 ? kn_clock_format_ms(row->updated_ms, when) : NULL);
    kn_out_text(out, lag && lag->message[0] ? lag->message : row->message[0] ? row->message : NULL);
}

static KnCode status_of_one(const KnCall *call, KnErr *err)
{
    KN_CDC_CALL_AUTO cc = {0};
    KN_TRY(kn_cdc_call_open(call, KN_JOURNAL_READ, NULL, &cc, err));
    KnDeliveryLag lag = {0};
    KN_TRY(kn_delivery_lag(cc.delivery, 0, call->arena, &lag, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, status_columns, N_STATUS);
    out_status(out, &lag.row, &lag);
    return kn_out_close(out, err);
}

static KnCode status_of_all(const KnCall *call, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    KnJournal *jn = NULL;
    KN_TRY(kn_journal_sqlite_open(opts->what.state, KN_JOURNAL_READ, &jn, err));
    KnDeliveryRow *list = NULL;
    size_t n = 0;
    KnCode rc = jn->ops->deliveries(jn, call->arena, &list, &n, err);
    if (rc == KN_OK) {
        KnOut *out = kn_out_open((KnOutputFormat)call->common->output, status_columns, N_STATUS);
        for (size_t i = 0; i < n; i++)
            out_status(out, &list[i], NULL);
        rc = kn_out_close(out, err);
    }
    kn_journal_close(jn);
    return rc;
}

static KnCode run_status(KnCall *call, KnErr *err)
{
    const KnCdcOptions *opts = call->options;
    if (opts->config)
        return kn_status_many(call, err);
    return opts->what.sink ? status_of_one(call, err) : status_of_all(call, err);
}

const KnCommand kn_cmd_cdc_status = {
    .group = "cdc",
    .name = "status",
    .summary = "Show cursors and how far they are behind",
    .about = "  knut cdc status --state knut-state.db\n"
             "  knut cdc status --warehouse /data/wh --table shop.orders --sink "
             "duckdb:/data/copy.duckdb\n"
             "  knut cdc status -c knut.yaml\n\n"
             "Without --sink: all deliveries of the journal, as recorded. With it: this one beside "
             "its table.",
    .options_size = sizeof(KnCdcOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = kn_cdc_rows,
    .n_rows = KN_CDC_ROWS,
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_status,
};

/* ---- check ---- */

static KnCode run_check(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"from", true},      {"to", true},         {"operation", false},    {"kind", false},
        {"upserts", true},   {"deletes", true},    {"chunks", true},        {"read_files", true},
        {"read_rows", true}, {"read_bytes", true}, {"rewrite_bytes", true}, {"refused", false},
        {"message", false},
    };
    const KnCdcOptions *opts = call->options;
    if (opts->config)
        return kn_check_many(call, err);
    KN_CDC_CALL_AUTO cc = {0};
    KN_TRY(kn_cdc_call_open(call, KN_JOURNAL_READ, NULL, &cc, err));
    KnDeliveryCheck check = {0};
    KN_TRY(
        kn_delivery_check(cc.delivery, (size_t)opts->what.max_windows, call->arena, &check, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 13);
    for (size_t i = 0; i < check.n_windows; i++) {
        const KnWindowCost *win = &check.windows[i];
        out_snapshot(out, win->from);
        out_snapshot(out, win->to);
        kn_out_text(out, win->operation);
        kn_out_text(out, win->kind);
        kn_out_opt_int(out, win->upserts);
        kn_out_opt_int(out, win->deletes);
        kn_out_opt_int(out, win->chunks);
        kn_out_int(out, win->read_files);
        kn_out_int(out, win->read_rows);
        kn_out_bytes(out, win->read_bytes);
        kn_out_bytes(out, win->rewrite_bytes);
        kn_out_bool(out, win->refused);
        kn_out_text(out, win->message[0] ? win->message : NULL);
    }
    KN_TRY(kn_out_close(out, err));
    if (check.code != KN_OK)
        return kn_err_set(err, check.code, "%s", check.message);
    return KN_OK;
}

const KnCommand kn_cmd_cdc_check = {
    .group = "cdc",
    .name = "check",
    .summary = "Show the windows that would be delivered and what they cost, from manifests alone",
    .about = "  knut cdc check --warehouse /data/wh --table shop.orders --sink "
             "duckdb:/data/copy.duckdb\n"
             "  knut cdc check -c knut.yaml\n\n"
             "Exit status 3 when a window would be refused. --max-windows bounds how many are "
             "looked at.",
    .options_size = sizeof(KnCdcOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = kn_cdc_rows,
    .n_rows = KN_CDC_ROWS,
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_check,
};

/* ---- reload ---- */

static KnCode run_reload(KnCall *call, KnErr *err)
{
    KN_CDC_CALL_AUTO cc = {0};
    KN_TRY(kn_cdc_call_open(call, KN_JOURNAL_WRITE, NULL, &cc, err));
    KN_TRY(kn_delivery_reload(cc.delivery, err));
    static const KnOutColumn columns[] = {{"table", false}, {"epoch", true}, {"note", false}};
    KnDeliveryLag lag = {0};
    KN_TRY(kn_delivery_lag(cc.delivery, 0, call->arena, &lag, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    kn_out_text(out, lag.row.table);
    kn_out_int(out, lag.row.epoch);
    kn_out_text(out, "the next 'knut cdc run' empties the target and delivers the table anew");
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_cdc_reload = {
    .group = "cdc",
    .name = "reload",
    .summary = "Start over: the next run empties the target and delivers the whole table again",
    .about = "  knut cdc reload --warehouse /data/wh --table shop.orders --sink "
             "duckdb:/data/copy.duckdb",
    .options_size = sizeof(KnCdcOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = kn_cdc_rows,
    .n_rows = KN_CDC_ROWS,
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_reload,
};
