/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop.c - a folder into which files are dropped, as a stream that is read as far as it goes.
 *
 * A run reads the files that are there and that no run before it has read into the target. Which
 * these were is a file in the target's own folder (`_seen_FLOW`, Parquet without the ending), so
 * that rows and log change in the one step in which the folder changes: no file is read twice, and
 * none is lost, whenever a run ends. A file is known by its name; one whose name begins with a dot
 * or an underscore is not yet dropped.
 */
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/path.h"
#include "pipeline/native/native.h"

typedef struct Drop {
    KnNativeRun *run;
    KnNativeFormat format;
    KnMap *seen;
    KnBuf list;  /* the new files, as readers take them, with commas */
    KnBuf names; /* the same, as they are called */
    size_t n;
} Drop;

const char *kn_native_drop_name(KnArena *arena, const char *dir)
{
    size_t len = strlen(dir);
    while (len && dir[len - 1] == '/')
        len--;
    KnStr base = kn_path_basename((KnStr){dir, len});
    const char *dot = memchr(base.ptr, '.', base.len);
    return kn_arena_strndup(arena, base.ptr, dot ? (size_t)(dot - base.ptr) : base.len);
}

const char *kn_native_seen_path(KnArena *arena, const char *folder, const KnutFlow *flow)
{
    return kn_arena_printf(arena, "%s/_seen_%s", folder, flow->name);
}

static KnCode add_seen(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    Drop *drop = arg;
    KnVector files = kn_batch_vector(batch, 0);
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        bool is_new = false;
        *kn_map_get_or_add(drop->seen, kn_vector_str(&files, i), &is_new) = drop;
    }
    return KN_OK;
}

static KnCode read_seen(Drop *drop, const char *file, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT file FROM ");
    kn_native_files_sql(&sql, KN_NATIVE_PARQUET, file, NULL);
    return kn_session_visit(drop->run->session, sql.data, add_seen, drop, err);
}

static KnCode add_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    Drop *drop = arg;
    KnStr name = kn_path_basename(kn_str(info->location));
    if (!name.len || name.ptr[0] == '.' || name.ptr[0] == '_' ||
        kn_native_format(NULL, info->location) != drop->format ||
        kn_map_find(drop->seen, kn_str(info->location)))
        return KN_OK;
    kn_buf_text(&drop->list, drop->n ? ", " : "");
    kn_buf_text(&drop->names, drop->n++ ? ", " : "");
    kn_sql_path(&drop->list, kn_str(info->location));
    kn_sql_text(&drop->names, kn_str(info->location));
    return kn_buf_check(&drop->list, err);
}

static void reader_sql(const Drop *drop, KnBuf *sql)
{
    static const char *const readers[] = {"read_parquet", "read_csv", "read_json"};
    kn_buf_printf(sql, "SELECT * FROM %s([%s], hive_partitioning=false, union_by_name=true)",
                  readers[drop->format], drop->list.data);
}

/* The log of the new folder: what the old one has, and the files of this run. */
static void log_sql(const Drop *drop, const char *old, KnBuf *sql)
{
    kn_buf_printf(sql, "SELECT unnest([%s]) AS file", drop->names.data);
    if (old) {
        kn_buf_text(sql, " UNION ALL SELECT file FROM ");
        kn_native_files_sql(sql, KN_NATIVE_PARQUET, old, NULL);
    }
}

static KnCode look(Drop *drop, KnNativeNode *node, const KnutFlow *flow, const char *dir,
                   KnErr *err)
{
    KnNativeRun *run = drop->run;
    const char *old = kn_native_seen_path(run->arena, node->path, flow);
    bool again = !node->fresh && access(old, F_OK) == 0;
    KN_BUF_AUTO sql = {.max = 64 << 20};
    KN_BUF_AUTO log = {.max = 64 << 20};
    if (again)
        KN_TRY(read_seen(drop, old, err));
    KN_TRY(kn_io_list(run->io, kn_str(dir), add_file, drop, err));
    if (!drop->n)
        return KN_OK;
    reader_sql(drop, &sql);
    log_sql(drop, again ? old : NULL, &log);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_buf_check(&log, err));
    node->seen_sql = kn_arena_strndup(run->arena, log.data, log.len);
    node->drop = flow;
    return kn_native_create(run, "VIEW", kn_native_drop_name(run->arena, dir), sql.data, err);
}

KnCode kn_native_drop(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow, const char **ret,
                      KnErr *err)
{
    const KnutSource *source = &flow->kind.streaming.source;
    const char *dir = NULL;
    KN_TRY(kn_native_path(run->arena, source->file_drop.dir, &dir, err));
    Drop drop = {.run = run,
                 .format = kn_native_format(source->file_drop.format, NULL),
                 .seen = kn_map_new(),
                 .list = {.max = 64 << 20},
                 .names = {.max = 64 << 20}};
    KnCode rc = look(&drop, node, flow, dir, err);
    kn_native_tell(run, &(KnRunEvent){.element = node->dataset->name, .phase = KN_PHASE_RUNNING},
                   "flow `%s` (streaming): %zu new file(s) in %s", flow->name, drop.n, dir);
    kn_buf_done(&drop.list);
    kn_buf_done(&drop.names);
    kn_map_free(drop.seen);
    *ret = rc == KN_OK && drop.n ? kn_native_flow_sql(run, flow) : NULL;
    return rc;
}
