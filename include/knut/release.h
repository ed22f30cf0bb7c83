/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * release.h - make what was staged in several tables of one catalog current in all of them at once.
 *
 * Staged is a snapshot with a `wap.id` in its summary (`knut table append --wap-id`, Spark's
 * spark.wap.id), or a branch. One commit over all tables: all pointers move, or none; whoever reads
 * two of them sees both before or both after. Catalogs that can do it: a warehouse's own
 * (`warehouse`), and REST servers that offer transactions/commit.
 */
#include "knut/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KnutRelease {
    size_t size;               /* sizeof(KnutRelease) */
    const KnutOpen *catalog;   /* its place; `table` is not looked at */
    const char *const *tables; /* "ns.name", each once */
    size_t n_tables;
    const char *wap_id; /* one of these two */
    const char *branch;
    const char *tag;   /* what is current then gets this tag too; NULL = none */
    bool skip_missing; /* a table that has nothing staged is left as it is; else KN_E_NOTFOUND */
    bool dry_run;      /* decide only */
} KnutRelease;

/* What became of one table's main branch: snapshot ids, -1 = none. */
typedef struct KnutReleased {
    int64_t before, after;
} KnutReleased;

/** ret has room for n_tables. KN_E_UNKNOWN: it may or may not have happened, in all tables alike.
 */
KnCode knut_release(const KnutRelease *release, KnutReleased *ret, KnErr *err);

#ifdef __cplusplus
}
#endif
