/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expire.c - see expire.h.
 *
 * The commit requires that no ref moved, came or went since the decision: a tag that another commit
 * put on a snapshot that goes would go with it. What the new metadata reaches is read after the
 * commit, so that snapshots made meanwhile count.
 */
#include "iceberg/maintain/expire.h"

#include <inttypes.h>

#include "base/fault.h"
#include "base/map.h"
#include "base/vec.h"
#include "iceberg/write/commit_retry.h"

typedef struct Expiry {
    KnSession *ses;
    const KnExpireOptions *opts;
    KnArena *arena;
    KnExpireResult result;
    KnMetadata *before, *after; /* references; NULL: nothing goes */
} Expiry;

typedef KN_VEC(KnRequirement) Requirements;
typedef KN_VEC(KnUpdate) Updates;

static KnCode tell(const Expiry *ex, const char *kind, const char *name, KnErr *err)
{
    return ex->opts->told ? ex->opts->told(ex->opts->sweep.arg, kind, name, err) : KN_OK;
}

static KnCode tell_number(const Expiry *ex, const char *kind, int64_t number, KnErr *err)
{
    return tell(ex, kind, kn_arena_printf(ex->arena, "%" PRId64, number), err);
}

/* ---- specs and schemas that nothing uses ---- */

typedef struct Used {
    const KnMetadata *md;
    bool *specs, *schemas; /* by index in md */
} Used;

static void use_spec(const Used *used, int32_t id)
{
    for (size_t i = 0; i < used->md->n_specs; i++)
        used->specs[i] |= used->md->specs[i]->spec_id == id;
}

static void use_schema(const Used *used, int32_t id)
{
    for (size_t i = 0; i < used->md->n_schemas; i++)
        used->schemas[i] |= used->md->schemas[i]->schema_id == id;
}

static bool goes(const KnRetention *retention, int64_t id)
{
    for (size_t i = 0; i < retention->n_gone; i++)
        if (retention->gone[i] == id)
            return true;
    return false;
}

static KnCode find_used(const KnTable *tbl, const KnRetention *retention, const Used *used,
                        KnErr *err)
{
    const KnMetadata *md = used->md;
    use_spec(used, md->default_spec_id);
    use_schema(used, md->current_schema_id);
    for (size_t i = 0; i < md->n_snapshots; i++) {
        const KnSnapshot *snap = &md->snapshots[i];
        if (goes(retention, snap->snapshot_id))
            continue;
        use_schema(used, snap->schema_id);
        KN_ARENA_AUTO arena = kn_arena_new(0);
        KnManifestFile *files = NULL;
        size_t n = 0;
        KN_TRY(kn_manifest_list_read(tbl->io, arena, snap, &files, &n, err));
        for (size_t f = 0; f < n; f++)
            use_spec(used, files[f].spec_id);
    }
    return KN_OK;
}

static void add_ids_update(Updates *updates, KnUpdateKind kind, const int64_t *ids, size_t n)
{
    if (n)
        *kn_vec_push(updates) = (KnUpdate){.kind = kind, .ids = ids, .n_ids = n};
}

static KnCode add_unused(Expiry *ex, const KnTable *tbl, const KnRetention *retention,
                         Updates *updates, KnErr *err)
{
    const KnMetadata *md = tbl->md;
    Used used = {.md = md,
                 .specs = kn_arena_zalloc(ex->arena, md->n_specs + 1),
                 .schemas = kn_arena_zalloc(ex->arena, md->n_schemas + 1)};
    KN_TRY(find_used(tbl, retention, &used, err));
    int64_t *specs = kn_arena_alloc(ex->arena, (md->n_specs + 1) * sizeof(*specs));
    int64_t *schemas = kn_arena_alloc(ex->arena, (md->n_schemas + 1) * sizeof(*schemas));
    for (size_t i = 0; i < md->n_specs; i++)
        if (!used.specs[i])
            specs[ex->result.specs++] = md->specs[i]->spec_id;
    for (size_t i = 0; i < md->n_schemas; i++)
        if (!used.schemas[i])
            schemas[ex->result.schemas++] = md->schemas[i]->schema_id;
    add_ids_update(updates, KN_UPDATE_REMOVE_SPECS, specs, (size_t)ex->result.specs);
    add_ids_update(updates, KN_UPDATE_REMOVE_SCHEMAS, schemas, (size_t)ex->result.schemas);
    for (int64_t i = 0; i < ex->result.specs; i++)
        KN_TRY(tell_number(ex, "partition-spec", specs[i], err));
    for (int64_t i = 0; i < ex->result.schemas; i++)
        KN_TRY(tell_number(ex, "schema", schemas[i], err));
    return KN_OK;
}

/* ---- the commit ---- */

static void require_refs(const KnMetadata *md, Requirements *reqs)
{
    if (md->uuid)
        *kn_vec_push(reqs) = (KnRequirement){.kind = KN_REQUIRE_UUID, .text = md->uuid};
    *kn_vec_push(reqs) =
        (KnRequirement){.kind = KN_REQUIRE_REF_COUNT, .number = (int64_t)md->n_refs};
    for (size_t i = 0; i < md->n_refs; i++)
        *kn_vec_push(reqs) = (KnRequirement){.kind = KN_REQUIRE_REF_SNAPSHOT_ID,
                                             .text = md->refs[i].name,
                                             .number = md->refs[i].snapshot_id};
    *kn_vec_push(reqs) =
        (KnRequirement){.kind = KN_REQUIRE_CURRENT_SCHEMA_ID, .number = md->current_schema_id};
    *kn_vec_push(reqs) =
        (KnRequirement){.kind = KN_REQUIRE_DEFAULT_SPEC_ID, .number = md->default_spec_id};
}

static KnCode plan_updates(Expiry *ex, const KnTable *tbl, Updates *updates, KnErr *err)
{
    KnRetention retention = {0};
    KnCode rc = kn_expire_retention(ex->arena, tbl->md, ex->opts, &retention, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s", tbl->name);
    ex->result =
        (KnExpireResult){.snapshots = (int64_t)retention.n_gone, .refs = (int64_t)retention.n_refs};
    for (size_t i = 0; i < retention.n_refs; i++) {
        *kn_vec_push(updates) =
            (KnUpdate){.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = retention.refs[i]->name};
        KN_TRY(tell(ex, "ref", retention.refs[i]->name, err));
    }
    for (size_t i = 0; i < retention.n_gone; i++)
        KN_TRY(tell_number(ex, "snapshot", retention.gone[i], err));
    add_ids_update(updates, KN_UPDATE_REMOVE_SNAPSHOTS, retention.gone, retention.n_gone);
    return ex->opts->clean_metadata ? add_unused(ex, tbl, &retention, updates, err) : KN_OK;
}

static KnCode apply_updates(Expiry *ex, KnTable *tbl, const Updates *updates, KnErr *err)
{
    Requirements reqs = {0};
    if (updates->len == 0)
        return KN_OK;
    KN_METADATA_AUTO before = kn_metadata_ref(tbl->md);
    KN_METADATA_AUTO after = NULL;
    if (ex->opts->sweep.dry_run) {
        KN_TRY(kn_metadata_apply(before, updates->items, updates->len, NULL, &after, err));
    } else {
        require_refs(before, &reqs);
        KnTableCommit change = {.requirements = reqs.items,
                                .n_requirements = reqs.len,
                                .updates = updates->items,
                                .n_updates = updates->len};
        KnCode rc = kn_table_commit(tbl, &change, err);
        kn_vec_done(&reqs);
        if (rc != KN_OK)
            return rc;
        after = kn_metadata_ref(tbl->md);
    }
    ex->before = kn_metadata_ref(before);
    ex->after = kn_metadata_ref(after);
    return KN_OK;
}

static KnCode expire_once(KnTable *tbl, void *arg, KnErr *err)
{
    Expiry *ex = arg;
    Updates updates = {0};
    KN_TRY(kn_table_check_gc(tbl, "expire snapshots of", err));
    KnCode rc = plan_updates(ex, tbl, &updates, err);
    if (rc == KN_OK)
        rc = apply_updates(ex, tbl, &updates, err);
    kn_vec_done(&updates);
    return rc;
}

/* ---- the files ---- */

typedef struct Sides {
    KnReach old, left;
    KnFileSet *gone, *live;
} Sides;

static KnCode add_expired(const Expiry *ex, KnReach *old, KnErr *err)
{
    for (size_t i = 0; i < ex->before->n_snapshots; i++) {
        const KnSnapshot *snap = &ex->before->snapshots[i];
        if (!kn_metadata_find_snapshot(ex->after, snap->snapshot_id))
            KN_TRY(kn_reach_add_snapshot(old, snap, err));
    }
    return KN_OK;
}

static KnCode fill(const Expiry *ex, const KnTable *tbl, Sides *sides, KnErr *err)
{
    KN_TRY(add_expired(ex, &sides->old, err));
    KN_TRY(kn_reach_add_all(&sides->left, err));
    /* Data and delete files live on both sides are in manifests of both sides, or in rewritten
     * ones: those of the expired side that are not kept are read, and if they name any file at all,
     * every manifest that is left. */
    KN_TRY(kn_reach_put_contents(&sides->old, &sides->left, sides->gone, err));
    if (kn_file_set_count(sides->gone) > 0)
        KN_TRY(kn_reach_put_contents(&sides->left, NULL, sides->live, err));
    KN_TRY(kn_reach_put_manifests(&sides->old, &sides->left, sides->gone, err));
    KN_TRY(kn_reach_put_manifests(&sides->left, NULL, sides->live, err));
    KN_TRY(kn_reach_put_lists(ex->before, sides->gone, err));
    KN_TRY(kn_reach_put_lists(ex->after, sides->live, err));
    KN_TRY(kn_reach_put_statistics(ex->before, sides->gone, err));
    KN_TRY(kn_reach_put_statistics(ex->after, sides->live, err));
    return kn_reach_put_metadata(ex->after, tbl->metadata_location, true, sides->live, err);
}

static KnCode clean_files(Expiry *ex, KnTable *tbl, KnErr *err)
{
    Sides sides = {0};
    kn_reach_init(&sides.old, tbl, ex->before);
    kn_reach_init(&sides.left, tbl, ex->after);
    sides.old.tolerant = true;
    KnCode rc = kn_file_set_open(ex->ses, &sides.gone, err);
    if (rc == KN_OK)
        rc = kn_file_set_open(ex->ses, &sides.live, err);
    if (rc == KN_OK)
        rc = fill(ex, tbl, &sides, err);
    ex->result.unreadable = sides.old.unreadable;
    KnSweep sweep = {
        .tbl = tbl, .gone = sides.gone, .minus = {.without = sides.live}, .opts = ex->opts->sweep};
    if (rc == KN_OK)
        rc = kn_sweep(&sweep, &ex->result.files, err);
    kn_file_set_close(sides.gone);
    kn_file_set_close(sides.live);
    kn_reach_done(&sides.old);
    kn_reach_done(&sides.left);
    return rc;
}

static KnCode clean(Expiry *ex, KnTable *tbl, KnErr *err)
{
    if (!ex->opts->sweep.dry_run)
        KN_TRY(kn_fault_at("expire-committed", err));
    KnCode rc = clean_files(ex, tbl, err);
    if (rc == KN_OK || ex->opts->sweep.dry_run)
        return rc;
    return kn_err_wrap(err, rc,
                       "table %s: its snapshots are expired, files that only they had are left "
                       "('orphans' finds them)",
                       tbl->name);
}

KnCode kn_table_expire(KnTable *tbl, KnSession *ses, const KnExpireOptions *opts,
                       KnExpireResult *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Expiry ex = {.ses = ses, .opts = opts, .arena = arena};
    KnCode rc = kn_commit_retry(tbl, expire_once, &ex, err);
    bool committed = rc == KN_OK;
    if (committed && ex.before)
        rc = clean(&ex, tbl, err);
    kn_metadata_unref(ex.before);
    kn_metadata_unref(ex.after);
    if (committed)
        *ret = ex.result;
    return rc;
}
