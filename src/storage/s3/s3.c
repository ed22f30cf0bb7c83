/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3.c - the scheme: options, locations, hosts and regions, and the table of callbacks.
 *
 * `s3a://` and `s3n://` are Hadoop's names of the same objects; locations keep their spelling in
 * messages and listings, as metadata compares them as text.
 *
 * Style: a given endpoint is asked path style (what MinIO, SeaweedFS and Ceph expect) unless
 * virtual_hosted; AWS is asked virtual-host style, but for buckets with a dot, which its
 * certificates do not cover.
 */
#include <stdlib.h>

#include "net/url.h"
#include "storage/s3/s3_internal.h"

enum { STALL_MS = 30000, RETRY_MS = 100, TRIES = 6, PART = 16 << 20 };

const KnOption kn_s3_option_rows[KN_N_S3_OPTIONS] = {
    {.name = "s3-endpoint",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnS3Options, endpoint),
     .value = "URL",
     .doc = "Object store for s3:// locations (default: KNUT_S3_ENDPOINT, AWS_ENDPOINT_URL_S3, "
            "AWS_ENDPOINT_URL, else AWS)"},
    {.name = "s3-region",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnS3Options, region),
     .value = "NAME",
     .doc = "Its region (default: KNUT_S3_REGION, AWS_REGION, AWS_DEFAULT_REGION, the profile's, "
            "else us-east-1)"},
    {.name = "s3-bucket",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnS3Options, bucket),
     .value = "NAME",
     .doc = "Refuse s3:// locations in other buckets"},
    {.name = "s3-virtual-hosted",
     .type = KN_OPT_FLAG,
     .offset = offsetof(KnS3Options, virtual_hosted),
     .doc = "Put the bucket into the host name (default for AWS; other endpoints: into the path)"},
    {.name = "s3-ca",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnS3Options, ca_file),
     .value = "FILE",
     .doc = "PEM file of the CA that signed the endpoint's certificate (default: AWS_CA_BUNDLE, "
            "else the system's)"},
};

/* ---- locations -------------------------------------------------------------------------- */

/* Bytes of "s3://", "s3a://" or "s3n://"; 0 = another scheme. */
static size_t scheme_len(KnStr location)
{
    static const char *const schemes[] = {"s3://", "s3a://", "s3n://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); ++i)
        if (kn_str_starts_with(location, kn_str(schemes[i])))
            return strlen(schemes[i]);
    return 0;
}

bool kn_s3_is_location(KnStr location)
{
    return scheme_len(location) > 0;
}

static bool is_bucket_name(KnStr bucket)
{
    for (size_t i = 0; i < bucket.len; ++i) {
        char c = bucket.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return bucket.len >= 1 && bucket.len <= 255 && !memmem(bucket.ptr, bucket.len, "..", 2);
}

KnCode kn_s3_place(const KnS3 *s3, KnStr location, KnS3Place *ret, KnErr *err)
{
    size_t skip = scheme_len(location);
    KnStr rest = {location.ptr + skip, location.len - skip};
    const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    KnS3Place place = {.location = location,
                       .bucket = {rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len}};
    size_t used = place.bucket.len + (slash ? 1 : 0);
    place.key = (KnStr){rest.ptr + used, rest.len - used};
    if (!skip || !is_bucket_name(place.bucket) ||
        (location.len && memchr(location.ptr, '\0', location.len)))
        return kn_err_set(err, KN_E_INVAL, "'" KN_STR_FMT "': expected s3://BUCKET/KEY",
                          KN_STR_ARG(location));
    if (s3->bucket && !kn_str_eq(place.bucket, kn_str(s3->bucket)))
        return kn_err_set(err, KN_E_REFUSED,
                          "'" KN_STR_FMT "' is not in bucket '%s', the only one that --s3-bucket "
                          "allows",
                          KN_STR_ARG(location), s3->bucket);
    *ret = place;
    return KN_OK;
}

KnCode kn_s3_object_place(const KnS3 *s3, KnStr location, KnS3Place *ret, KnErr *err)
{
    KnS3Place place;
    KN_TRY(kn_s3_place(s3, location, &place, err));
    if (!place.key.len)
        return kn_err_set(err, KN_E_INVAL, "'" KN_STR_FMT "' is a bucket, not an object in it",
                          KN_STR_ARG(location));
    *ret = place;
    return KN_OK;
}

/* ---- hosts and regions ------------------------------------------------------------------ */

const char *kn_s3_region(KnS3 *s3, KnArena *arena, KnStr bucket)
{
    (void)pthread_mutex_lock(&s3->mutex);
    const char *found = kn_map_find(s3->regions, bucket);
    const char *region = kn_arena_strdup(arena, found ? found : s3->region);
    (void)pthread_mutex_unlock(&s3->mutex);
    return region;
}

void kn_s3_set_region(KnS3 *s3, KnStr bucket, const char *region)
{
    bool is_new;
    (void)pthread_mutex_lock(&s3->mutex);
    void **slot = kn_map_get_or_add(s3->regions, bucket, &is_new);
    free(*slot);
    *slot = strdup(region);
    if (!*slot)
        abort();
    (void)pthread_mutex_unlock(&s3->mutex);
}

static const char *aws_host(KnArena *arena, const char *region)
{
    bool china = strncmp(region, "cn-", 3) == 0;
    return kn_arena_printf(arena, "s3.%s.amazonaws.com%s", region, china ? ".cn" : "");
}

const char *kn_s3_host(const KnS3 *s3, KnArena *arena, KnStr bucket, const char *region,
                       bool *ret_path_style)
{
    const char *host = s3->host ? s3->host : aws_host(arena, region);
    bool dotted = s3->tls && memchr(bucket.ptr, '.', bucket.len);
    *ret_path_style = s3->path_style || dotted;
    if (*ret_path_style)
        return host;
    return kn_arena_printf(arena, "%.*s.%s", (int)bucket.len, bucket.ptr, host);
}

/* ---- the engine ------------------------------------------------------------------------- */

KnCode kn_s3_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret, KnErr *err)
{
    KnS3Place place;
    KN_TRY(kn_s3_object_place((KnS3 *)io, location, &place, err));
    *ret = kn_arena_printf(arena, "s3://%.*s/%.*s", (int)place.bucket.len, place.bucket.ptr,
                           (int)place.key.len, place.key.ptr);
    return KN_OK;
}

KnCode kn_s3_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                           KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Place place;
    KnS3Keys keys = {0};
    KN_TRY(kn_s3_place(s3, location, &place, err));
    KN_TRY(kn_s3_credentials_get(s3->creds, arena, &keys, err));
    const char *region = kn_s3_region(s3, arena, place.bucket);
    *ret = (KnIoAccess){.remote = true,
                        .region = region,
                        .ca_file = s3->ca_file,
                        .access_key_id = keys.access_key_id,
                        .secret_access_key = keys.secret_access_key,
                        .session_token = keys.session_token,
                        .tls = s3->tls};
    (void)kn_s3_host(s3, arena, place.bucket, region, &ret->path_style);
    ret->endpoint = s3->host ? s3->host : aws_host(arena, region);
    KnStr scope = s3->scope ? kn_str(s3->scope) : place.bucket;
    size_t skip = scheme_len(scope);
    ret->scope = kn_arena_printf(arena, "s3://%.*s%s", (int)(scope.len - skip), scope.ptr + skip,
                                 s3->scope ? "" : "/");
    return KN_OK;
}

/* ---- opening ---------------------------------------------------------------------------- */

static const char *text_of(KnS3 *s3, const char *given, const char *const *variables)
{
    const char *text = given ? given : kn_s3_env_first(variables);
    return text ? kn_arena_strdup(s3->arena, text) : NULL;
}

static KnCode set_endpoint(KnS3 *s3, const KnS3Options *options, KnErr *err)
{
    static const char *const names[] = {"KNUT_S3_ENDPOINT", "SKADE_S3_ENDPOINT",
                                        "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
    const char *endpoint = text_of(s3, options->endpoint, names);
    s3->tls = true;
    s3->path_style = options->path_style;
    if (!endpoint)
        return KN_OK;
    KnUrl url;
    KnCode rc = kn_url_parse(kn_str(endpoint), &url, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "S3 endpoint '%.200s'",
                           strchr(endpoint, '@') ? "..." : endpoint);
    if (url.path.len > 1 || url.query.len)
        return kn_err_set(err, KN_E_INVAL,
                          "S3 endpoint '%.200s': expected http[s]://HOST[:PORT] and nothing behind",
                          endpoint);
    s3->host = kn_arena_strndup(s3->arena, url.authority.ptr, url.authority.len);
    s3->endpoint = kn_arena_printf(s3->arena, "http%s://%s", url.tls ? "s" : "", s3->host);
    s3->tls = url.tls;
    s3->path_style = options->path_style || !options->virtual_hosted;
    return KN_OK;
}

const char *kn_s3_option_region(const KnS3Options *options, KnArena *arena)
{
    static const char *const names[] = {"KNUT_S3_REGION", "SKADE_S3_REGION", "AWS_REGION",
                                        "AWS_DEFAULT_REGION", NULL};
    const char *region = options->region ? options->region : kn_s3_env_first(names);
    if (region)
        return kn_arena_strdup(arena, region);
    region = kn_s3_profile_region(arena);
    return region ? region : "us-east-1";
}

const char *kn_s3_option_ca(const KnS3Options *options)
{
    static const char *const names[] = {"KNUT_S3_CA", "AWS_CA_BUNDLE", NULL};
    return options->ca_file ? options->ca_file : kn_s3_env_first(names);
}

static KnCode set_region(KnS3 *s3, const KnS3Options *options, KnErr *err)
{
    s3->region = kn_s3_option_region(options, s3->arena);
    if (!is_bucket_name(kn_str(s3->region)))
        return kn_err_set(err, KN_E_INVAL, "S3 region '%.100s' is no region's name", s3->region);
    return KN_OK;
}

static KnCode fill(KnS3 *s3, const KnS3Options *options, KnErr *err)
{
    static const char *const none[] = {NULL};
    KN_TRY(set_endpoint(s3, options, err));
    KN_TRY(set_region(s3, options, err));
    s3->bucket = text_of(s3, options->bucket, none);
    s3->scope = text_of(s3, options->scope, none);
    s3->ca_file = text_of(s3, kn_s3_option_ca(options), none);
    s3->retry_base_ms = options->retry_base_ms ? options->retry_base_ms : RETRY_MS;
    s3->max_tries = options->max_tries ? options->max_tries : TRIES;
    s3->part_bytes = options->part_bytes ? options->part_bytes : PART;
    const KnHttpClientOptions http = {.ca_file = s3->ca_file,
                                      .stall_ms = options->stall_ms ? options->stall_ms : STALL_MS};
    KN_TRY(kn_http_client_new(&http, &s3->http, err));
    s3->creds = kn_s3_credentials_new(options, s3->http, s3->region);
    return KN_OK;
}

static void s3_close(KnFileIO *io)
{
    KnS3 *s3 = (KnS3 *)io;
    void *region;
    for (size_t i = 0; kn_map_entry(s3->regions, i, NULL, &region); ++i)
        free(region);
    s3->regions = kn_map_free(s3->regions);
    s3->creds = kn_s3_credentials_free(s3->creds);
    s3->http = kn_http_client_free(s3->http);
    s3->stage = kn_s3_stage_free(s3->stage);
    s3->arena = kn_arena_free(s3->arena);
    (void)pthread_mutex_destroy(&s3->mutex);
    free(s3);
}

static const KnFileIOOps s3_ops = {
    .scheme = "s3",
    .stat = kn_s3_stat,
    .read = kn_s3_read,
    .read_all = kn_s3_read_all,
    .read_ranges = kn_s3_read_ranges,
    .write = kn_s3_write,
    .list = kn_s3_list,
    .remove = kn_s3_remove,
    .remove_batch = 1000,
    .remove_many = kn_s3_remove_many,
    .engine_path = kn_s3_engine_path,
    .engine_target = kn_s3_engine_target,
    .engine_access = kn_s3_engine_access,
    .sync = kn_s3_sync,
    .prepare_dir = kn_s3_prepare_dir,
    .close = s3_close,
};

bool kn_s3_where(const KnFileIO *io, KnS3Where *ret)
{
    const KnS3 *s3 = (const KnS3 *)io;
    if (io->ops != &s3_ops)
        return false;
    *ret = (KnS3Where){s3->endpoint, s3->region, s3->path_style};
    return true;
}

KnCode kn_io_s3_open(const KnS3Options *options, KnFileIO **ret, KnErr *err)
{
    static const KnS3Options none;
    KnS3 *s3 = calloc(1, sizeof(*s3));
    if (!s3 || pthread_mutex_init(&s3->mutex, NULL) != 0)
        abort();
    s3->io.ops = &s3_ops;
    s3->arena = kn_arena_new(0);
    s3->regions = kn_map_new();
    s3->stage = kn_s3_stage_new();
    KnCode rc = fill(s3, options ? options : &none, err);
    if (rc != KN_OK) {
        s3_close(&s3->io);
        return rc;
    }
    *ret = &s3->io;
    return KN_OK;
}
