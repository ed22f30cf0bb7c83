/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_many.c - see look_many.h. Each delivery is opened, looked at and closed by itself: one that
 * cannot be opened has a line that says why, and the others have theirs.
 */
#include "cli/cdc/look_many.h"

#include "base/clock.h"
#include "cli/output.h"

/* Which deliveries, and what became of them. */
typedef struct Many {
    const KnCall *call;
    KnServiceConfig *config;
    KnOut *out;
    KnCode worst;
    size_t n_wrong;
    const char *wrong, *why; /* the first of the worst */
} Many;

typedef KnCode (*LookFn)(Many *many, const KnServiceDelivery *def, KnErr *err);

static void note(Many *many, const KnServiceDelivery *def, KnCode rc, const char *message)
{
    bool refused = kn_code_exit_status(rc) == 3;
    if (rc == KN_OK)
        return;
    many->n_wrong++;
    if (many->worst != KN_OK && !(refused && kn_code_exit_status(many->worst) != 3))
        return;
    many->worst = rc;
    many->wrong = def->name;
    many->why = kn_arena_strdup(many->call->arena, message);
}

static KnCode for_each(Many *many, LookFn look, KnErr *err)
{
    const KnCdcOptions *opts = many->call->options;
    const KnServiceDelivery *one = NULL;
    if (opts->delivery)
        KN_TRY(kn_service_config_find(many->config, opts->delivery, &one, err));
    for (size_t i = 0; i < many->config->n; i++) {
        const KnServiceDelivery *def = &many->config->deliveries[i];
        KnErr why = {0};
        if (one && one != def)
            continue;
        KnCode rc = look(many, def, &why);
        note(many, def, rc, why.msg);
    }
    return KN_OK;
}

static void unref_config(void *config)
{
    (void)kn_service_config_unref(config);
}

static KnCode run(const KnCall *call, const KnOutColumn *columns, size_t n_columns, LookFn look,
                  Many *many, KnErr *err)
{
    *many = (Many){.call = call};
    KN_TRY(kn_cdc_config(call->options, call->arena, &many->config, err));
    kn_arena_defer(call->arena, unref_config, many->config);
    many->out = kn_out_open((KnOutputFormat)call->common->output, columns, n_columns);
    KnCode rc = for_each(many, look, err);
    KnCode closed = kn_out_close(many->out, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : closed;
}

static void out_snapshot(KnOut *out, int64_t id)
{
    if (id < 0)
        kn_out_null(out);
    else
        kn_out_int(out, id);
}

static void out_nulls(KnOut *out, int n)
{
    while (n-- > 0)
        kn_out_null(out);
}

/* ---- status ---- */

static const KnOutColumn status_columns[] = {
    {"delivery", false},   {"table", false},       {"sink", false},          {"target", false},
    {"status", false},     {"cursor", true},       {"head", true},           {"behind", true},
    {"rows_behind", true}, {"bytes_behind", true}, {"seconds_behind", true}, {"epoch", true},
    {"updated_at", false}, {"message", false},
};

static void out_lag(KnOut *out, const KnDeliveryLag *lag)
{
    char when[32];
    const KnDeliveryRow *row = &lag->row;
    kn_out_text(out, row->table);
    kn_out_text(out, row->key.sink);
    kn_out_text(out, row->key.target);
    kn_out_text(out, row->status);
    out_snapshot(out, row->cursor);
    out_snapshot(out, lag->head);
    kn_out_opt_int(out, lag->snapshots);
    kn_out_opt_int(out, lag->rows);
    kn_out_opt_int(out, lag->bytes);
    kn_out_opt_int(out, kn_delivery_lag_seconds(lag));
    kn_out_int(out, row->epoch);
    kn_out_text(out, row->updated_ms > 0 ? kn_clock_format_ms(row->updated_ms, when) : NULL);
    kn_out_text(out, lag->message[0] ? lag->message : row->message[0] ? row->message : NULL);
}

/* A line whose table or journal could not be read: what the file says, and why. */
static void out_unknown(KnOut *out, const KnServiceDelivery *def, const char *why)
{
    kn_out_text(out, def->set.loc.table ? def->set.loc.table : def->name);
    kn_out_text(out, def->sink_id);
    kn_out_text(out, def->set.target);
    kn_out_text(out, "unknown");
    out_nulls(out, 8);
    kn_out_text(out, why);
}

static KnCode status_of_one(Many *many, const KnServiceDelivery *def, KnErr *err)
{
    KN_CDC_CALL_AUTO cc = {0};
    KnDeliveryLag lag = {0};
    KnCode rc = kn_cdc_delivery_open(many->call, &def->set, KN_JOURNAL_READ, NULL, &cc, err);
    if (rc == KN_OK)
        rc = kn_delivery_lag(cc.delivery, 0, many->call->arena, &lag, err);
    kn_out_text(many->out, def->name);
    if (rc == KN_OK)
        out_lag(many->out, &lag);
    else
        out_unknown(many->out, def, err->msg);
    return rc;
}

KnCode kn_status_many(const KnCall *call, KnErr *err)
{
    Many many;
    KN_TRY(run(call, status_columns, sizeof(status_columns) / sizeof(status_columns[0]),
               status_of_one, &many, err));
    return KN_OK;
}

/* ---- check ---- */

static const KnOutColumn check_columns[] = {
    {"delivery", false},  {"table", false},  {"sink", false},
    {"target", false},    {"windows", true}, {"read_rows", true},
    {"read_bytes", true}, {"result", false}, {"message", false},
};

typedef struct Sum {
    int64_t windows, rows, bytes;
} Sum;

static KnCode check_one(const Many *many, const KnServiceDelivery *def, Sum *ret, KnErr *err)
{
    const KnCdcOptions *opts = many->call->options;
    KN_CDC_CALL_AUTO cc = {0};
    KnDeliveryCheck check = {0};
    KN_TRY(kn_cdc_delivery_open(many->call, &def->set, KN_JOURNAL_READ, NULL, &cc, err));
    KN_TRY(kn_delivery_check(cc.delivery, (size_t)opts->what.max_windows, many->call->arena, &check,
                             err));
    ret->windows = (int64_t)(check.n_windows + check.n_more);
    for (size_t i = 0; i < check.n_windows; i++) {
        ret->rows += check.windows[i].read_rows;
        ret->bytes += check.windows[i].read_bytes;
    }
    if (check.code != KN_OK)
        return kn_err_set(err, check.code, "%s", check.message);
    return KN_OK;
}

static KnCode check_line(Many *many, const KnServiceDelivery *def, KnErr *err)
{
    Sum sum = {0};
    KnOut *out = many->out;
    KnCode rc = check_one(many, def, &sum, err);
    kn_out_text(out, def->name);
    kn_out_text(out, def->set.loc.table ? def->set.loc.table : def->name);
    kn_out_text(out, def->sink_id);
    kn_out_text(out, def->set.target);
    kn_out_int(out, sum.windows);
    kn_out_int(out, sum.rows);
    kn_out_bytes(out, sum.bytes);
    kn_out_text(out, rc == KN_OK ? "ok" : kn_code_name(rc));
    kn_out_text(out, rc == KN_OK ? NULL : err->msg);
    return rc;
}

KnCode kn_check_many(const KnCall *call, KnErr *err)
{
    Many many;
    KN_TRY(run(call, check_columns, sizeof(check_columns) / sizeof(check_columns[0]), check_line,
               &many, err));
    if (many.worst == KN_OK)
        return KN_OK;
    return kn_err_set(err, many.worst, "%zu deliveries would not run; %s: %s", many.n_wrong,
                      many.wrong, many.why);
}
