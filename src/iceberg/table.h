/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * table.h - a table as loaded from somewhere, and the catalog interface it came through.
 *
 * iceberg knows this interface only; the implementations are in src/catalog. A KnTable is a
 * consistent view: metadata never changes under it; kn_table_refresh() gives it the newest. One
 * thread at a time.
 */
#include "iceberg/metadata/metadata.h"
#include "storage/file_io.h"

typedef struct KnCatalog KnCatalog;
typedef struct KnTableIdent {
    const char *const *levels; /* namespace levels; a name with dots inside is one level */
    size_t n_levels;
    const char *name;
} KnTableIdent;

typedef struct KnTable {
    char *name;         /* "ns.name", or the location of a bare table: for messages and keys */
    KnCatalog *catalog; /* borrowed; must outlive the table */
    KnTableIdent ident; /* zero for a bare table */
    KnFileIO *io;       /* borrowed from the catalog */
    KnMetadata *md;     /* a reference */
    char *metadata_location;
    KnArena *arena;   /* lives as long as the table */
    size_t n_allowed; /* folders outside the location from which files may be read (--allow-path) */
    const char *const *allowed;
} KnTable;

typedef struct KnListedTable {
    const char *name;
} KnListedTable;
typedef KnCode (*KnTableListFn)(void *arg, const KnTableIdent *ident, KnErr *err);

/* Commits of several tables of one catalog. */
typedef struct KnTableChanges {
    KnTable *const *tables;
    const KnTableCommit *commits; /* of each */
    size_t n;
} KnTableChanges;

/* Every callback is required, but those that say otherwise; a catalog that cannot write sets
 * read_only and answers KN_E_UNSUPPORTED. */
typedef struct KnCatalogOps {
    const char *kind; /* "jdbc-sqlite", "root" */
    bool read_only;
    /* Stable text for cursor keys, without secrets: "jdbc:/path/catalog.db#knut". */
    const char *(*id)(const KnCatalog *cat);
    /* name is parsed by the catalog: "ns.name" (a bare table ignores it). */
    KnCode (*load)(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret, KnErr *err);
    KnCode (*create)(KnCatalog *cat, const KnTableIdent *ident, const KnCreateTable *create,
                     KnTable **ret, KnErr *err);
    /* Requirements checked against the newest metadata, updates applied, document written, pointer
     * moved by compare-and-set; a lost race whose requirements still hold is retried inside. On
     * success tbl shows the new metadata. KN_E_CONFLICT: a requirement no longer holds.
     * KN_E_UNKNOWN: it may have been applied: no file of the commit may be removed. */
    KnCode (*commit)(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit, KnErr *err);
    /* Several tables, each once, as one commit: all of it or nothing. Like commit, but a lost race
     * is not retried inside. On success the tables show the new metadata as far as it could be
     * read. NULL: the catalog cannot do it (kn_tables_commit() says so). */
    KnCode (*commit_all)(KnCatalog *cat, const KnTableChanges *changes, KnErr *err);
    KnCode (*drop)(KnCatalog *cat, const KnTableIdent *ident,
                   KnErr *err); /* the entry only; files stay */
    /* The entry, and the catalog itself removes the files, now or later. NULL: it does not, whoever
     * drops must (kn_table_purge()). */
    KnCode (*purge)(KnCatalog *cat, const KnTableIdent *ident, KnErr *err);
    /* A table by a metadata document that exists. KN_E_EXISTS: the name is taken. */
    KnCode (*register_table)(KnCatalog *cat, const KnTableIdent *ident, const char *location,
                             KnTable **ret, KnErr *err);
    /* Another name; files and location stay. KN_E_NOTFOUND, KN_E_EXISTS. */
    KnCode (*rename)(KnCatalog *cat, const KnTableIdent *from, const KnTableIdent *to, KnErr *err);
    KnCode (*list)(KnCatalog *cat, KnTableListFn fn, void *arg, KnErr *err);
    KnCode (*create_namespace)(KnCatalog *cat, const char *const *levels, size_t n,
                               KnErr *err); /* exists = ok */
    void (*close)(KnCatalog *cat);
} KnCatalogOps;
/** First member of every implementation's struct. */
struct KnCatalog {
    const KnCatalogOps *ops;
};

/** For catalogs: a handle on what they loaded. Takes over the reference md; copies the texts; io
 * and cat are borrowed. ident NULL = a bare table, named by its location. (table_handle.c) */
KnTable *kn_table_new(KnCatalog *cat, const KnTableIdent *ident, KnFileIO *io, KnMetadata *md,
                      const char *metadata_location);
/** For catalogs: show newer metadata; takes over the reference. */
void kn_table_set_metadata(KnTable *tbl, KnMetadata *md, const char *metadata_location);

KN_NODISCARD KnCode kn_table_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret,
                                  KnErr *err);
KN_NODISCARD KnCode kn_table_create(KnCatalog *cat, const KnTableIdent *ident,
                                    const KnCreateTable *create, KnTable **ret, KnErr *err);
KN_NODISCARD KnCode kn_table_commit(KnTable *tbl, const KnTableCommit *commit, KnErr *err);
/** commit_all of the tables' catalog; for one table, its commit. KN_E_UNSUPPORTED: the catalog
 * cannot change several tables at once. */
KN_NODISCARD KnCode kn_tables_commit(const KnTableChanges *changes, KnErr *err);
KN_NODISCARD KnCode kn_table_refresh(KnTable *tbl, KnErr *err);
KnTable *kn_table_free(KnTable *tbl);
KnCatalog *kn_catalog_close(KnCatalog *cat);

/** "a.b.c" -> levels {a,b}, name c. Quoted parts ("a.b".c) are one level. Refuses empty parts, '/',
 * NUL, "..". */
KN_NODISCARD KnCode kn_table_ident_parse(KnArena *arena, KnStr text, KnTableIdent *ret, KnErr *err);
const char *kn_table_ident_format(KnArena *arena, const KnTableIdent *ident);

/** Where the engine finds a file that metadata names, or a refusal.
 *
 * Allowed: below the table's location; below write.data.path, write.metadata.path,
 * write.object-storage.path, write.folder-storage.path; below an --allow-path; and, for a table
 * with a name mapping (made by add_files, migrate or snapshot, which take files in place), below
 * the folder that holds the table's location. Everything else is KN_E_REFUSED: metadata from
 * elsewhere must not make knut read /etc. */
KN_NODISCARD KnCode kn_table_check_path(const KnTable *tbl, KnStr location, KnErr *err);
/** KN_E_REFUSED unless the file is the table's to remove: as above, but a name mapping gives no
 * right to what lies beside the table. */
KN_NODISCARD KnCode kn_table_check_removable(const KnTable *tbl, KnStr location, KnErr *err);
KN_NODISCARD KnCode kn_table_engine_path(const KnTable *tbl, KnArena *arena, KnStr location,
                                         const char **ret, KnErr *err);

/** A snapshot by --snapshot ID, --as-of TIME, --ref NAME; all empty = current (NULL in *ret when
 * the table has none). */
typedef struct KnSnapshotChoice {
    const char *snapshot;
    const char *as_of;
    const char *ref;
} KnSnapshotChoice;
KN_NODISCARD KnCode kn_table_choose_snapshot(const KnTable *tbl, const KnSnapshotChoice *choice,
                                             const KnSnapshot **ret, KnErr *err);
/** The schema with which the chosen rows are read, as Java does: the snapshot's own for a snapshot
 * id, a time and a tag; the table's current one for a branch and when nothing was chosen. */
const KnSchema *kn_table_choice_schema(const KnTable *tbl, const KnSnapshotChoice *choice,
                                       const KnSnapshot *snap);
