/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_rows.c - an Arrow stream from outside as a view of a session.
 *
 * The engine scans streams by itself. It asks for the schema several times and does not release
 * every answer, so it is given a stream of ours: the schema is asked of the owner once and kept,
 * and each answer borrows it.
 */
#include "engine/arrow.h"
#include "engine/engine_internal.h"

struct KnArrowRows {
    KnSession *ses;
    char *drop; /* the statement that ends the view */
    struct ArrowArrayStream outer, inner;
    struct ArrowSchema schema;
};

static void borrowed(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int get_schema(struct ArrowArrayStream *outer, struct ArrowSchema *out)
{
    const KnArrowRows *rows = outer->private_data;
    *out = rows->schema;
    out->release = borrowed;
    return 0;
}

static int get_next(struct ArrowArrayStream *outer, struct ArrowArray *out)
{
    KnArrowRows *rows = outer->private_data;
    return rows->inner.get_next(&rows->inner, out);
}

/* Never NULL: the engine makes a text of it. */
static const char *reason(struct ArrowArrayStream *inner)
{
    const char *why = inner->get_last_error(inner);
    return why ? why : "no reason is given";
}

static const char *get_last_error(struct ArrowArrayStream *outer)
{
    KnArrowRows *rows = outer->private_data;
    return reason(&rows->inner);
}

static void release(struct ArrowArrayStream *outer)
{
    KnArrowRows *rows = outer->private_data;
    if (rows->inner.release)
        rows->inner.release(&rows->inner);
    outer->release = NULL;
}

KnArrowRows *kn_arrow_rows_close(KnArrowRows *rows)
{
    if (!rows)
        return NULL;
    if (rows->drop) /* fails where the view was not made */
        KN_IGNORE(kn_session_exec(rows->ses, rows->drop, NULL, NULL));
    if (rows->inner.release)
        rows->inner.release(&rows->inner);
    if (rows->schema.release)
        rows->schema.release(&rows->schema);
    free(rows->drop);
    free(rows);
    return NULL;
}

static KnCode scan(KnArrowRows *rows, const char *name, KnErr *err)
{
    if (rows->inner.get_schema(&rows->inner, &rows->schema) != 0)
        return kn_err_set(err, KN_E_IO, "%s: its schema: %s", name, reason(&rows->inner));
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "DROP VIEW ");
    kn_sql_ident(&sql, kn_str(name));
    KN_TRY(kn_buf_check(&sql, err));
    size_t len = 0;
    rows->drop = kn_buf_steal(&sql, &len);
    rows->outer = (struct ArrowArrayStream){.get_schema = get_schema,
                                            .get_next = get_next,
                                            .get_last_error = get_last_error,
                                            .release = release,
                                            .private_data = rows};
    if (duckdb_arrow_scan(rows->ses->con, name, (duckdb_arrow_stream)&rows->outer) != DuckDBSuccess)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "%s: the engine does not take a stream of this schema", name);
    return KN_OK;
}

KnCode kn_arrow_rows_open(KnSession *ses, const char *name, struct ArrowArrayStream *stream,
                          KnArrowRows **ret, KnErr *err)
{
    KnArrowRows *rows = kn_engine_zalloc(sizeof(*rows));
    rows->ses = ses;
    rows->inner = *stream;
    stream->release = NULL; /* moved */
    KnCode rc = scan(rows, name, err);
    if (rc != KN_OK) {
        (void)kn_arrow_rows_close(rows);
        return rc;
    }
    *ret = rows;
    return KN_OK;
}
