/* SPDX-License-Identifier: Apache-2.0 */
/* compact_support.c - see compact_support.h. */
#include "unit/iceberg/compact_support.h"

#include <inttypes.h>

KnCompactResult lake_compact(Lake *lake, KnCompactOptions opts)
{
    KnCompactResult res = {.snapshot_id = -2};
    lake_ok(lake, kn_write_compact(lake->tbl, lake->ses, &opts, &res, &lake->err));
    return res;
}

KnCompactOptions compact_all(void)
{
    KnCompactOptions opts = kn_compact_defaults();
    opts.sizes.rewrite_all = true;
    return opts;
}

void lake_delete_positions(Lake *lake, const char *condition)
{
    KnPlan *p = lake_plan(lake);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 20);
    for (size_t i = 0; i < p->n_tasks; i++) {
        const KnDataFile *file = &p->tasks[i].data->file;
        kn_buf_printf(&sql,
                      "%sSELECT '%s' AS file_path, p AS pos FROM range(%" PRId64 ") t(p) WHERE %s",
                      i > 0 ? " UNION ALL " : "", file->path, file->record_count, condition);
    }
    lake_row_delta(lake, &(LakeRowDelta){.positions = sql.data, .operation = "delete"});
    kn_plan_free(p);
}

void lake_set_spec(Lake *lake, const char *text)
{
    KnPartitionSpec *spec = NULL;
    lake_ok(lake, kn_partition_spec_parse_text(lake->tbl->arena, kn_metadata_schema(lake->tbl->md),
                                               kn_str(text), &spec, &lake->err));
    KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SPEC, .spec = spec},
                          {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1}};
    KnTableCommit commit = {.updates = updates, .n_updates = 2};
    lake_ok(lake, kn_table_commit(lake->tbl, &commit, &lake->err));
}

void lake_set_default_spec(Lake *lake, int32_t id)
{
    KnUpdate update = {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = id};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &commit, &lake->err));
}
