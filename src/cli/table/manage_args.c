/* SPDX-License-Identifier: Apache-2.0 */
/* manage_args.c - see manage_args.h. */
#include "cli/table/manage_args.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output.h"

KnCode kn_args_open_writable(const KnCall *call, KnCallTable *ret, KnErr *err)
{
    KN_TRY(kn_call_table_open(call, ret, err));
    if (ret->catalog->ops->read_only)
        return kn_err_set(
            err, KN_E_INVAL,
            "a bare table is read-only; changing it needs --warehouse DIR --table NS.NAME");
    return KN_OK;
}

KnCode kn_args_duration_ms(const KnCall *call, const char *flag, const char *text, int64_t *ret_ms,
                           KnErr *err)
{
    static const KnOption row = {.name = "", .type = KN_OPT_SECONDS, .value = "DURATION"};
    double seconds = 0;
    if (!text)
        return KN_OK;
    KN_TRY(kn_option_set(&row, flag, text, call->arena, &seconds, err));
    if (seconds < 0.001 || seconds > 9e12)
        return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' is %s", flag, text,
                          seconds < 1 ? "shorter than a millisecond" : "too long");
    *ret_ms = (int64_t)(seconds * 1000 + 0.5);
    return KN_OK;
}

/* "7d" and "1.5h" are durations; a date has no such end, and plain digits are milliseconds. */
static bool is_duration(const char *text)
{
    size_t len = strlen(text);
    return len > 1 && text[0] != '-' && strspn(text, "0123456789.") < len &&
           strchr("smhd", text[len - 1]) && strspn(text, "0123456789.msh d") == len;
}

KnCode kn_args_moment_ms(const KnCall *call, const char *flag, const char *text, int64_t *ret_ms,
                         KnErr *err)
{
    if (!text)
        return KN_OK;
    if (!is_duration(text)) {
        KnCode rc = kn_clock_parse_ms(text, ret_ms, err);
        return kn_err_wrap(err, rc, "%s", flag);
    }
    int64_t ms = 0;
    KN_TRY(kn_args_duration_ms(call, flag, text, &ms, err));
    *ret_ms = kn_clock_wall_ms() - ms;
    return KN_OK;
}

KnCode kn_args_one_word(const KnCall *call, const char *what, const char **ret, KnErr *err)
{
    if (call->args.len != 1)
        return kn_err_set(err, KN_E_INVAL, "give %s, and nothing else", what);
    *ret = call->args.items[0];
    return KN_OK;
}

KnCode kn_args_print_move(const KnCall *call, const KnTable *tbl, const KnMoveLine *line,
                          KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false}, {"operation", false},
                                          {"ref", false},   {"before", true},
                                          {"after", true},  {"changed", false}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    kn_out_text(out, tbl->name);
    kn_out_text(out, line->operation);
    kn_out_text(out, line->ref);
    kn_out_opt_int(out, line->move->before);
    kn_out_opt_int(out, line->move->after);
    kn_out_bool(out, line->move->changed);
    return kn_out_close(out, err);
}

KnCode kn_args_report_left(const KnSweepResult *files, KnErr *err)
{
    int64_t n = files->foreign + files->failed;
    if (!n)
        return KN_OK;
    return kn_err_set(err, files->first.code, "%" PRId64 " files were left, the first: %s", n,
                      files->first.msg);
}
