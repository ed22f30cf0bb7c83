/* SPDX-License-Identifier: Apache-2.0 */
#include "lib_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "catalog/catalog.h"
#include "iceberg/write/write.h"

typedef struct Writer {
    KnCatalog *cat;
    KnTable *tbl;
    KnEngine *eng;
    KnSession *ses;
    KnErr err;
} Writer;

static void need(KnCode rc, const Writer *w)
{
    if (rc != KN_OK)
        fail_msg("%s", w->err.msg);
}

static void open_engine(Writer *w)
{
    KnEngineOptions opts = {.threads = 1};
    need(kn_engine_open(&opts, &w->eng, &w->err), w);
    need(kn_session_open(w->eng, &w->ses, &w->err), w);
    need(kn_transform_register(w->eng, &w->err), w);
}

static void close_writer(Writer *w)
{
    kn_session_close(w->ses);
    kn_engine_close(w->eng);
    kn_table_free(w->tbl);
    kn_catalog_close(w->cat);
}

void make_warehouse(const char *dir)
{
    Writer w = {0};
    KnLocator loc = {.warehouse = dir};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnTableIdent ident;
    need(kn_schema_parse_text(arena, kn_str("id long, name string"), &schema, &w.err), &w);
    need(kn_table_ident_parse(arena, kn_str("ns.t"), &ident, &w.err), &w);
    need(kn_catalog_open(&loc, true, &w.cat, &w.err), &w);
    KnCreateTable create = {.format_version = 2, .schema = schema};
    need(kn_table_create(w.cat, &ident, &create, &w.tbl, &w.err), &w);
    open_engine(&w);
    KnWriteOptions opts = {0};
    KnWriteResult result;
    need(kn_write_append(w.tbl, w.ses, "SELECT i AS id, 'n' || i AS name FROM range(5000) t(i)",
                         &opts, &result, &w.err),
         &w);
    assert_int_equal(result.added_rows, ROWS);
    close_writer(&w);
}

void delete_rows(const char *dir, const char *where)
{
    Writer w = {0};
    KnLocator loc = {.warehouse = dir, .table = "ns.t"};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    need(kn_locator_load(&loc, &w.cat, &w.tbl, &w.err), &w);
    open_engine(&w);
    const KnExpr *filter = NULL;
    need(kn_expr_parse(arena, kn_str(where), kn_metadata_schema(w.tbl->md), &filter, &w.err), &w);
    KnWriteOptions opts = {0};
    KnWriteResult result;
    need(kn_write_delete(w.tbl, w.ses, filter, &opts, &result, &w.err), &w);
    close_writer(&w);
}
