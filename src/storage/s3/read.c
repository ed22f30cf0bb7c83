/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - HEAD and GET.
 *
 * A whole object is one GET, whose length the answer tells. A range is one GET with Range, or
 * several at a time where it is long. Ranges that lie less than GAP apart are fetched as one: the
 * bytes between cost less than another request.
 */
#include <curl/curl.h>
#include <stdlib.h>

#include "base/vec.h"
#include "storage/s3/s3_internal.h"

enum { PARALLEL = 8, GAP = 256 << 10, ERROR_BODY = 1 << 20 };

KnCode kn_s3_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_S3_CALL_AUTO call = {.operation = "HeadObject", .method = "HEAD"};
    KN_TRY(kn_s3_object_place(s3, location, &call.place, err));
    KN_TRY(kn_io_settled(kn_s3_call(s3, &call, err), err));
    const char *length = kn_http_header(&call.resp, "content-length", 0);
    const char *modified = kn_http_header(&call.resp, "last-modified", 0);
    int64_t size = -1;
    if (!length || !kn_str_to_i64(kn_str(length), &size) || size < 0) {
        KnCode rc = kn_err_set(err, KN_E_CORRUPT, "the answer tells no size");
        return kn_s3_wrap(&call, rc, err);
    }
    int64_t seconds = modified ? (int64_t)curl_getdate(modified, NULL) : -1;
    *ret = (KnFileInfo){.size = (uint64_t)size, .modified_ms = seconds > 0 ? seconds * 1000 : 0};
    return KN_OK;
}

KnCode kn_s3_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *out, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_S3_CALL_AUTO call = {.operation = "GetObject", .method = "GET"};
    call.max_response = max < ERROR_BODY ? ERROR_BODY : max + 1; /* reasons need room too */
    KN_TRY(kn_s3_object_place(s3, location, &call.place, err));
    KnCode rc = kn_s3_call(s3, &call, err);
    if (rc == KN_E_NOMEM || (rc == KN_OK && call.resp.body.len > max)) {
        KnFileInfo info = {.size = call.resp.body.len};
        KN_TRY(kn_s3_stat(io, location, &info, err));
        return kn_io_too_large(location, info.size, max, err);
    }
    KN_TRY(kn_io_settled(rc, err));
    if (call.resp.body.len) {
        void *room = kn_buf_reserve(out, call.resp.body.len);
        if (!room)
            return kn_buf_check(out, err);
        memcpy(room, call.resp.body.data, call.resp.body.len);
        out->len += call.resp.body.len;
    }
    return KN_OK;
}

/* ---- ranges ----------------------------------------------------------------------------- */

typedef struct Fetch {
    uint64_t offset, len;
    char *out;
} Fetch;

static void fetch_begin(KnS3Call *call, const KnS3Place *place, const Fetch *fetch, char range[64])
{
    *call = (KnS3Call){.operation = "GetObject",
                       .method = "GET",
                       .place = *place,
                       .out = fetch->out,
                       .out_len = fetch->len};
    (void)snprintf(range, 64, "bytes=%llu-%llu", (unsigned long long)fetch->offset,
                   (unsigned long long)(fetch->offset + fetch->len - 1));
    kn_s3_call_header(call, "Range", range);
}

static KnCode truncated(const KnS3Place *place, const Fetch *fetch, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT,
                      "'" KN_STR_FMT "' is truncated: %llu bytes at offset %llu are wanted, and it "
                      "ends before",
                      KN_STR_ARG(place->location), (unsigned long long)fetch->len,
                      (unsigned long long)fetch->offset);
}

/* A store that answers 200 to a range sent the whole object: its first bytes are not those. */
static KnCode fetch_outcome(const KnS3Call *call, const Fetch *fetch, KnErr *err)
{
    if (call->code == KN_E_CORRUPT || call->resp.status == 416)
        return truncated(&call->place, fetch, err);
    if (call->code == KN_OK && call->resp.status != 206 && fetch->offset) {
        KnCode rc = kn_err_set(err, KN_E_UNSUPPORTED,
                               "HTTP %d to a range: the store (or a proxy) does not do ranges",
                               call->resp.status);
        return kn_s3_wrap(call, rc, err);
    }
    if (call->code != KN_OK && err)
        *err = call->err;
    return kn_io_settled(call->code, err);
}

static KnCode fetch_all(KnS3 *s3, const KnS3Place *place, const Fetch *fetches, size_t n,
                        KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Call *calls = kn_arena_zalloc(arena, n * sizeof(*calls));
    for (size_t i = 0; i < n; ++i)
        fetch_begin(&calls[i], place, &fetches[i], kn_arena_alloc(arena, 64));
    kn_s3_run(s3, calls, n, PARALLEL);
    KnCode rc = KN_OK;
    for (size_t i = 0; i < n; ++i) {
        if (rc == KN_OK)
            rc = fetch_outcome(&calls[i], &fetches[i], err);
        kn_s3_call_done(&calls[i]);
    }
    return rc;
}

typedef KN_VEC(Fetch) Fetches;

/* A long range in pieces that can come at the same time. */
static void add_pieces(const KnS3 *s3, Fetches *to, Fetch fetch)
{
    while (fetch.len) {
        uint64_t n = fetch.len < s3->part_bytes + s3->part_bytes / 2 ? fetch.len : s3->part_bytes;
        *kn_vec_push(to) = (Fetch){fetch.offset, n, fetch.out};
        fetch.offset += n;
        fetch.out += n;
        fetch.len -= n;
    }
}

KnCode kn_s3_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                  KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Place place;
    KN_TRY(kn_s3_object_place(s3, location, &place, err));
    if (len == 0)
        return KN_OK;
    Fetches fetches = {0};
    add_pieces(s3, &fetches, (Fetch){offset, len, out});
    KnCode rc = fetch_all(s3, &place, fetches.items, fetches.len, err);
    kn_vec_done(&fetches);
    return rc;
}

static int by_offset(const void *a, const void *b)
{
    const KnIoRange *x = *(const KnIoRange *const *)a, *y = *(const KnIoRange *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* A run of ranges, sorted[first..last], that is fetched as one. */
typedef struct Run {
    size_t first, last;
    Fetch fetch;
} Run;

typedef KN_VEC(Run) Runs;

static void find_runs(const KnIoRange *const *sorted, size_t n, Runs *runs)
{
    for (size_t i = 0; i < n; ++i) {
        const KnIoRange *range = sorted[i];
        uint64_t end = range->offset + range->len;
        Run *last = runs->len ? &runs->items[runs->len - 1] : NULL;
        uint64_t last_end = last ? last->fetch.offset + last->fetch.len : 0;
        if (last && range->offset <= last_end + GAP) {
            last->last = i;
            if (end > last_end)
                last->fetch.len = end - last->fetch.offset;
        } else {
            *kn_vec_push(runs) = (Run){i, i, {range->offset, range->len, NULL}};
        }
    }
}

/* A run of one goes where it is wanted; others into memory of their own first. */
static KnCode place_runs(KnArena *arena, const KnIoRange *const *sorted, Runs *runs, KnErr *err)
{
    kn_vec_foreach (runs, run) {
        run->fetch.out = run->first == run->last
                             ? sorted[run->first]->out
                             : kn_arena_try_alloc(arena, (size_t)run->fetch.len);
        if (!run->fetch.out)
            return kn_err_set(err, KN_E_NOMEM, "no memory to read %llu bytes",
                              (unsigned long long)run->fetch.len);
    }
    return KN_OK;
}

static void spread_run(const KnIoRange *const *sorted, const Run *run)
{
    if (run->first == run->last)
        return;
    for (size_t i = run->first; i <= run->last; ++i)
        memcpy(sorted[i]->out, run->fetch.out + (sorted[i]->offset - run->fetch.offset),
               (size_t)sorted[i]->len);
}

KnCode kn_s3_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                         KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Place place;
    KN_TRY(kn_s3_object_place(s3, location, &place, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnIoRange **sorted = kn_arena_alloc(arena, n * sizeof(KnIoRange *));
    size_t n_sorted = 0;
    for (size_t i = 0; i < n; ++i)
        if (ranges[i].len)
            sorted[n_sorted++] = &ranges[i];
    if (!n_sorted)
        return KN_OK;
    qsort(sorted, n_sorted, sizeof(sorted[0]), by_offset);
    Runs runs = {0};
    Fetches fetches = {0};
    find_runs(sorted, n_sorted, &runs);
    KnCode rc = place_runs(arena, sorted, &runs, err);
    for (size_t i = 0; rc == KN_OK && i < runs.len; ++i)
        add_pieces(s3, &fetches, runs.items[i].fetch);
    if (rc == KN_OK)
        rc = fetch_all(s3, &place, fetches.items, fetches.len, err);
    for (size_t i = 0; rc == KN_OK && i < runs.len; ++i)
        spread_run(sorted, &runs.items[i]);
    kn_vec_done(&runs);
    kn_vec_done(&fetches);
    return rc;
}
