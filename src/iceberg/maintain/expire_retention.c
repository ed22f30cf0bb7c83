/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expire_retention.c - which snapshots and refs stay, as Java's RemoveSnapshots.internalApply()
 * decides it.
 *
 * A property that is no number is refused: the default in its place might remove what somebody
 * wanted to keep.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "iceberg/maintain/expire.h"

#define FIVE_DAYS_MS (INT64_C(5) * 24 * 3600 * 1000)

typedef struct Rules {
    const KnMetadata *md;
    int64_t now_ms, older_than_ms, min_snapshots, max_ref_age_ms;
    KnMap *by_id; /* snapshot id -> 1 + index */
    bool *stays;  /* by index */
    bool *on_branch_or_tag;
} Rules;

static KnCode property(const KnMetadata *md, const char *key, int64_t dflt, int64_t *ret,
                       KnErr *err)
{
    const char *text = kn_metadata_property(md, key, NULL);
    *ret = dflt;
    if (!text || kn_str_to_i64(kn_str(text), ret))
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL, "table property %s is '%.100s', which is no number", key,
                      text);
}

static KnCode read_rules(Rules *rules, const KnExpireOptions *opts, KnErr *err)
{
    const KnMetadata *md = rules->md;
    int64_t age = 0;
    rules->now_ms = opts->now_ms ? opts->now_ms : kn_clock_wall_ms();
    KN_TRY(property(md, "history.expire.max-snapshot-age-ms", FIVE_DAYS_MS, &age, err));
    KN_TRY(property(md, "history.expire.min-snapshots-to-keep", 1, &rules->min_snapshots, err));
    KN_TRY(property(md, "history.expire.max-ref-age-ms", INT64_MAX, &rules->max_ref_age_ms, err));
    if (opts->older_than_ms >= 0)
        rules->older_than_ms = opts->older_than_ms;
    else if (__builtin_sub_overflow(rules->now_ms, age, &rules->older_than_ms))
        rules->older_than_ms = INT64_MAX;
    if (opts->retain_last)
        rules->min_snapshots = opts->retain_last;
    return KN_OK;
}

/* ---- snapshots by id ---- */

static void index_snapshots(Rules *rules)
{
    rules->by_id = kn_map_new();
    for (size_t i = 0; i < rules->md->n_snapshots; i++) {
        const int64_t *id = &rules->md->snapshots[i].snapshot_id;
        *kn_map_get_or_add(rules->by_id, (KnStr){(const char *)id, sizeof(*id)}, NULL) =
            (void *)(uintptr_t)(i + 1);
    }
}

/* 1 + index; 0 = none. */
static size_t find(const Rules *rules, int64_t id)
{
    return id < 0 ? 0
                  : (size_t)(uintptr_t)kn_map_find(rules->by_id,
                                                   (KnStr){(const char *)&id, sizeof(id)});
}

static size_t parent_of(const Rules *rules, size_t at)
{
    return find(rules, rules->md->snapshots[at - 1].parent_id);
}

/* ---- what stays ---- */

static bool ref_stays(const Rules *rules, const KnRef *ref)
{
    size_t at = find(rules, ref->snapshot_id);
    if (!strcmp(ref->name, "main"))
        return true;
    if (!at)
        return false;
    int64_t most = ref->max_ref_age_ms >= 0 ? ref->max_ref_age_ms : rules->max_ref_age_ms;
    return rules->now_ms - rules->md->snapshots[at - 1].timestamp_ms <= most;
}

static void keep_branch(Rules *rules, const KnRef *ref)
{
    int64_t older_than = rules->older_than_ms;
    int64_t min =
        ref->min_snapshots_to_keep >= 0 ? ref->min_snapshots_to_keep : rules->min_snapshots;
    if (ref->max_snapshot_age_ms >= 0)
        older_than = rules->now_ms - ref->max_snapshot_age_ms;
    size_t at = find(rules, ref->snapshot_id);
    bool keeping = true;
    int64_t kept = 0;
    for (size_t steps = 0; at && steps < rules->md->n_snapshots; steps++) {
        keeping =
            keeping && (kept < min || rules->md->snapshots[at - 1].timestamp_ms >= older_than);
        if (keeping) {
            rules->stays[at - 1] = true;
            kept++;
        }
        rules->on_branch_or_tag[at - 1] = true;
        at = parent_of(rules, at);
    }
}

static void keep_all(Rules *rules, const KnRef *const *refs, size_t n)
{
    const KnMetadata *md = rules->md;
    for (size_t i = 0; i < n; i++) {
        size_t at = find(rules, refs[i]->snapshot_id);
        if (at)
            rules->stays[at - 1] = rules->on_branch_or_tag[at - 1] = true;
        if (refs[i]->is_branch)
            keep_branch(rules, refs[i]);
    }
    for (size_t i = 0; i < md->n_snapshots; i++)
        if (!rules->on_branch_or_tag[i] && md->snapshots[i].timestamp_ms >= rules->older_than_ms)
            rules->stays[i] = true;
}

static KnCode take_ids(Rules *rules, const KnExpireOptions *opts, const KnRetention *kept,
                       KnErr *err)
{
    for (size_t i = 0; i < opts->n_ids; i++) {
        size_t at = find(rules, opts->ids[i]);
        if (!at)
            return kn_err_set(err, KN_E_NOTFOUND, "there is no snapshot %" PRId64, opts->ids[i]);
        for (size_t r = 0; r < kept->n_refs; r++)
            if (kept->refs[r]->snapshot_id == opts->ids[i])
                return kn_err_set(
                    err, KN_E_REFUSED, "cannot expire snapshot %" PRId64 ": %s %s names it",
                    opts->ids[i], kept->refs[r]->is_branch ? "branch" : "tag", kept->refs[r]->name);
        rules->stays[at - 1] = false;
    }
    return KN_OK;
}

static KnCode decide(Rules *rules, KnArena *arena, const KnExpireOptions *opts, KnRetention *ret,
                     KnErr *err)
{
    const KnMetadata *md = rules->md;
    const KnRef **kept = kn_arena_zalloc(arena, (md->n_refs + 1) * sizeof(const KnRef *));
    const KnRef **gone = kn_arena_zalloc(arena, (md->n_refs + 1) * sizeof(const KnRef *));
    KnRetention keeps = {.refs = kept};
    KnRetention goes = {.refs = gone};
    for (size_t i = 0; i < md->n_refs; i++) {
        if (ref_stays(rules, &md->refs[i]))
            kept[keeps.n_refs++] = &md->refs[i];
        else
            gone[goes.n_refs++] = &md->refs[i];
    }
    keep_all(rules, kept, keeps.n_refs);
    KN_TRY(take_ids(rules, opts, &keeps, err));
    int64_t *ids = kn_arena_alloc(arena, (md->n_snapshots + 1) * sizeof(*ids));
    for (size_t i = 0; i < md->n_snapshots; i++)
        if (!rules->stays[i])
            ids[goes.n_gone++] = md->snapshots[i].snapshot_id;
    goes.gone = ids;
    *ret = goes;
    return KN_OK;
}

KnCode kn_expire_retention(KnArena *arena, const KnMetadata *md, const KnExpireOptions *opts,
                           KnRetention *ret, KnErr *err)
{
    Rules rules = {.md = md};
    KN_TRY(read_rules(&rules, opts, err));
    rules.stays = kn_arena_zalloc(arena, md->n_snapshots + 1);
    rules.on_branch_or_tag = kn_arena_zalloc(arena, md->n_snapshots + 1);
    index_snapshots(&rules);
    KnCode rc = decide(&rules, arena, opts, ret, err);
    kn_map_free(rules.by_id);
    return rc;
}

KnCode kn_table_check_gc(const KnTable *tbl, const char *what, KnErr *err)
{
    const char *enabled = kn_metadata_property(tbl->md, "gc.enabled", "true");
    if (kn_str_eq_nocase(kn_str(enabled), KN_STR_LIT("true")))
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "cannot %s table %s: its property gc.enabled=%.20s says that other tables may "
        "share its files",
        what, tbl->name, enabled);
}
