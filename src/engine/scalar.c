/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar.c - functions of ours inside SQL.
 *
 * The engine hands over flat argument vectors with whatever bytes under their NULLs, and leaves the
 * NULLs of the result to the function. So the rows are cut into runs without NULL arguments, each
 * is one call, and the rows between them become NULL here. A function of any arguments gets all
 * rows in one call, and the types of its further arguments with them.
 *
 * The registered entry lives as long as the engine, which frees it. Calls come from the engine's
 * worker threads, several at a time.
 */
#include <string.h>

#include "engine/engine_internal.h"

typedef struct ScalarEntry {
    KnArena *arena;
    KnEngine *eng;
    KnScalarFn fn;
    KnColType *types; /* arguments, then the result */
} ScalarEntry;

enum { MAX_ARGS = 16, ENTRY_BLOCK = 1024 };

static void entry_free(void *arg)
{
    ScalarEntry *entry = arg;
    kn_arena_free(entry->arena);
}

static bool any_null(const KnVector *args, size_t n_args, size_t row)
{
    for (size_t i = 0; i < n_args; i++) {
        if (kn_vector_is_null(&args[i], row))
            return true;
    }
    return false;
}

/* Rows [first, end) have no NULL argument. */
static KnCode call_run(const ScalarEntry *entry, duckdb_data_chunk input, duckdb_vector output,
                       size_t first, size_t end, KnErr *err)
{
    KnVector args[MAX_ARGS];
    size_t n = entry->fn.n_args;
    for (size_t i = 0; i < n; i++)
        args[i] = kn_vector_view(&entry->types[i], duckdb_data_chunk_get_vector(input, i), first);
    char *out = duckdb_vector_get_data(output);
    KnScalarCall scalar = {.args = args,
                           .n_args = n,
                           .rows = end - first,
                           .out_data = out + first * kn_col_type_size(&entry->types[n]),
                           .arg = entry->fn.arg};
    return entry->fn.fn(&scalar, err);
}

static KnCode call_runs(const ScalarEntry *entry, duckdb_data_chunk input, duckdb_vector output,
                        KnErr *err)
{
    KnVector args[MAX_ARGS];
    size_t rows = duckdb_data_chunk_get_size(input);
    for (size_t i = 0; i < entry->fn.n_args; i++)
        args[i] = kn_vector_view(&entry->types[i], duckdb_data_chunk_get_vector(input, i), 0);
    size_t row = 0;
    while (row < rows) {
        size_t first = row;
        while (row < rows && !any_null(args, entry->fn.n_args, row))
            row++;
        if (row > first)
            KN_TRY(call_run(entry, input, output, first, row, err));
        for (; row < rows && any_null(args, entry->fn.n_args, row); row++) {
            duckdb_vector_ensure_validity_writable(output);
            duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
        }
    }
    return KN_OK;
}

/* One call for all rows, whatever the types after those declared. */
static KnCode call_any(const ScalarEntry *entry, duckdb_data_chunk input, duckdb_vector output,
                       KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(ENTRY_BLOCK);
    size_t n = duckdb_data_chunk_get_column_count(input);
    KnVector *args = kn_arena_alloc(arena, n * sizeof(*args));
    KnColType *types = kn_arena_zalloc(arena, n * sizeof(*types));
    for (size_t i = 0; i < n; i++) {
        duckdb_vector vec = duckdb_data_chunk_get_vector(input, i);
        duckdb_logical_type logical = duckdb_vector_get_column_type(vec);
        kn_col_type_fill(arena, logical, &types[i]);
        duckdb_destroy_logical_type(&logical);
        args[i] = kn_vector_view(&types[i], vec, 0);
    }
    KnScalarCall scalar = {.args = args,
                           .n_args = n,
                           .rows = duckdb_data_chunk_get_size(input),
                           .out_data = duckdb_vector_get_data(output),
                           .arg = entry->fn.arg};
    return entry->fn.fn(&scalar, err);
}

static void call(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output)
{
    const ScalarEntry *entry = duckdb_scalar_function_get_extra_info(info);
    KnErr err = {0};
    KnCode code = entry->fn.any_more ? call_any(entry, input, output, &err)
                                     : call_runs(entry, input, output, &err);
    if (code != KN_OK) {
        char text[640];
        duckdb_scalar_function_set_error(info, kn_engine_error_pack(&err, code, text));
    }
    atomic_fetch_add_explicit(&entry->eng->n_calls, 1, memory_order_release);
}

void kn_engine_calls_seen(KnEngine *eng)
{
    (void)atomic_load_explicit(&eng->n_calls, memory_order_acquire);
}

static KnCode types_add(KnEngine *eng, ScalarEntry *entry, duckdb_scalar_function function,
                        KnErr *err)
{
    for (size_t i = 0; i <= entry->fn.n_args; i++) {
        bool is_result = i == entry->fn.n_args;
        duckdb_logical_type type = NULL;
        KN_TRY(kn_engine_type_parse(eng, is_result ? entry->fn.return_type : entry->fn.arg_types[i],
                                    &type, err));
        kn_col_type_fill(entry->arena, type, &entry->types[i]);
        if (is_result)
            duckdb_scalar_function_set_return_type(function, type);
        else
            duckdb_scalar_function_add_parameter(function, type);
        duckdb_destroy_logical_type(&type);
    }
    const KnColType *result = &entry->types[entry->fn.n_args];
    if (!kn_col_type_size(result) || result->kind == KN_COL_VARCHAR ||
        result->kind == KN_COL_BLOB || result->n_children)
        return kn_err_set(err, KN_E_INVAL, "function %s: result %s is not of fixed width",
                          entry->fn.name, entry->fn.return_type);
    return KN_OK;
}

static void accept_any(duckdb_scalar_function function)
{
    duckdb_logical_type any = duckdb_create_logical_type(DUCKDB_TYPE_ANY);
    duckdb_scalar_function_set_varargs(function, any);
    duckdb_destroy_logical_type(&any);
    duckdb_scalar_function_set_special_handling(function);
    duckdb_scalar_function_set_volatile(function);
}

KnCode kn_engine_add_scalar(KnEngine *eng, const KnScalarFn *fn, KnErr *err)
{
    if (fn->n_args > MAX_ARGS)
        return kn_err_set(err, KN_E_INVAL, "function %s: more than %d arguments", fn->name,
                          MAX_ARGS);
    KnArena *arena = kn_arena_new(ENTRY_BLOCK);
    ScalarEntry *entry = kn_arena_zalloc(arena, sizeof(*entry));
    entry->arena = arena;
    entry->eng = eng;
    entry->fn = *fn;
    entry->types = kn_arena_zalloc(arena, (fn->n_args + 1) * sizeof(*entry->types));
    duckdb_scalar_function function = duckdb_create_scalar_function();
    duckdb_scalar_function_set_name(function, fn->name);
    duckdb_scalar_function_set_function(function, call);
    if (fn->any_more)
        accept_any(function);
    KnCode code = types_add(eng, entry, function, err);
    /* From here on the engine frees the entry, registered or not. */
    duckdb_scalar_function_set_extra_info(function, entry, entry_free);
    if (code == KN_OK) {
        pthread_mutex_lock(&eng->lock);
        if (duckdb_register_scalar_function(eng->admin, function) != DuckDBSuccess)
            code =
                kn_err_set(err, KN_E_INVAL, "function %s: the engine does not take it", fn->name);
        else
            *kn_vec_push(&eng->scalars) = kn_arena_strdup(arena, fn->name);
        pthread_mutex_unlock(&eng->lock);
    }
    duckdb_destroy_scalar_function(&function);
    return code;
}

bool kn_engine_has_scalar(KnEngine *eng, const char *name)
{
    bool found = false;
    pthread_mutex_lock(&eng->lock);
    kn_vec_foreach (&eng->scalars, known)
        found = found || strcmp(*known, name) == 0;
    pthread_mutex_unlock(&eng->lock);
    return found;
}
