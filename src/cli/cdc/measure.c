/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - `knut cdc measure`: what delivering changes costs beside loading the table anew.
 *
 * The windows that wait are delivered, as `run --once` does it, and timed by phase. A full reload
 * is what the table's first window took, which the journal remembers, brought to the rows that the
 * table has now. Where there is no such window to go by, it is reckoned from the rate of the
 * windows just delivered: an estimate, and called that.
 */
#include "cli/cdc/cdc_args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "iceberg/changes/changelog.h"
#include "service/secrets.h"

enum { MAX_HISTORY = 100000 };

static const KnOutColumn columns[] = {
    {"what", false},          {"windows", true},        {"rows", true},
    {"bytes", true},          {"plan_seconds", true},   {"begin_seconds", true},
    {"read_seconds", true},   {"encode_seconds", true}, {"load_seconds", true},
    {"record_seconds", true}, {"seconds", true},
};

/* Delivered windows together, or a reload of the same table. */
typedef struct Cost {
    int64_t windows, rows, bytes;
    int64_t phase_us[KN_N_PHASES]; /* -1 = not known */
    int64_t micros;
} Cost;

static Cost sum_of(const KnDeliveryReport *report)
{
    Cost sum = {.windows = (int64_t)report->n_windows};
    for (size_t i = 0; i < report->n_windows; i++) {
        const KnWindowReport *win = &report->windows[i];
        sum.rows += win->upserts + win->deletes;
        sum.bytes += win->bytes;
        sum.micros += (int64_t)(win->seconds * 1e6) + win->phase_us[KN_PHASE_PLAN];
        for (int p = 0; p < KN_N_PHASES; p++)
            sum.phase_us[p] += win->phase_us[p];
    }
    return sum;
}

static int64_t scale(int64_t value, int64_t by, int64_t from)
{
    return from > 0 ? (int64_t)((double)value * (double)by / (double)from) : value;
}

/* The first window of this epoch, as it was delivered; false when the journal has none with rows.
 */
static bool measured_reload(KnDelivery *dlv, KnArena *arena, int64_t rows, int64_t bytes, Cost *ret)
{
    KnDeliveryLag lag = {0};
    if (kn_delivery_lag(dlv, MAX_HISTORY, arena, &lag, NULL) != KN_OK)
        return false;
    for (size_t i = 0; i < lag.n_history; i++) {
        const KnJournalWindow *win = &lag.history[i];
        if (win->from >= 0 || win->upserts == 0)
            continue;
        *ret = (Cost){.windows = 1,
                      .rows = rows,
                      .bytes = bytes,
                      .micros = scale((int64_t)(win->seconds * 1e6), rows, win->upserts)};
        for (int p = 0; p < KN_N_PHASES; p++)
            ret->phase_us[p] = -1;
        return true;
    }
    return false;
}

/* Rows cost what they cost in these windows; the rest comes once. */
static Cost estimated_reload(const Cost *sum, int64_t rows, int64_t bytes)
{
    Cost whole = {.windows = 1, .rows = rows, .bytes = bytes};
    int64_t fixed = 0, before = 0;
    for (int p = 0; p < KN_N_PHASES; p++) {
        bool once = p == KN_PHASE_PLAN || p == KN_PHASE_BEGIN || p == KN_PHASE_RECORD;
        int64_t value = sum->phase_us[p];
        whole.phase_us[p] = once ? scale(value, 1, sum->windows) : scale(value, rows, sum->rows);
        fixed += once ? whole.phase_us[p] : 0;
        before += once ? value : 0;
    }
    int64_t rest = sum->micros > before ? sum->micros - before : 0;
    whole.micros = fixed + scale(rest, rows, sum->rows);
    return whole;
}

static void out_cost(KnOut *out, const char *what, const Cost *cost)
{
    kn_out_text(out, what);
    kn_out_int(out, cost->windows);
    kn_out_int(out, cost->rows);
    kn_out_bytes(out, cost->bytes);
    for (int p = 0; p < KN_N_PHASES; p++)
        if (cost->phase_us[p] < 0)
            kn_out_null(out);
        else
            kn_out_seconds(out, (double)cost->phase_us[p] / 1e6);
    kn_out_seconds(out, (double)cost->micros / 1e6);
}

/* The table's live rows and bytes, as its first window would have them. */
static KnCode whole_table(const KnCdcCall *cc, const char *ref, int64_t *ret_rows,
                          int64_t *ret_bytes, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    KnLineage first;
    KnWindow *win = NULL;
    *ret_rows = *ret_bytes = 0;
    KN_TRY(kn_window_lineage(cc->source.table, -1, ref, arena, &first, err));
    if (first.n == 0)
        return KN_OK;
    KN_TRY(kn_window_plan(cc->source.table, NULL, first.items[0], &win, err));
    *ret_rows = win->read_rows;
    *ret_bytes = win->read_bytes;
    win = kn_window_free(win);
    return KN_OK;
}

static KnCode run_measure(KnCall *call, KnErr *err)
{
    const KnDeliverySettings *set = NULL;
    KN_CDC_CALL_AUTO cc = {0};
    int64_t rows = 0, bytes = 0;
    KN_TRY(kn_secrets_take(err));
    KN_TRY(kn_cdc_settings(call, &set, err));
    KN_TRY(kn_cdc_delivery_open(call, set, KN_JOURNAL_WRITE, NULL, &cc, err));
    KN_TRY(kn_delivery_round(cc.delivery, err));
    const Cost sum = sum_of(kn_delivery_report(cc.delivery));
    if (sum.windows == 0 || sum.rows == 0)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "no rows wait to be delivered: there is nothing to measure; commit "
                          "something first, or run 'knut cdc reload' to measure the whole table");
    KN_TRY(whole_table(&cc, set->ref, &rows, &bytes, err));
    Cost whole;
    bool measured = measured_reload(cc.delivery, call->arena, rows, bytes, &whole);
    if (!measured)
        whole = estimated_reload(&sum, rows, bytes);
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns,
                             sizeof(columns) / sizeof(columns[0]));
    out_cost(out, "changes", &sum);
    out_cost(out, measured ? "reload (measured)" : "reload (estimate)", &whole);
    KN_TRY(kn_out_close(out, err));
    if (call->common->output != KN_OUTPUT_TEXT)
        return KN_OK;
    KN_BUF_AUTO line;
    kn_buf_init(&line, 1024);
    kn_buf_printf(&line, "a full reload would take about %.1f times as long as these changes",
                  sum.micros > 0 ? (double)whole.micros / (double)sum.micros : 0);
    return kn_out_line((KnStr){line.data, line.len}, err);
}

const KnCommand kn_cmd_cdc_measure = {
    .group = "cdc",
    .name = "measure",
    .summary = "Deliver what waits, timed by phase, beside what a full reload would cost",
    .about = "  knut cdc measure --warehouse /data/wh --table shop.orders --sink "
             "duckdb:/data/copy.duckdb\n\n"
             "The windows are really delivered (bound them with --max-windows). Reading, encoding "
             "and loading run side\nby side, so the phases add up to more than the time that "
             "passed. A reload is what the first window\ntook, brought to the rows of now; where "
             "the journal has none, "
             "it is reckoned from these windows' rate.",
    .options_size = sizeof(KnCdcOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = kn_cdc_rows,
    .n_rows = KN_CDC_ROWS,
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_measure,
};
