/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - `knut help` and `knut version`. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/output.h"

typedef struct HelpOptions {
    KnCommonOptions common;
    bool markdown;
} HelpOptions;

static const KnOption help_rows[] = {
    {.name = "markdown",
     .type = KN_OPT_FLAG,
     .offset = offsetof(HelpOptions, markdown),
     .doc = "Print the reference of all commands, as docs/reference.md holds it"},
};

/* Of the words after `help`: nothing, a group, or a command. */
static KnCode help_on(KnCall *call, KnBuf *text, KnErr *err)
{
    const KnOptList *words = &call->args;
    const KnCommand *command = NULL;
    bool is_group = words->len == 1 && kn_command_is_group(words->items[0]);
    if (words->len == 0 || is_group)
        kn_program_help(is_group ? words->items[0] : NULL, text);
    else if ((size_t)kn_command_find(words->items, words->len, &command) == words->len)
        kn_command_help(call->arena, command, text);
    else
        return kn_err_set(err, KN_E_INVAL, "there is no command 'knut %.60s%s%.60s'",
                          words->items[0], words->len > 1 ? " " : "",
                          words->len > 1 ? words->items[1] : "");
    return KN_OK;
}

static KnCode run_help(KnCall *call, KnErr *err)
{
    const HelpOptions *opts = call->options;
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 4 << 20);
    if (opts->markdown)
        kn_reference_markdown(call->arena, &text);
    else
        KN_TRY(help_on(call, &text, err));
    KN_TRY(kn_buf_check(&text, err));
    return kn_out_line((KnStr){text.data, text.len - 1}, err);
}

const KnCommand kn_cmd_help = {
    .name = "help",
    .summary = "List the commands, or print their reference",
    .options_size = sizeof(HelpOptions),
    .rows = help_rows,
    .n_rows = 1,
    .positional = "[COMMAND]",
    .run = run_help,
};

static KnCode run_version(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"program", false}, {"version", false}, {"engine", false}};
    if (call->common->output == KN_OUTPUT_TEXT)
        return kn_out_line(KN_STR_LIT("knut " KN_VERSION_STRING), err);
    KnOut *out = kn_out_open(KN_OUTPUT_JSON, columns, 3);
    kn_out_text(out, "knut");
    kn_out_text(out, KN_VERSION_STRING);
    kn_out_text(out, "duckdb 1.5.5");
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_version = {
    .name = "version",
    .summary = "Print the version",
    .options_size = sizeof(KnCommonOptions),
    .run = run_version,
};
