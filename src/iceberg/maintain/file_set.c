/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_set.c - see file_set.h. Names are BLOBs: a file system's need not be UTF-8.
 *
 * prefix is `scheme://authority` in lower case, with the schemes that Java takes for equal (s3a and
 * s3n are s3) and a plain path as file; key is the rest, without doubled slashes.
 */
#include "iceberg/maintain/file_set.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/random.h"
#include "engine/builder.h"

struct KnFileSet {
    KnSession *ses;
    KnArena *arena;
    const char *table; /* the feed's name too */
    KnBuilder *builder;
    KnBatch *batch; /* on its way into the table */
    size_t n;
};

const char *kn_file_kind_name(KnFileKind kind)
{
    static const char *const names[] = {
        "data",     "position-deletes", "equality-deletes", "deletion-vectors",
        "manifest", "manifest-list",    "statistics",       "metadata",
        "other"};
    return names[kind];
}

/* ---- names ---- */

typedef struct Split {
    KnStr scheme, authority, path;
} Split;

static Split split(KnStr location)
{
    Split s = {.path = location};
    const char *colon = memchr(location.ptr, ':', location.len);
    const char *slash = memchr(location.ptr, '/', location.len);
    if (!colon || !slash || slash < colon)
        return s;
    s.scheme = (KnStr){location.ptr, (size_t)(colon - location.ptr)};
    KnStr rest = {colon + 1, location.len - s.scheme.len - 1};
    if (rest.len >= 2 && rest.ptr[0] == '/' && rest.ptr[1] == '/') {
        const char *end = memchr(rest.ptr + 2, '/', rest.len - 2);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        s.authority = (KnStr){rest.ptr + 2, len - 2};
        rest = (KnStr){rest.ptr + len, rest.len - len};
    }
    s.path = rest;
    return s;
}

static void lower(KnBuf *buf, KnStr text)
{
    for (size_t i = 0; i < text.len; i++)
        kn_buf_char(buf, (char)tolower((unsigned char)text.ptr[i]));
}

static void put_prefix(KnBuf *buf, const Split *s)
{
    if (!s->scheme.len)
        kn_buf_text(buf, "file");
    else if (kn_str_eq_nocase(s->scheme, KN_STR_LIT("s3a")) ||
             kn_str_eq_nocase(s->scheme, KN_STR_LIT("s3n")))
        kn_buf_text(buf, "s3");
    else
        lower(buf, s->scheme);
    kn_buf_text(buf, "://");
    lower(buf, s->authority);
}

static void put_key(KnBuf *buf, const Split *s)
{
    bool local = !s->scheme.len || kn_str_eq_nocase(s->scheme, KN_STR_LIT("file"));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *normal = NULL;
    if (local && kn_path_local(arena, s->path, &normal, NULL) == KN_OK) {
        kn_buf_text(buf, normal);
        return;
    }
    for (size_t i = 0; i < s->path.len; i++)
        if (i == 0 || s->path.ptr[i] != '/' || s->path.ptr[i - 1] != '/')
            kn_buf_char(buf, s->path.ptr[i]);
}

/* ---- a set ---- */

static KnCode next(void *arg, KnBatch **ret, KnErr *err)
{
    KnFileSet *set = arg;
    (void)err;
    *ret = set->batch;
    set->batch = NULL;
    return KN_OK;
}

static const char *const column_names[] = {"kind", "location", "prefix", "key", "bytes"};
static const char *const column_types[] = {"TINYINT", "BLOB", "BLOB", "BLOB", "BIGINT"};
enum { N_COLUMNS = 5 };

static KnCode flush(KnFileSet *set, KnErr *err)
{
    set->batch = kn_builder_take(set->builder);
    if (!set->batch)
        return KN_OK;
    KnFeedOptions opts = {.name = set->table,
                          .column_names = column_names,
                          .column_types = column_types,
                          .n_columns = N_COLUMNS,
                          .next = next,
                          .arg = set};
    KnFeed *feed = NULL;
    KN_TRY(kn_feed_open(kn_session_engine(set->ses), &opts, &feed, err));
    const char *sql = kn_arena_printf(set->arena, "INSERT INTO %s SELECT * FROM kn_feed('%s')",
                                      set->table, set->table);
    KnCode rc = kn_session_exec(set->ses, sql, NULL, err);
    kn_feed_close(feed);
    set->batch = kn_batch_unref(set->batch);
    return rc;
}

KnCode kn_file_set_open(KnSession *ses, KnFileSet **ret, KnErr *err)
{
    KnFileSet *set = calloc(1, sizeof(*set));
    if (!set)
        abort();
    set->ses = ses;
    set->arena = kn_arena_new(0);
    set->table = kn_arena_printf(set->arena, "kn_files_%" PRIx64, kn_random_id());
    const char *sql = kn_arena_printf(set->arena,
                                      "CREATE TEMP TABLE %s (kind TINYINT, location BLOB, prefix "
                                      "BLOB, key BLOB, bytes BIGINT)",
                                      set->table);
    KnCode rc = kn_session_exec(ses, sql, NULL, err);
    if (rc == KN_OK)
        rc = kn_builder_open(kn_session_engine(ses), column_types, N_COLUMNS, &set->builder, err);
    if (rc != KN_OK) {
        kn_file_set_close(set);
        return rc;
    }
    *ret = set;
    return KN_OK;
}

KnFileSet *kn_file_set_close(KnFileSet *set)
{
    if (!set)
        return NULL;
    kn_builder_close(set->builder);
    kn_batch_unref(set->batch);
    const char *sql = kn_arena_printf(set->arena, "DROP TABLE IF EXISTS %s", set->table);
    KN_IGNORE(kn_session_exec(set->ses, sql, NULL, NULL));
    kn_arena_free(set->arena);
    free(set);
    return NULL;
}

size_t kn_file_set_count(const KnFileSet *set)
{
    return set->n;
}

KnCode kn_file_set_add(KnFileSet *set, const KnFileName *name, KnErr *err)
{
    Split s = split(name->location);
    KN_BUF_AUTO prefix;
    KN_BUF_AUTO key;
    kn_buf_init(&prefix, (size_t)1 << 20);
    kn_buf_init(&key, (size_t)1 << 20);
    put_prefix(&prefix, &s);
    put_key(&key, &s);
    KN_TRY(kn_buf_check(&prefix, err));
    KN_TRY(kn_buf_check(&key, err));
    KnBuilder *b = set->builder;
    KN_TRY(kn_col_put_int(kn_builder_column(b, 0), name->kind, err));
    KN_TRY(kn_col_put_str(kn_builder_column(b, 1), name->location, err));
    KN_TRY(kn_col_put_str(kn_builder_column(b, 2), (KnStr){prefix.data, prefix.len}, err));
    KN_TRY(kn_col_put_str(kn_builder_column(b, 3), (KnStr){key.data, key.len}, err));
    KN_TRY(kn_col_put_int(kn_builder_column(b, 4), name->bytes, err));
    kn_builder_end_row(b);
    set->n++;
    return kn_builder_full(b) ? flush(set, err) : KN_OK;
}

/* ---- differences ---- */

static KnCode give_batch(void *arg, KnBatch *batch, KnErr *err)
{
    const KnFileVisit *visit = arg;
    KnVector kinds = kn_batch_vector(batch, 0);
    KnVector locations = kn_batch_vector(batch, 1);
    KnVector bytes = kn_batch_vector(batch, 2);
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        KnFileName name = {.kind = (KnFileKind)((const int8_t *)kinds.data)[i],
                           .location = kn_vector_str(&locations, i),
                           .bytes = ((const int64_t *)bytes.data)[i]};
        KN_TRY(visit->fn(visit->arg, &name, err));
    }
    return KN_OK;
}

typedef struct Join {
    KnFileSet *other; /* or NULL */
    const char *kind, *on;
} Join;

static KnCode visit_sql(KnFileSet *set, const Join *join, const KnFileVisit *visit, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 16);
    KN_TRY(flush(set, err));
    if (join->other)
        KN_TRY(flush(join->other, err));
    kn_buf_printf(&sql, "SELECT min(kind), min(location), max(bytes) FROM %s a", set->table);
    if (join->other)
        kn_buf_printf(&sql, " %s JOIN %s b ON %s", join->kind, join->other->table, join->on);
    kn_buf_text(&sql, " GROUP BY a.key ORDER BY 1, 2");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(set->ses, sql.data, give_batch, (void *)(uintptr_t)visit, err);
}

KnCode kn_file_set_minus(KnFileSet *set, const KnFileMinus *minus, const KnFileVisit *visit,
                         KnErr *err)
{
    Join join = {minus->without, "ANTI",
                 minus->exact ? "a.key = b.key AND a.prefix = b.prefix" : "a.key = b.key"};
    return visit_sql(set, &join, visit, err);
}

KnCode kn_file_set_mismatch(KnFileSet *set, KnFileSet *other, const KnFileVisit *visit, KnErr *err)
{
    Join join = {other, "SEMI", "a.key = b.key AND a.prefix <> b.prefix"};
    return visit_sql(set, &join, visit, err);
}
