/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - the list of commands, in the order in which help shows them. */
#include "cli/commands.h"

const KnCommand *const kn_commands[] = {
    &kn_cmd_demo,
    &kn_cmd_table_list,
    &kn_cmd_table_create,
    &kn_cmd_table_alter,
    &kn_cmd_table_append,
    &kn_cmd_table_delete,
    &kn_cmd_table_overwrite,
    &kn_cmd_table_compact,
    &kn_cmd_table_rewrite_manifests,
    &kn_cmd_table_scan,
    &kn_cmd_table_changes,
    &kn_cmd_table_show,
    &kn_cmd_table_history,
    &kn_cmd_table_files,
    &kn_cmd_table_branch,
    &kn_cmd_table_tag,
    &kn_cmd_table_rollback,
    &kn_cmd_table_set_current,
    &kn_cmd_table_fast_forward,
    &kn_cmd_table_cherry_pick,
    &kn_cmd_table_publish,
    &kn_cmd_table_ancestors,
    &kn_cmd_table_expire,
    &kn_cmd_cdc_run,
    &kn_cmd_cdc_status,
    &kn_cmd_cdc_check,
    &kn_cmd_cdc_reload,
    &kn_cmd_help,
    &kn_cmd_version,
};
const size_t kn_n_commands = sizeof(kn_commands) / sizeof(kn_commands[0]);
