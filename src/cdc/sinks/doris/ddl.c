/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddl.c - the CREATE TABLE that fits a schema.
 *
 * Keys come first, as Doris wants them. With keys: UNIQUE, merge-on-write, a sequence column, so
 * that what arrives late cannot undo what is newer. Without: DUPLICATE without a sort key. Columns
 * may be NULL unless the source requires them.
 */
#include <inttypes.h>

#include "doris_internal.h"

void kn_doris_ident(KnBuf *out, const char *name)
{
    kn_buf_char(out, '`');
    for (; *name; ++name) {
        if (*name == '`')
            kn_buf_char(out, '`');
        kn_buf_char(out, *name);
    }
    kn_buf_char(out, '`');
}

static bool is_key(const KnSinkWindow *win, const char *name)
{
    for (size_t i = 0; i < win->n_keys; ++i)
        if (strcmp(win->keys[i], name) == 0)
            return true;
    return false;
}

static KnCode add_column(KnBuf *out, const KnField *field, bool key, KnErr *err)
{
    kn_buf_text(out, "  ");
    kn_doris_ident(out, field->name);
    kn_buf_char(out, ' ');
    KnCode rc = kn_doris_type_sql(out, field->type, key, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "column %s", field->name);
    kn_buf_text(out, field->required ? " NOT NULL" : " NULL");
    kn_buf_text(out, ",\n");
    return KN_OK;
}

static KnCode add_columns(KnBuf *out, const KnSinkWindow *win, bool keys, KnErr *err)
{
    const KnType *root = &win->schema->root;
    for (size_t i = 0; keys && i < win->n_keys; ++i)
        for (size_t k = 0; k < root->n_fields; ++k)
            if (strcmp(root->fields[k].name, win->keys[i]) == 0)
                KN_TRY(add_column(out, &root->fields[k], true, err));
    for (size_t k = 0; !keys && k < root->n_fields; ++k)
        if (!is_key(win, root->fields[k].name))
            KN_TRY(add_column(out, &root->fields[k], false, err));
    return KN_OK;
}

static void add_key_list(KnBuf *out, const KnSinkWindow *win)
{
    for (size_t i = 0; i < win->n_keys; ++i) {
        kn_buf_text(out, i ? ", " : "");
        kn_doris_ident(out, win->keys[i]);
    }
}

static void add_properties(KnBuf *out, const KnDorisSettings *set, const KnSinkWindow *win)
{
    const char *between = "\nPROPERTIES (";
    if (win->n_keys) {
        kn_buf_printf(out, "%s\n  \"enable_unique_key_merge_on_write\" = \"true\"", between);
        if (!set->arrow) /* whose columns are the table's and no more */
            kn_buf_text(out, ",\n  \"function_column.sequence_type\" = \"bigint\"");
        between = ",";
    } else {
        kn_buf_printf(out, "%s\n  \"enable_duplicate_without_keys_by_default\" = \"true\"",
                      between);
        between = ",";
    }
    if (set->replication)
        kn_buf_printf(out, "%s\n  \"replication_num\" = \"%" PRId64 "\"", between,
                      set->replication);
    kn_buf_text(out, "\n)");
}

KnCode kn_doris_ddl(KnBuf *out, const KnDorisSettings *set, const char *db, const char *table,
                    const KnSinkWindow *win, KnErr *err)
{
    kn_buf_text(out, "CREATE TABLE ");
    kn_doris_ident(out, db);
    kn_buf_char(out, '.');
    kn_doris_ident(out, table);
    kn_buf_text(out, " (\n");
    KN_TRY(add_columns(out, win, true, err));
    KN_TRY(add_columns(out, win, false, err));
    if (out->len >= 2 && !out->failed)
        out->len -= 2; /* the last comma */
    kn_buf_text(out, "\n)");
    if (win->n_keys) {
        kn_buf_text(out, "\nUNIQUE KEY(");
        add_key_list(out, win);
        kn_buf_text(out, ")\nDISTRIBUTED BY HASH(");
        add_key_list(out, win);
        kn_buf_char(out, ')');
    } else {
        kn_buf_text(out, "\nDISTRIBUTED BY RANDOM");
    }
    if (set->buckets)
        kn_buf_printf(out, " BUCKETS %" PRId64, set->buckets);
    else
        kn_buf_text(out, " BUCKETS AUTO");
    add_properties(out, set, win);
    return kn_buf_check(out, err);
}
