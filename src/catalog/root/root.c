/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - a bare table: a location, or one metadata document, and no catalog. Read-only by
 * construction.
 *
 * The newest version is `metadata/version-hint.text` = N when `metadata/vN.metadata.json` (or its
 * gzip form) is there, else the `*.metadata.json` with the highest number in front; between equal
 * numbers the later modified one. It is looked up again at every load, so that a poll sees new
 * commits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "catalog/catalog.h"
#include "catalog/metadata_file.h"

typedef struct RootCatalog {
    KnCatalog base;
    KnFileIO *io;
    KnArena *arena;
    const char *root;     /* NULL when a document is named */
    const char *metadata; /* NULL when a root is named */
    const char *id;
} RootCatalog;

typedef struct Newest {
    KnArena *arena;
    const char *location;
    int64_t version, modified_ms;
} Newest;

static KnCode consider(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    Newest *best = arg;
    int64_t version = kn_metadata_file_version(kn_path_basename(kn_str(info->location)));
    if (version < 0 || version < best->version ||
        (version == best->version && info->modified_ms <= best->modified_ms))
        return KN_OK;
    best->version = version;
    best->modified_ms = info->modified_ms;
    best->location = kn_arena_strdup(best->arena, info->location);
    return KN_OK;
}

/* Hadoop tables: the hint's version, when its document exists. */
static const char *from_hint(RootCatalog *cat, KnArena *arena, const char *folder)
{
    const char *hint = kn_path_join(arena, kn_str(folder), KN_STR_LIT("version-hint.text"));
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 64);
    if (kn_io_read_all(cat->io, kn_str(hint), 63, &text, NULL) != KN_OK)
        return NULL;
    while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        text.len--;
    int64_t version = -1;
    if (!kn_str_to_i64((KnStr){text.data, text.len}, &version) || version < 0)
        return NULL;
    static const char *const suffixes[] = {".metadata.json", ".gz.metadata.json",
                                           ".metadata.json.gz"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const char *name = kn_arena_printf(arena, "v%lld%s", (long long)version, suffixes[i]);
        const char *location = kn_path_join(arena, kn_str(folder), kn_str(name));
        KnFileInfo info;
        if (kn_io_stat(cat->io, kn_str(location), &info, NULL) == KN_OK)
            return location;
    }
    return NULL;
}

static KnCode find_newest(RootCatalog *cat, KnArena *arena, const char **ret, KnErr *err)
{
    const char *folder = kn_path_join(arena, kn_str(cat->root), KN_STR_LIT("metadata"));
    const char *hinted = from_hint(cat, arena, folder);
    if (hinted) {
        *ret = hinted;
        return KN_OK;
    }
    Newest best = {.arena = arena, .version = -1};
    KnCode rc = kn_io_list(cat->io, kn_str(kn_path_join(arena, kn_str(folder), KN_STR_LIT(""))),
                           consider, &best, err);
    if (rc != KN_OK && (rc != KN_E_NOTFOUND || kn_s3_is_location(kn_str(cat->root))))
        return rc; /* a bucket that is not there is another matter than a folder */
    if (!best.location)
        return kn_err_set(
            err, KN_E_NOTFOUND,
            "%s: no table here (no metadata/*.metadata.json): check --root, it is the folder that "
            "holds 'metadata'",
            cat->root);
    *ret = best.location;
    return KN_OK;
}

static const char *root_id(const KnCatalog *base)
{
    return ((const RootCatalog *)base)->id;
}

static KnCode root_load(KnCatalog *base, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    (void)ident;
    RootCatalog *cat = (RootCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *location = cat->metadata;
    if (!location)
        KN_TRY(find_newest(cat, arena, &location, err));
    KnMetadata *md = NULL;
    KN_TRY(kn_metadata_file_read(cat->io, kn_str(location), &md, err));
    *ret = kn_table_new(base, NULL, cat->io, md, location);
    return KN_OK;
}

static KnCode read_only(KnErr *err)
{
    return kn_err_set(
        err, KN_E_UNSUPPORTED,
        "a bare table is read-only: writing needs a catalog, use --warehouse DIR --table NS.NAME");
}

static KnCode root_create(KnCatalog *base, const KnTableIdent *ident, const KnCreateTable *create,
                          KnTable **ret, KnErr *err)
{
    (void)base, (void)ident, (void)create, (void)ret;
    return read_only(err);
}

static KnCode root_commit(KnCatalog *base, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    (void)base, (void)tbl, (void)commit;
    return read_only(err);
}

static KnCode root_drop(KnCatalog *base, const KnTableIdent *ident, KnErr *err)
{
    (void)base, (void)ident;
    return read_only(err);
}

static KnCode root_register(KnCatalog *base, const KnTableIdent *ident, const char *location,
                            KnTable **ret, KnErr *err)
{
    (void)base, (void)ident, (void)location, (void)ret;
    return read_only(err);
}

static KnCode root_rename(KnCatalog *base, const KnTableIdent *from, const KnTableIdent *to,
                          KnErr *err)
{
    (void)base, (void)from, (void)to;
    return read_only(err);
}

static KnCode root_create_namespace(KnCatalog *base, const char *const *levels, size_t n,
                                    KnErr *err)
{
    (void)base, (void)levels, (void)n;
    return read_only(err);
}

static KnCode root_list(KnCatalog *base, KnTableListFn fn, void *arg, KnErr *err)
{
    (void)base, (void)fn, (void)arg;
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "a bare table has no catalog to list: use --warehouse DIR");
}

static void root_close(KnCatalog *base)
{
    RootCatalog *cat = (RootCatalog *)base;
    kn_io_close(cat->io);
    kn_arena_free(cat->arena);
    free(cat);
}

static const KnCatalogOps root_ops = {
    .kind = "root",
    .read_only = true,
    .id = root_id,
    .load = root_load,
    .create = root_create,
    .commit = root_commit,
    .drop = root_drop,
    .register_table = root_register,
    .rename = root_rename,
    .list = root_list,
    .create_namespace = root_create_namespace,
    .close = root_close,
};

static KnStr without_final_slash(const char *text)
{
    KnStr s = kn_str(text);
    while (s.len > 1 && s.ptr[s.len - 1] == '/')
        s.len--;
    return s;
}

static KnCode fill(RootCatalog *cat, const KnLocator *loc, KnErr *err)
{
    const char *place = NULL;
    KN_TRY(kn_locator_absolute(cat->arena, loc->root ? loc->root : loc->metadata, &place, err));
    KnStr trimmed = without_final_slash(place);
    place = kn_arena_strndup(cat->arena, trimmed.ptr, trimmed.len);
    cat->root = loc->root ? place : NULL;
    cat->metadata = loc->root ? NULL : place;
    KN_TRY(kn_locator_io(loc, kn_str(place), &cat->io, err));
    char scheme[16];
    KN_TRY(kn_path_scheme(kn_str(place), scheme, err));
    const char *normal = place;
    if (!strcmp(scheme, "file"))
        KN_TRY(kn_path_local(cat->arena, kn_str(place), &normal, err));
    cat->id = kn_arena_printf(cat->arena, "%s:%s", loc->root ? "root" : "metadata", normal);
    return KN_OK;
}

KnCode kn_catalog_root_open(const KnLocator *loc, KnCatalog **ret, KnErr *err)
{
    RootCatalog *cat = calloc(1, sizeof(*cat));
    if (!cat)
        abort();
    cat->base.ops = &root_ops;
    cat->arena = kn_arena_new(0);
    KnCode rc = fill(cat, loc, err);
    if (rc != KN_OK) {
        root_close(&cat->base);
        return rc;
    }
    *ret = &cat->base;
    return KN_OK;
}
