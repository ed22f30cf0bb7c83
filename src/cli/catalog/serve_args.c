/* SPDX-License-Identifier: Apache-2.0 */
/* serve_args.c - see serve_args.h. */
#include "cli/catalog/serve_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "catalog/grpc/front.h"

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(KnServeOptions, f), .value = (v), .doc = (d)  \
    }
#define ROW_DEFAULT(n, t, f, v, def, d)                                                            \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(KnServeOptions, f), .value = (v),             \
        .dflt = (def), .doc = (d)                                                                  \
    }

/* Of AWS; others keep to it. */
enum { STS_MIN_S = 900, STS_MAX_S = 43200 };

const KnOption kn_serve_rows[KN_SERVE_ROWS] = {
    ROW("warehouse", KN_OPT_TEXT, warehouse, "DIR", "Folder with the tables"),
    ROW("warehouse-uri", KN_OPT_TEXT, warehouse_uri, "URI",
        "Where the tables are, when that is not a folder: s3://BUCKET/PREFIX, file:///DIR"),
    ROW("db", KN_OPT_TEXT, db, "FILE|URI",
        "The catalog's database: an SQLite file, or postgresql://... (default: "
        "WAREHOUSE/catalog.db)"),
    ROW_DEFAULT("catalog", KN_OPT_TEXT, catalog, "NAME", "knut",
                "Name of the catalog within the database"),
    ROW("rest", KN_OPT_TEXT, rest, "ADDR",
        "Serve REST at HOST:PORT, :PORT (all interfaces) or PORT (loopback); port 0 = a free one"),
    ROW("grpc", KN_OPT_TEXT, grpc, "ADDR", "Serve gRPC, likewise"),
    ROW("port-file", KN_OPT_TEXT, port_file, "FILE",
        "Write lines 'rest PORT', 'grpc PORT' there once the ports answer"),
    ROW("allow-location", KN_OPT_REPEAT, allow_locations, "URI",
        "Clients may put tables there too, besides the warehouse"),
    ROW("sts-endpoint", KN_OPT_TEXT, sts_endpoint, "URL",
        "Lend clients keys for a table's folder: by AssumeRole of the STS here (MinIO, SeaweedFS: "
        "the store's own address)"),
    ROW("sts-role-arn", KN_OPT_TEXT, sts_role_arn, "ARN",
        "The role to lend; at AWS this alone is enough"),
    ROW_DEFAULT("sts-duration", KN_OPT_SECONDS, sts_duration, "S", "3600",
                "How long lent keys are valid: 900 to 43200"),
    ROW("remote-signing", KN_OPT_FLAG, remote_signing, NULL,
        "Sign clients' S3 requests for files of tables that they may read or write"),
    ROW("tokens", KN_OPT_TEXT, tokens, "FILE",
        "Ask for bearer tokens: lines 'NAME sha256:HEX GRANT...'; read again when it changes"),
    ROW_DEFAULT("token-lifetime", KN_OPT_SECONDS, token_lifetime, "S", "3600",
                "How long tokens of the OAuth2 endpoint are valid"),
    ROW("tls-cert", KN_OPT_TEXT, tls_cert, "FILE", "Serve with TLS: certificate chain, PEM"),
    ROW("tls-key", KN_OPT_TEXT, tls_key, "FILE", "The certificate's key, PEM"),
    ROW("tls-client-ca", KN_OPT_TEXT, tls_client_ca, "FILE",
        "Let in only clients with a certificate of these authorities"),
    ROW("audit-log", KN_OPT_TEXT, audit_log, "FILE",
        "Append a JSON line for each change and each refusal"),
    ROW("cors-origin", KN_OPT_REPEAT, cors_origins, "ORIGIN",
        "Let web pages of this origin ask (https://host; * = any)"),
    ROW_DEFAULT("max-body", KN_OPT_BYTES, max_body, "SIZE", "16MiB", "Largest request body"),
    ROW_DEFAULT("metadata-cache", KN_OPT_BYTES, cache, "SIZE", "64MiB",
                "Memory for metadata documents"),
    {.name = "log-keep",
     .type = KN_OPT_INT,
     .offset = offsetof(KnServeOptions, log_keep),
     .value = "N",
     .dflt = "1000000",
     .min = 0,
     .max = INT64_MAX,
     .doc = "Keep at least so many commits in the log of commits, drop older ones (0: keep all)"},
    ROW_DEFAULT("drain", KN_OPT_SECONDS, drain, "S", "30",
                "How long requests in flight may take after a signal"),
};

static bool is_s3(const char *uri)
{
    return uri && kn_s3_is_location(kn_str(uri));
}

static KnCode check_bucket(const KnServeOptions *opts, KnErr *err)
{
    const char *from = strstr(opts->warehouse_uri, "://") + 3;
    size_t len = strcspn(from, "/");
    if (len != strlen(opts->s3.bucket) || strncmp(from, opts->s3.bucket, len) != 0)
        return kn_err_set(err, KN_E_INVAL, "--s3-bucket %s is not the bucket of --warehouse-uri %s",
                          opts->s3.bucket, opts->warehouse_uri);
    return KN_OK;
}

/* How clients get at the files. */
static KnCode check_access(const KnServeOptions *opts, KnErr *err)
{
    bool lends = opts->sts_endpoint || opts->sts_role_arn;
    const char *flag = opts->sts_endpoint     ? "--sts-endpoint"
                       : opts->sts_role_arn   ? "--sts-role-arn"
                       : opts->remote_signing ? "--remote-signing"
                                              : NULL;
    if (flag && !opts->s3.bucket)
        return kn_err_set(err, KN_E_INVAL, "%s goes with an s3:// warehouse and --s3-bucket", flag);
    if (lends && (opts->sts_duration < STS_MIN_S || opts->sts_duration > STS_MAX_S))
        return kn_err_set(err, KN_E_INVAL, "--sts-duration %.0f: expected %d to %d seconds",
                          opts->sts_duration, STS_MIN_S, STS_MAX_S);
    return KN_OK;
}

static KnCode check_s3(const KnServeOptions *opts, KnErr *err)
{
    bool s3 = is_s3(opts->warehouse_uri);
    const char *detail = opts->s3.endpoint         ? "--s3-endpoint"
                         : opts->s3.region         ? "--s3-region"
                         : opts->s3.ca_file        ? "--s3-ca"
                         : opts->s3.virtual_hosted ? "--s3-virtual-hosted"
                                                   : NULL;
    if (s3 && !opts->s3.bucket)
        return kn_err_set(err, KN_E_INVAL, "--warehouse-uri %s needs --s3-bucket",
                          opts->warehouse_uri);
    if (opts->s3.bucket && !opts->warehouse_uri)
        return kn_err_set(err, KN_E_INVAL, "--s3-bucket needs --warehouse-uri s3://%s/PREFIX",
                          opts->s3.bucket);
    if (opts->s3.bucket && !s3)
        return kn_err_set(err, KN_E_INVAL, "--s3-bucket goes with an s3:// warehouse, not with %s",
                          opts->warehouse_uri);
    if (detail && !opts->s3.bucket)
        return kn_err_set(err, KN_E_INVAL, "%s needs --s3-bucket", detail);
    KN_TRY(check_access(opts, err));
    return s3 ? check_bucket(opts, err) : KN_OK;
}

static KnCode check_tls(const KnServeOptions *opts, KnErr *err)
{
    if (!opts->tls_cert != !opts->tls_key)
        return kn_err_set(err, KN_E_INVAL, "--tls-cert and --tls-key go together");
    if (opts->tls_client_ca && !opts->tls_cert)
        return kn_err_set(err, KN_E_INVAL, "--tls-client-ca needs --tls-cert and --tls-key");
    return KN_OK;
}

KnCode kn_serve_check(const KnServeOptions *opts, KnErr *err)
{
    if (!opts->rest && !opts->grpc)
        return kn_err_set(err, KN_E_INVAL, "nothing to serve: give --rest ADDR or --grpc ADDR");
    if (!opts->warehouse && !opts->warehouse_uri)
        return kn_err_set(err, KN_E_INVAL, "no warehouse: give --warehouse DIR or --warehouse-uri");
    if (!opts->warehouse && !opts->db)
        return kn_err_set(err, KN_E_INVAL,
                          "--warehouse-uri alone needs --db: there is no folder for a database");
    if (opts->warehouse_uri && !is_s3(opts->warehouse_uri) &&
        strncmp(opts->warehouse_uri, "file:", 5) != 0)
        return kn_err_set(err, KN_E_INVAL, "--warehouse-uri %s: expected s3://... or file:///...",
                          opts->warehouse_uri);
    if (!*opts->catalog)
        return kn_err_set(err, KN_E_INVAL, "--catalog: a name is not empty");
    KN_TRY(check_s3(opts, err));
    return check_tls(opts, err);
}

KnCode kn_serve_listen(const KnServeOptions *opts, KnServeFront *fronts, size_t *ret_n, KnErr *err)
{
    const struct {
        const char *address;
        const KnFrontOps *ops;
        const char *flag;
    } asked[KN_SERVE_FRONTS] = {{opts->rest, &kn_front_rest, "--rest"},
                                {opts->grpc, &kn_front_grpc, "--grpc"}};
    for (size_t i = 0; i < KN_SERVE_FRONTS; i++) {
        if (!asked[i].address)
            continue;
        KnServeFront *front = &fronts[*ret_n];
        KnCode rc = kn_listen_open(asked[i].address, &front->listening, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "%s", asked[i].flag);
        front->ops = asked[i].ops;
        (*ret_n)++;
    }
    return KN_OK;
}

KnCode kn_serve_core_options(const KnServeOptions *opts, KnArena *arena, KnCoreOptions *ret,
                             KnErr *err)
{
    const KnLocator loc = {.warehouse = opts->warehouse,
                           .warehouse_uri = opts->warehouse_uri,
                           .db = opts->db,
                           .catalog = opts->catalog,
                           .s3 = opts->s3};
    const char *uri = NULL, *db = NULL;
    KN_TRY(kn_locator_warehouse(&loc, arena, &uri, &db, err));
    if (opts->warehouse && !is_s3(opts->warehouse) && mkdir(opts->warehouse, 0777) != 0 &&
        errno != EEXIST)
        return kn_err_set(err, KN_E_IO, "--warehouse %s: %s", opts->warehouse,
                          kn_errno_text(errno));
    const char **allowed =
        kn_arena_alloc(arena, (opts->allow_locations.len + 1) * sizeof(*allowed));
    for (size_t i = 0; i < opts->allow_locations.len; i++)
        allowed[i] = opts->allow_locations.items[i];
    *ret = (KnCoreOptions){
        .warehouse = uri,
        .db = db,
        .catalog = opts->catalog,
        .create_db = true,
        .allowed = allowed,
        .n_allowed = opts->allow_locations.len,
        .cache_bytes = opts->cache,
        .keep_events = opts->log_keep,
    };
    return kn_io_open_with(kn_str(uri), &opts->s3, &ret->io, err);
}

void kn_serve_client_config(const KnFileIO *io, KnArena *arena, const KnTextPair **ret,
                            size_t *ret_n)
{
    KnS3Where where;
    *ret = NULL;
    *ret_n = 0;
    if (!kn_s3_where(io, &where))
        return;
    KnTextPair *pairs = kn_arena_alloc(arena, 4 * sizeof(*pairs));
    size_t n = 0;
    if (where.endpoint)
        pairs[n++] = (KnTextPair){"s3.endpoint", where.endpoint};
    pairs[n++] = (KnTextPair){"s3.region", where.region};
    pairs[n++] = (KnTextPair){"client.region", where.region};
    pairs[n++] = (KnTextPair){"s3.path-style-access", where.path_style ? "true" : "false"};
    *ret = pairs;
    *ret_n = n;
}

KnCode kn_serve_open_lender(const KnServeOptions *opts, KnS3Lender **ret, KnErr *err)
{
    const KnS3LenderOptions lender = {.s3 = &opts->s3,
                                      .endpoint = opts->sts_endpoint,
                                      .role_arn = opts->sts_role_arn,
                                      .duration_s = (int64_t)opts->sts_duration};
    if (!opts->sts_endpoint && !opts->sts_role_arn)
        return KN_OK;
    return kn_s3_lender_open(&lender, ret, err);
}

KnCode kn_serve_write_ports(const char *file, const KnServeFront *fronts, size_t n, KnArena *arena,
                            KnErr *err)
{
    const char *partial = kn_arena_printf(arena, "%s.partial", file);
    FILE *out = fopen(partial, "we");
    bool fine = out != NULL;
    for (size_t i = 0; fine && i < n; i++)
        fine = fprintf(out, "%s %d\n", fronts[i].ops->name, fronts[i].listening.port) > 0;
    if (out && fclose(out) != 0)
        fine = false;
    if (!fine || rename(partial, file) != 0)
        return kn_err_set(err, KN_E_IO, "--port-file %s: %s", file, kn_errno_text(errno));
    return KN_OK;
}
