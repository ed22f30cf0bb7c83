/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_lend.c - how clients get at the files of tables: keys for a while (vended credentials), or
 * the address at which single requests are signed for them (rest_sign.c).
 *
 * What a caller may be let into is decided here, by two rules. A folder is one of the table's own,
 * within the warehouse or an allowed folder. And the caller has a right there (kn_rest_right_at()).
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "catalog/server/rest_internal.h"
#include "net/url.h"

#define WARN_EVERY_US INT64_C(60000000)
enum { PLACES_MAX = 8, PAIRS_MAX = 8 };

/* ---- what may be reached ---- */

typedef struct Reaching {
    const KnRestCall *call;
    const char **folders;
    size_t n;
    KnRight least; /* that holds in all the folders */
} Reaching;

/* Takes the folder in; false: it is not for this caller. */
static bool reach(Reaching *at, const char *folder)
{
    KnRight right = kn_rest_right_at(at->call, folder);
    if (right < KN_RIGHT_READ)
        return false;
    for (size_t i = 0; i < at->n; i++)
        if (kn_path_is_within(kn_str(folder), kn_str(at->folders[i])))
            return true;
    at->folders[at->n++] = folder;
    at->least = right < at->least ? right : at->least;
    return true;
}

KnCode kn_rest_reach(KnRestCall *call, const char *location, const json_t *properties,
                     KnRestReach *ret, KnErr *err)
{
    KnCatalogCore *core = call->rest->ctx.core;
    const char *folder = NULL;
    KN_TRY(kn_core_place(core, call->arena, kn_str(location), &folder, err));
    if (!kn_s3_is_location(kn_str(folder)))
        return kn_err_set(err, KN_E_UNSUPPORTED, "the table's files are not in an object store");
    Reaching at = {.call = call,
                   .folders = kn_arena_alloc(call->arena, PLACES_MAX * sizeof(const char *)),
                   .least = KN_RIGHT_ADMIN};
    if (!reach(&at, folder))
        return kn_err_set(err, KN_E_REFUSED,
                          "the table's files are not below the folder of its namespace ('%.400s'): "
                          "only who has rights on the whole catalog is let in there",
                          kn_rest_own_folder(call));
    for (const char *const *key = kn_core_place_keys; *key; key++) {
        const char *more = json_string_value(json_object_get(properties, *key));
        if (more && kn_core_place(core, call->arena, kn_str(more), &folder, NULL) == KN_OK &&
            kn_s3_is_location(kn_str(folder)))
            (void)reach(&at, folder);
    }
    *ret = (KnRestReach){at.folders, at.n, at.least >= KN_RIGHT_WRITE};
    return KN_OK;
}

/* ---- what is lent ---- */

const char *kn_rest_table_path(KnRestCall *call, const KnTableIdent *ident, const char *behind)
{
    KnBuf *path = kn_rest_buf(call);
    kn_buf_text(path, "v1/namespaces/");
    for (size_t i = 0; i < ident->n_levels; i++) {
        kn_buf_text(path, i ? "%1F" : "");
        kn_url_encode(path, kn_str(ident->levels[i]), false);
    }
    kn_buf_text(path, "/tables/");
    kn_url_encode(path, kn_str(ident->name), false);
    kn_buf_printf(path, "/%s", behind);
    return path->data;
}

static const char *asked(const KnRestCall *call)
{
    return kn_httpd_request_header(call->req, "X-Iceberg-Access-Delegation");
}

bool kn_rest_delegates(const KnRestCall *call)
{
    const KnFrontContext *ctx = &call->rest->ctx;
    return (ctx->lender || ctx->remote_signing) && asked(call);
}

static const KnRestLent *make_lent(KnRestCall *call, const KnTextPair *pairs, size_t n,
                                   const char *prefix, const char *mark)
{
    KnRestLent *lent = kn_arena_zalloc(call->arena, sizeof(*lent));
    KnTextPair *config = kn_arena_alloc(call->arena, n * sizeof(*config));
    memcpy(config, pairs, n * sizeof(*config));
    *lent = (KnRestLent){config, n, prefix, mark};
    return lent;
}

/* The secrets live in the request's arena, as the answer does. */
static KnCode lend_keys(KnRestCall *call, const KnTableIdent *ident, const KnRestReach *reach,
                        const KnRestLent **ret, KnErr *err)
{
    const KnS3Grant grant = {reach->folders, reach->n, reach->write};
    KnS3Keys keys = {0};
    char hex[17];
    KN_TRY(kn_s3_lend(call->rest->ctx.lender, call->arena, &grant, &keys, err));
    const KnTextPair pairs[] = {
        {"s3.access-key-id", keys.access_key_id},
        {"s3.secret-access-key", keys.secret_access_key},
        {"s3.session-token", keys.session_token},
        {"s3.session-token-expires-at-ms",
         kn_arena_printf(call->arena, "%lld", (long long)keys.expires_ms)},
        {"client.refresh-credentials-enabled", "true"},
        {"client.refresh-credentials-endpoint", kn_rest_table_path(call, ident, "credentials")}};
    uint64_t mark = kn_hash64(keys.access_key_id, strlen(keys.access_key_id), 0);
    *ret = make_lent(call, pairs, sizeof(pairs) / sizeof(pairs[0]), reach->folders[0],
                     kn_arena_printf(call->arena, "-%s", kn_hex64(mark, hex)));
    return KN_OK;
}

/* PyIceberg's file I/O that signs remotely is not its usual one, and goes by a name of its own. */
static const KnRestLent *lend_signing(KnRestCall *call, const KnTableIdent *ident)
{
    const char *endpoint = kn_rest_table_path(call, ident, "sign");
    const KnTextPair pairs[] = {{"s3.remote-signing-enabled", "true"},
                                {"signer.endpoint", endpoint},
                                {"s3.signer.endpoint", endpoint},
                                {"s3.signer", "S3V4RestSigner"},
                                {"py-io-impl", "pyiceberg.io.fsspec.FsspecFileIO"}};
    return make_lent(call, pairs, sizeof(pairs) / sizeof(pairs[0]), NULL, "-sign");
}

/* Once a minute: it is the operator's to mend, and every load would say so. */
static void warn_not_lent(KnRest *rest, const KnErr *err)
{
    int64_t now = kn_clock_mono_us(), last = atomic_load(&rest->warned_us);
    if ((last && now - last < WARN_EVERY_US) ||
        !atomic_compare_exchange_strong(&rest->warned_us, &last, now))
        return;
    kn_log(KN_LOG_WARN, "catalog", "keys-not-lent", KN_F("code", kn_code_name(err->code)),
           KN_F("message", err->msg));
}

static KnCode reach_document(KnRestCall *call, KnDocument *doc, KnRestReach *ret, KnErr *err)
{
    KN_METADATA_AUTO md = NULL;
    KN_TRY(kn_document_metadata(doc, &md, err));
    return kn_rest_reach(call, md->location, md->properties, ret, err);
}

void kn_rest_delegate(KnRestCall *call, const KnTableIdent *ident, KnDocument *doc)
{
    const KnFrontContext *ctx = &call->rest->ctx;
    KnRestReach reach = {0};
    KnErr err = {0};
    if (!kn_rest_delegates(call))
        return;
    KnCode rc = reach_document(call, doc, &reach, &err);
    if (rc == KN_OK && ctx->lender && kn_httpd_header_lists(asked(call), "vended-credentials")) {
        rc = lend_keys(call, ident, &reach, &call->lent, &err);
        if (rc != KN_OK && rc != KN_E_UNSUPPORTED)
            warn_not_lent(call->rest, &err);
    }
    if (rc != KN_OK)
        kn_debug("catalog", "nothing-lent", KN_F("table", ident->name), KN_F("message", err.msg));
    bool reached = reach.n > 0;
    if (!call->lent && reached && ctx->remote_signing &&
        kn_httpd_header_lists(asked(call), "remote-signing"))
        call->lent = lend_signing(call, ident);
}

/* ---- GET .../credentials ---- */

static KnCode reply_none(KnRestCall *call, const char *why, KnErr *err)
{
    KnBuf *body = kn_rest_buf(call);
    kn_buf_text(body, "{\"storage-credentials\":[],\"message\":");
    kn_json_quote(body, kn_str(why));
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

KnCode kn_rest_load_credentials(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KnRestReach reach = {0};
    const KnRestLent *lent = NULL;
    KN_TRY(kn_core_table_load(call->rest->ctx.core, &call->ident, &doc, err));
    if (!call->rest->ctx.lender)
        return reply_none(call,
                          "this server lends no keys (it was started without --sts-endpoint and "
                          "--sts-role-arn): use your own",
                          err);
    KnCode rc = reach_document(call, doc, &reach, err);
    if (rc == KN_OK)
        rc = lend_keys(call, &call->ident, &reach, &lent, err);
    if (rc == KN_E_UNSUPPORTED || rc == KN_E_REFUSED)
        return reply_none(call, kn_arena_strdup(call->arena, err->msg), err);
    if (rc != KN_OK) /* STS may answer the next time */
        return kn_err_recode(err, KN_E_BUSY);
    KnBuf *body = kn_rest_buf(call);
    kn_buf_char(body, '{');
    kn_rest_write_credentials(body, call, lent);
    kn_buf_char(body, '}');
    kn_httpd_response_header(call->rsp, "Cache-Control", "no-store");
    return kn_rest_reply_json(call, body, err);
}
