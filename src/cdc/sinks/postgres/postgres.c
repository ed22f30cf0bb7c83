/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.c - delivery into a table of PostgreSQL: rows and label in one transaction.
 *
 * A chunk is: begin and the target's lock, is the label there?, rows, label, commit. So a label in
 * _knut_loads means all of its chunk's rows, exactly once. When the answer to COMMIT is lost, the
 * label is looked for under the same lock, which the server gives out only after that transaction
 * has ended one way or the other.
 *
 * synchronous_commit is what user, database and server say; it is not touched.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "cdc/sinks/postgres/postgres_internal.h"

/* ---- opening ---- */

/* Which schema a plain name means depends on who connects: it must be said. */
static KnCode check_target(const char *target, KnErr *err)
{
    bool quoted = false;
    for (const char *at = target; *at; ++at) {
        quoted ^= *at == '"';
        if (*at == '.' && !quoted)
            return KN_OK;
    }
    return kn_err_set(err, KN_E_INVAL, "target '%s': PostgreSQL needs --target SCHEMA.TABLE",
                      target);
}

static KnCode identify(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err)
{
    KnPgPlace place;
    KN_TRY(check_target(opts->target, err));
    KN_TRY(kn_pg_place_parse(arena, opts->place, &place, err));
    *ret = place.where;
    return KN_OK;
}

static void close_sink(KnSink *base)
{
    KnPg *pg = (KnPg *)base;
    kn_pg_disconnect(&pg->link);
    (void)kn_arena_free(pg->win_arena);
    (void)kn_arena_free(pg->arena);
    free(pg);
}

static KnCode name_target(KnPg *pg, const KnSinkOptions *opts, KnErr *err)
{
    KN_TRY(kn_sink_target_parse(pg->arena, opts->target, &pg->schema_name, &pg->table_name, err));
    const char *schema = kn_sql_ident_of(pg->arena, pg->schema_name);
    pg->target =
        kn_arena_printf(pg->arena, "%s.%s", schema, kn_sql_ident_of(pg->arena, pg->table_name));
    pg->loads = kn_arena_printf(pg->arena, "%s._knut_loads", schema);
    pg->columns = kn_arena_printf(pg->arena, "%s._knut_columns", schema);
    return KN_OK;
}

static KnCode open_sink(const KnSinkOptions *opts, KnSink **ret, KnErr *err)
{
    KnPg *pg = calloc(1, sizeof(*pg));
    if (!pg)
        abort();
    pg->base.ops = &kn_sink_postgres;
    pg->arena = kn_arena_new(1024);
    pg->delivery = kn_arena_strdup(pg->arena, opts->delivery);
    KnCode rc = kn_pg_place_parse(pg->arena, opts->place, &pg->link.place, err);
    if (rc == KN_OK)
        rc = name_target(pg, opts, err);
    if (rc == KN_OK)
        rc = kn_pg_need(&pg->link, err);
    if (rc != KN_OK) {
        close_sink(&pg->base);
        return rc;
    }
    *ret = &pg->base;
    return KN_OK;
}

/* ---- windows ---- */

static KnCode probe(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnPg *pg = (KnPg *)base;
    KN_TRY(kn_pg_need(&pg->link, err));
    return kn_pg_check_columns(pg, win, err);
}

static KnCode begin(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnPg *pg = (KnPg *)base;
    (void)kn_arena_free(pg->win_arena);
    pg->win_arena = kn_arena_new(4096);
    pg->win_id = kn_arena_strdup(pg->win_arena, win->id);
    pg->schema = win->schema; /* lives as long as the window: the caller's promise */
    pg->mode = win->mode;
    pg->n_keys = win->n_keys;
    pg->keys = kn_sink_copy_keys(pg->win_arena, win);
    KN_TRY(kn_pg_claim(pg, win, err));
    return kn_pg_evolve(pg, win, err);
}

/* ---- loading ---- */

/* Inside the transaction: everything but the commit. ret LOADED or DUPLICATE. */
static KnCode load_chunk(KnPgLoad *load, KnVerdict *ret, KnErr *err)
{
    KnPg *pg = load->pg;
    int64_t seq, rows;
    KN_TRY(kn_pg_find_label(pg, load->chunk->label, &seq, &rows, err));
    if (seq >= 0) {
        *ret = (KnVerdict){.kind = KN_VERDICT_DUPLICATE, .rows = rows};
        return KN_OK;
    }
    KN_FAULT("sink-begun", err);
    KN_TRY(kn_pg_apply(load, err));
    KN_FAULT("sink-rows-written", err);
    KN_TRY(kn_pg_record_load(pg, load->chunk->label, load->taken, err));
    KN_TRY(kn_fault_at("sink-before-commit", err));
    *ret = (KnVerdict){.kind = KN_VERDICT_LOADED, .rows = load->taken};
    return KN_OK;
}

static KnCode commit(KnPg *pg, const KnVerdict *made, KnVerdict *ret, KnErr *err)
{
    bool unknown;
    KnCode rc = kn_pg_commit(&pg->link, &unknown, err);
    if (rc == KN_OK || unknown)
        ret->kind = KN_VERDICT_UNKNOWN;
    KN_TRY(rc);
    KN_TRY(kn_fault_at("sink-after-commit", err));
    *ret = *made;
    return KN_OK;
}

static KnCode load(KnSink *base, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err)
{
    KnPg *pg = (KnPg *)base;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPgLoad ld = {.pg = pg, .arena = arena, .chunk = chunk, .rows = rows};
    KnVerdict made = {.kind = KN_VERDICT_FAILED};
    *ret = (KnVerdict){.kind = KN_VERDICT_FAILED};
    KN_TRY(kn_pg_begin(&pg->link, pg->target, err));
    KnCode rc = load_chunk(&ld, &made, err);
    if (rc == KN_OK && made.kind == KN_VERDICT_DUPLICATE) {
        kn_pg_rollback(&pg->link);
        *ret = made;
        return KN_OK;
    }
    if (rc == KN_OK)
        rc = commit(pg, &made, ret, err);
    if (rc != KN_OK)
        kn_pg_rollback(&pg->link);
    if (rc == KN_OK || ld.source_failed)
        return rc;
    return kn_err_wrap(err, rc, "target %s", pg->target);
}

static KnCode find(KnSink *base, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err)
{
    KnPg *pg = (KnPg *)base;
    int64_t seq;
    KN_TRY(kn_pg_begin(&pg->link, pg->target, err));
    KnCode rc = kn_pg_find_label(pg, label, &seq, ret_rows, err);
    kn_pg_rollback(&pg->link);
    KN_TRY(rc);
    *ret_found = seq >= 0;
    return KN_OK;
}

const KnSinkOps kn_sink_postgres = {
    .kind = "postgresql",
    .max_parallel_loads = 1,
    .identify = identify,
    .open = open_sink,
    .probe = probe,
    .begin = begin,
    .load = load,
    .find = find,
    .close = close_sink,
};
