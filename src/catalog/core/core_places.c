/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_places.c - where tables may lie, and what reads and writes there.
 *
 * Clients name locations: when a table is made, registered or moved, and in properties that say
 * where files go. All must lie in the warehouse or a folder that the operator has allowed, so that
 * nobody makes the server read or write elsewhere. Locations are compared in a normal form: local
 * paths without `.`, `..` and double slashes; others with one spelling of the scheme, and refused
 * when they have such parts.
 */
#include <string.h>

#include "base/path.h"
#include "catalog/core/core_internal.h"

static bool has_dots(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
            return true;
    }
    return false;
}

/* One spelling of the schemes that mean S3. */
static const char *same_scheme(const char *scheme)
{
    return !strcmp(scheme, "s3a") || !strcmp(scheme, "s3n") ? "s3" : scheme;
}

KnCode kn_place_normal(KnArena *arena, KnStr location, const char **ret, KnErr *err)
{
    char scheme[16];
    KN_TRY(kn_path_scheme(location, scheme, err));
    if (!strcmp(scheme, "file"))
        return kn_path_local(arena, location, ret, err);
    const char *text = kn_arena_strndup(arena, location.ptr, location.len);
    const char *rest = strstr(text, "://");
    if (!rest || has_dots(rest + 3))
        return kn_err_about(err, KN_E_REFUSED, KN_ABOUT_LOCATION,
                            "location '" KN_STR_FMT "' is not in a form that can be checked",
                            KN_STR_ARG(location));
    size_t len = strlen(rest);
    while (len > 3 && rest[len - 1] == '/')
        len--;
    *ret = kn_arena_printf(arena, "%s%.*s", same_scheme(scheme), (int)len, rest);
    return KN_OK;
}

/* False: normal, which is set, lies nowhere where clients may go. */
static bool is_allowed(const KnCatalogCore *core, const char *normal)
{
    for (size_t i = 0; i < core->n_allowed; i++) {
        if (kn_path_is_within(kn_str(normal), kn_str(core->allowed[i])))
            return true;
    }
    return core->any_location;
}

KnCode kn_core_place(const KnCatalogCore *core, KnArena *arena, KnStr location, const char **ret,
                     KnErr *err)
{
    const char *normal = NULL;
    KnErr why = {0};
    KnCode rc = kn_place_normal(arena, location, &normal, &why);
    if (rc == KN_OK && is_allowed(core, normal)) {
        *ret = normal;
        return KN_OK;
    }
    if (rc != KN_OK && rc != KN_E_REFUSED)
        return kn_err_about(err, KN_E_REFUSED, KN_ABOUT_LOCATION, "%s", why.msg);
    return kn_err_about(err, KN_E_REFUSED, KN_ABOUT_LOCATION,
                        "location '" KN_STR_FMT
                        "' lies outside the warehouse and the folders that are allowed",
                        KN_STR_ARG(location));
}

KnCode kn_core_check_location(const KnCatalogCore *core, KnStr location, KnErr *err)
{
    const char *normal = NULL;
    if (core->any_location)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    return kn_core_place(core, arena, location, &normal, err);
}

/* Where somebody will write, or may remove. */
const char *const kn_core_place_keys[] = {"write.metadata.path", "write.data.path",
                                          "write.object-storage.path", "write.folder-storage.path",
                                          NULL};

KnCode kn_core_check_places(const KnCatalogCore *core, const char *location,
                            const json_t *properties, const char *old_location,
                            const json_t *old_properties, KnErr *err)
{
    if (!old_location || strcmp(old_location, location) != 0)
        KN_TRY(kn_core_check_location(core, kn_str(location), err));
    for (const char *const *key = kn_core_place_keys; *key; key++) {
        const char *now = json_string_value(json_object_get(properties, *key));
        const char *old = json_string_value(json_object_get(old_properties, *key));
        if (!now || (old && !strcmp(old, now)))
            continue;
        KnCode rc = kn_core_check_location(core, kn_str(now), err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "property %s", *key);
    }
    return KN_OK;
}

KnCode kn_core_io(KnCatalogCore *core, KnStr location, KnFileIO **ret, KnErr *err)
{
    char scheme[16], own[16];
    KN_TRY(kn_path_scheme(location, scheme, err));
    KN_TRY(kn_path_scheme(kn_str(core->warehouse), own, err));
    if (!strcmp(same_scheme(scheme), same_scheme(own))) {
        *ret = core->io;
        return KN_OK;
    }
    KnCode rc = KN_OK;
    pthread_mutex_lock(&core->lock);
    size_t i = 0;
    while (i < core->n_others && strcmp(core->others[i].scheme, scheme) != 0)
        i++;
    if (i == KN_CORE_SCHEMES)
        rc = kn_err_set(err, KN_E_UNSUPPORTED, "too many kinds of storage in one catalog");
    else if (i == core->n_others)
        rc = kn_io_open_for(location, &core->others[i].io, err);
    if (rc == KN_OK && i == core->n_others) {
        memcpy(core->others[i].scheme, scheme, sizeof(scheme));
        core->n_others++;
    }
    if (rc == KN_OK)
        *ret = core->others[i].io;
    pthread_mutex_unlock(&core->lock);
    return rc;
}

/* The warehouse's spelling is kept. */
static const char *folder_by_name(KnArena *arena, const char *folder, const char *const *levels,
                                  size_t n)
{
    for (size_t i = 0; i < n; i++)
        folder = kn_path_join(arena, kn_str(folder), kn_str(kn_name_folder(arena, levels[i])));
    return folder;
}

const char *kn_core_own_folder(const KnCatalogCore *core, KnArena *arena, const char *const *levels,
                               size_t n_levels)
{
    return folder_by_name(arena, core->allowed[0], levels, n_levels);
}

KnCode kn_core_namespace_location(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                                  const char **ret, KnErr *err)
{
    KN_JSON_AUTO properties = NULL;
    const char *name = NULL;
    KN_TRY(kn_names_join(arena, ns->levels, ns->n_levels, &name, err));
    KN_TRY(kn_store_namespace_get(core->store, name, &properties, err));
    const char *location = json_string_value(json_object_get(properties, "location"));
    *ret = location && *location ? kn_arena_strdup(arena, location)
                                 : folder_by_name(arena, core->warehouse, ns->levels, ns->n_levels);
    return KN_OK;
}

KnCode kn_core_default_location(KnCatalogCore *core, KnArena *arena, const KnTableIdent *ident,
                                const char **ret, KnErr *err)
{
    const KnNamespace ns = {ident->levels, ident->n_levels};
    const char *folder = NULL;
    KN_TRY(kn_core_namespace_location(core, arena, &ns, &folder, err));
    *ret = kn_path_join(arena, kn_str(folder), kn_str(kn_name_folder(arena, ident->name)));
    return KN_OK;
}
