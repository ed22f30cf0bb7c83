/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_tables.c - operations on tables.
 *
 * Loading is the path that everything else waits for: the document's bytes go out as they lie in
 * the core's cache, and an unchanged table (If-None-Match) is told without looking at them.
 */
#include <strings.h>

#include "base/log.h"
#include "catalog/server/places.h"
#include "catalog/server/rest_internal.h"

enum { TRANSACTION_MAX = 10000, REFS_MAX = 1 << 30 };

/* ---- lists ------------------------------------------------------------------------------------
 */

typedef KnCode (*ListFn)(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                         const KnPage *page, KnNameList *ret, KnErr *err);

/* {"identifiers": [{"namespace": [...], "name": "..."}]} */
static KnCode reply_list(KnRestCall *call, ListFn fn, KnErr *err)
{
    KnPage page = {0};
    KnNameList list = {0};
    KN_TRY(kn_rest_page(call, &page, err));
    KN_TRY(fn(call->rest->ctx.core, call->arena, &call->ns, &page, &list, err));
    KnBuf *body = kn_rest_buf(call);
    KN_BUF_AUTO head = {0};
    kn_buf_init(&head, 1 << 20);
    kn_buf_text(&head, "{\"namespace\":");
    kn_rest_write_levels(&head, call->ns.levels, call->ns.n_levels);
    kn_buf_text(&head, ",\"name\":");
    kn_buf_text(body, "{\"identifiers\":[");
    for (size_t i = 0; i < list.n; i++) {
        if (i)
            kn_buf_char(body, ',');
        kn_buf_append(body, head.data, head.len);
        kn_json_quote(body, kn_str(list.names[i]));
        kn_buf_char(body, '}');
    }
    kn_buf_char(body, ']');
    if (list.next) {
        kn_buf_text(body, ",\"next-page-token\":");
        kn_json_quote(body, kn_str(list.next));
    }
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

KnCode kn_rest_list_tables(KnRestCall *call, KnErr *err)
{
    return reply_list(call, kn_core_table_list, err);
}

KnCode kn_rest_list_views(KnRestCall *call, KnErr *err)
{
    return reply_list(call, kn_core_view_list, err);
}

/* ---- loading ----------------------------------------------------------------------------------
 */

static bool has_ref(const json_t *md, json_int_t id)
{
    const char *name;
    json_t *ref;
    json_object_foreach(json_object_get(md, "refs"), name, ref)
    {
        if (json_integer_value(json_object_get(ref, "snapshot-id")) == id)
            return true;
    }
    return json_integer_value(json_object_get(md, "current-snapshot-id")) == id;
}

/* Keeps the snapshots that a ref points to, and the current one (spec: loadTable, snapshots). Made
 * once, kept with the document. */
static KnCode with_refs_only(KnDocument *doc, KnStr *ret, KnErr *err)
{
    KN_JSON_AUTO md = NULL;
    KN_BUF_AUTO text = {0};
    KnStr bytes = kn_document_bytes(doc);
    *ret = kn_document_made(doc, KN_MADE_REFS);
    if (ret->ptr)
        return KN_OK;
    KN_TRY(kn_json_parse(bytes.ptr, bytes.len, &md, err));
    json_t *kept = json_array();
    const json_t *snapshots = json_object_get(md, "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        json_t *snap = json_array_get(snapshots, i);
        if (has_ref(md, json_integer_value(json_object_get(snap, "snapshot-id"))))
            (void)json_array_append(kept, snap);
    }
    (void)json_object_set_new(md, "snapshots", kept);
    kn_buf_init(&text, REFS_MAX);
    kn_json_dump(&text, md);
    KN_TRY(kn_buf_check(&text, err));
    *ret = kn_document_keep(doc, KN_MADE_REFS, (KnStr){text.data, text.len});
    return KN_OK;
}

static KnCode wants_refs(const KnRestCall *call, bool *ret, KnErr *err)
{
    const char *snapshots = kn_httpd_request_query(call->req, "snapshots");
    *ret = snapshots && !strcmp(snapshots, "refs");
    if (snapshots && !*ret && strcmp(snapshots, "all") != 0)
        return kn_err_set(err, KN_E_INVAL, "snapshots '%.40s': expected all or refs", snapshots);
    return KN_OK;
}

/* True, and answered with 304, when the client has this version. */
static KnCode is_unchanged(KnRestCall *call, bool refs, bool *ret, KnErr *err)
{
    const char *known = kn_httpd_request_header(call->req, "If-None-Match");
    const char *location = NULL;
    *ret = false;
    if (!known)
        return KN_OK;
    KN_TRY(kn_core_table_pointer(call->rest->ctx.core, call->arena, &call->ident, &location, err));
    const char *etag = kn_rest_etag(call, location, refs);
    if (!strstr(known, etag))
        return KN_OK;
    call->rsp->status = 304;
    kn_httpd_response_header(call->rsp, "ETag", etag);
    *ret = true;
    return KN_OK;
}

KnCode kn_rest_load_table(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    bool refs = false, unchanged = false;
    KnStr metadata = {0};
    KN_TRY(wants_refs(call, &refs, err));
    if (kn_rest_delegates(call)) { /* which keys are lent is a part of the ETag */
        KN_TRY(kn_core_table_load(call->rest->ctx.core, &call->ident, &doc, err));
        kn_rest_delegate(call, &call->ident, doc);
    }
    KN_TRY(is_unchanged(call, refs, &unchanged, err));
    if (unchanged)
        return KN_OK;
    if (!doc)
        KN_TRY(kn_core_table_load(call->rest->ctx.core, &call->ident, &doc, err));
    if (!refs)
        return kn_rest_reply_table(call, doc, err);
    KN_TRY(with_refs_only(doc, &metadata, err));
    kn_httpd_response_header(call->rsp, "ETag",
                             kn_rest_etag(call, kn_document_location(doc), true));
    return kn_rest_reply_refs(call, doc, metadata, err);
}

KnCode kn_rest_table_exists(KnRestCall *call, KnErr *err)
{
    bool exists = false;
    KN_TRY(kn_core_table_exists(call->rest->ctx.core, &call->ident, &exists, err));
    return kn_rest_reply_empty(call, exists ? 204 : 404);
}

static KnCode need_table(KnRestCall *call, KnErr *err)
{
    const char *location = NULL;
    return kn_core_table_pointer(call->rest->ctx.core, call->arena, &call->ident, &location, err);
}

KnCode kn_rest_report_metrics(KnRestCall *call, KnErr *err)
{
    const char *type = NULL;
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "report-type", &type, err), err));
    KN_TRY(need_table(call, err));
    kn_debug("catalog", "metrics-report", KN_F("type", type), KN_F("table", call->ident.name));
    return kn_rest_reply_empty(call, 204);
}

/* ---- changes ----------------------------------------------------------------------------------
 */

KnCode kn_rest_create_table(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KnCreateRequest request = {0};
    KN_TRY(kn_rest_asked(kn_create_request_parse(call->arena, call->body, &request, err), err));
    KnTableIdent ident = {call->ns.levels, call->ns.n_levels, request.name};
    KN_TRY(kn_core_table_create(call->rest->ctx.core, &ident, &request.create, request.stage, &doc,
                                err));
    kn_rest_delegate(call, &ident, doc);
    return kn_rest_reply_table(call, doc, err);
}

/* An identifier in the body may say what the path says, and nothing else. */
static KnCode check_identifier(KnRestCall *call, KnErr *err)
{
    KnTableIdent ident = {0};
    if (!json_object_get(call->body, "identifier") ||
        json_is_null(json_object_get(call->body, "identifier")))
        return KN_OK;
    KN_TRY(kn_rest_ident(call, call->body, "identifier", &ident, err));
    bool same = ident.n_levels == call->ident.n_levels && !strcmp(ident.name, call->ident.name);
    for (size_t i = 0; same && i < ident.n_levels; i++)
        same = !strcmp(ident.levels[i], call->ident.levels[i]);
    if (!same)
        return kn_err_set(err, KN_E_INVAL, "the body's identifier is not the path's");
    return KN_OK;
}

static KnPlaceAsker asker_of(const KnRestCall *call, const KnTableIdent *ident)
{
    return (KnPlaceAsker){call->rest->ctx.core, call->arena, call->who, ident};
}

KnCode kn_rest_update_table(KnRestCall *call, KnErr *err)
{
    const KnPlaceAsker asker = asker_of(call, &call->ident);
    KN_DOCUMENT_AUTO doc = NULL;
    KnTableCommit commit = {0};
    KN_TRY(check_identifier(call, err));
    if (!json_is_array(json_object_get(call->body, "updates")))
        return kn_err_set(err, KN_E_INVAL, "Cannot parse commit: updates is not an array");
    KN_TRY(kn_rest_asked(kn_commit_parse(call->arena, call->body, &commit, err), err));
    KN_TRY(kn_place_check_commit(&asker, &commit, err));
    KN_TRY(kn_core_table_commit(call->rest->ctx.core, &call->ident, &commit, &doc, err));
    return kn_rest_reply_table(call, doc, err);
}

KnCode kn_rest_commit_transaction(KnRestCall *call, KnErr *err)
{
    json_t *array = NULL;
    KN_TRY(kn_rest_asked(kn_json_get_array(call->body, "table-changes", &array, err), err));
    size_t n = json_array_size(array);
    if (n == 0 || n > TRANSACTION_MAX)
        return kn_err_set(err, KN_E_INVAL, "table-changes: expected 1 to %d changes",
                          TRANSACTION_MAX);
    KnTableChange *changes = kn_arena_zalloc(call->arena, n * sizeof(*changes));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        KN_TRY(kn_rest_ident(call, item, "identifier", &changes[i].ident, err));
        KnNamespace ns = {changes[i].ident.levels, changes[i].ident.n_levels};
        KN_TRY(kn_rest_need(call, &ns, KN_RIGHT_WRITE, err));
        KN_TRY(kn_rest_asked(kn_commit_parse(call->arena, item, &changes[i].commit, err), err));
        const KnPlaceAsker asker = asker_of(call, &changes[i].ident);
        KN_TRY(kn_place_check_commit(&asker, &changes[i].commit, err));
    }
    KN_TRY(kn_core_tables_commit(call->rest->ctx.core, changes, n, NULL, err));
    return kn_rest_reply_empty(call, 204);
}

/* Files are removed below the table's location, which whoever made the table chose. */
static KnCode need_purge(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    const KnPlaceAsker asker = asker_of(call, &call->ident);
    KN_TRY(kn_rest_need(call, &call->ns, KN_RIGHT_ADMIN, err));
    KN_TRY(kn_core_table_load(call->rest->ctx.core, &call->ident, &doc, err));
    KN_TRY(kn_document_metadata(doc, &md, err));
    return kn_place_need(&asker, md->location, md->location, KN_RIGHT_ADMIN, err);
}

/* With an engine of this call's own: purging is rare, and an idle server has none. */
static KnCode purge(KnRestCall *call, KnErr *err)
{
    KnEngine *engine = NULL;
    KnSession *session = NULL;
    KnSweepResult swept = {0};
    KN_TRY(need_purge(call, err));
    KN_TRY(kn_engine_open(&(KnEngineOptions){.threads = 1}, &engine, err));
    KnCode rc = kn_session_open(engine, &session, err);
    if (rc == KN_OK)
        rc = kn_core_table_purge(call->rest->ctx.core, &call->ident, session, &swept, err);
    (void)kn_session_close(session);
    (void)kn_engine_close(engine);
    return rc;
}

KnCode kn_rest_drop_table(KnRestCall *call, KnErr *err)
{
    const char *wanted = kn_httpd_request_query(call->req, "purgeRequested");
    bool purged = wanted && !strcasecmp(wanted, "true");
    if (wanted && !purged && *wanted && strcasecmp(wanted, "false") != 0)
        return kn_err_set(err, KN_E_INVAL, "purgeRequested '%.40s': expected true or false",
                          wanted);
    if (purged)
        KN_TRY(purge(call, err));
    else
        KN_TRY(kn_core_table_drop(call->rest->ctx.core, &call->ident, err));
    return kn_rest_reply_empty(call, 204);
}

static KnCode check_registered(void *arg, const KnMetadata *md, KnErr *err)
{
    return kn_place_check_metadata(arg, md, err);
}

KnCode kn_rest_register_table(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KnTableIdent ident = {call->ns.levels, call->ns.n_levels, NULL};
    KnPlaceAsker asker = asker_of(call, &ident);
    KnRegistration reg = {.check = check_registered, .arg = &asker};
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "name", &ident.name, err), err));
    KN_TRY(
        kn_rest_asked(kn_json_get_str(call->body, "metadata-location", &reg.location, err), err));
    KN_TRY(kn_rest_asked(kn_json_opt_bool(call->body, "overwrite", &reg.overwrite, err), err));
    KN_TRY(kn_rest_need_place(call, reg.location, err));
    /* the document is the caller's choice: what is wrong with it is the caller's mistake */
    KN_TRY(
        kn_rest_asked(kn_core_table_register(call->rest->ctx.core, &ident, &reg, &doc, err), err));
    kn_rest_delegate(call, &ident, doc);
    return kn_rest_reply_table(call, doc, err);
}

KnCode kn_rest_unregister_table(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_table_unregister(call->rest->ctx.core, &call->ident, &doc, err));
    return kn_rest_reply_table(call, doc, err);
}

typedef KnCode (*RenameFn)(KnCatalogCore *core, const KnTableIdent *from, const KnTableIdent *to,
                           KnErr *err);

static KnCode rename_with(KnRestCall *call, RenameFn fn, KnErr *err)
{
    KnTableIdent from = {0}, to = {0};
    KN_TRY(kn_rest_ident(call, call->body, "source", &from, err));
    KN_TRY(kn_rest_ident(call, call->body, "destination", &to, err));
    KnNamespace from_ns = {from.levels, from.n_levels}, to_ns = {to.levels, to.n_levels};
    KN_TRY(kn_rest_need(call, &from_ns, KN_RIGHT_WRITE, err));
    KN_TRY(kn_rest_need(call, &to_ns, KN_RIGHT_WRITE, err));
    KN_TRY(fn(call->rest->ctx.core, &from, &to, err));
    return kn_rest_reply_empty(call, 204);
}

KnCode kn_rest_rename_table(KnRestCall *call, KnErr *err)
{
    return rename_with(call, kn_core_table_rename, err);
}

KnCode kn_rest_rename_view(KnRestCall *call, KnErr *err)
{
    return rename_with(call, kn_core_view_rename, err);
}
