/* SPDX-License-Identifier: Apache-2.0 */
/* ddl.c - `knut cdc ddl`: the statement that makes a fitting target, for sinks that do not. */
#include <stdio.h>

#include "cli/cdc/cdc_args.h"
#include "cli/commands.h"
#include "cli/output.h"

static KnCode run_ddl(KnCall *call, KnErr *err)
{
    KN_CDC_CALL_AUTO cc = {0};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)4 << 20);
    KN_TRY(kn_cdc_call_open(call, KN_JOURNAL_READ, NULL, &cc, err));
    KN_TRY(kn_delivery_ddl(cc.delivery, &sql, err));
    static const KnOutColumn columns[] = {{"sql", false}};
    if ((KnOutputFormat)call->common->output == KN_OUTPUT_TEXT) {
        bool ok = printf("%s;\n", sql.data) > 0 && fflush(stdout) == 0;
        return ok ? KN_OK : kn_err_set(err, KN_E_IO, "standard output cannot be written");
    }
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 1);
    kn_out_text(out, sql.data);
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_cdc_ddl = {
    .group = "cdc",
    .name = "ddl",
    .summary = "Print the CREATE TABLE that a destination needs",
    .about =
        "  knut cdc ddl --warehouse /data/wh --table shop.orders --sink doris:http://fe:8030 "
        "--target shop.orders\n\n"
        "For destinations whose tables are made by hand (doris). Nothing is asked and nothing is "
        "changed.",
    .options_size = sizeof(KnCdcOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = kn_cdc_rows,
    .n_rows = KN_CDC_ROWS,
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_ddl,
};
