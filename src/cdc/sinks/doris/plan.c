/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - a window's columns against the target's.
 *
 * Names are matched without case, as Doris has them, and written as the target spells them: the
 * keys of JSON rows are compared byte by byte, and one that differs leaves a column NULL without a
 * word. All differences are gathered and told at once.
 */
#include <inttypes.h>
#include <strings.h>

#include "doris_internal.h"

typedef struct Differences {
    KnBuf text;
    int n;
} Differences;

__attribute__((format(printf, 2, 3))) static void differs(Differences *diff, const char *fmt, ...)
{
    char line[300];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n > 0 && diff->n++ < 40) {
        kn_buf_text(&diff->text, diff->n > 1 ? "; " : "");
        kn_buf_text(&diff->text, line);
    }
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; ++i)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

static void match_column(const KnDorisTable *table, const KnField *field, KnDorisField *ret,
                         Differences *diff)
{
    KN_BUF_AUTO type;
    kn_buf_init(&type, 4096);
    kn_type_format(&type, field->type);
    const char *from = type.data ? type.data : "?";
    const KnDorisColumn *to = kn_doris_table_find(table, field->name);
    *ret = (KnDorisField){.source = field, .target = to};
    if (!to) {
        differs(diff, "column %s: %s in the source, absent in the target", field->name, from);
        return;
    }
    const char *why = kn_doris_type_mismatch(field->type, &to->type);
    if (why)
        differs(diff, "column %s: %s in the source, %s in the target (%s)", field->name, from,
                to->type_text, why);
    if (!field->required && to->not_null)
        differs(diff, "column %s: may be NULL in the source, NOT NULL in the target", field->name);
    ret->base64 = field->type->kind == KN_TYPE_BINARY || field->type->kind == KN_TYPE_FIXED;
}

static void match_columns(const KnDorisTable *table, const KnType *root, KnDorisPlan *plan,
                          Differences *diff)
{
    for (size_t i = 0; i < root->n_fields; ++i) {
        match_column(table, &root->fields[i], &plan->fields[i], diff);
        for (size_t k = 0; k < i; ++k)
            if (plan->fields[i].target && plan->fields[i].target == plan->fields[k].target)
                differs(diff, "columns %s and %s: one column in the target", root->fields[k].name,
                        root->fields[i].name);
    }
    for (size_t i = 0; i < table->n_columns; ++i) {
        const KnDorisColumn *col = &table->columns[i];
        bool sent = false;
        for (size_t k = 0; k < plan->n && !sent; ++k)
            sent = plan->fields[k].target == col;
        if (!sent && col->not_null && !col->has_default)
            differs(diff,
                    "column %s: absent in the source, NOT NULL without a default in the "
                    "target",
                    col->name);
    }
}

static void match_keys(const KnDorisTable *table, const KnSinkWindow *win, Differences *diff)
{
    for (size_t i = 0; i < win->n_keys; ++i)
        if (!has_name(table->keys, table->n_keys, win->keys[i]))
            differs(diff, "key %s: no key of the target", win->keys[i]);
    for (size_t i = 0; i < table->n_keys; ++i)
        if (!has_name(win->keys, win->n_keys, table->keys[i]))
            differs(diff, "key %s: a key of the target only", table->keys[i]);
}

static void match_model(const KnDorisTable *table, const KnSinkWindow *win, Differences *diff)
{
    bool unique = table->model == KN_DORIS_UNIQUE;
    if (table->model == KN_DORIS_AGGREGATE)
        differs(diff, "the target's model is AGGREGATE: use UNIQUE (with keys) or DUPLICATE");
    else if (win->n_keys && !unique)
        differs(diff, "the target's model is DUPLICATE: upserts by key need UNIQUE");
    else if (win->n_keys)
        match_keys(table, win, diff);
    else if (unique)
        differs(diff, "the target's model is UNIQUE, whose rows of equal keys replace one another: "
                      "name the keys (--key, --mode upsert), or use a DUPLICATE table");
    else if (win->deletes)
        differs(diff, "the snapshot deletes rows, which a DUPLICATE table cannot: use a UNIQUE "
                      "table and --mode upsert with --key");
}

static void match_sequence(KnArena *arena, const KnDorisTable *table, const KnSinkWindow *win,
                           KnDorisPlan *plan, Differences *diff)
{
    plan->sequence = "";
    if (table->sequence_col)
        differs(diff,
                "the target's sequence is column %s: rows with lower values would vanish; "
                "make it with function_column.sequence_type = bigint",
                table->sequence_col);
    if (!table->sequence_type)
        return;
    if (strcasecmp(table->sequence_type, "bigint") != 0 &&
        strcasecmp(table->sequence_type, "largeint") != 0)
        differs(diff, "the target's sequence type is %s: expected bigint", table->sequence_type);
    plan->sequence = kn_arena_printf(arena, "%" PRId64, win->sequence);
}

/* ---- headers ---- */

static const char *column_list(KnArena *arena, const KnDorisPlan *plan, bool deletes)
{
    KN_BUF_AUTO names, exprs;
    kn_buf_init(&names, (size_t)1 << 20);
    kn_buf_init(&exprs, (size_t)1 << 20);
    for (size_t i = 0; i < plan->n; ++i) {
        const KnDorisField *field = &plan->fields[i];
        if (deletes && !plan->in_delete[i])
            continue;
        kn_buf_text(&names, names.len ? "," : "");
        if (!field->base64) {
            kn_doris_ident(&names, field->target->name);
            continue;
        }
        kn_buf_printf(&names, "`__knut_b%zu`", i);
        kn_buf_char(&exprs, ',');
        kn_doris_ident(&exprs, field->target->name);
        kn_buf_printf(&exprs, "=from_base64(`__knut_b%zu`)", i);
    }
    if (plan->sequence[0])
        kn_buf_text(&names, ",`" KN_DORIS_SEQUENCE_COLUMN "`");
    return kn_arena_printf(arena, "%s%s", names.data ? names.data : "",
                           exprs.data ? exprs.data : "");
}

/* Rows as Arrow: bytes go as they are, and each column must be one that is known to arrive. */
static void match_arrow(const KnDorisSettings *set, KnDorisPlan *plan, Differences *diff)
{
    static const int64_t HOUR_US = INT64_C(3600000000);
    if (!set->arrow)
        return;
    plan->arrow = true;
    plan->arrow_shift_us = set->arrow_zone > 0 ? set->arrow_zone * HOUR_US : 0;
    if (plan->sequence[0])
        differs(diff, "the target has a sequence column, whose value cannot be sent as Arrow: say "
                      "format=json, or make the table without function_column.sequence_type");
    for (size_t i = 0; i < plan->n; ++i) {
        KnDorisField *field = &plan->fields[i];
        field->base64 = false;
        const char *why = field->target ? kn_doris_arrow_mismatch(field, set) : NULL;
        if (why)
            differs(diff, "column %s: cannot be sent as Arrow (%s): or say format=json",
                    field->source->name, why);
    }
}

static void make_headers(KnArena *arena, const KnSinkWindow *win, KnDorisPlan *plan)
{
    plan->in_delete = kn_arena_zalloc(arena, (plan->n + 1) * sizeof(*plan->in_delete));
    for (size_t i = 0; i < plan->n; ++i) {
        const KnDorisColumn *col = plan->fields[i].target;
        plan->in_delete[i] =
            has_name(win->keys, win->n_keys, col->name) || (col->not_null && !col->has_default);
    }
    plan->columns = column_list(arena, plan, false);
    plan->delete_columns = column_list(arena, plan, true);
}

KnCode kn_doris_plan(KnArena *arena, const KnDorisSettings *set, const KnDorisTable *table,
                     const KnSinkWindow *win, KnDorisPlan *ret, KnErr *err)
{
    const KnType *root = &win->schema->root;
    Differences diff = {0};
    kn_buf_init(&diff.text, 65536);
    KnDorisPlan plan = {.n = root->n_fields, .unique = table->model == KN_DORIS_UNIQUE};
    plan.fields = kn_arena_zalloc(arena, (plan.n + 1) * sizeof(*plan.fields));
    match_model(table, win, &diff);
    match_columns(table, root, &plan, &diff);
    match_sequence(arena, table, win, &plan, &diff);
    match_arrow(set, &plan, &diff);
    KnCode rc = KN_OK;
    if (diff.n)
        rc = kn_err_set(err, KN_E_REFUSED, "%s", diff.text.data);
    else
        make_headers(arena, win, &plan);
    kn_buf_done(&diff.text);
    KN_TRY(rc);
    *ret = plan;
    return KN_OK;
}
