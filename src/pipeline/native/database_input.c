/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database_input.c - a table, or a query, of PostgreSQL as an input: its rows by binary COPY.
 *
 * The statement is prepared when the run is planned, for its columns; the COPY begins when the
 * first row is asked for, and rows are decoded as they come. Types that the engine does not have
 * come as their text. The server's rows are those of one snapshot.
 */
#include <poll.h>
#include <string.h>

#include "engine/builder.h"
#include "pipeline/native/database.h"
#include "postgres/decode.h"

enum { MAX_PENDING = 1 << 30, WAIT_MS = 200 };

struct KnNativeSource {
    KnNativeRun *run;
    KnPgLink link;
    const char *copy; /* the statement */
    KnPgDecoder decoder;
    KnBuilder *builder;
    KnBuf pending; /* bytes that are not yet rows */
    KnFeed *feed;
    bool copying, at_end;
};

void kn_native_source_close(KnNativeSource *source)
{
    kn_feed_close(source->feed);
    source->builder = kn_builder_close(source->builder);
    kn_buf_done(&source->pending);
    kn_pg_disconnect(&source->link); /* in the middle of a COPY too */
}

/* ---- rows ---- */

static KnCode begin_copy(KnNativeSource *s, KnErr *err)
{
    KN_TRY(kn_pg_need(&s->link, err));
    KN_PG_AUTO res = PQexec(s->link.conn, s->copy);
    if (PQresultStatus(res) != PGRES_COPY_OUT)
        return kn_pg_error(&s->link, res, err);
    s->copying = true;
    return KN_OK;
}

/* Until something comes, or the run is cancelled: the server may think for long. */
static KnCode wait_for_bytes(KnNativeSource *s, KnErr *err)
{
    struct pollfd fd = {.fd = PQsocket(s->link.conn), .events = POLLIN};
    while (poll(&fd, 1, WAIT_MS) == 0)
        KN_TRY(kn_native_going_on(s->run, err));
    return PQconsumeInput(s->link.conn) ? KN_OK : kn_pg_error(&s->link, NULL, err);
}

/* The server's word on how the COPY went. */
static KnCode end_copy(KnNativeSource *s, KnErr *err)
{
    KnCode rc = KN_OK;
    for (;;) {
        KN_PG_AUTO res = PQgetResult(s->link.conn);
        if (!res)
            break;
        if (rc == KN_OK && PQresultStatus(res) != PGRES_COMMAND_OK)
            rc = kn_pg_error(&s->link, res, err);
    }
    s->at_end = true;
    return rc;
}

static KnCode receive(KnNativeSource *s, KnErr *err)
{
    char *bytes = NULL;
    int n;
    while ((n = PQgetCopyData(s->link.conn, &bytes, 1)) == 0)
        KN_TRY(wait_for_bytes(s, err));
    if (n == -2)
        return kn_pg_error(&s->link, NULL, err);
    if (n == -1)
        return end_copy(s, err);
    kn_buf_append(&s->pending, bytes, (size_t)n);
    PQfreemem(bytes);
    return kn_buf_check(&s->pending, err);
}

static KnCode decode(KnNativeSource *s, KnErr *err)
{
    size_t used = 0;
    KnStr bytes = {s->pending.data, s->pending.len};
    KN_TRY(kn_pg_decode(&s->decoder, bytes, s->builder, &used, err));
    if (used)
        memmove(s->pending.data, s->pending.data + used, s->pending.len - used);
    s->pending.len -= used;
    return KN_OK;
}

static KnCode next_rows(void *arg, KnBatch **ret, KnErr *err)
{
    KnNativeSource *s = arg;
    if (!s->copying)
        KN_TRY(begin_copy(s, err));
    for (;;) {
        KN_TRY(decode(s, err));
        if (s->at_end || kn_builder_full(s->builder))
            break;
        KN_TRY(receive(s, err));
    }
    if (s->at_end && (!s->decoder.ended || s->pending.len))
        return kn_err_set(err, KN_E_CORRUPT, "%s: the rows end in the middle", s->link.place.where);
    *ret = kn_builder_take(s->builder);
    return KN_OK;
}

/* ---- columns ---- */

typedef struct Columns {
    const char **names, **types;
    size_t n;
} Columns;

static KnCode describe(KnNativeSource *s, const char *query, PGresult **ret, KnErr *err)
{
    KN_PG_AUTO prepared = PQprepare(s->link.conn, "", query, 0, NULL);
    if (PQresultStatus(prepared) != PGRES_COMMAND_OK)
        return kn_pg_error(&s->link, prepared, err);
    *ret = PQdescribePrepared(s->link.conn, "");
    if (PQresultStatus(*ret) != PGRES_COMMAND_OK)
        return kn_pg_error(&s->link, *ret, err);
    if (PQnfields(*ret) == 0)
        return kn_err_set(err, KN_E_INVAL, "%s: the query has no columns", s->link.place.where);
    return KN_OK;
}

/* The columns of the query, and the COPY of them in the form in which they are read. */
static KnCode choose_columns(KnNativeSource *s, const char *query, Columns *ret, KnErr *err)
{
    KnArena *arena = s->run->arena;
    KN_PG_AUTO res = NULL;
    KN_BUF_AUTO copy = {.max = 16 << 20};
    KN_TRY(describe(s, query, &res, err));
    ret->n = (size_t)PQnfields(res);
    ret->names = kn_arena_zalloc(arena, ret->n * sizeof(*ret->names));
    ret->types = kn_arena_zalloc(arena, ret->n * sizeof(*ret->types));
    kn_buf_text(&copy, "COPY (SELECT ");
    for (size_t i = 0; i < ret->n; i++) {
        KnPgReadType type = kn_pg_read_type(arena, PQftype(res, (int)i), PQfmod(res, (int)i));
        ret->names[i] = kn_arena_strdup(arena, PQfname(res, (int)i));
        ret->types[i] = type.sql;
        kn_buf_text(&copy, i ? ", " : "");
        kn_sql_ident(&copy, kn_str(ret->names[i]));
        kn_buf_text(&copy, type.as_text ? "::text" : "");
    }
    kn_buf_printf(&copy, " FROM (%s\n) AS kn) TO STDOUT (FORMAT binary)", query);
    KN_TRY(kn_buf_check(&copy, err));
    s->copy = kn_arena_strndup(arena, copy.data, copy.len);
    s->decoder = (KnPgDecoder){.names = ret->names, .n_columns = ret->n};
    return KN_OK;
}

static const char *statement(KnArena *arena, const KnutInput *input, const KnDatabasePlace *place)
{
    const char *query = kn_database_setting(&input->options, "query");
    return query ? query
           : place->table
               ? kn_arena_printf(arena, "SELECT * FROM %s%s", place->schema, place->table)
               : NULL;
}

static KnCode open_source(KnNativeSource *s, const KnutInput *input, const char **ret, KnErr *err)
{
    KnNativeRun *run = s->run;
    KnDatabasePlace place = {0};
    Columns columns = {0};
    KN_TRY(kn_database_place_parse(run->arena, input->path,
                                   kn_database_setting(&input->options, "table"), &place, err));
    s->link.place = place.place;
    const char *query = statement(run->arena, input, &place);
    if (!query)
        return kn_err_set(err, KN_E_INVAL,
                          "%s: of which table? write ?table=SCHEMA.TABLE behind the database, or "
                          "give the option table or query",
                          place.place.where);
    KN_TRY(kn_pg_need(&s->link, err));
    KN_TRY(choose_columns(s, query, &columns, err));
    KN_TRY(kn_builder_open(run->engine, columns.types, columns.n, &s->builder, err));
    KnFeedOptions feed = {.name = kn_arena_printf(run->arena, "kn_database_%s", input->name),
                          .column_names = columns.names,
                          .column_types = columns.types,
                          .n_columns = columns.n,
                          .next = next_rows,
                          .arg = s};
    KN_TRY(kn_feed_open(run->engine, &feed, &s->feed, err));
    *ret = kn_native_feed_sql(run->arena, feed.name);
    return KN_OK;
}

KnCode kn_native_database_sql(KnNativeRun *run, const KnutInput *input, const char **ret,
                              KnErr *err)
{
    KnNativeSource *source = kn_arena_zalloc(run->arena, sizeof(*source));
    source->run = run;
    kn_buf_init(&source->pending, MAX_PENDING);
    *kn_vec_push(&run->sources) = source;
    return kn_err_wrap(err, open_source(source, input, ret, err), "input %s", input->name);
}
