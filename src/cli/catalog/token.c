/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - `knut catalog token`: a new bearer token, and its line for the file of `serve
 * --tokens`. */
#include "catalog/server/auth.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct TokenOptions {
    KnCommonOptions common;
} TokenOptions;

static KnCode run(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"token", false}, {"line", false}};
    static const char *read_all[] = {"read:*"};
    KnTokenLine made = {0};
    if (call->args.len == 0)
        return kn_err_set(err, KN_E_INVAL, "give the name of whom the token is for");
    KnOptList grants = {call->args.items + 1, call->args.len - 1};
    if (grants.len == 0)
        grants = (KnOptList){read_all, 1};
    KN_TRY(kn_auth_make_line(call->arena, call->args.items[0], &grants, &made, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 2);
    kn_out_text(out, made.token);
    kn_out_text(out, made.line);
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_catalog_token = {
    .group = "catalog",
    .name = "token",
    .summary = "Make a bearer token for a served catalog, and its line for the token file",
    .about =
        "Prints a new token, which is shown this once, and the line for the file that\n"
        "'knut catalog serve --tokens' reads, which holds only the token's SHA-256. Grants are\n"
        "read:, write: or admin: and a namespace with everything below it, or * for the catalog;\n"
        "without grants the token may read everything.\n\n"
        "  knut catalog token etl write:sales read:* --output json",
    .options_size = sizeof(TokenOptions),
    .positional = "NAME [GRANT...]",
    .run = run,
};
