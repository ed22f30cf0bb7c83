/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duckdb.c - delivery into a table of a DuckDB file: rows and label in one transaction.
 *
 * The destination file is opened by an engine of the sink's own while windows are delivered. A
 * chunk is: begin, is the label there?, rows, label, commit. So a label in _knut_loads means all of
 * its chunk's rows, exactly once, whatever happened around it.
 *
 *   insert, no keys   INSERT INTO target SELECT FROM the feed: no copy is kept
 *   insert, keys      the chunk goes to a temporary table; rows of its keys go from the target, the
 *                     last row of each key comes in (last by the rows' places in the source)
 *   delete, keys      rows of these keys go
 *   delete, no keys   exactly as many equal rows go as are in the chunk; KN_E_CORRUPT when the
 * target has fewer: it is not what was delivered
 *
 * Equality is Iceberg's (iceberg/scan/row_sql.h), not the engine's, but for the sign of zeros,
 * which the file's compression may drop. Insertion order is not kept in the target: a table has
 * none, and threads may then write side by side. The engine checkpoints its log by size (16 MiB)
 * and at close; bulk rows go to the file directly.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "duckdb_internal.h"
#include "iceberg/scan/row_sql.h"

#define FEED  "knut_chunk"
#define STAGE "temp._knut_stage"

/* ---- opening ---- */

/* The file's absolute name; its folder must exist, it need not. */
static KnCode absolute_path(KnArena *arena, const char *place, const char **ret, KnErr *err)
{
    if (place[0] == '\0')
        return kn_err_set(err, KN_E_INVAL,
                          "sink duckdb: expected a file: duckdb:/folder/file.duckdb");
    char folder[PATH_MAX];
    KnStr dir = kn_path_dirname(kn_str(place)), name = kn_path_basename(kn_str(place));
    const char *dir_text = dir.len ? kn_arena_strndup(arena, dir.ptr, dir.len) : ".";
    if (name.len == 0)
        return kn_err_set(err, KN_E_INVAL, "sink duckdb: %s is a folder, expected a file", place);
    if (!realpath(dir_text, folder))
        return kn_err_set(err, errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO,
                          "sink duckdb: folder %s: %s", dir_text, strerror(errno));
    *ret = kn_path_join(arena, kn_str(folder), name);
    return KN_OK;
}

static KnCode identify(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err)
{
    const char *path;
    KN_TRY(absolute_path(arena, opts->place, &path, err));
    *ret = kn_arena_printf(arena, "duckdb:%s", path);
    return KN_OK;
}

static void close_sink(KnSink *base)
{
    KnDuck *duck = (KnDuck *)base;
    duck->ses = kn_session_close(duck->ses);
    duck->eng = kn_engine_close(duck->eng);
    if (duck->new_file)
        (void)unlink(duck->path);
    (void)kn_arena_free(duck->win_arena);
    (void)kn_arena_free(duck->arena);
    free(duck);
}

static KnCode open_engine(KnDuck *duck, const KnSinkOptions *opts, KnErr *err)
{
    KnEngineOptions eopts = {.database = duck->path,
                             .threads = opts->threads,
                             .memory_limit = opts->memory_limit,
                             .spill_dir = opts->spill_dir};
    bool absent = access(duck->path, F_OK) != 0;
    if (!absent && access(duck->path, W_OK) != 0)
        return kn_err_set(err, KN_E_IO, "destination %s cannot be written: %s", duck->path,
                          strerror(errno));
    KnCode rc = kn_engine_open(&eopts, &duck->eng, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "destination %s", duck->path);
    duck->new_file = absent;
    KN_TRY(kn_session_open(duck->eng, &duck->ses, err));
    return kn_session_exec(duck->ses, "SET preserve_insertion_order = false", NULL, err);
}

static KnCode open_sink(const KnSinkOptions *opts, KnSink **ret, KnErr *err)
{
    KnDuck *duck = calloc(1, sizeof(*duck));
    if (!duck)
        abort();
    duck->base.ops = &kn_sink_duckdb;
    duck->arena = kn_arena_new(1024);
    duck->delivery = kn_arena_strdup(duck->arena, opts->delivery);
    KnCode rc = absolute_path(duck->arena, opts->place, &duck->path, err);
    if (rc == KN_OK)
        rc = kn_sink_target_parse(duck->arena, opts->target, &duck->schema_name, &duck->table_name,
                                  err);
    if (rc == KN_OK) {
        duck->target =
            kn_arena_printf(duck->arena, "%s.%s", kn_sql_ident_of(duck->arena, duck->schema_name),
                            kn_sql_ident_of(duck->arena, duck->table_name));
        rc = open_engine(duck, opts, err);
    }
    if (rc != KN_OK) {
        close_sink(&duck->base);
        return rc;
    }
    *ret = &duck->base;
    return KN_OK;
}

/* ---- windows ---- */

static KnCode probe(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    return kn_duck_check_columns((KnDuck *)base, win, err);
}

static KnCode begin(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnDuck *duck = (KnDuck *)base;
    duck->win_arena = kn_arena_free(duck->win_arena);
    duck->win_arena = kn_arena_new(4096);
    duck->win_id = kn_arena_strdup(duck->win_arena, win->id);
    duck->schema = win->schema; /* lives as long as the window: the caller's promise */
    duck->mode = win->mode;
    duck->n_keys = win->n_keys;
    duck->keys = kn_sink_copy_keys(duck->win_arena, win);
    KN_TRY(kn_duck_claim(duck, win, err));
    duck->new_file = false;
    return kn_duck_evolve(duck, win->schema, err);
}

/* ---- loading ---- */

/* A chunk on its way in: what the feed calls, and how many rows it gave. */
typedef struct Load {
    KnDuck *duck;
    KnArena *arena;
    const KnSinkChunk *chunk;
    const KnRowSource *rows;
    int64_t taken;
    bool source_failed; /* the error is about what was to be loaded, not about the destination */
} Load;

static KnCode feed_next(void *arg, KnBatch **ret, KnErr *err)
{
    Load *load = arg;
    KnCode rc = load->rows->next(load->rows->arg, ret, err);
    load->source_failed = rc != KN_OK;
    KN_TRY(rc);
    if (*ret)
        load->taken += (int64_t)kn_batch_rows(*ret);
    return KN_OK;
}

static KnCode open_feed(Load *load, KnFeed **ret, KnErr *err)
{
    const KnType *root = &load->duck->schema->root;
    size_t n = root->n_fields;
    const char **names = kn_arena_zalloc(load->arena, (n + 2) * sizeof(*names));
    const char **types = kn_arena_zalloc(load->arena, (n + 2) * sizeof(*types));
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < n; ++i) {
        kn_buf_reset(&buf);
        KN_TRY(kn_type_sql(&buf, root->fields[i].type, err));
        KN_TRY(kn_buf_check(&buf, err));
        names[i] = root->fields[i].name;
        types[i] = kn_arena_strndup(load->arena, buf.data, buf.len);
    }
    names[n] = "_knut_task";
    names[n + 1] = "_knut_pos";
    types[n] = types[n + 1] = "BIGINT";
    KnFeedOptions opts = {.name = FEED,
                          .column_names = names,
                          .column_types = types,
                          .n_columns = n + (load->rows->positions ? 2 : 0),
                          .next = feed_next,
                          .arg = load};
    return kn_feed_open(load->duck->eng, &opts, ret, err);
}

static const char *column_list(const Load *load)
{
    const KnType *root = &load->duck->schema->root;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)4 << 20);
    for (size_t i = 0; i < root->n_fields; ++i) {
        kn_buf_text(&buf, i ? ", " : "");
        kn_sql_ident(&buf, kn_str(root->fields[i].name));
    }
    return kn_arena_strndup(load->arena, buf.data, buf.len);
}

/* The fields that say which row is meant: the keys, or all. */
static size_t identity_fields(const Load *load, const KnField **ret)
{
    const KnDuck *duck = load->duck;
    size_t n = 0;
    for (size_t i = 0; i < duck->schema->root.n_fields; ++i) {
        const KnField *field = &duck->schema->root.fields[i];
        bool wanted = duck->n_keys == 0;
        for (size_t k = 0; k < duck->n_keys && !wanted; ++k)
            wanted = strcmp(duck->keys[k], field->name) == 0;
        if (wanted)
            ret[n++] = field;
    }
    return n;
}

/* "identity(a) AS k0, identity(b) AS k1", or "x.k0 IS NOT DISTINCT FROM y.k0 AND ...". */
typedef struct Identity {
    const char *select;
    const char *names; /* "k0, k1" */
    const char *match; /* of x and y */
} Identity;

static KnCode make_identity(const Load *load, Identity *ret, KnErr *err)
{
    KN_BUF_AUTO select, names, match, column;
    kn_buf_init(&select, (size_t)16 << 20);
    kn_buf_init(&names, (size_t)1 << 20);
    kn_buf_init(&match, (size_t)1 << 20);
    kn_buf_init(&column, (size_t)1 << 20);
    const KnField **fields =
        kn_arena_zalloc(load->arena, (load->duck->schema->root.n_fields + 1) * sizeof(*fields));
    size_t n = identity_fields(load, fields);
    for (size_t i = 0; i < n; ++i) {
        kn_buf_reset(&column);
        kn_sql_ident(&column, kn_str(fields[i]->name));
        kn_buf_text(&select, i ? ", " : "");
        kn_row_stored_identity_sql(&select, fields[i]->type, (KnStr){column.data, column.len});
        kn_buf_printf(&select, " AS _knut_k%zu", i);
        kn_buf_printf(&names, "%s_knut_k%zu", i ? ", " : "", i);
        kn_buf_printf(&match, "%sx._knut_k%zu IS NOT DISTINCT FROM y._knut_k%zu", i ? " AND " : "",
                      i, i);
    }
    KN_TRY(kn_buf_check(&select, err));
    KN_TRY(kn_buf_check(&match, err));
    ret->select = kn_arena_strndup(load->arena, select.data, select.len);
    ret->names = kn_arena_strndup(load->arena, names.data, names.len);
    ret->match = kn_arena_strndup(load->arena, match.data, match.len);
    return KN_OK;
}

static KnCode insert_plain(const Load *load, KnErr *err)
{
    const char *cols = column_list(load);
    return kn_duck_exec(load->duck, NULL, err,
                        "INSERT INTO %s (%s) SELECT %s FROM kn_feed('" FEED "')",
                        load->duck->target, cols, cols);
}

/* Rows with the keys that `keys` selects leave the target. */
static KnCode delete_keys(const Load *load, const Identity *id, const char *keys, KnErr *err)
{
    return kn_duck_exec(load->duck, NULL, err,
                        "DELETE FROM %s WHERE rowid IN (SELECT x.rid FROM (SELECT rowid AS rid, %s "
                        "FROM %s) x SEMI JOIN (SELECT %s FROM %s) y ON %s)",
                        load->duck->target, id->select, load->duck->target, id->select, keys,
                        id->match);
}

static KnCode insert_keyed(const Load *load, const Identity *id, KnErr *err)
{
    KnDuck *duck = load->duck;
    const char *cols = column_list(load);
    int64_t repeated;
    KN_TRY(kn_duck_exec(duck, NULL, err,
                        "CREATE OR REPLACE TEMP TABLE _knut_stage AS SELECT * FROM kn_feed('" FEED
                        "')"));
    KN_TRY(delete_keys(load, id, STAGE, err));
    KN_TRY(kn_duck_ask(duck, &repeated, err,
                       "SELECT count(*) FROM (SELECT * FROM (SELECT %s FROM " STAGE
                       ") GROUP BY ALL HAVING count(*) > 1 LIMIT 1)",
                       id->select));
    if (repeated && !load->rows->positions)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 ": a key comes twice in computed rows",
                          load->chunk->number);
    if (!repeated)
        return kn_duck_exec(duck, NULL, err, "INSERT INTO %s (%s) SELECT %s FROM " STAGE,
                            duck->target, cols, cols);
    return kn_duck_exec(duck, NULL, err,
                        "INSERT INTO %s (%s) SELECT %s FROM (SELECT *, %s FROM " STAGE
                        ") QUALIFY row_number() OVER (PARTITION BY %s ORDER BY _knut_task DESC, "
                        "_knut_pos DESC) = 1",
                        duck->target, cols, cols, id->select, id->names);
}

static KnCode delete_keyed(const Load *load, const Identity *id, KnErr *err)
{
    return delete_keys(load, id, "kn_feed('" FEED "')", err);
}

/* As many equal rows go as came; which of several equal rows goes makes no difference. */
static KnCode delete_rows(const Load *load, const Identity *id, KnErr *err)
{
    KnDuck *duck = load->duck;
    int64_t gone = 0;
    KN_TRY(kn_duck_exec(
        duck, &gone, err,
        "DELETE FROM %s WHERE rowid IN (WITH y AS MATERIALIZED (SELECT row_number() OVER () AS "
        "_knut_id, * FROM (SELECT %s, count(*) AS _knut_n FROM (SELECT %s FROM kn_feed('" FEED
        "')) GROUP BY ALL)) SELECT rid FROM (SELECT x.rid, y._knut_n, row_number() OVER (PARTITION "
        "BY y._knut_id) AS nth FROM (SELECT rowid AS rid, %s FROM %s) x JOIN y ON %s) WHERE nth <= "
        "_knut_n)",
        duck->target, id->names, id->select, id->select, duck->target, id->match));
    if (gone != load->taken)
        return kn_err_set(err, KN_E_CORRUPT,
                          "target %s in %s: of %" PRId64 " rows to delete only %" PRId64
                          " are there: it is not what was delivered; run `knut cdc reload`",
                          duck->target, duck->path, load->taken, gone);
    return KN_OK;
}

static KnCode apply_rows(Load *load, KnErr *err)
{
    const KnDuck *duck = load->duck;
    Identity id = {0};
    KnFeed *feed = NULL;
    bool insert = load->chunk->op == KN_CHUNK_INSERT;
    if (!insert && duck->mode == KN_SINK_APPEND)
        return kn_err_set(err, KN_E_REFUSED, "a delete in append mode: use --mode upsert");
    bool keyed = duck->n_keys > 0;
    if (!insert || keyed)
        KN_TRY(make_identity(load, &id, err));
    KN_TRY(open_feed(load, &feed, err));
    KnCode rc;
    if (insert)
        rc = keyed ? insert_keyed(load, &id, err) : insert_plain(load, err);
    else
        rc = keyed ? delete_keyed(load, &id, err) : delete_rows(load, &id, err);
    feed = kn_feed_close(feed);
    if (rc == KN_OK && load->taken != load->chunk->rows)
        rc = kn_err_set(err, KN_E_CORRUPT,
                        "chunk %" PRId64 ": %" PRId64 " rows came, %" PRId64 " were planned",
                        load->chunk->number, load->taken, load->chunk->rows);
    return rc;
}

/* Inside the transaction: everything but the commit. */
static KnCode load_chunk(Load *load, KnErr *err)
{
    KN_FAULT("sink-begun", err);
    KN_TRY(apply_rows(load, err));
    KN_FAULT("sink-rows-written", err);
    KN_TRY(kn_duck_record_load(load->duck, load->chunk->label, load->taken, err));
    return kn_fault_at("sink-before-commit", err);
}

static KnCode commit(KnDuck *duck, KnVerdict *ret, int64_t rows, KnErr *err)
{
    KnCode rc = kn_duck_exec(duck, NULL, err, "COMMIT");
    if (rc == KN_OK) {
        KnVerdict loaded = {.kind = KN_VERDICT_LOADED, .rows = rows};
        ret->kind = KN_VERDICT_UNKNOWN;
        KN_TRY(kn_fault_at("sink-after-commit", err));
        *ret = loaded;
        return KN_OK;
    }
    ret->kind = KN_VERDICT_UNKNOWN;
    return rc;
}

static KnCode load(KnSink *base, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err)
{
    KnDuck *duck = (KnDuck *)base;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Load ld = {.duck = duck, .arena = arena, .chunk = chunk, .rows = rows};
    bool found;
    int64_t seq, recorded;
    *ret = (KnVerdict){.kind = KN_VERDICT_FAILED};
    KN_TRY(kn_duck_find_label(duck, chunk->label, &found, &seq, &recorded, err));
    if (found) {
        *ret = (KnVerdict){.kind = KN_VERDICT_DUPLICATE, .rows = recorded};
        return KN_OK;
    }
    KN_TRY(kn_duck_exec(duck, NULL, err, "BEGIN TRANSACTION"));
    KnCode rc = load_chunk(&ld, err);
    if (rc == KN_OK)
        rc = commit(duck, ret, ld.taken, err);
    if (rc != KN_OK)
        (void)!kn_duck_exec(duck, NULL, NULL, "ROLLBACK");
    (void)!kn_duck_exec(duck, NULL, NULL, "DROP TABLE IF EXISTS " STAGE);
    if (rc == KN_OK || ld.source_failed)
        return rc;
    return kn_err_wrap(err, rc, "destination %s", duck->path);
}

static KnCode find(KnSink *base, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err)
{
    int64_t seq;
    return kn_duck_find_label((KnDuck *)base, label, ret_found, &seq, ret_rows, err);
}

const KnSinkOps kn_sink_duckdb = {
    .kind = "duckdb",
    .max_parallel_loads = 1,
    .exclusive = true,
    .identify = identify,
    .open = open_sink,
    .probe = probe,
    .begin = begin,
    .load = load,
    .find = find,
    .close = close_sink,
};
