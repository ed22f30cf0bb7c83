/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rest_internal.h - the REST front's own: operations, calls, replies.
 *
 * An operation is a row of the table in rest_routes.c. Its function gets a call whose path has been
 * taken apart, whose caller may do what the row asks for, and whose body, where the row has one, is
 * a JSON object. It fills the response through the kn_rest_reply functions, or returns a failure,
 * which rest_error.c turns into the specification's error model. All of it is on the request's
 * arena.
 */
#include "base/json.h"
#include "base/metrics.h"
#include "catalog/server/front.h"
#include "catalog/server/idempotency.h"
#include "catalog/server/plans.h"

typedef struct KnRestCall KnRestCall;
typedef KnCode (*KnRestFn)(KnRestCall *call, KnErr *err);

enum {
    KN_REST_JSON = 1 << 0,    /* the body is a JSON object */
    KN_REST_FORM = 1 << 1,    /* the body is a form */
    KN_REST_CHANGES = 1 << 2, /* changes the catalog: audit log, Idempotency-Key, may wait */
    KN_REST_WAITS = 1 << 3,   /* reads what may be far away: on the pool */
    KN_REST_OPEN = 1 << 4,    /* needs no token */
    KN_REST_HIDDEN = 1 << 5,  /* not of the specification: not in config's `endpoints` */
    KN_REST_BRIEF = 1 << 7,   /* of those that change: one document and one transaction */
    KN_REST_CATALOG = 1 << 6, /* its path has no namespace: the right is on the whole catalog, or is
                                 checked by the function (right NONE) */
};

typedef struct KnRestOp {
    const char *id; /* the specification's operationId */
    const char *method;
    const char *path; /* as in the specification: "/v1/{prefix}/namespaces/{namespace}" */
    KnRestFn fn;
    KnRight right;
    unsigned int flags;
} KnRestOp;

extern const KnRestOp kn_rest_ops[];
extern const size_t kn_rest_n_ops;

typedef struct KnRest {
    KnFront base;
    KnFrontContext ctx;
    KnHttpd *httpd;
    KnIdempotency *idempotency;
    KnPlans *plans;
    KnStr config;              /* the answer of getConfig */
    KnArena *arena;            /* of what is made once */
    KnMetric **counts;         /* per operation and class of status */
    KnMetric **micros;         /* per operation */
    _Atomic uint64_t next_id;  /* of requests whose failure is explained in the log only */
    _Atomic int64_t warned_us; /* when it was last said that keys could not be lent */
} KnRest;

/* How a client that asked for it gets at a table's files: goes into the answer that loads it. */
typedef struct KnRestLent {
    const KnTextPair *config; /* besides the front's */
    size_t n;
    const char *prefix; /* of storage-credentials: keys are lent; NULL: requests are signed */
    const char *mark;   /* other for other keys: part of the ETag */
} KnRestLent;

struct KnRestCall {
    KnRest *rest;
    KnHttpdRequest *req;
    KnHttpdResponse *rsp;
    KnArena *arena;
    const KnRestOp *op;
    const KnPrincipal *who;
    KnNamespace ns;     /* of the path; without levels where it has none */
    KnTableIdent ident; /* of the path: ns and {table} or {view} */
    const char *arg;    /* {plan-id}, {function} */
    json_t *body;       /* with KN_REST_JSON: an object */
    const KnHttpPair *form;
    size_t n_form;
    const KnRestLent *lent; /* NULL = nothing */
    KnErr err;
};

/* ---- rest_routes.c ---- */
/* The operation of method and path, filling ns, ident and arg. NULL: *ret_allowed lists the methods
 * that the path has, NULL when there is no such path. */
const KnRestOp *kn_rest_route(KnRestCall *call, const char **ret_allowed, KnErr *err);
/* "a<US>b" as levels. */
KN_NODISCARD KnCode kn_rest_namespace_parse(KnArena *arena, KnStr text, KnNamespace *ret,
                                            KnErr *err);

/* ---- rest_error.c ---- */
typedef struct KnRestFailure {
    int status;
    const char *type;
    bool hide; /* the message is for the log only */
} KnRestFailure;
KnRestFailure kn_rest_failure(const KnErr *err);
void kn_rest_reply_failure(KnRestCall *call, const KnErr *err);
/* An error of the protocol itself. */
void kn_rest_reply_error(KnArena *arena, KnHttpdResponse *rsp, int status, const char *type,
                         const char *message);
/* The type of a status that HTTP itself made. */
const char *kn_rest_status_type(int status);

/* ---- rest_reply.c ---- */
/* A buffer that ends with the request. */
KnBuf *kn_rest_buf(KnRestCall *call);
KnCode kn_rest_reply_json(KnRestCall *call, const KnBuf *body, KnErr *err);
KnCode kn_rest_reply_object(KnRestCall *call, const json_t *doc, KnErr *err);
KnCode kn_rest_reply_empty(KnRestCall *call, int status);
/* {"metadata-location", "metadata", "config"} with an ETag; keeps a reference of doc until it is
 * sent. */
KnCode kn_rest_reply_table(KnRestCall *call, KnDocument *doc, KnErr *err);
/* The same with the snapshots of refs only (metadata lives as long as doc), and no ETag. */
KnCode kn_rest_reply_refs(KnRestCall *call, KnDocument *doc, KnStr metadata, KnErr *err);
/* Of the document at location, as a whole or with the snapshots of refs only. */
const char *kn_rest_etag(KnRestCall *call, const char *location, bool refs_only);
/* "storage-credentials": [...]; none where nothing (NULL) or no keys are lent. */
void kn_rest_write_credentials(KnBuf *out, const KnRestCall *call, const KnRestLent *lent);
KnCode kn_rest_reply_view(KnRestCall *call, KnDocument *doc, KnErr *err);
/* ["a","b"] */
void kn_rest_write_levels(KnBuf *buf, const char *const *levels, size_t n);

/* ---- requests (rest_reply.c) ---- */
/* pageToken and pageSize; without pageToken everything is one page. */
KN_NODISCARD KnCode kn_rest_page(KnRestCall *call, KnPage *ret, KnErr *err);
/* An array of level names. */
KN_NODISCARD KnCode kn_rest_levels(KnRestCall *call, const json_t *array, KnNamespace *ret,
                                   KnErr *err);
/* {"namespace": [...], "name": "..."} in a field of obj. */
KN_NODISCARD KnCode kn_rest_ident(KnRestCall *call, const json_t *obj, const char *key,
                                  KnTableIdent *ret, KnErr *err);
/* KN_E_REFUSED unless the caller has the right there. */
KN_NODISCARD KnCode kn_rest_need(const KnRestCall *call, const KnNamespace *ns, KnRight right,
                                 KnErr *err);
/* The folder of the call's namespace by its name; in the call's arena. */
const char *kn_rest_own_folder(const KnRestCall *call);
/* What the caller may do with files at the place (kn_core_place()): the right in the call's
 * namespace holds below its own folder, elsewhere only the right on the whole catalog does. Whoever
 * writes tables chooses locations, and would otherwise get at somebody else's files. */
KnRight kn_rest_right_at(const KnRestCall *call, const char *place);
/* KN_E_REFUSED unless the document lies where the caller administers: others' documents may not be
 * brought into a namespace of one's own and read there. */
KN_NODISCARD KnCode kn_rest_need_place(KnRestCall *call, const char *location, KnErr *err);
/* The outcome of reading a request: what is "corrupt" to a parser is the caller's mistake here. */
KnCode kn_rest_asked(KnCode code, KnErr *err);
/* Frees a JSON document when the request ends. */
json_t *kn_rest_keep(KnRestCall *call, json_t *doc);

/* ---- rest_lend.c ---- */
/* The folders in which a table keeps files, as far as this caller may be let in. */
typedef struct KnRestReach {
    const char *const *folders; /* kn_core_place() */
    size_t n;
    bool write;
} KnRestReach;
/* KN_E_UNSUPPORTED: they are not in an object store; KN_E_REFUSED: not for this caller. */
KN_NODISCARD KnCode kn_rest_reach(KnRestCall *call, const char *location, const json_t *properties,
                                  KnRestReach *ret, KnErr *err);
/* What X-Iceberg-Access-Delegation asks for, as far as it can be had, in call->lent. A table can be
 * loaded without it: that nothing was lent is no failure. */
void kn_rest_delegate(KnRestCall *call, const KnTableIdent *ident, KnDocument *doc);
/* Whether a client that asks for it may get something. */
bool kn_rest_delegates(const KnRestCall *call);
/* "v1/namespaces/a%1Fb/tables/t" and what is behind it. */
const char *kn_rest_table_path(KnRestCall *call, const KnTableIdent *ident, const char *behind);

/* ---- rest_config.c ---- */
/* The answer of getConfig, on the front's arena. */
KnStr kn_rest_make_config(KnRest *rest);

/* ---- operations ---- */
#define KN_REST_OPERATION(name) KnCode kn_rest_##name(KnRestCall *call, KnErr *err)
KN_REST_OPERATION(get_config);
KN_REST_OPERATION(get_token);
KN_REST_OPERATION(list_namespaces);
KN_REST_OPERATION(create_namespace);
KN_REST_OPERATION(load_namespace);
KN_REST_OPERATION(namespace_exists);
KN_REST_OPERATION(drop_namespace);
KN_REST_OPERATION(update_properties);
KN_REST_OPERATION(list_tables);
KN_REST_OPERATION(create_table);
KN_REST_OPERATION(load_table);
KN_REST_OPERATION(update_table);
KN_REST_OPERATION(drop_table);
KN_REST_OPERATION(table_exists);
KN_REST_OPERATION(register_table);
KN_REST_OPERATION(unregister_table);
KN_REST_OPERATION(rename_table);
KN_REST_OPERATION(report_metrics);
KN_REST_OPERATION(load_credentials);
KN_REST_OPERATION(sign_request);
KN_REST_OPERATION(sign_any);
KN_REST_OPERATION(commit_transaction);
KN_REST_OPERATION(plan_scan);
KN_REST_OPERATION(fetch_plan);
KN_REST_OPERATION(cancel_plan);
KN_REST_OPERATION(fetch_tasks);
KN_REST_OPERATION(list_views);
KN_REST_OPERATION(create_view);
KN_REST_OPERATION(load_view);
KN_REST_OPERATION(replace_view);
KN_REST_OPERATION(drop_view);
KN_REST_OPERATION(view_exists);
KN_REST_OPERATION(rename_view);
KN_REST_OPERATION(register_view);
KN_REST_OPERATION(list_functions);
KN_REST_OPERATION(load_function);
KN_REST_OPERATION(health);
KN_REST_OPERATION(ready);
KN_REST_OPERATION(metrics);
