/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doris.c - delivery into a table of Apache Doris by Stream Load.
 *
 * Doris knows a load by its label, per database, for some hours; a label is taken once. So a chunk
 * is one load under the chunk's label, and "is it there?" is the label's state. What Doris cannot
 * say (how many rows a label had, what it has forgotten) is made up for here:
 *
 *   rows       strict_mode and max_filter_ratio 0: all rows or none; counts are compared besides
 *   forgotten  a chunk that was sent longer ago than labels are surely kept, and whose label is not
 *              known: into a UNIQUE table it is sent again (the same rows give the same table);
 * into a DUPLICATE table delivery stops and asks history    the last proven label must not be
 * ABORTED; a first window takes an empty table, or empties it (reload) before its first chunk is
 * sent
 *
 * Threads: load() runs on several at a time; the rest on one.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "doris_internal.h"
#include "net/digest.h"

static KnCode identify(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err)
{
    KnDorisSettings set;
    KN_TRY(kn_doris_settings_parse(arena, opts->place, &set, err));
    *ret = kn_arena_printf(arena, "doris:%s", set.cluster);
    return KN_OK;
}

/* ---- opening ---- */

static void close_sink(KnSink *base)
{
    KnDoris *dor = (KnDoris *)base;
    dor->http = kn_http_client_free(dor->http);
    if (dor->authorization)
        explicit_bzero(dor->authorization, strlen(dor->authorization));
    free(dor->authorization);
    (void)kn_arena_free(dor->win_arena);
    (void)kn_arena_free(dor->arena);
    free(dor);
}

static KnCode read_credentials(KnDoris *dor, KnErr *err)
{
    const char *user = getenv("DORIS_USER"), *password = getenv("DORIS_PASSWORD");
    if (!user || !password)
        return kn_err_set(err, KN_E_INVAL,
                          "sink doris: set %s in the environment (a password may be empty)",
                          user ? "DORIS_PASSWORD" : "DORIS_USER");
    if (strchr(user, ':'))
        return kn_err_set(err, KN_E_INVAL, "sink doris: DORIS_USER has a colon in it");
    KN_BUF_AUTO plain;
    kn_buf_init(&plain, 8192);
    kn_buf_printf(&plain, "%s:%s", user, password);
    KN_TRY(kn_buf_check(&plain, err));
    size_t size = (plain.len + 2) / 3 * 4 + 8;
    dor->authorization = calloc(1, size);
    if (!dor->authorization)
        abort();
    memcpy(dor->authorization, "Basic ", 6);
    (void)kn_base64((const uint8_t *)plain.data, plain.len, dor->authorization + 6);
    explicit_bzero(plain.data, plain.len);
    return KN_OK;
}

static KnCode parse_target(KnDoris *dor, const char *target, KnErr *err)
{
    KN_TRY(kn_sink_target_parse(dor->arena, target, &dor->db, &dor->table, err));
    if (strcmp(dor->db, "main") == 0 && strncmp(target, "main.", 5) != 0)
        return kn_err_set(err, KN_E_INVAL,
                          "sink doris: target %s: say the database too: --target DATABASE.TABLE",
                          target);
    dor->where = kn_arena_printf(dor->arena, "doris %s.%s", dor->db, dor->table);
    return KN_OK;
}

static KnCode open_parts(KnDoris *dor, const KnSinkOptions *opts, KnErr *err)
{
    KN_TRY(kn_doris_settings_parse(dor->arena, opts->place, &dor->set, err));
    KN_TRY(parse_target(dor, opts->target, err));
    KN_TRY(read_credentials(dor, err));
    const char *tmp = getenv("TMPDIR");
    dor->spill_dir = kn_arena_strdup(dor->arena, opts->spill_dir ? opts->spill_dir
                                                 : tmp && tmp[0] ? tmp
                                                                 : "/tmp");
    const KnHttpClientOptions http = {.ca_file = dor->set.ca_file};
    KN_TRY(kn_http_client_new(&http, &dor->http, err));
    return kn_doris_health(dor, err);
}

static KnCode open_sink(const KnSinkOptions *opts, KnSink **ret, KnErr *err)
{
    KnDoris *dor = calloc(1, sizeof(*dor));
    if (!dor)
        abort();
    dor->base.ops = &kn_sink_doris;
    dor->arena = kn_arena_new(4096);
    KnCode rc = open_parts(dor, opts, err);
    if (rc != KN_OK) {
        close_sink(&dor->base);
        return rc;
    }
    *ret = &dor->base;
    return KN_OK;
}

/* ---- windows ---- */

static KnCode absent(const KnDoris *dor, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "%s does not exist: `knut cdc ddl` prints the CREATE TABLE that fits, "
                      "create-table=true in the sink's place runs it",
                      dor->where);
}

/* The target as it is now, and the window's columns against it. */
static KnCode look(KnDoris *dor, const KnSinkWindow *win, KnErr *err)
{
    dor->win_arena = kn_arena_free(dor->win_arena);
    dor->win_arena = kn_arena_new(16384);
    KN_TRY(kn_doris_read_table(dor, &dor->present, err));
    if (!dor->present)
        return KN_OK;
    if (dor->target.group_commit)
        kn_debug("cdc", "doris-group-commit", KN_F("table", dor->where),
                 KN_F("mode", dor->target.group_commit));
    KnCode rc = kn_doris_plan(dor->win_arena, &dor->set, &dor->target, win, &dor->plan, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s", dor->where);
}

static KnCode probe(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnDoris *dor = (KnDoris *)base;
    KN_TRY(look(dor, win, err));
    if (dor->present || (win->first && dor->set.create_table))
        return KN_OK;
    return absent(dor, err);
}

static KnCode create(KnDoris *dor, const KnSinkWindow *win, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 20);
    KN_TRY(kn_doris_ddl(&sql, &dor->set, dor->db, dor->table, win, err));
    KN_TRY(kn_doris_statement(dor, dor->win_arena, sql.data, NULL, err));
    KN_TRY(look(dor, win, err));
    return dor->present ? KN_OK : absent(dor, err);
}

static const char *statement_on(KnDoris *dor, const char *before, const char *after)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 65536);
    kn_buf_text(&sql, before);
    kn_doris_ident(&sql, dor->db);
    kn_buf_char(&sql, '.');
    kn_doris_ident(&sql, dor->table);
    kn_buf_text(&sql, after);
    return kn_arena_strndup(dor->win_arena, sql.data, sql.len);
}

/* Before the first chunk of an epoch leaves: the target is ours, and empty. Once a chunk was sent
 * it is not looked at again: what is in it is ours. */
static KnCode take(KnDoris *dor, const KnSinkWindow *win, KnErr *err)
{
    KN_JSON_AUTO rows = NULL;
    if (!win->untouched)
        return KN_OK;
    KN_FAULT("sink-claim-before-commit", err);
    if (win->clear)
        KN_TRY(kn_doris_statement(dor, dor->win_arena, statement_on(dor, "TRUNCATE TABLE ", ""),
                                  NULL, err));
    KN_TRY(kn_doris_statement(dor, dor->win_arena, statement_on(dor, "SELECT count(*) FROM ", ""),
                              &rows, err));
    const json_t *cell = json_array_get(json_array_get(rows, 0), 0);
    int64_t n = json_is_integer(cell)  ? json_integer_value(cell)
                : json_is_string(cell) ? (strcmp(json_string_value(cell), "0") ? 1 : 0)
                                       : -1;
    if (n != 0)
        return kn_err_set(
            err, KN_E_REFUSED,
            "%s has rows that this delivery did not load: name an empty table, or run "
            "`knut cdc reload` to have it emptied and filled",
            dor->where);
    return kn_fault_at("sink-claim-after-commit", err);
}

/* The last proven load must not have been undone. */
static KnCode check_history(KnDoris *dor, const KnSinkWindow *win, KnErr *err)
{
    KnDorisState state;
    if (!win->expect_label || !win->expect_label[0])
        return KN_OK;
    KN_TRY(kn_doris_settle(dor, win->expect_label, &state, err));
    if (state == KN_DORIS_STATE_LANDED || state == KN_DORIS_STATE_UNKNOWN)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "%s: the last load that was proven (%s) is not there any more: run `knut cdc "
                      "reload`",
                      dor->where, win->expect_label);
}

static KnCode begin(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnDoris *dor = (KnDoris *)base;
    KN_TRY(look(dor, win, err));
    dor->planned_ms = win->planned_ms ? win->planned_ms : kn_clock_wall_ms();
    if (!dor->present && win->first && win->untouched && dor->set.create_table)
        KN_TRY(create(dor, win, err));
    if (!dor->present)
        return absent(dor, err);
    return win->first ? take(dor, win, err) : check_history(dor, win, err);
}

/* ---- chunks ---- */

static KnCode load(KnSink *base, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err)
{
    return kn_doris_load((KnDoris *)base, chunk, rows, ret, err);
}

static KnCode find(KnSink *base, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err)
{
    KnDoris *dor = (KnDoris *)base;
    KnDorisState state;
    KN_TRY(kn_doris_settle(dor, label, &state, err));
    if (state == KN_DORIS_STATE_UNKNOWN)
        KN_TRY(kn_doris_check_unknown(dor, label, err));
    *ret_found = state == KN_DORIS_STATE_LANDED;
    *ret_rows = -1;
    return KN_OK;
}

static KnCode find_held(KnSink *base, const char *label, int64_t hold, KnHeld *ret, KnErr *err)
{
    return kn_doris_find_held((KnDoris *)base, label, hold, ret, err);
}

static KnCode commit_held(KnSink *base, const char *label, int64_t hold, KnErr *err)
{
    return kn_doris_commit_held((KnDoris *)base, label, hold, err);
}

static void drop_held(KnSink *base, const char *label, int64_t hold)
{
    kn_doris_drop_held((KnDoris *)base, label, hold);
}

static KnCode ddl(const KnSinkOptions *opts, const KnSinkWindow *win, KnBuf *out, KnErr *err)
{
    KnDoris dor = {.arena = kn_arena_new(4096)};
    KnCode rc = kn_doris_settings_parse(dor.arena, opts->place, &dor.set, err);
    if (rc == KN_OK)
        rc = parse_target(&dor, opts->target, err);
    if (rc == KN_OK)
        rc = kn_doris_ddl(out, &dor.set, dor.db, dor.table, win, err);
    (void)kn_arena_free(dor.arena);
    return rc;
}

const KnSinkOps kn_sink_doris = {
    .kind = "doris",
    .max_parallel_loads = 64,
    .identify = identify,
    .open = open_sink,
    .probe = probe,
    .begin = begin,
    .load = load,
    .find = find,
    .find_held = find_held,
    .commit_held = commit_held,
    .drop_held = drop_held,
    .close = close_sink,
    .ddl = ddl,
};
