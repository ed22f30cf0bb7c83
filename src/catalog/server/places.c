/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.c - see places.h.
 *
 * A folder is a namespace's by its name (kn_core_own_folder()), and the innermost namespace that
 * there is counts. Who has the right on the whole catalog is asked nothing.
 */
#include "catalog/server/places.h"

#include "base/path.h"

enum { DEPTH_MAX = 64 };

static bool lies_below(const char *place, const char *folder)
{
    return strcmp(place, folder) != 0 && kn_path_is_within(kn_str(place), kn_str(folder));
}

/* Of the children of ns the one in whose folder the place lies becomes its last level. */
static KnCode descend(const KnPlaceAsker *asker, const char *place, const char **levels,
                      KnNamespace *ns, bool *ret_found, KnErr *err)
{
    KnNameList list = {0};
    *ret_found = false;
    KnCode rc = kn_core_namespace_list(asker->core, asker->arena, ns, NULL, &list, err);
    if (rc == KN_E_NOTFOUND && ns->n_levels) /* it went meanwhile */
        return KN_OK;
    KN_TRY(rc);
    for (size_t i = 0; i < list.n && !*ret_found; i++) {
        levels[ns->n_levels] = list.names[i];
        *ret_found = lies_below(
            place, kn_core_own_folder(asker->core, asker->arena, levels, ns->n_levels + 1));
    }
    ns->n_levels += *ret_found;
    return KN_OK;
}

/* The namespace in whose folder the place lies; without levels: nobody's. */
static KnCode find_owner(const KnPlaceAsker *asker, const char *place, KnNamespace *ret, KnErr *err)
{
    const char **levels = kn_arena_alloc(asker->arena, DEPTH_MAX * sizeof(*levels));
    bool found = true;
    *ret = (KnNamespace){levels, 0};
    while (found && ret->n_levels < DEPTH_MAX)
        KN_TRY(descend(asker, place, levels, ret, &found, err));
    return KN_OK;
}

static bool is_own(const KnPlaceAsker *asker, const char *place)
{
    return lies_below(place, kn_core_own_folder(asker->core, asker->arena, asker->ident->levels,
                                                asker->ident->n_levels));
}

/* Of the namespace in whose folder the place lies; *ret_owned false: there is none. */
static KnCode has_right(const KnPlaceAsker *asker, const char *place, KnRight right, bool *ret,
                        bool *ret_owned, KnErr *err)
{
    KnNamespace owner = {0};
    *ret = *ret_owned = is_own(asker, place);
    if (*ret)
        return KN_OK;
    KN_TRY(find_owner(asker, place, &owner, err));
    *ret_owned = owner.n_levels > 0;
    *ret = *ret_owned && kn_principal_right(asker->who, &owner) >= right;
    return KN_OK;
}

bool kn_place_lies_in_namespace(const KnPlaceAsker *asker, const char *location, KnRight right)
{
    const char *place = NULL;
    bool has = false, owned = false;
    return kn_core_place(asker->core, asker->arena, kn_str(location), &place, NULL) == KN_OK &&
           has_right(asker, place, right, &has, &owned, NULL) == KN_OK && has;
}

KnCode kn_place_need(const KnPlaceAsker *asker, const char *location, const char *table,
                     KnRight right, KnErr *err)
{
    const char *place = NULL, *home = NULL;
    bool has = false, owned = false;
    if (kn_principal_right(asker->who, NULL) >= right)
        return KN_OK;
    KN_TRY(kn_core_place(asker->core, asker->arena, kn_str(location), &place, err));
    KN_TRY(has_right(asker, place, right, &has, &owned, err));
    if (has)
        return KN_OK;
    if (!owned && table &&
        kn_core_place(asker->core, asker->arena, kn_str(table), &home, NULL) == KN_OK &&
        kn_path_is_within(kn_str(place), kn_str(home)))
        return KN_OK;
    return kn_err_about(err, KN_E_REFUSED, KN_ABOUT_LOCATION,
                        "%s has no right on the files at '%.400s', which are neither in the "
                        "namespace's folder nor in one of the table's own",
                        kn_principal_name(asker->who), location);
}

/* ---- what names files ---- */

typedef struct Check {
    const KnPlaceAsker *asker;
    const char *table; /* the location that the table has, or will have when it is made */
    KnRight right;
} Check;

static KnCode check_file(const Check *at, const char *location, KnErr *err)
{
    return location ? kn_place_need(at->asker, location, at->table, at->right, err) : KN_OK;
}

static KnCode check_snapshot(const Check *at, const KnSnapshot *snap, KnErr *err)
{
    KN_TRY(check_file(at, snap->manifest_list, err));
    for (size_t i = 0; i < snap->n_manifests; i++)
        KN_TRY(check_file(at, snap->manifests[i], err));
    return KN_OK;
}

static KnCode check_statistics(const Check *at, const json_t *statistics, KnErr *err)
{
    return check_file(at, json_string_value(json_object_get(statistics, "statistics-path")), err);
}

KnCode kn_place_check_metadata(const KnPlaceAsker *asker, const KnMetadata *md, KnErr *err)
{
    const Check at = {asker, md->location, KN_RIGHT_ADMIN};
    const json_t *const lists[] = {md->statistics, md->partition_statistics};
    if (kn_principal_right(asker->who, NULL) >= at.right)
        return KN_OK;
    for (size_t i = 0; i < md->n_snapshots; i++)
        KN_TRY(check_snapshot(&at, &md->snapshots[i], err));
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
        for (size_t i = 0; i < json_array_size(lists[k]); i++)
            KN_TRY(check_statistics(&at, json_array_get(lists[k], i), err));
    return KN_OK;
}

/* ---- commits ---- */

static bool is_statistics(const KnUpdate *update)
{
    return update->kind == KN_UPDATE_SET_STATISTICS ||
           update->kind == KN_UPDATE_SET_PARTITION_STATISTICS;
}

static KnCode find_table(const KnPlaceAsker *asker, const KnTableCommit *commit, const char **ret,
                         KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    KnCode rc = kn_core_table_load(asker->core, asker->ident, &doc, err);
    if (rc == KN_OK) {
        KN_TRY(kn_document_metadata(doc, &md, err));
        *ret = kn_arena_strdup(asker->arena, md->location);
        return KN_OK;
    }
    *ret = NULL;
    for (size_t i = 0; i < commit->n_updates; i++)
        if (commit->updates[i].kind == KN_UPDATE_SET_LOCATION)
            *ret = commit->updates[i].text;
    return rc == KN_E_NOTFOUND ? KN_OK : rc;
}

KnCode kn_place_check_commit(const KnPlaceAsker *asker, const KnTableCommit *commit, KnErr *err)
{
    Check at = {asker, NULL, KN_RIGHT_WRITE};
    bool names_files = false;
    for (size_t i = 0; i < commit->n_updates; i++)
        names_files |=
            commit->updates[i].kind == KN_UPDATE_ADD_SNAPSHOT || is_statistics(&commit->updates[i]);
    if (!names_files || kn_principal_right(asker->who, NULL) >= at.right)
        return KN_OK;
    KN_TRY(find_table(asker, commit, &at.table, err));
    for (size_t i = 0; i < commit->n_updates; i++) {
        const KnUpdate *update = &commit->updates[i];
        if (update->kind == KN_UPDATE_ADD_SNAPSHOT)
            KN_TRY(check_snapshot(&at, &update->snapshot, err));
        else if (is_statistics(update))
            KN_TRY(check_statistics(&at, update->json, err));
    }
    return KN_OK;
}
