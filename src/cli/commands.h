/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* commands.h - every command, one per file. */
#include "cli/command.h"

extern const KnCommand kn_cmd_demo;
extern const KnCommand kn_cmd_table_list;
extern const KnCommand kn_cmd_table_create;
extern const KnCommand kn_cmd_table_alter;
extern const KnCommand kn_cmd_table_append;
extern const KnCommand kn_cmd_table_delete;
extern const KnCommand kn_cmd_table_overwrite;
extern const KnCommand kn_cmd_table_upsert;
extern const KnCommand kn_cmd_table_compact;
extern const KnCommand kn_cmd_table_rewrite_manifests;
extern const KnCommand kn_cmd_table_rewrite_deletes;
extern const KnCommand kn_cmd_table_scan;
extern const KnCommand kn_cmd_table_changes;
extern const KnCommand kn_cmd_table_show;
extern const KnCommand kn_cmd_table_history;
extern const KnCommand kn_cmd_table_files;
extern const KnCommand kn_cmd_table_stats;
extern const KnCommand kn_cmd_table_partition_stats;
extern const KnCommand kn_cmd_table_branch;
extern const KnCommand kn_cmd_table_tag;
extern const KnCommand kn_cmd_table_rollback;
extern const KnCommand kn_cmd_table_set_current;
extern const KnCommand kn_cmd_table_fast_forward;
extern const KnCommand kn_cmd_table_cherry_pick;
extern const KnCommand kn_cmd_table_publish;
extern const KnCommand kn_cmd_table_ancestors;
extern const KnCommand kn_cmd_table_expire;
extern const KnCommand kn_cmd_table_orphans;
extern const KnCommand kn_cmd_table_drop;
extern const KnCommand kn_cmd_table_register;
extern const KnCommand kn_cmd_table_rename;
extern const KnCommand kn_cmd_catalog_release;
extern const KnCommand kn_cmd_catalog_commits;
extern const KnCommand kn_cmd_catalog_verify;
extern const KnCommand kn_cmd_catalog_heal;
extern const KnCommand kn_cmd_cdc_run;
extern const KnCommand kn_cmd_cdc_status;
extern const KnCommand kn_cmd_cdc_check;
extern const KnCommand kn_cmd_cdc_reload;
extern const KnCommand kn_cmd_catalog_serve;
extern const KnCommand kn_cmd_catalog_token;
extern const KnCommand kn_cmd_help;
extern const KnCommand kn_cmd_version;
