/* SPDX-License-Identifier: Apache-2.0 */
/* rest_views.c - operations on views; lists and renames are with those of tables. */
#include "catalog/server/rest_internal.h"

KnCode kn_rest_create_view(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KnCreateView create = {0};
    KN_TRY(kn_rest_asked(kn_create_view_parse(call->body, &create, err), err));
    KnTableIdent ident = {call->ns.levels, call->ns.n_levels, create.name};
    KN_TRY(kn_core_view_create(call->rest->ctx.core, &ident, &create, &doc, err));
    return kn_rest_reply_view(call, doc, err);
}

KnCode kn_rest_load_view(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_view_load(call->rest->ctx.core, &call->ident, &doc, err));
    return kn_rest_reply_view(call, doc, err);
}

KnCode kn_rest_replace_view(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KnViewCommit commit = {0};
    KN_TRY(kn_rest_asked(kn_view_commit_parse(call->arena, call->body, &commit, err), err));
    KN_TRY(kn_core_view_commit(call->rest->ctx.core, &call->ident, &commit, &doc, err));
    return kn_rest_reply_view(call, doc, err);
}

KnCode kn_rest_drop_view(KnRestCall *call, KnErr *err)
{
    KN_TRY(kn_core_view_drop(call->rest->ctx.core, &call->ident, err));
    return kn_rest_reply_empty(call, 204);
}

KnCode kn_rest_view_exists(KnRestCall *call, KnErr *err)
{
    bool exists = false;
    KN_TRY(kn_core_view_exists(call->rest->ctx.core, &call->ident, &exists, err));
    return kn_rest_reply_empty(call, exists ? 204 : 404);
}

KnCode kn_rest_register_view(KnRestCall *call, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    const char *name = NULL, *location = NULL;
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "name", &name, err), err));
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "metadata-location", &location, err), err));
    KN_TRY(kn_rest_need_place(call, location, err));
    KnTableIdent ident = {call->ns.levels, call->ns.n_levels, name};
    KN_TRY(kn_rest_asked(kn_core_view_register(call->rest->ctx.core, &ident, location, &doc, err),
                         err));
    return kn_rest_reply_view(call, doc, err);
}
