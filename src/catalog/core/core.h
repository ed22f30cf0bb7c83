/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * core.h - a catalog that many threads use at once: what `knut catalog serve` serves over REST and
 * gRPC, and what `knut table` works on.
 *
 * Every function is thread-safe. Names are namespace levels and a name, raw (not encoded); a level
 * may hold dots. Failures, besides KN_E_IO, KN_E_NOMEM, KN_E_BUSY (the database is locked or no
 * connection is to be had: nothing was changed, try again):
 *
 *     KN_E_NOTFOUND     err->about: KN_ABOUT_NAMESPACE, _TABLE, _VIEW, or _FILE (the pointer is
 *                       there, its document is not)
 *     KN_E_EXISTS       err->about: likewise (a table in the way of a view is KN_ABOUT_TABLE)
 *     KN_E_CONFLICT     a requirement of a commit does not hold
 *     KN_E_UNKNOWN      a commit may or may not have been applied; nothing was removed
 *     KN_E_INVAL        wrong names, updates, documents; KN_ABOUT_BOTH: a key both set and removed
 *     KN_E_UNSUPPORTED  understood and not done; the message names it
 *     KN_E_REFUSED      KN_ABOUT_LOCATION: a place outside the warehouse and the allowed folders;
 *                       KN_ABOUT_NOT_EMPTY: a namespace that holds something
 *     KN_E_CORRUPT      a document in the warehouse is not what it should be
 */
#include "catalog/core/document.h"
#include "iceberg/maintain/orphans.h"
#include "iceberg/metadata/commit_json.h"
#include "iceberg/table.h"
#include "iceberg/view/view.h"

typedef struct KnCatalogCore KnCatalogCore;

typedef struct KnCoreOptions {
    const char *warehouse; /* URI of the data root: "file:///w", "s3://bucket/prefix" */
    const char *db;        /* SQLite file, or "postgresql://…" */
    const char *catalog;   /* catalog_name in the database; NULL = "knut" */
    bool create_db;        /* make the database's tables when absent, else KN_E_NOTFOUND */
    KnFileIO *io;          /* taken over also on failure; NULL = by the warehouse's scheme */
    /* Folders besides the warehouse in which clients may put tables ("file:///tmp", "s3://b/x"). */
    const char *const *allowed;
    size_t n_allowed;
    bool any_location;   /* the caller is the operator: no location is refused */
    bool lax_namespaces; /* a table's missing namespace is made, not KN_E_NOTFOUND */
    size_t cache_bytes;  /* of metadata documents; 0 = 64 MiB */
    int connections;     /* to PostgreSQL, at most; 0 = 8 */
    int64_t keep_events; /* of the log, when this core commits; 0 = all */
} KnCoreOptions;

KN_NODISCARD KnCode kn_core_open(const KnCoreOptions *opts, KnCatalogCore **ret, KnErr *err);
/** No call may be under way. Accepts NULL, returns NULL. */
KnCatalogCore *kn_core_close(KnCatalogCore *core);
/** "jdbc:/path/catalog.db#knut", "jdbc:postgresql://host:port/db#knut": stable, without secrets. */
const char *kn_core_id(const KnCatalogCore *core);
const char *kn_core_warehouse(const KnCatalogCore *core);
/** KN_OK when the database answers. For readiness probes. */
KN_NODISCARD KnCode kn_core_ping(KnCatalogCore *core, KnErr *err);
/** What reads and writes a location's scheme; borrowed. */
KN_NODISCARD KnCode kn_core_io(KnCatalogCore *core, KnStr location, KnFileIO **ret, KnErr *err);
/** KN_E_REFUSED with KN_ABOUT_LOCATION unless it lies in the warehouse or an allowed folder. */
KN_NODISCARD KnCode kn_core_check_location(const KnCatalogCore *core, KnStr location, KnErr *err);
/** The same check, and the location in the form in which places are compared: one spelling of the
 * scheme, no final slash; in arena. */
KN_NODISCARD KnCode kn_core_place(const KnCatalogCore *core, KnArena *arena, KnStr location,
                                  const char **ret, KnErr *err);
/** The folder in the warehouse that goes by the namespace's name (n_levels 0: the warehouse), in
 * that form. What a property `location` says does not matter: nobody can make another's folder
 * their own. In arena. */
const char *kn_core_own_folder(const KnCatalogCore *core, KnArena *arena, const char *const *levels,
                               size_t n_levels);
/** Where a table of that name is made when nobody says where; in arena. */
KN_NODISCARD KnCode kn_core_default_location(KnCatalogCore *core, KnArena *arena,
                                             const KnTableIdent *ident, const char **ret,
                                             KnErr *err);
/** The properties by which a table says where it keeps files, ended by NULL. */
extern const char *const kn_core_place_keys[];
/** The same catalog behind the interface that planning, maintenance and commands take; borrowed,
 * closing it does nothing. Tables loaded from it belong to one thread, as ever. */
KnCatalog *kn_core_catalog(KnCatalogCore *core);
/** The same, and closing it closes the core. */
KnCatalog *kn_core_into_catalog(KnCatalogCore *core);

/* ---- lists ---- */
typedef struct KnPage {
    const char *token; /* NULL or "" = from the beginning; else the `next` of the page before */
    size_t size;       /* at most so many; 0 = all */
} KnPage;
typedef struct KnNameList { /* in byte order; in the caller's arena */
    const char *const *names;
    size_t n;
    const char *next; /* NULL = this is the last page */
} KnNameList;

/* ---- namespaces ---- */
typedef struct KnNamespace {
    const char *const *levels;
    size_t n_levels;
} KnNamespace;

/** The last levels of parent's children (parent NULL or without levels: of the top ones).
 * KN_E_NOTFOUND when there is no parent. page may be NULL. */
KN_NODISCARD KnCode kn_core_namespace_list(KnCatalogCore *core, KnArena *arena,
                                           const KnNamespace *parent, const KnPage *page,
                                           KnNameList *ret, KnErr *err);
/** properties: object of strings or NULL. Parents need not exist. */
KN_NODISCARD KnCode kn_core_namespace_create(KnCatalogCore *core, const KnNamespace *ns,
                                             const json_t *properties, KnErr *err);
/** A new object of strings. */
KN_NODISCARD KnCode kn_core_namespace_get(KnCatalogCore *core, const KnNamespace *ns, json_t **ret,
                                          KnErr *err);
KN_NODISCARD KnCode kn_core_namespace_exists(KnCatalogCore *core, const KnNamespace *ns, bool *ret,
                                             KnErr *err);
/** KN_E_REFUSED with KN_ABOUT_NOT_EMPTY while a table, a view or a namespace is in it. */
KN_NODISCARD KnCode kn_core_namespace_drop(KnCatalogCore *core, const KnNamespace *ns, KnErr *err);
/** Where a namespace's tables are made when nobody says where: what its property `location` says,
 * else the folder by its name. In arena. */
KN_NODISCARD KnCode kn_core_namespace_location(KnCatalogCore *core, KnArena *arena,
                                               const KnNamespace *ns, const char **ret, KnErr *err);
/** removals: array of names or NULL; updates: object of strings or NULL. *ret: a new object
 * {"updated": [...], "removed": [...], "missing": [...]}. */
KN_NODISCARD KnCode kn_core_namespace_update(KnCatalogCore *core, const KnNamespace *ns,
                                             const json_t *removals, const json_t *updates,
                                             json_t **ret, KnErr *err);

/* ---- tables ---- */
KN_NODISCARD KnCode kn_core_table_list(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                                       const KnPage *page, KnNameList *ret, KnErr *err);
/** Over SQLite about 0.1 us, and right also when another process changes the database (mirror.h
 * says why); over PostgreSQL one question. */
KN_NODISCARD KnCode kn_core_table_exists(KnCatalogCore *core, const KnTableIdent *ident, bool *ret,
                                         KnErr *err);
/** The current document: a reference. */
KN_NODISCARD KnCode kn_core_table_load(KnCatalogCore *core, const KnTableIdent *ident,
                                       KnDocument **ret, KnErr *err);
/** Where the current document is, without reading it (for ETags); in arena. A local one that is
 * not there any more is KN_ABOUT_FILE, as in kn_core_table_load(). */
KN_NODISCARD KnCode kn_core_table_pointer(KnCatalogCore *core, KnArena *arena,
                                          const KnTableIdent *ident, const char **ret, KnErr *err);
/** stage: the document is made and returned, with location "", and nothing is stored. A location
 * that is not given is the namespace's property `location`, else the warehouse, and the name. */
KN_NODISCARD KnCode kn_core_table_create(KnCatalogCore *core, const KnTableIdent *ident,
                                         const KnCreateTable *create, bool stage, KnDocument **ret,
                                         KnErr *err);
/** Requirements are checked on the newest metadata; a lost race is tried again here while they
 * hold. With KN_REQUIRE_CREATE the table is made of the updates. */
KN_NODISCARD KnCode kn_core_table_commit(KnCatalogCore *core, const KnTableIdent *ident,
                                         const KnTableCommit *commit, KnDocument **ret, KnErr *err);
typedef struct KnRegistration {
    const char *location; /* of the metadata document */
    bool overwrite;       /* an existing table's pointer is moved there; else KN_E_EXISTS */
    /* May refuse what the document says; NULL = nobody does. */
    KnCode (*check)(void *arg, const KnMetadata *md, KnErr *err);
    void *arg;
} KnRegistration;
KN_NODISCARD KnCode kn_core_table_register(KnCatalogCore *core, const KnTableIdent *ident,
                                           const KnRegistration *registration, KnDocument **ret,
                                           KnErr *err);
/** KN_E_NOTFOUND with KN_ABOUT_NAMESPACE when the target's namespace does not exist. */
KN_NODISCARD KnCode kn_core_table_rename(KnCatalogCore *core, const KnTableIdent *from,
                                         const KnTableIdent *to, KnErr *err);
/** The pointer only; files stay. */
KN_NODISCARD KnCode kn_core_table_drop(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err);
/** The pointer only, and the document that was its last: no commit comes between. */
KN_NODISCARD KnCode kn_core_table_unregister(KnCatalogCore *core, const KnTableIdent *ident,
                                             KnDocument **ret, KnErr *err);
/** The pointer and the files that its metadata reaches (kn_table_purge); ses is one engine session,
 * used by this call alone. A table whose files cannot be read is not dropped. */
KN_NODISCARD KnCode kn_core_table_purge(KnCatalogCore *core, const KnTableIdent *ident,
                                        KnSession *ses, KnSweepResult *ret, KnErr *err);

typedef struct KnTableChange {
    KnTableIdent ident;
    KnTableCommit commit;
} KnTableChange;
/** All pointers move, or none; a table may be named once. ret_docs (may be NULL): n references. */
KN_NODISCARD KnCode kn_core_tables_commit(KnCatalogCore *core, const KnTableChange *changes,
                                          size_t n, KnDocument **ret_docs, KnErr *err);

/* ---- views ---- */
KN_NODISCARD KnCode kn_core_view_list(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                                      const KnPage *page, KnNameList *ret, KnErr *err);
KN_NODISCARD KnCode kn_core_view_exists(KnCatalogCore *core, const KnTableIdent *ident, bool *ret,
                                        KnErr *err);
KN_NODISCARD KnCode kn_core_view_load(KnCatalogCore *core, const KnTableIdent *ident,
                                      KnDocument **ret, KnErr *err);
KN_NODISCARD KnCode kn_core_view_create(KnCatalogCore *core, const KnTableIdent *ident,
                                        const KnCreateView *create, KnDocument **ret, KnErr *err);
KN_NODISCARD KnCode kn_core_view_commit(KnCatalogCore *core, const KnTableIdent *ident,
                                        const KnViewCommit *commit, KnDocument **ret, KnErr *err);
KN_NODISCARD KnCode kn_core_view_register(KnCatalogCore *core, const KnTableIdent *ident,
                                          const char *metadata_location, KnDocument **ret,
                                          KnErr *err);
KN_NODISCARD KnCode kn_core_view_rename(KnCatalogCore *core, const KnTableIdent *from,
                                        const KnTableIdent *to, KnErr *err);
KN_NODISCARD KnCode kn_core_view_drop(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err);

/* ---- the log of commits ---- */
typedef enum KnEventKind {
    KN_EVENT_CREATE,
    KN_EVENT_UPDATE,
    KN_EVENT_DROP,
    KN_EVENT_RENAME, /* the new name; `from` has the old one */
    KN_EVENT_REGISTER,
} KnEventKind;
typedef struct KnCommitEvent {
    int64_t seq; /* 1, 2, 3, … without a gap */
    int64_t timestamp_ms;
    KnEventKind kind;
    bool is_view;
    KnTableIdent ident;
    KnTableIdent from;             /* RENAME only */
    int64_t snapshot_id;           /* current after the commit; -1 = none */
    const char *metadata_location; /* "" for DROP */
} KnCommitEvent;
typedef KnCode (*KnCommitEventFn)(void *arg, const KnCommitEvent *event, KnErr *err);

/** "create", "update", "drop", "rename", "register". */
const char *kn_event_kind_name(KnEventKind kind);
/** Events after seq, oldest first, at most limit (0 = all). 0 is the oldest that is kept; after a
 * number whose successors were dropped it is KN_E_NOTFOUND. Changes that other programs (PyIceberg,
 * Java) make in the database are not in the log. */
KN_NODISCARD KnCode kn_core_commits_since(KnCatalogCore *core, int64_t seq, size_t limit,
                                          KnCommitEventFn fn, void *arg, KnErr *err);
/** The newest sequence number; 0 = no commit yet. */
KN_NODISCARD KnCode kn_core_commits_last(KnCatalogCore *core, int64_t *ret, KnErr *err);
/** Waits until there is an event after seq (KN_OK), at most timeout_ms (KN_E_CANCELLED), or until
 * kn_core_stop() (KN_E_CANCELLED at once). Sees commits of other processes within 0.25 s. */
KN_NODISCARD KnCode kn_core_commits_wait(KnCatalogCore *core, int64_t seq, int64_t timeout_ms,
                                         KnErr *err);
/** Ends the waiting of all threads, for shutdown. */
void kn_core_stop(KnCatalogCore *core);
