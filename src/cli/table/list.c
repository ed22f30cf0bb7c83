/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - `knut table list`: the tables of a catalog. */
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct ListOptions {
    KnCommonOptions common;
    KnLocator loc;
} ListOptions;

static KnCode print_table(void *arg, const KnTableIdent *ident, KnErr *err)
{
    KnOut *out = arg;
    KN_BUF_AUTO levels = {0};
    kn_buf_init(&levels, 1 << 20);
    for (size_t i = 0; i < ident->n_levels; i++) {
        kn_buf_char(&levels, i ? ',' : '[');
        kn_json_quote(&levels, kn_str(ident->levels[i]));
    }
    kn_buf_char(&levels, ']');
    KN_ARENA_AUTO arena = kn_arena_new(0);
    kn_out_text(out, kn_table_ident_format(arena, ident));
    kn_out_json(out, (KnStr){levels.data, levels.len});
    kn_out_text(out, ident->name);
    return kn_out_check(out, err);
}

static KnCode run_list(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false}, {"namespace", false}, {"name", false}};
    const ListOptions *opts = call->options;
    if (opts->loc.table)
        return kn_err_set(err, KN_E_INVAL,
                          "--table is not for listing: 'knut table show' tells about one table");
    KnCatalog *cat = NULL;
    KN_TRY(kn_catalog_open(&opts->loc, false, &cat, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    KnCode rc = cat->ops->list(cat, print_table, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    kn_catalog_close(cat);
    return rc == KN_OK ? closed : rc;
}

const KnCommand kn_cmd_table_list = {
    .group = "table",
    .name = "list",
    .summary = "List the tables of a catalog",
    .about = "  knut table list --warehouse /data/wh",
    .options_size = sizeof(ListOptions),
    .locator = offsetof(ListOptions, loc),
    .run = run_list,
};
