/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_check.c - requirements of a commit (REST: "TableRequirement"), in Java's words: clients
 * look for them.
 */
#include <string.h>

#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_internal.h"

#define FAILED "Requirement failed: "

static KnCode check_uuid(const KnMetadata *base, const char *uuid, KnErr *err)
{
    if (base->uuid && kn_str_eq_nocase(kn_str(base->uuid), kn_str(uuid)))
        return KN_OK;
    return kn_err_set(err, KN_E_CONFLICT, FAILED "UUID does not match: expected %s != %s",
                      base->uuid ? base->uuid : "null", uuid);
}

static KnCode check_ref(const KnMetadata *base, const KnRequirement *req, KnErr *err)
{
    const KnRef *ref = kn_metadata_find_ref(base, kn_str(req->text));
    const char *type = ref && !ref->is_branch ? "tag" : "branch";

    if (!ref && req->number >= 0)
        return kn_err_set(err, KN_E_CONFLICT, FAILED "branch or tag %s is missing, expected %lld",
                          req->text, (long long)req->number);
    if (ref && req->number < 0)
        return kn_err_set(err, KN_E_CONFLICT, FAILED "%s %s was created concurrently", type,
                          req->text);
    if (ref && ref->snapshot_id != req->number)
        return kn_err_set(err, KN_E_CONFLICT, FAILED "%s %s has changed: expected id %lld != %lld",
                          type, req->text, (long long)req->number, (long long)ref->snapshot_id);
    return KN_OK;
}

static KnCode check_number(const char *what, int64_t expected, int64_t found, KnErr *err)
{
    if (expected == found)
        return KN_OK;
    return kn_err_set(err, KN_E_CONFLICT, FAILED "%s changed: expected id %lld != %lld", what,
                      (long long)expected, (long long)found);
}

static KnCode check_snapshot(const KnMetadata *base, int64_t id, KnErr *err)
{
    if (kn_metadata_find_snapshot(base, id))
        return KN_OK;
    return kn_err_set(err, KN_E_CONFLICT, FAILED "snapshot %lld is gone", (long long)id);
}

static KnCode check(const KnMetadata *base, const KnRequirement *req, KnErr *err)
{
    switch (req->kind) {
    case KN_REQUIRE_UUID:
        return check_uuid(base, req->text, err);
    case KN_REQUIRE_REF_SNAPSHOT_ID:
        return check_ref(base, req, err);
    case KN_REQUIRE_LAST_ASSIGNED_FIELD_ID:
        return check_number("last assigned field id", req->number, base->last_column_id, err);
    case KN_REQUIRE_CURRENT_SCHEMA_ID:
        return check_number("current schema", req->number, base->current_schema_id, err);
    case KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID:
        return check_number("last assigned partition id", req->number, base->last_partition_id,
                            err);
    case KN_REQUIRE_DEFAULT_SPEC_ID:
        return check_number("default partition spec", req->number, base->default_spec_id, err);
    case KN_REQUIRE_DEFAULT_SORT_ORDER_ID:
        return check_number("default sort order", req->number, base->default_sort_order_id, err);
    case KN_REQUIRE_REF_COUNT:
        return check_number("number of branches and tags", req->number, (int64_t)base->n_refs, err);
    case KN_REQUIRE_SNAPSHOT:
        return check_snapshot(base, req->number, err);
    default:
        return kn_err_set(err, KN_E_CONFLICT, FAILED "table already exists");
    }
}

KnCode kn_metadata_check(const KnMetadata *base, const KnRequirement *reqs, size_t n, KnErr *err)
{
    for (size_t i = 0; i < n; i++) {
        if (base)
            KN_TRY(check(base, &reqs[i], err));
        else if (reqs[i].kind != KN_REQUIRE_CREATE &&
                 reqs[i].kind != KN_REQUIRE_LAST_ASSIGNED_FIELD_ID &&
                 reqs[i].kind != KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID)
            return kn_err_set(err, KN_E_CONFLICT, FAILED "table does not exist");
    }
    return KN_OK;
}
