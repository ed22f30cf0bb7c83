/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c - ListObjectsV2, page after page, in byte order.
 *
 * S3 lists in byte order of the keys, and so do AWS and MinIO: their pages are handed on as they
 * come. Other stores list folder by folder ("a/b" before "a-c"): what they list is kept, sorted,
 * and handed on at the end.
 */
#include <stdlib.h>

#include "base/path.h"
#include "base/vec.h"
#include "net/url.h"
#include "storage/s3/s3_internal.h"

enum { MAX_PAGE = 64 << 20 };

typedef struct Listing {
    KnS3 *s3;
    KnS3Place place; /* of the prefix, its key ending in '/' or empty */
    KnStr spelled;   /* the prefix as the caller wrote it, without slashes at its end */
    KnListFn fn;
    void *arg;
    bool ordered;   /* the store keeps to byte order */
    KnArena *arena; /* of kept objects, or of one page */
    KN_VEC(KnFileInfo) objects;
} Listing;

static const char *page_query(Listing *l, KnArena *arena, const char *token)
{
    KN_BUF_AUTO query;
    kn_buf_init(&query, 64 << 10);
    if (token) {
        kn_buf_text(&query, "continuation-token=");
        kn_url_encode(&query, kn_str(token), false);
        kn_buf_char(&query, '&');
    }
    kn_buf_text(&query, "list-type=2&prefix=");
    kn_url_encode(&query, l->place.key, false);
    return query.failed ? NULL : kn_arena_strndup(arena, query.data, query.len);
}

/* A name that ends in '/' is a folder that some tools make: nothing that anybody wrote. */
static KnCode add_object(void *arg, const KnS3Object *object, KnErr *err)
{
    Listing *l = arg;
    KnStr key = kn_str(object->key);
    if (!kn_str_starts_with(key, l->place.key))
        return kn_err_set(err, KN_E_CORRUPT, "the listing has '%.200s', outside what was asked for",
                          object->key);
    if (key.len == l->place.key.len || key.ptr[key.len - 1] == '/')
        return KN_OK;
    *kn_vec_push(&l->objects) = (KnFileInfo){
        .location = kn_arena_printf(l->arena, "%.*s/%s", (int)l->spelled.len, l->spelled.ptr,
                                    object->key + l->place.key.len),
        .size = object->size,
        .modified_ms = object->modified_ms,
    };
    return KN_OK;
}

static bool keeps_order(const KnHttpResponse *resp)
{
    const char *server = kn_http_header(resp, "server", 0);
    return server && (strncmp(server, "AmazonS3", 8) == 0 || strncmp(server, "MinIO", 5) == 0);
}

/* A page into l->objects; *ret_next in arena, NULL after the last. */
static KnCode get_page(Listing *l, KnArena *arena, const char *token, const char **ret_next,
                       KnErr *err)
{
    KN_S3_CALL_AUTO call = {.operation = "ListObjectsV2",
                            .method = "GET",
                            .place = l->place,
                            .query = page_query(l, arena, token),
                            .max_response = MAX_PAGE};
    call.place.key.len = 0; /* the bucket is asked */
    call.place.location = l->place.location;
    if (!call.query)
        return kn_err_set(err, KN_E_INVAL, "prefix '" KN_STR_FMT "' is too long",
                          KN_STR_ARG(l->place.location));
    KN_TRY(kn_io_settled(kn_s3_call(l->s3, &call, err), err));
    if (!token)
        l->ordered = keeps_order(&call.resp);
    KnStr body = {call.resp.body.data, call.resp.body.len};
    KnCode rc = kn_s3_list_parse(l->arena, body, add_object, l, ret_next, err);
    if (rc == KN_OK && *ret_next)
        *ret_next = kn_arena_strdup(arena, *ret_next);
    return rc == KN_OK ? rc : kn_s3_wrap(&call, rc, err);
}

static int by_location(const void *a, const void *b)
{
    return strcmp(((const KnFileInfo *)a)->location, ((const KnFileInfo *)b)->location);
}

static KnCode hand_on(Listing *l, KnErr *err)
{
    for (size_t i = 0; i < l->objects.len; ++i)
        KN_TRY(l->fn(l->arg, &l->objects.items[i], err));
    return KN_OK;
}

static KnCode list_pages(Listing *l, KnErr *err)
{
    const char *token = NULL;
    KN_ARENA_AUTO tokens = kn_arena_new(0);
    do {
        const char *next = NULL;
        KN_TRY(get_page(l, tokens, token, &next, err));
        if (next && token && strcmp(next, token) == 0)
            return kn_err_set(err, KN_E_CORRUPT,
                              "s3 ListObjectsV2 '" KN_STR_FMT "': the listing goes in circles",
                              KN_STR_ARG(l->place.location));
        token = next;
        if (!l->ordered)
            continue;
        KN_TRY(hand_on(l, err));
        l->objects.len = 0;
        l->arena = kn_arena_free(l->arena);
        l->arena = kn_arena_new(0);
    } while (token);
    if (l->objects.len)
        qsort(l->objects.items, l->objects.len, sizeof(KnFileInfo), by_location);
    return hand_on(l, err);
}

KnCode kn_s3_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err)
{
    Listing l = {.s3 = (KnS3 *)io, .spelled = prefix, .fn = fn, .arg = arg};
    KN_TRY(kn_s3_place(l.s3, prefix, &l.place, err));
    while (l.spelled.len && l.spelled.ptr[l.spelled.len - 1] == '/')
        --l.spelled.len;
    KnStr key = l.place.key;
    while (key.len && key.ptr[key.len - 1] == '/')
        --key.len;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    if (key.len)
        l.place.key = kn_str(kn_arena_printf(arena, "%.*s/", (int)key.len, key.ptr));
    else
        l.place.key = key;
    l.arena = kn_arena_new(0);
    KnCode rc = list_pages(&l, err);
    kn_vec_done(&l.objects);
    l.arena = kn_arena_free(l.arena);
    return rc;
}
