/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rest_internal.h - what the files of the REST catalog client share (Iceberg's REST catalog
 * specification, open-api/rest-catalog-open-api.yaml).
 *
 * rest_settings.c  flags, presets of vendors and secrets of the environment
 * rest_auth.c      who we are: bearer, OAuth2, Basic, SigV4
 * rest_http.c      one request: signed, sent, tried again where that is safe, its failure in words
 * rest_error.c     what an answer outside 2xx says
 * rest_sign.c      SigV4 and what else a request carries of us
 * rest_config.c    the server's configuration: properties, prefix, endpoints
 * rest_path.c      names in paths
 * rest_answer.c    the answers with a table in them
 * rest_credentials.c  credentials that the server lends for a table's files
 * rest_table.c, rest_commit.c, rest_transaction.c, rest_list.c  the operations
 *
 * One thread at a time, as all catalogs; credentials may be asked for by many threads.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "net/http_client.h"
#include "storage/s3/credentials.h"

enum {
    KN_REMOTE_TRIES = 5,              /* of one request, the first included; as Java's client */
    KN_REMOTE_ANSWER_MAX = 512 << 20, /* bytes of an answer: metadata documents may be large */
    KN_REMOTE_SMALL_MAX = 16 << 20,   /* of an answer that holds no metadata */
    KN_REMOTE_PAGES_MAX = 100000,
    KN_REMOTE_DEPTH_MAX = 64, /* levels of namespaces */
};

/* ---- settings ---- */

typedef struct KnRemoteVendor {
    const char *name;
    const char *path;  /* ends the server's URI; added where it is missing */
    const char *sigv4; /* service, or NULL */
    const char *scope; /* of OAuth2, or NULL */
    bool own_keys;     /* the table's files are read with the client's own keys */
    bool token_only;   /* has no OAuth2 client credentials */
    bool read_only;
    bool wants_warehouse;
} KnRemoteVendor;

typedef struct KnRemoteHeader {
    const char *name, *value;
} KnRemoteHeader;

/* From the locator and the environment; texts live in the catalog's arena. */
typedef struct KnRemoteSettings {
    const KnRemoteVendor *vendor;
    const char *uri;    /* with the vendor's path, without a final slash and without /v1 */
    const char *origin; /* scheme://host:port of it */
    const char *warehouse;
    const char *oauth2_uri;                /* NULL = <uri>/v1/oauth/tokens */
    const char *token;                     /* secret */
    const char *client_id, *client_secret; /* secret; id may be "" */
    const char *user, *password;           /* HTTP Basic */
    const char *sigv4;                     /* service */
    const char *scope;
    bool delegation; /* asks for credentials of the table's files */
    bool must_lend;  /* --rest-credentials vended: without them nothing is read */
    size_t n_headers;
    const KnRemoteHeader *headers;
    json_t *properties; /* --rest-option: object of strings */
} KnRemoteSettings;

/* --rest-credentials */
typedef enum KnRemoteDelegation {
    KN_REMOTE_DELEGATION_AUTO, /* as the vendor is used */
    KN_REMOTE_DELEGATION_VENDED,
    KN_REMOTE_DELEGATION_OWN,
} KnRemoteDelegation;

/** KN_E_INVAL names the flag or the variable. set->properties is the caller's to drop. */
KN_NODISCARD KnCode kn_remote_settings(KnArena *arena, const KnLocator *loc, KnRemoteSettings *set,
                                       KnErr *err);
/** "http://host:port" of a URI in arena, lower case, the port always there; KN_E_INVAL. */
KN_NODISCARD KnCode kn_remote_origin(KnArena *arena, const char *uri, const char **ret, KnErr *err);

/* ---- the catalog ---- */

typedef enum KnRemoteEndpoint {
    KN_REMOTE_LIST_NAMESPACES,
    KN_REMOTE_CREATE_NAMESPACE,
    KN_REMOTE_LIST_TABLES,
    KN_REMOTE_CREATE_TABLE,
    KN_REMOTE_LOAD_TABLE,
    KN_REMOTE_COMMIT_TABLE,
    KN_REMOTE_DROP_TABLE,
    KN_REMOTE_REGISTER_TABLE,
    KN_REMOTE_RENAME_TABLE,
    KN_REMOTE_COMMIT_ALL,
    KN_REMOTE_LOAD_CREDENTIALS,
    KN_REMOTE_N_ENDPOINTS,
} KnRemoteEndpoint;

typedef struct KnRemoteAuth {
    pthread_mutex_t lock;
    char *token;        /* what requests carry; NULL = none yet */
    int64_t expires_us; /* monotonic; 0 = not known */
    int64_t renew_us;   /* from then on it is renewed first */
    bool exchange;      /* it is renewed by token exchange (RFC 8693) */
} KnRemoteAuth;

/* What was seen of a table last, and the keys that the server lends for it. */
typedef struct KnRemoteSeen KnRemoteSeen;
typedef struct KnRemoteLoan KnRemoteLoan;

typedef struct KnRemote {
    KnCatalog base;
    KnArena *arena;
    KnHttpClient *http;
    KnRemoteSettings set;
    KnRemoteAuth auth;
    const char *base_uri;  /* <uri>/v1 */
    const char *prefix;    /* "/p" or "" */
    const char *separator; /* between levels in a path, percent-encoded */
    const char *page_size; /* NULL = the server's */
    const char *id;
    json_t *properties;    /* defaults < --rest-option < overrides */
    uint32_t endpoints;    /* bits of KnRemoteEndpoint */
    bool idempotent;       /* the server knows Idempotency-Key */
    int64_t skew_ms;       /* the server's clock minus ours, once it mattered */
    KnFileIO *io;          /* of locations that need no credentials of their own */
    const KnS3Options *s3; /* --s3-*; in arena */
    KnS3Credentials *aws;  /* our own keys, for SigV4; NULL = not asked for yet */
    KnMap *seen;           /* table -> KnRemoteSeen */
} KnRemote;

/** A property of the catalog's configuration; NULL = absent. */
const char *kn_remote_property(const KnRemote *rest, const char *key);
/** KN_E_UNSUPPORTED when the server says that it has not this. */
KN_NODISCARD KnCode kn_remote_need(const KnRemote *rest, KnRemoteEndpoint endpoint, KnErr *err);
KN_NODISCARD KnCode kn_remote_configure(KnRemote *rest, KnErr *err);

/* ---- requests ---- */

typedef enum KnRemoteSafety {
    KN_REMOTE_READS,   /* changes nothing: tried again after anything */
    KN_REMOTE_CHANGES, /* tried again only when it was surely not done, or has an Idempotency-Key */
} KnRemoteSafety;

typedef struct KnRemoteCall {
    const char *method;
    const char *url;  /* whole */
    const char *what; /* "load table a.b": for messages */
    KnRemoteSafety safety;
    const char *etag;   /* If-None-Match; NULL = none */
    const char *token;  /* bearer of this table instead of the catalog's; NULL = the catalog's */
    bool delegated;     /* X-Iceberg-Access-Delegation */
    bool gone_is_done;  /* 404 to a second try after a lost answer: the first was it */
    const json_t *body; /* or NULL */
    KnStr form;         /* application/x-www-form-urlencoded instead; ptr NULL = none */
    const char *basic;  /* "id:secret": HTTP Basic instead of the session's own */
    bool no_auth;
    size_t max;
} KnRemoteCall;

typedef struct KnRemoteAnswer {
    int status;  /* 200, 204, 304... */
    json_t *doc; /* NULL when there is no body */
    char etag[256];
} KnRemoteAnswer;

/** 2xx and 304 are success. Else the code of kn_remote_refusal(). KN_E_UNKNOWN: it may have been
 * done (only for KN_REMOTE_CHANGES). ret is zeroed by the caller and done by
 * kn_remote_answer_done(). */
KN_NODISCARD KnCode kn_remote_send(KnRemote *rest, const KnRemoteCall *call, KnRemoteAnswer *ret,
                                   KnErr *err);
void kn_remote_answer_done(KnRemoteAnswer *answer);
#define KN_REMOTE_ANSWER_AUTO __attribute__((cleanup(kn_remote_answer_done))) KnRemoteAnswer

/** What the server's refusal means. KN_E_NOTFOUND 404, KN_E_EXISTS or KN_E_CONFLICT 409,
 * KN_E_REFUSED 401 403 419, KN_E_INVAL 400 422, KN_E_UNSUPPORTED 405 406 501, KN_E_BUSY 429 503
 * (retriable), KN_E_IO the rest; for what changes something 5xx is KN_E_UNKNOWN. */
KN_NODISCARD KnCode kn_remote_refusal(const KnRemoteCall *call, const KnHttpResponse *resp,
                                      KnErr *err);

/* ---- who we are ---- */

void kn_remote_auth_init(KnRemoteAuth *auth);
void kn_remote_auth_done(KnRemoteAuth *auth);
/** The bearer token to send now, in arena, fetched or renewed first where that is due; NULL = none.
 */
KN_NODISCARD KnCode kn_remote_auth_token(KnRemote *rest, KnArena *arena, const char **ret,
                                         KnErr *err);
/** `refused` was answered by 401 or 419: get another, unless another thread has. KN_E_REFUSED when
 * there is no other. */
KN_NODISCARD KnCode kn_remote_auth_renew(KnRemote *rest, const char *refused, KnErr *err);

/** "Basic <base64>" in arena. */
const char *kn_remote_basic(KnArena *arena, const char *id_and_secret);
/** SigV4 with the client's own keys; the headers of req are replaced, in arena. */
KN_NODISCARD KnCode kn_remote_sign(KnRemote *rest, KnArena *arena, KnHttpRequest *req, KnErr *err);

/* ---- names ---- */

/** <base>/<prefix>/namespaces/<levels>[/tables/<name>] in arena. */
const char *kn_remote_table_url(const KnRemote *rest, KnArena *arena, const KnTableIdent *ident);
const char *kn_remote_namespace_url(const KnRemote *rest, KnArena *arena, const char *const *levels,
                                    size_t n_levels);
const char *kn_remote_url(const KnRemote *rest, KnArena *arena, const char *tail);
/** Levels joined by the separator, encoded once: for `parent=`. */
const char *kn_remote_namespace_text(const KnRemote *rest, KnArena *arena,
                                     const char *const *levels, size_t n_levels);
/** {"namespace": [...], "name": ...} */
json_t *kn_remote_ident_json(const KnTableIdent *ident);

/* ---- changes ---- */

/** {"requirements": [...], "updates": [...]}, with "identifier" when ident is given. Requirements
 * that REST has no words for are left out (commit_send.c checks those itself). */
KN_NODISCARD KnCode kn_remote_commit_json(const KnTableIdent *ident, const KnTableCommit *commit,
                                          json_t **ret, KnErr *err);

/* ---- tables ---- */

/* LoadTableResult and its kin. */
typedef struct KnRemoteTable {
    KnMetadata *md;
    const char *location;               /* of the document; NULL = staged. In doc */
    const json_t *config, *credentials; /* or NULL; in doc */
} KnRemoteTable;
/** what names the answer in messages. ret->md is the caller's; the rest lives as long as doc. */
KN_NODISCARD KnCode kn_remote_table_parse(json_t *doc, const char *what, KnRemoteTable *ret,
                                          KnErr *err);

struct KnRemoteSeen {
    char *etag; /* NULL = none */
    KnMetadata *md;
    char *location;
    json_t *config; /* of the last answer that had one, or NULL */
    json_t *credentials;
    KnRemoteLoan *loan; /* NULL: files that need none */
};
void kn_remote_seen_clear(KnRemoteSeen *seen);
/** Remember the table as it is now. */
KnRemoteSeen *kn_remote_see(KnRemote *rest, const KnTableIdent *ident, const KnRemoteTable *table,
                            const char *etag);
/** The bearer that the server gave for requests on this table, or NULL; seen may be NULL. */
const char *kn_remote_table_token(const KnRemoteSeen *seen);
const char *kn_remote_token_of(KnRemote *rest, const KnTableIdent *ident);
/** What storage-credentials lend for a location: the config of the longest prefix, or NULL. */
const json_t *kn_remote_lent(const json_t *credentials, KnStr location);
/** What reads and writes the table's files; borrowed. */
KN_NODISCARD KnCode kn_remote_io(KnRemote *rest, const KnTableIdent *ident, KnRemoteSeen *seen,
                                 KnFileIO **ret, KnErr *err);
/** New answers for it; loan may be NULL. Handles on tables keep using the FileIO of their loan:
 * loans live until the catalog is closed. */
void kn_remote_loan_update(KnRemoteLoan *loan, const json_t *config, const json_t *credentials);
KnRemoteLoan *kn_remote_loan_free(KnRemoteLoan *loan);

/* ---- operations (KnCatalogOps) ---- */
KN_NODISCARD KnCode kn_remote_refuse_read_only(const KnRemote *rest, KnErr *err);
KN_NODISCARD KnCode kn_remote_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret,
                                   KnErr *err);
KN_NODISCARD KnCode kn_remote_create(KnCatalog *cat, const KnTableIdent *ident,
                                     const KnCreateTable *create, KnTable **ret, KnErr *err);
KN_NODISCARD KnCode kn_remote_register(KnCatalog *cat, const KnTableIdent *ident,
                                       const char *location, KnTable **ret, KnErr *err);
KN_NODISCARD KnCode kn_remote_drop(KnCatalog *cat, const KnTableIdent *ident, KnErr *err);
KN_NODISCARD KnCode kn_remote_purge(KnCatalog *cat, const KnTableIdent *ident, KnErr *err);
KN_NODISCARD KnCode kn_remote_rename(KnCatalog *cat, const KnTableIdent *from,
                                     const KnTableIdent *to, KnErr *err);
KN_NODISCARD KnCode kn_remote_list(KnCatalog *cat, KnTableListFn fn, void *arg, KnErr *err);
KN_NODISCARD KnCode kn_remote_create_namespace(KnCatalog *cat, const char *const *levels, size_t n,
                                               KnErr *err);
KN_NODISCARD KnCode kn_remote_commit(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit,
                                     KnErr *err);
KN_NODISCARD KnCode kn_remote_commit_all(KnCatalog *cat, const KnTableChanges *changes, KnErr *err);
