/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - what commands share: common options, help, the engine and the table of a call. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const KnOption common_rows[] = {
    {.name = "output",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnCommonOptions, output),
     .value = "text|json",
     .dflt = "text",
     .doc = "Form of what is printed on standard output"},
    {.name = "progress",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnCommonOptions, progress),
     .value = "auto|always|never",
     .dflt = "auto",
     .doc = "Progress on standard error: auto is a bar on a terminal; always gives plain lines "
            "elsewhere"},
    {.name = "threads",
     .type = KN_OPT_INT,
     .offset = offsetof(KnCommonOptions, threads),
     .value = "N",
     .dflt = "0",
     .min = 0,
     .max = 1024,
     .doc = "Threads of the engine; 0 is one for each processor"},
    {.name = "memory-limit",
     .type = KN_OPT_BYTES,
     .offset = offsetof(KnCommonOptions, memory_limit),
     .value = "SIZE",
     .dflt = "256MiB",
     .doc = "Memory for the engine's buffers; what does not fit is spilled to disk"},
    {.name = "spill-dir",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnCommonOptions, spill_dir),
     .value = "DIR",
     .doc = "Folder for spilled data (default: a new folder under TMPDIR, removed at the end)"},
    {.name = "log-level",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnCommonOptions, log_level),
     .value = "error|warn|info|debug",
     .dflt = "warn",
     .doc = "Least important events that are logged on standard error"},
    {.name = "log-format",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnCommonOptions, log_format),
     .value = "text|json",
     .dflt = "text",
     .doc = "Form of log lines and of the error line"},
    {.name = "debug",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnCommonOptions, debug),
     .value = "AREA,...",
     .doc = "Areas whose debug events are logged: cdc, engine, catalog, scan, write, all"},
    {.name = "help",
     .type = KN_OPT_FLAG,
     .offset = offsetof(KnCommonOptions, help),
     .doc = "Show this help"},
};

const KnOptGroup kn_common_options = {
    .title = "Common options",
    .options = common_rows,
    .n_options = sizeof(common_rows) / sizeof(common_rows[0]),
};

KnOptSpec kn_command_spec(KnArena *arena, const KnCommand *command)
{
    KnOptGroup *groups = kn_arena_zalloc(arena, (3 + KN_N_LOCATOR_GROUPS) * sizeof(*groups));
    size_t n = 0;
    if (command->n_rows)
        groups[n++] = (KnOptGroup){
            .title = "Options", .options = command->rows, .n_options = command->n_rows};
    if (command->extra) {
        groups[n] = *command->extra;
        groups[n++].base = command->extra_base;
    }
    if (command->locator) {
        for (size_t i = 0; i < KN_N_LOCATOR_GROUPS; i++) {
            groups[n] = kn_locator_groups[i];
            groups[n++].base += command->locator;
        }
    }
    groups[n++] = kn_common_options;
    return (KnOptSpec){.groups = groups, .n_groups = n, .positional = command->positional};
}

int kn_command_find(const char *const *words, size_t n, const KnCommand **ret)
{
    for (size_t i = 0; i < kn_n_commands && n > 0; i++) {
        const KnCommand *command = kn_commands[i];
        size_t taken = command->group ? 2 : 1;
        if (n < taken || (command->group && strcmp(words[0], command->group) != 0) ||
            strcmp(words[taken - 1], command->name) != 0)
            continue;
        *ret = command;
        return (int)taken;
    }
    return 0;
}

bool kn_command_is_group(const char *word)
{
    for (size_t i = 0; i < kn_n_commands; i++) {
        if (kn_commands[i]->group && !strcmp(kn_commands[i]->group, word))
            return true;
    }
    return false;
}

static void usage_line(const KnCommand *command, KnBuf *out)
{
    kn_buf_text(out, "knut ");
    if (command->group)
        kn_buf_printf(out, "%s ", command->group);
    kn_buf_printf(out, "%s [OPTIONS]", command->name);
    if (command->positional)
        kn_buf_printf(out, " %s", command->positional);
}

void kn_command_help(KnArena *arena, const KnCommand *command, KnBuf *out)
{
    kn_buf_text(out, "Usage: ");
    usage_line(command, out);
    kn_buf_printf(out, "\n\n%s.\n", command->summary);
    if (command->about)
        kn_buf_printf(out, "\n%s\n", command->about);
    kn_buf_char(out, '\n');
    KnOptSpec spec = kn_command_spec(arena, command);
    kn_options_help(&spec, out);
}

void kn_program_help(const char *group, KnBuf *out)
{
    kn_buf_printf(out,
                  "knut serves, delivers and computes Apache Iceberg tables.\n\nUsage: knut "
                  "%s%sCOMMAND [OPTIONS]\n\n",
                  group ? group : "", group ? " " : "");
    for (size_t i = 0; i < kn_n_commands; i++) {
        const KnCommand *command = kn_commands[i];
        if (group && (!command->group || strcmp(command->group, group) != 0))
            continue;
        char name[48];
        (void)snprintf(name, sizeof(name), "%s%s%s", command->group ? command->group : "",
                       command->group ? " " : "", command->name);
        kn_buf_printf(out, "  %-24s %s\n", name, command->summary);
    }
    kn_buf_text(out, "\n'knut COMMAND --help' shows a command's options.\n"
                     "Exit status: 0 done, 1 failed, 2 usage or configuration, 3 refused (an "
                     "operator must decide),\n"
                     "130 and 143 ended by a signal.\n");
}

void kn_reference_markdown(KnArena *arena, KnBuf *out)
{
    kn_buf_text(
        out,
        "# Commands and options\n\nMade by `knut help --markdown` from the option tables; a test "
        "holds the two equal.\n");
    for (size_t i = 0; i < kn_n_commands; i++) {
        const KnCommand *command = kn_commands[i];
        kn_buf_text(out, "\n## `");
        usage_line(command, out);
        kn_buf_printf(out, "`\n\n%s.\n", command->summary);
        if (command->about)
            kn_buf_printf(out, "\n```text\n%s\n```\n", command->about);
        kn_buf_char(out, '\n');
        if (!command->n_rows && !command->extra && !command->locator)
            continue;
        KnOptSpec spec = kn_command_spec(arena, command);
        spec.n_groups--; /* the common options stand once, below */
        kn_options_markdown(&spec, out);
    }
    kn_buf_text(out, "\n## Common options\n\nEvery command has these.\n\n");
    KnOptSpec common = {.groups = &kn_common_options, .n_groups = 1};
    kn_options_markdown(&common, out);
}

KnCode kn_call_engine_open(const KnCall *call, KnCallEngine *ret, KnErr *err)
{
    const KnCommonOptions *common = call->common;
    KnEngineOptions opts = {
        .threads = (int)common->threads,
        .memory_limit = common->memory_limit,
        .spill_dir = common->spill_dir,
    };
    KnCallEngine ce = {0};
    KN_TRY(kn_engine_open(&opts, &ce.engine, err));
    KnCode rc = kn_session_open(ce.engine, &ce.session, err);
    if (rc != KN_OK) {
        kn_call_engine_close(&ce);
        return rc;
    }
    *ret = ce;
    return KN_OK;
}

void kn_call_engine_close(KnCallEngine *ce)
{
    ce->session = kn_session_close(ce->session);
    ce->engine = kn_engine_close(ce->engine);
}

const KnLocator *kn_call_locator(const KnCall *call)
{
    return (const KnLocator *)((const char *)call->options + call->command->locator);
}

KnCode kn_call_table_open(const KnCall *call, KnCallTable *ret, KnErr *err)
{
    return kn_locator_load(kn_call_locator(call), &ret->catalog, &ret->table, err);
}

void kn_call_table_close(KnCallTable *ct)
{
    ct->table = kn_table_free(ct->table);
    ct->catalog = kn_catalog_close(ct->catalog);
}
