/* SPDX-License-Identifier: Apache-2.0 */
/* read_outputs.c - the columns that a SELECT over files gives to the SELECT around it, and the
 * filter over them. Columns are known by id: a filter bound to another schema of the table than the
 * one that is read gets a column of its own where the types differ. */
#include "iceberg/scan/read_internal.h"

static bool serves(const KnField *output, const KnField *column)
{
    return output == column ||
           (output->id == column->id && kn_type_equal(output->type, column->type));
}

static void add_filter_column(void *arg, const KnField *column)
{
    KnOutputs *out = arg;
    kn_vec_foreach (&out->fields, field)
        if (serves(*field, column))
            return;
    *kn_vec_push(&out->fields) = column;
}

void kn_read_outputs_fill(KnOutputs *out, const KnReadOptions *opts, bool filter_only)
{
    for (size_t i = 0; i < opts->schema->root.n_fields && !filter_only; i++)
        *kn_vec_push(&out->fields) = &opts->schema->root.fields[i];
    if (opts->filter)
        kn_expr_columns(opts->filter, add_filter_column, out);
}

KnCode kn_read_outputs_sql(const KnOutputs *out, const KnProject *project, KnBuf *buf, KnErr *err)
{
    for (size_t i = 0; i < out->fields.len; i++) {
        KN_TRY(kn_read_column_sql(project, out->fields.items[i], buf, err));
        kn_buf_printf(buf, " AS o%zu, ", i);
    }
    return KN_OK;
}

static void write_filter_column(void *arg, KnBuf *buf, const KnField *column)
{
    const KnOutputs *out = arg;
    for (size_t i = 0; i < out->fields.len; i++) {
        if (serves(out->fields.items[i], column)) {
            kn_buf_printf(buf, "o%zu", i);
            return;
        }
    }
}

KnCode kn_read_where_sql(const KnOutputs *out, const KnReadOptions *opts, KnBuf *buf, KnErr *err)
{
    if (!opts->filter)
        return KN_OK;
    kn_buf_text(buf, " WHERE ");
    return kn_expr_sql_with(buf, opts->filter, write_filter_column, (void *)(uintptr_t)out, err);
}
