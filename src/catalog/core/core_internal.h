/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* core_internal.h - what the files of the core share. */
#include <pthread.h>

#include "catalog/core/core.h"
#include "catalog/core/document_internal.h"
#include "catalog/core/lists.h"
#include "catalog/core/mirror.h"
#include "catalog/core/names.h"
#include "catalog/store/group.h"
#include "catalog/store/store.h"

enum { KN_CORE_STRIPES = 64, KN_CORE_SCHEMES = 4 };

typedef struct KnTurn KnTurn;

struct KnCatalogCore {
    KnStore *store;
    KnMirror *mirror;
    KnLists *lists;
    KnGroup *group;
    KnDocumentCache *cache;
    KnArena *arena;
    const char *warehouse;      /* URI without a final slash */
    const char *const *allowed; /* normal forms: the warehouse, then the options' */
    size_t n_allowed;
    bool any_location, lax_namespaces;
    KnCatalog *facade;
    KnFileIO *io; /* of the warehouse's scheme */
    struct {
        char scheme[16];
        KnFileIO *io;
    } others[KN_CORE_SCHEMES]; /* opened when first needed, under lock */
    size_t n_others;
    KnTurn *turns;           /* KN_CORE_STRIPES of them; by hash of the name */
    pthread_mutex_t lock;    /* of what follows, and of others */
    pthread_cond_t happened; /* a commit, or the stop */
    uint64_t n_commits;      /* batches of this process that changed something */
    bool stopped;
};

/* KN_E_NOTFOUND with KN_ABOUT_FILE when a local document is not there any more; others are not
 * asked for. */
KN_NODISCARD KnCode kn_core_check_there(const char *location, KnErr *err);

/** The database's name of a table, checked; in arena. */
KN_NODISCARD KnCode kn_core_name(KnArena *arena, const KnTableIdent *ident, KnStoreName *ret,
                                 KnErr *err);
/** Unit of changes through the group; KN_E_UNKNOWN as it is. */
KN_NODISCARD KnCode kn_core_change(KnCatalogCore *core, const KnChange *changes, size_t n,
                                   KnErr *err);
/** The entry of that kind: KN_E_NOTFOUND with its subject. */
KN_NODISCARD KnCode kn_core_find(KnCatalogCore *core, const KnStoreName *name, bool is_view,
                                 KnPointer **ret, KnErr *err);
/** KN_E_EXISTS in Java's words when the name is taken by a table or a view. */
KN_NODISCARD KnCode kn_core_refuse_taken(KnCatalogCore *core, const KnStoreName *name, bool is_view,
                                         KnErr *err);
/** KN_E_NOTFOUND unless the namespace exists or is made on the way (lax). */
KN_NODISCARD KnCode kn_core_require_namespace(KnCatalogCore *core, const char *ns, KnErr *err);
/** The change that makes sure of it in the transaction. */
KnChange kn_core_namespace_change(const KnCatalogCore *core, const char *ns);
/** From the cache or the warehouse; checked to be a table's or a view's metadata. */
KN_NODISCARD KnCode kn_core_read(KnCatalogCore *core, const char *location, bool is_view,
                                 KnDocument **ret, KnErr *err);
/** Durably, where it says; one that may not survive power loss is removed again. */
KN_NODISCARD KnCode kn_core_write(KnCatalogCore *core, const KnDocument *doc, KnErr *err);
void kn_core_remove(KnCatalogCore *core, const char *location);
/** A location in the form in which they are compared, in arena (core_places.c). */
KN_NODISCARD KnCode kn_place_normal(KnArena *arena, KnStr location, const char **ret, KnErr *err);
/** Locations that md has and before (or NULL) had not are allowed. */
KN_NODISCARD KnCode kn_core_check_places(const KnCatalogCore *core, const char *location,
                                         const json_t *properties, const char *old_location,
                                         const json_t *old_properties, KnErr *err);
/* ---- core_turn.c: committers of one table in this process take turns; all but one would lose the
 * race for its pointer and write their document in vain ---- */

/** One commit of a table on its way. */
typedef struct KnCoreRequest {
    const KnTableCommit *commit;
    /* the verdict */
    KnCode code;
    KnErr err;
    KnDocument *doc; /* a reference, on success */
    /* used on the way */
    bool changes;
    int64_t snapshot_id; /* current after it; -1 = none */
    const KnStoreName *name;
    bool done;
} KnCoreRequest;
KnTurn *kn_core_turns_new(void);
void kn_core_turns_free(KnTurn *turns); /* accepts NULL */
/** The turns of names, each once, in order; *mask says which. */
void kn_core_lock(KnCatalogCore *core, const KnStoreName *names, size_t n, uint64_t *ret_mask);
void kn_core_unlock(KnCatalogCore *core, uint64_t mask);
/** All requests of one table, whose turn it is (core_commit.c). */
void kn_core_commit_requests(KnCatalogCore *core, const KnTableIdent *ident,
                             const KnStoreName *name, KnCoreRequest *const *requests, size_t n);
bool kn_core_requires_create(const KnTableCommit *commit);

/** The insert, in a namespace that exists, and after a lost answer a look. */
KN_NODISCARD KnCode kn_core_insert(KnCatalogCore *core, const KnStoreName *name,
                                   const KnChange *insert, bool *ret_doubtful, KnErr *err);
/** Writes doc, then the same; insert is filled in but for is_view and snapshot_id. A document that
 * is not current is removed. */
KN_NODISCARD KnCode kn_core_insert_document(KnCatalogCore *core, const KnStoreName *name,
                                            KnChange *insert, KnDocument *doc, KnErr *err);
KN_NODISCARD KnCode kn_core_rename(KnCatalogCore *core, const KnTableIdent *from,
                                   const KnTableIdent *to, bool is_view, KnErr *err);
KN_NODISCARD KnCode kn_core_drop(KnCatalogCore *core, const KnTableIdent *ident, bool is_view,
                                 KnErr *err);
/** A short wait, longer with each race that was lost. */
void kn_core_back_off(int tries);
enum { KN_CORE_COMMIT_TRIES = 200 };

KnCatalog *kn_core_facade_new(KnCatalogCore *core);
void kn_core_facade_free(KnCatalog *facade);
