/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - finds the command, fills its options, runs it, prints the one line of an error, gives
 * the exit status: 0 done, 1 failed, 2 usage or configuration, 3 refused, 128+signal when a signal
 * ended the work.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"

/* The words that name the command: how many of argv they take, 0 = none found. */
static int find_command(int argc, char **argv, const KnCommand **ret)
{
    for (size_t i = 0; i < kn_n_commands && argc > 1; i++) {
        const KnCommand *command = kn_commands[i];
        if (!command->group && !strcmp(argv[1], command->name)) {
            *ret = command;
            return 1;
        }
        if (command->group && argc > 2 && !strcmp(argv[1], command->group) &&
            !strcmp(argv[2], command->name)) {
            *ret = command;
            return 2;
        }
    }
    return 0;
}

static bool is_group(const char *word)
{
    for (size_t i = 0; i < kn_n_commands; i++) {
        if (kn_commands[i]->group && !strcmp(kn_commands[i]->group, word))
            return true;
    }
    return false;
}

/* The nearest command's last word, for "did you mean"; NULL when none is near. */
static const char *nearest(const char *group, const char *word)
{
    const char *best = NULL;
    size_t distance = 3;
    for (size_t i = 0; i < kn_n_commands; i++) {
        const KnCommand *command = kn_commands[i];
        if ((command->group == NULL) != (group == NULL) ||
            (group && strcmp(command->group, group) != 0))
            continue;
        size_t d = kn_str_distance(kn_str(word), kn_str(command->name));
        if (d < distance) {
            distance = d;
            best = command->name;
        }
    }
    return best;
}

static KnCode unknown_command(int argc, char **argv, KnErr *err)
{
    const char *group = is_group(argv[1]) ? argv[1] : NULL;
    if (group && argc < 3)
        return kn_err_set(err, KN_E_INVAL, "knut %s needs a command; 'knut help' lists them",
                          group);
    const char *word = group ? argv[2] : argv[1];
    const char *near = nearest(group, word);
    return kn_err_set(err, KN_E_INVAL,
                      "there is no command 'knut %s%s%.60s'%s%s%s; 'knut help' lists them",
                      group ? group : "", group ? " " : "", word, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'" : "");
}

static void print_error(const char *name, const KnErr *err, bool json)
{
    if (!json) {
        (void)fprintf(stderr, "knut: %s%s%s\n", name, *name ? ": " : "", err->msg);
        return;
    }
    KN_BUF_AUTO line = {0};
    kn_buf_init(&line, 1 << 16);
    kn_buf_text(&line, "{\"error\":");
    kn_json_quote(&line, kn_str(err->msg));
    kn_buf_printf(&line, ",\"code\":\"%s\",\"exit\":%d}\n", kn_code_name(err->code),
                  kn_code_exit_status(err->code));
    (void)fputs(line.data, stderr);
}

static KnCode run_command(KnCall *call, KnArgs words, KnErr *err)
{
    const KnCommand *command = call->command;
    KnOptSpec spec = kn_command_spec(call->arena, command);
    call->options = kn_arena_zalloc(call->arena, command->options_size);
    call->common = call->options;
    KN_TRY(kn_options_parse(&spec, words, call->arena, call->options, &call->args, err));
    if (call->common->help) {
        KN_BUF_AUTO text = {0};
        kn_buf_init(&text, 1 << 20);
        kn_command_help(call->arena, command, &text);
        return kn_out_line((KnStr){text.data, text.len ? text.len - 1 : 0}, err);
    }
    kn_log_set((KnLogLevel)call->common->log_level, (KnLogFormat)call->common->log_format);
    if (call->common->debug)
        kn_log_set_debug(call->common->debug);
    return command->run(call, err);
}

static int exit_status(KnCode code)
{
    if (code == KN_E_CANCELLED && kn_stop_signal())
        return 128 + kn_stop_signal();
    return kn_code_exit_status(code);
}

/* `knut`, `knut --help` and `knut --version` are commands too. */
static const KnCommand *implied_command(int argc, char **argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return &kn_cmd_help;
    return !strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") ? &kn_cmd_version : NULL;
}

int main(int argc, char **argv)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnErr err = {0};
    kn_stop_install();
    KnCall call = {.arena = arena, .command = implied_command(argc, argv)};
    int taken = call.command ? argc - 1 : find_command(argc, argv, &call.command);
    KnCode rc;
    char name[64] = "";
    if (!call.command) {
        rc = unknown_command(argc, argv, &err);
    } else {
        (void)snprintf(name, sizeof(name), "%s%s%s", call.command->group ? call.command->group : "",
                       call.command->group ? " " : "", call.command->name);
        rc = run_command(&call, (KnArgs){argc - 1 - taken, argv + 1 + taken}, &err);
    }
    bool json = call.common && (call.common->log_format == KN_LOG_JSON);
    if (rc != KN_OK && err.msg[0])
        print_error(name, &err, json);
    return exit_status(rc);
}
