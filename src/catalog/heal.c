/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heal.c - see heal.h.
 *
 * A document beside the current one need never have been current: a commit that lost its race may
 * have left one. Those of the current version are therefore not taken, and of several of one
 * version the one that the damaged document's log names, where that can be read, else the newest.
 */
#include "catalog/heal.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "catalog/core/core_internal.h"
#include "catalog/metadata_file.h"

typedef struct Candidate {
    const char *location;
    int64_t version, modified_ms;
    bool logged; /* the damaged document says that it was current once */
} Candidate;

typedef struct Search {
    KnCatalogCore *core;
    KnFileIO *io;
    KnArena *arena;
    const KnHealOptions *opts;
    int64_t before; /* versions below this one */
    KN_VEC(Candidate) found;
    const char *uuid; /* of the table, where a document told it; else NULL */
} Search;

static KnCode tell(const Search *search, const char *location, const KnErr *why, KnErr *err)
{
    KnFinding finding = {.kind = "metadata", .location = location, .problem = why->msg};
    return search->opts->fn(search->opts->arg, &finding, err);
}

/* KN_OK with *ret NULL: it is damaged, which was told. */
static KnCode read_document(Search *search, const char *location, KnMetadata **ret, KnErr *err)
{
    KnErr why = {0};
    KnCode rc = kn_metadata_file_read(search->io, kn_str(location), ret, &why);
    if (rc == KN_OK)
        return KN_OK;
    if (kn_verify_is_damage(rc))
        return tell(search, location, &why, err);
    if (err)
        *err = why;
    return rc;
}

static KnCode is_intact(Search *search, const char *location, const KnMetadata *md, bool *ret,
                        KnErr *err)
{
    if (search->uuid && md->uuid && strcmp(search->uuid, md->uuid) != 0) {
        KnErr other = {0};
        (void)kn_err_set(&other, KN_E_CORRUPT, "it is of another table (%s)", md->uuid);
        *ret = false;
        return tell(search, location, &other, err);
    }
    KnVerified result = {0};
    KnVerify verify = {.io = search->io,
                       .md = md,
                       .current_only = true,
                       .files = search->opts->files,
                       .fn = search->opts->fn,
                       .arg = search->opts->arg,
                       .cancelled = search->opts->cancelled};
    KN_TRY(kn_metadata_verify(&verify, &result, err));
    *ret = result.findings == 0;
    return KN_OK;
}

/* ---- what lies beside ---- */

static KnCode gather(void *arg, const KnFileInfo *info, KnErr *err)
{
    Search *search = arg;
    (void)err;
    KnStr name = kn_path_basename(kn_str(info->location));
    int64_t version = kn_metadata_file_version(name);
    if (version < 0 || version >= search->before)
        return KN_OK;
    *kn_vec_push(&search->found) =
        (Candidate){.location = kn_arena_strdup(search->arena, info->location),
                    .version = version,
                    .modified_ms = info->modified_ms};
    return KN_OK;
}

static int newest_first(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->version != y->version)
        return x->version < y->version ? 1 : -1;
    if (x->logged != y->logged)
        return x->logged ? -1 : 1;
    return (x->modified_ms < y->modified_ms) - (x->modified_ms > y->modified_ms);
}

static void mark_logged(Search *search, const KnMetadata *damaged)
{
    for (size_t i = 0; damaged && i < damaged->n_metadata_log; i++) {
        KnStr name = kn_path_basename(kn_str(damaged->metadata_log[i].metadata_file));
        kn_vec_foreach (&search->found, candidate) {
            if (kn_str_eq(kn_path_basename(kn_str(candidate->location)), name))
                candidate->logged = true;
        }
    }
}

static KnCode find_others(Search *search, const char *pointer, const KnMetadata *damaged,
                          KnErr *err)
{
    KnStr folder = kn_path_dirname(kn_str(pointer));
    search->before = kn_metadata_file_version(kn_path_basename(kn_str(pointer)));
    if (search->before < 0)
        search->before = INT64_MAX;
    KN_TRY(kn_io_list(search->io, folder, gather, search, err));
    mark_logged(search, damaged);
    if (search->found.len)
        qsort(search->found.items, search->found.len, sizeof(Candidate), newest_first);
    return KN_OK;
}

/* ---- choosing ---- */

static KnCode try_document(Search *search, const char *location, KnHealed *ret, bool *ret_good,
                           KnErr *err)
{
    KN_METADATA_AUTO md = NULL;
    *ret_good = false;
    KN_TRY(read_document(search, location, &md, err));
    if (md)
        KN_TRY(is_intact(search, location, md, ret_good, err));
    if (!*ret_good) {
        ret->tried++;
        return KN_OK;
    }
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    ret->to = kn_arena_strdup(search->arena, location);
    ret->snapshot_id = snap ? snap->snapshot_id : -1;
    return KN_OK;
}

static KnCode choose(Search *search, const char *pointer, KnHealed *ret, KnErr *err)
{
    bool good = false;
    KN_METADATA_AUTO current = NULL;
    KN_TRY(try_document(search, pointer, ret, &good, err));
    if (good) {
        ret->state = KN_HEAL_INTACT;
        return KN_OK;
    }
    if (kn_metadata_file_read(search->io, kn_str(pointer), &current, NULL) == KN_OK)
        search->uuid = current->uuid;
    KN_TRY(find_others(search, pointer, current, err));
    ret->state = KN_HEAL_LOST;
    for (size_t i = 0; i < search->found.len && !good; i++) {
        if (strcmp(search->found.items[i].location, pointer) != 0)
            KN_TRY(try_document(search, search->found.items[i].location, ret, &good, err));
    }
    if (good)
        ret->state = KN_HEAL_HEALED;
    return KN_OK;
}

/* The core's own look-up asks for the document too. */
static KnCode find_pointer(KnCatalogCore *core, KnArena *arena, const KnTableIdent *ident,
                           const char **ret, KnErr *err)
{
    KnStoreName name = {0};
    KnStoreEntry entry = {0};
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_store_find(core->store, arena, &name, &entry, err));
    if (!entry.location || entry.is_view)
        return kn_err_set(err, KN_E_NOTFOUND, "Table does not exist: %s.%s", name.ns, name.name);
    *ret = entry.location;
    return KN_OK;
}

KnCode kn_table_heal(KnCatalogCore *core, const KnTableIdent *ident, const KnHealOptions *opts,
                     KnArena *arena, KnHealed *ret, KnErr *err)
{
    Search search = {.core = core, .arena = arena, .opts = opts};
    KnHealed healed = {.snapshot_id = -1};
    KN_TRY(find_pointer(core, arena, ident, &healed.from, err));
    KN_TRY(kn_core_io(core, kn_str(healed.from), &search.io, err));
    KnCode rc = choose(&search, healed.from, &healed, err);
    kn_vec_done(&search.found);
    KN_TRY(rc);
    if (healed.state == KN_HEAL_HEALED && !opts->dry_run) {
        KN_DOCUMENT_AUTO doc = NULL;
        KN_TRY(kn_core_table_register(
            core, ident, &(KnRegistration){.location = healed.to, .overwrite = true}, &doc, err));
    }
    *ret = healed;
    return KN_OK;
}
