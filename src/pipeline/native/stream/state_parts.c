/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_parts.c - rows that are remembered, as Parquet files.
 *
 * Types that Parquet does not have are cast on the way out and back.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/random.h"
#include "iceberg/scan/reach.h"
#include "pipeline/native/stream/state_internal.h"

enum { HASH_BLOCK = 1 << 20 };

/* As what a value of the type lies in a part; NULL = as itself. */
static const char *stored_as(const char *type)
{
    static const char *const others[][2] = {{"HUGEINT", "DECIMAL(38,0)"},
                                            {"UHUGEINT", "VARCHAR"},
                                            {"INTERVAL", "VARCHAR"},
                                            {"BIT", "VARCHAR"},
                                            {"TIME WITH TIME ZONE", "VARCHAR"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcmp(type, others[i][0]))
            return others[i][1];
    return NULL;
}

static KnCode check_types(const KnStreamTable *table, KnErr *err)
{
    static const char *const lossy[] = {"HUGEINT", "INTERVAL", "BIT", "TIME WITH TIME ZONE",
                                        "UNION",   "VARIANT"};
    for (size_t i = 0; i < table->shape.len; i++) {
        const char *type = table->shape.items[i].type;
        for (size_t j = 0; !stored_as(type) && j < sizeof(lossy) / sizeof(lossy[0]); j++)
            if (strstr(type, lossy[j]))
                return kn_err_set(err, KN_E_UNSUPPORTED,
                                  "column %s of type %s cannot be kept from epoch to epoch",
                                  table->shape.items[i].name, type);
    }
    return KN_OK;
}

/* The file's hash, read block by block. */
static KnCode hash_file(KnFileIO *io, const char *location, int64_t bytes, uint64_t *ret,
                        KnErr *err)
{
    KN_BUF_AUTO block = {.max = HASH_BLOCK + 1};
    uint64_t hash = 0;
    void *room = kn_buf_reserve(&block, HASH_BLOCK);
    if (!room)
        return kn_buf_check(&block, err);
    for (int64_t at = 0; at < bytes; at += HASH_BLOCK) {
        int64_t n = bytes - at < HASH_BLOCK ? bytes - at : HASH_BLOCK;
        KN_TRY(kn_io_read(io, kn_str(location), (uint64_t)at, (uint64_t)n, room, err));
        hash = kn_hash64(room, (size_t)n, hash);
    }
    *ret = hash;
    return KN_OK;
}

static KnCode verify_part(const KnStreamState *state, const KnStreamPart *part, KnErr *err)
{
    KnFileInfo info = {0};
    uint64_t hash = 0;
    const char *location = kn_state_path(state, part->file);
    KN_TRY(kn_io_stat(state->io, kn_str(location), &info, err));
    if (info.size != (uint64_t)part->bytes)
        return kn_err_set(err, KN_E_CORRUPT, "%s: %" PRIu64 " bytes where %" PRId64 " were written",
                          location, info.size, part->bytes);
    KN_TRY(hash_file(state->io, location, part->bytes, &hash, err));
    if (hash != part->hash)
        return kn_err_set(err, KN_E_CORRUPT, "%s: it is not as it was written (xxh64)", location);
    return KN_OK;
}

KnCode kn_state_verify(const KnStreamState *state, const json_t *doc, KnErr *err)
{
    json_t *tables = NULL, *table;
    size_t i;
    KN_TRY(kn_json_get_array(doc, "tables", &tables, err));
    json_array_foreach(tables, i, table)
    {
        KnStreamTable parts = {0};
        KnCode rc = kn_state_manifest_parts(state->arena, table, &parts, err);
        for (size_t j = 0; rc == KN_OK && j < parts.parts.len; j++)
            rc = verify_part(state, &parts.parts.items[j], err);
        kn_vec_done(&parts.parts);
        KN_TRY(rc);
    }
    return KN_OK;
}

KnCode kn_state_make(KnNativeRun *run, const KnStreamTable *table, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    KN_TRY(check_types(table, err));
    kn_buf_printf(&sql, "CREATE OR REPLACE TABLE %s (", table->table);
    for (size_t i = 0; i < table->shape.len; i++) {
        kn_buf_text(&sql, i ? ", " : "");
        kn_sql_ident(&sql, kn_str(table->shape.items[i].name));
        kn_buf_printf(&sql, " %s", table->shape.items[i].type);
    }
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(run->session, sql.data, NULL, err);
}

static KnCode load_parts(const KnStreamState *state, const KnStreamTable *table, int64_t watermark,
                         KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 64 << 20};
    const char **paths = kn_arena_zalloc(state->run->arena, table->parts.len * sizeof(*paths));
    KN_TRY(kn_engine_reach(state->run->engine, state->io, kn_str(state->location), err));
    for (size_t i = 0; i < table->parts.len; i++)
        KN_TRY(kn_io_engine_path(state->io, state->run->arena,
                                 kn_str(kn_state_path(state, table->parts.items[i].file)),
                                 &paths[i], err));
    kn_buf_printf(&sql, "INSERT INTO %s SELECT ", table->table);
    for (size_t i = 0; i < table->shape.len; i++) {
        kn_buf_text(&sql, i ? ", CAST(" : "CAST(");
        kn_sql_ident(&sql, kn_str(table->shape.items[i].name));
        kn_buf_printf(&sql, " AS %s)", table->shape.items[i].type);
    }
    kn_buf_text(&sql, " FROM ");
    kn_parquet_scan_sql(&sql, paths, table->parts.len);
    if (table->until)
        kn_buf_printf(&sql, " WHERE %s > %" PRId64, table->until, watermark);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(state->run->session, sql.data, NULL, err);
}

static void drop_over(KnStreamTable *table, int64_t watermark)
{
    size_t n = 0;
    kn_vec_foreach (&table->parts, part) {
        if (part->until > watermark)
            table->parts.items[n++] = *part;
    }
    table->parts.len = n;
}

KnCode kn_state_restore(KnStreamState *state, KnStreamTable *table, int64_t watermark, KnErr *err)
{
    json_t *known = json_object_get(state->docs[0], "tables"), *one;
    size_t i;
    table->parts.len = 0;
    KN_TRY(kn_state_make(state->run, table, err));
    json_array_foreach(known, i, one)
    {
        if (!strcmp(json_string_value(json_object_get(one, "name")), table->name))
            KN_TRY(kn_state_manifest_parts(state->arena, one, table, err));
    }
    drop_over(table, watermark);
    return table->parts.len ? load_parts(state, table, watermark, err) : KN_OK;
}

static void select_stored(const KnStreamTable *table, const char *select, KnBuf *sql)
{
    kn_buf_text(sql, "COPY (SELECT ");
    for (size_t i = 0; i < table->shape.len; i++) {
        const KnNativeColumn *column = &table->shape.items[i];
        const char *as = stored_as(column->type);
        kn_buf_text(sql, i ? ", " : "");
        kn_buf_text(sql, as ? "CAST(" : "");
        kn_sql_ident(sql, kn_str(column->name));
        if (as) {
            kn_buf_printf(sql, " AS %s) AS ", as);
            kn_sql_ident(sql, kn_str(column->name));
        }
    }
    kn_buf_printf(sql, " FROM (%s)) TO ", select);
}

static KnCode over_at(const KnStreamState *state, const KnStreamTable *table, const char *select,
                      int64_t *ret, KnErr *err)
{
    *ret = INT64_MAX;
    if (!table->until)
        return KN_OK;
    KN_BUF_AUTO sql = {.max = 16 << 20};
    kn_buf_printf(&sql, "SELECT max(%s) FROM (%s)", table->until, select);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_query_i64(state->run->session, sql.data, ret, err);
}

static KnCode write_part(KnStreamState *state, const KnStreamTable *table, const char *select,
                         KnStreamPart *part, KnErr *err)
{
    const char *target = NULL;
    KnFileInfo info = {0};
    KN_BUF_AUTO sql = {.max = 64 << 20};
    const char *location = kn_state_path(state, part->file);
    KN_TRY(kn_io_engine_target(state->io, state->run->arena, kn_str(location), &target, err));
    select_stored(table, select, &sql);
    kn_sql_text(&sql, kn_str(target));
    kn_buf_text(&sql, " (FORMAT parquet)");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_exec(state->run->session, sql.data, &part->rows, err));
    KN_FAULT("stream-part", err);
    KN_TRY(kn_io_stat(state->run->io, kn_str(target), &info, err));
    part->bytes = (int64_t)info.size;
    KN_TRY(hash_file(state->run->io, target, part->bytes, &part->hash, err));
    return kn_io_sync(state->io, kn_str(location), err);
}

KnCode kn_state_add(KnStreamState *state, KnStreamTable *table, int64_t epoch, const char *select,
                    KnErr *err)
{
    char id[37];
    int64_t rows = 0;
    KnStreamPart part = {0};
    KN_BUF_AUTO count = {.max = 64 << 20};
    kn_buf_printf(&count, "SELECT count(*) FROM (%s)", select);
    KN_TRY(kn_buf_check(&count, err));
    KN_TRY(kn_session_query_i64(state->run->session, count.data, &rows, err));
    if (!rows)
        return KN_OK;
    part.file = kn_arena_printf(state->arena, "%012" PRId64 "-%s-%.12s.parquet", epoch, table->name,
                                kn_random_uuid7(id) + 24);
    KN_TRY(over_at(state, table, select, &part.until, err));
    KN_TRY(write_part(state, table, select, &part, err));
    *kn_vec_push(&table->parts) = part;
    return KN_OK;
}
