/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - the public face of a release (knut/release.h). Opens a catalog for the one call. */
#include "knut/release.h"

#include "iceberg/maintain/release.h"
#include "lib/lib_internal.h"

static KnCode parse_tables(KnArena *arena, const KnutRelease *given, KnTableIdent *ret, KnErr *err)
{
    for (size_t i = 0; i < given->n_tables; i++)
        KN_TRY(kn_table_ident_parse(arena, kn_str(given->tables[i]), &ret[i], err));
    return KN_OK;
}

static KnCode release_in(KnArena *arena, KnCatalog *cat, const KnutRelease *given,
                         KnutReleased *ret, KnErr *err)
{
    KnTableIdent *idents = kn_arena_zalloc(arena, (given->n_tables + 1) * sizeof(*idents));
    KnRefMove *moves = kn_arena_zalloc(arena, (given->n_tables + 1) * sizeof(*moves));
    KN_TRY(parse_tables(arena, given, idents, err));
    KnRelease release = {.tables = idents,
                         .n_tables = given->n_tables,
                         .wap_id = given->wap_id,
                         .branch = given->branch,
                         .tag = given->tag,
                         .skip_missing = given->skip_missing,
                         .dry_run = given->dry_run};
    KN_TRY(kn_release(cat, &release, moves, err));
    for (size_t i = 0; i < given->n_tables; i++)
        ret[i] = (KnutReleased){moves[i].before, moves[i].after};
    return KN_OK;
}

KnCode knut_release(const KnutRelease *release, KnutReleased *ret, KnErr *err)
{
    if (release->size != sizeof(*release))
        return kn_err_set(err, KN_E_INVAL, "KnutRelease.size is %zu, expected %zu", release->size,
                          sizeof(*release));
    if (release->catalog->size != sizeof(*release->catalog))
        return kn_err_set(err, KN_E_INVAL, "KnutOpen.size is %zu, expected %zu",
                          release->catalog->size, sizeof(*release->catalog));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnLocator loc = knut_locator(arena, release->catalog);
    loc.table = NULL;
    if (!kn_locator_has_tables(&loc))
        return kn_err_set(err, KN_E_INVAL,
                          "a release is for tables of a catalog: set warehouse or "
                          "rest_uri");
    KnCatalog *cat = NULL;
    KN_TRY(kn_catalog_open(&loc, false, &cat, err));
    KnCode rc = release_in(arena, cat, release, ret, err);
    kn_catalog_close(cat);
    return rc;
}
