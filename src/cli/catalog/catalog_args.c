/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_args.c - see catalog_args.h. */
#include "cli/catalog/catalog_args.h"

#include "base/json.h"
#include "catalog/jdbc/jdbc.h"

enum { PROBLEMS_MAX = 64 << 20 };

typedef struct Gathering {
    KnArena *arena;
    KnTableNames *names;
} Gathering;

/* Names of a listing live only during the call. */
static KnCode gather(void *arg, const KnTableIdent *ident, KnErr *err)
{
    (void)err;
    const Gathering *to = arg;
    const char **levels = kn_arena_alloc(to->arena, (ident->n_levels + 1) * sizeof(*levels));
    for (size_t i = 0; i < ident->n_levels; i++)
        levels[i] = kn_arena_strdup(to->arena, ident->levels[i]);
    *kn_vec_push(&to->names->idents) =
        (KnTableIdent){levels, ident->n_levels, kn_arena_strdup(to->arena, ident->name)};
    return KN_OK;
}

KnCode kn_args_tables(const KnCall *call, KnCatalog *cat, KnTableNames *ret, KnErr *err)
{
    Gathering gathering = {call->arena, ret};
    if (!call->args.len)
        return cat->ops->list(cat, gather, &gathering, err);
    for (size_t i = 0; i < call->args.len; i++) {
        KnTableIdent ident = {0};
        KN_TRY(kn_table_ident_parse(call->arena, kn_str(call->args.items[i]), &ident, err));
        *kn_vec_push(&ret->idents) = ident;
    }
    return KN_OK;
}

KnCode kn_args_whole_catalog(const KnCall *call, KnErr *err)
{
    const KnLocator *loc = kn_call_locator(call);
    if (loc->table)
        return kn_err_set(err, KN_E_INVAL, "tables are given as words here, without --table");
    if (!kn_locator_has_tables(loc))
        return kn_err_set(err, KN_E_INVAL,
                          "give a catalog: --warehouse DIR, --rest-uri URI or --grpc-uri URI");
    return KN_OK;
}

KnCode kn_args_core(const KnCall *call, KnCatalogCore **ret, KnErr *err)
{
    const KnLocator *loc = kn_call_locator(call);
    KN_TRY(kn_args_whole_catalog(call, err));
    if (!loc->warehouse && !loc->warehouse_uri)
        return kn_err_set(err, KN_E_INVAL,
                          "this looks into the catalog's own database: give --warehouse DIR");
    KnCatalog *checked = NULL; /* flags that do not go together are told as everywhere */
    KN_TRY(kn_catalog_open(loc, false, &checked, err));
    kn_catalog_close(checked);
    return kn_locator_core(loc, false, ret, err);
}

void kn_problems_init(KnProblems *problems)
{
    *problems = (KnProblems){0};
    kn_buf_init(&problems->json, PROBLEMS_MAX);
    kn_buf_char(&problems->json, '[');
}

KnCode kn_problems_add(void *arg, const KnFinding *finding, KnErr *err)
{
    KnProblems *problems = arg;
    kn_buf_text(&problems->json, problems->n++ ? ",{\"kind\":" : "{\"kind\":");
    kn_json_quote(&problems->json, kn_str(finding->kind));
    kn_buf_text(&problems->json, ",\"file\":");
    kn_json_quote(&problems->json, kn_str(finding->location));
    kn_buf_text(&problems->json, ",\"problem\":");
    kn_json_quote(&problems->json, kn_str(finding->problem));
    kn_buf_char(&problems->json, '}');
    return kn_buf_check(&problems->json, err);
}

KnStr kn_problems_end(KnProblems *problems)
{
    kn_buf_char(&problems->json, ']');
    return (KnStr){problems->json.data, problems->json.len};
}
