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
    const char *group = kn_command_is_group(argv[1]) ? argv[1] : NULL;
    if (group && argc < 3)
        return kn_err_set(err, KN_E_INVAL, "knut %s needs a command; 'knut help %s' lists them",
                          group, group);
    const char *word = group ? argv[2] : argv[1];
    const char *near = nearest(group, word);
    return kn_err_set(err, KN_E_INVAL,
                      "there is no command 'knut %s%s%.60s'%s%s%s; 'knut help%s%s' lists them",
                      group ? group : "", group ? " " : "", word, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'" : "", group ? " " : "", group ? group : "");
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

static bool asks_for_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* Finds the command and the words that are left for it; false when there is none. `knut`,
 * `knut --help`, `knut GROUP --help` and `knut --version` are commands too. */
static bool choose_command(int argc, char **argv, const KnCommand **ret, KnArgs *ret_words)
{
    int taken = argc - 1;
    if (argc < 2 || asks_for_help(argv[1])) {
        *ret = &kn_cmd_help;
    } else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        *ret = &kn_cmd_version;
    } else if (argc == 3 && kn_command_is_group(argv[1]) && asks_for_help(argv[2])) {
        *ret = &kn_cmd_help;
        *ret_words = (KnArgs){1, argv + 1};
        return true;
    } else {
        taken = kn_command_find((const char *const *)argv + 1, (size_t)argc - 1, ret);
        if (!taken)
            return false;
    }
    *ret_words = (KnArgs){argc - 1 - taken, argv + 1 + taken};
    return true;
}

int main(int argc, char **argv)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnErr err = {0};
    kn_stop_install();
    KnCall call = {.arena = arena};
    KnArgs words = {0};
    KnCode rc;
    char name[64] = "";
    if (!choose_command(argc, argv, &call.command, &words)) {
        rc = unknown_command(argc, argv, &err);
    } else {
        (void)snprintf(name, sizeof(name), "%s%s%s", call.command->group ? call.command->group : "",
                       call.command->group ? " " : "", call.command->name);
        rc = run_command(&call, words, &err);
    }
    bool json = call.common && (call.common->log_format == KN_LOG_JSON);
    if (rc != KN_OK && err.msg[0])
        print_error(name, &err, json);
    return exit_status(rc);
}
