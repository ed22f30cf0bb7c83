/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - an engine stream as an ArrowArrayStream. Return values of its callbacks are errno
 * numbers, as the Arrow C stream interface asks; the line of text is in get_last_error(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib_internal.h"

KnCode knut_rows_new(KnutTable *table, KnutRows **ret, KnErr *err)
{
    KnEngine *eng = NULL;
    KN_TRY(knut_table_engine(table, &eng, err));
    KnSession *ses = NULL;
    KN_TRY(kn_session_open(eng, &ses, err));
    KnutRows *rows = calloc(1, sizeof(*rows));
    if (!rows)
        abort();
    const KnTable *tbl = table->tbl;
    rows->arena = kn_arena_new(0);
    rows->session = ses;
    rows->tbl = kn_table_new(tbl->catalog, tbl->ident.name ? &tbl->ident : NULL, tbl->io,
                             kn_metadata_ref(tbl->md), tbl->metadata_location);
    *ret = rows;
    return KN_OK;
}

void knut_rows_free(KnutRows *rows)
{
    if (!rows)
        return;
    kn_stream_close(rows->stream);
    kn_change_rows_close(rows->changes);
    kn_window_free(rows->window);
    kn_read_close(rows->read);
    kn_plan_free(rows->plan);
    kn_session_close(rows->session);
    kn_table_free(rows->tbl);
    kn_arena_free(rows->arena);
    free(rows);
}

static int as_errno(KnCode code)
{
    switch (code) {
    case KN_OK:
        return 0;
    case KN_E_NOMEM:
        return ENOMEM;
    case KN_E_INVAL:
        return EINVAL;
    case KN_E_NOTFOUND:
        return ENOENT;
    case KN_E_CANCELLED:
        return ECANCELED;
    case KN_E_UNSUPPORTED:
        return ENOTSUP;
    default:
        return EIO;
    }
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    KnutRows *rows = stream->private_data;
    return as_errno(kn_stream_arrow_schema(rows->stream, out, &rows->err));
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    KnutRows *rows = stream->private_data;
    KN_BATCH_AUTO batch = NULL;
    KnCode rc = kn_stream_next(rows->stream, &batch, &rows->err);
    if (rc != KN_OK)
        return as_errno(rc);
    if (!batch) {
        memset(out, 0, sizeof(*out)); /* release NULL: the end */
        return 0;
    }
    return as_errno(kn_batch_arrow_array(rows->stream, batch, out, &rows->err));
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const KnutRows *rows = stream->private_data;
    return rows->err.msg[0] ? rows->err.msg : NULL;
}

static void release(struct ArrowArrayStream *stream)
{
    knut_rows_free(stream->private_data);
    stream->private_data = NULL;
    stream->release = NULL;
}

void knut_rows_export(KnutRows *rows, struct ArrowArrayStream *ret)
{
    *ret = (struct ArrowArrayStream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release,
        .private_data = rows,
    };
}
