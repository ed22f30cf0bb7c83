/* SPDX-License-Identifier: Apache-2.0 */
/* rows_out.c - see rows_out.h. Both forms are made from kn_row_json(), so that values are spelled
 * alike. */
#include "cli/table/rows_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/output.h"
#include "iceberg/scan/read.h"

enum { ROW_MAX = 1 << 30 };

typedef struct Printer {
    const KnRowsOut *print;
    KnOut *table; /* text */
    KnBuf lines;  /* JSON: of one batch */
    int64_t count;
} Printer;

static void text_cell(KnOut *out, const json_t *value)
{
    if (!value || json_is_null(value)) {
        kn_out_null(out);
        return;
    }
    if (json_is_string(value)) {
        kn_out_str(out, (KnStr){json_string_value(value), json_string_length(value)});
        return;
    }
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, ROW_MAX);
    kn_json_dump(&text, value);
    kn_out_json(out, (KnStr){text.data, text.len});
}

static const KnSchema *batch_schema(const Printer *p)
{
    const KnRowsOut *print = p->print;
    return print->batch_schema ? print->batch_schema(print->arg) : print->schema;
}

static KnCode print_text_row(Printer *p, const KnBatch *batch, size_t row, KnErr *err)
{
    KN_BUF_AUTO json = {0};
    kn_buf_init(&json, ROW_MAX);
    KN_TRY(kn_row_json(&json, batch_schema(p), batch, row, NULL, err));
    KN_JSON_AUTO doc = NULL;
    KN_TRY(kn_json_parse(json.data, json.len, &doc, err));
    const KnType *root = &p->print->schema->root;
    for (size_t i = 0; i < root->n_fields; i++)
        text_cell(p->table, json_object_get(doc, root->fields[i].name));
    return KN_OK;
}

static KnCode print_batch(Printer *p, const KnBatch *batch, size_t n, KnErr *err)
{
    if (p->table) {
        for (size_t row = 0; row < n; row++)
            KN_TRY(print_text_row(p, batch, row, err));
        return kn_out_check(p->table, err);
    }
    kn_buf_reset(&p->lines);
    for (size_t row = 0; row < n; row++) {
        if (row)
            kn_buf_char(&p->lines, '\n');
        KN_TRY(kn_row_json(&p->lines, batch_schema(p), batch, row, NULL, err));
    }
    KN_TRY(kn_buf_check(&p->lines, err));
    return kn_out_line((KnStr){p->lines.data, p->lines.len}, err);
}

static KnCode print_all(Printer *p, KnErr *err)
{
    const KnRowsOut *print = p->print;
    while (print->next && (print->limit < 0 || p->count < print->limit)) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(print->next(print->arg, &batch, err));
        if (!batch)
            break;
        size_t n = kn_batch_rows(batch);
        if (print->limit >= 0 && (int64_t)n > print->limit - p->count)
            n = (size_t)(print->limit - p->count);
        KN_TRY(print_batch(p, batch, n, err));
        p->count += (int64_t)n;
    }
    return KN_OK;
}

KnCode kn_rows_out(const KnRowsOut *print, KnErr *err)
{
    Printer p = {.print = print};
    kn_buf_init(&p.lines, ROW_MAX);
    const KnType *root = &print->schema->root;
    KnOutColumn *columns = calloc(root->n_fields + 1, sizeof(*columns));
    if (!columns)
        abort();
    for (size_t i = 0; i < root->n_fields; i++) {
        KnTypeKind kind = root->fields[i].type->kind;
        columns[i] =
            (KnOutColumn){root->fields[i].name, kind >= KN_TYPE_INT && kind <= KN_TYPE_DECIMAL};
    }
    if (print->format == KN_OUTPUT_TEXT && root->n_fields)
        p.table = kn_out_open(KN_OUTPUT_TEXT, columns, root->n_fields);
    KnCode rc = print_all(&p, err);
    if (p.table) {
        KnCode closed = kn_out_close(p.table, rc == KN_OK ? err : NULL);
        rc = rc == KN_OK ? closed : rc;
    }
    kn_buf_done(&p.lines);
    free(columns);
    return rc;
}

const KnSchema *kn_rows_out_schema(KnArena *arena, const KnSchema *schema, bool lineage)
{
    static const KnType bigint = {.kind = KN_TYPE_LONG};
    if (!lineage)
        return schema;
    size_t n = schema->root.n_fields;
    KnField *fields = kn_arena_alloc(arena, (n + 2) * sizeof(*fields));
    if (n)
        memcpy(fields, schema->root.fields, n * sizeof(*fields));
    fields[n] = (KnField){.id = KN_FIELD_ID_ROW_ID, .name = "_row_id", .type = &bigint};
    fields[n + 1] = (KnField){.id = KN_FIELD_ID_LAST_UPDATED_SEQUENCE,
                              .name = "_last_updated_sequence_number",
                              .type = &bigint};
    KnSchema *wide = kn_arena_alloc(arena, sizeof(*wide));
    *wide = *schema;
    wide->root.fields = fields;
    wide->root.n_fields = n + 2;
    return wide;
}
