/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - tables of the fields in proto/, and failures as gRPC's codes. */
#include "catalog/grpc/wire.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE(type, symbol, text, fields)                                                        \
    const KnPbMessage symbol = {text, sizeof(type), fields, COUNT(fields)}

static const KnPbField pair_fields[] = {
    {"key", 1, KN_PB_TEXT, offsetof(KnWirePair, key), NULL},
    {"value", 2, KN_PB_TEXT, offsetof(KnWirePair, value), NULL},
};
static MESSAGE(KnWirePair, pair, "map entry", pair_fields);

/* ---- requests ---- */

#define LEVELS(number)                                                                             \
    {                                                                                              \
        "namespace", number, KN_PB_TEXTS, offsetof(KnWireRequest, levels), NULL                    \
    }
#define NAME                                                                                       \
    {                                                                                              \
        "name", 2, KN_PB_TEXT, offsetof(KnWireRequest, name), NULL                                 \
    }

static const KnPbField config_request_fields[] = {
    {"warehouse", 1, KN_PB_TEXT, offsetof(KnWireRequest, warehouse), NULL},
};
MESSAGE(KnWireRequest, kn_wire_config_request, "ConfigRequest", config_request_fields);

static const KnPbField namespace_request_fields[] = {LEVELS(1)};
MESSAGE(KnWireRequest, kn_wire_namespace_request, "NamespaceIdentMsg", namespace_request_fields);

static const KnPbField create_namespace_fields[] = {
    LEVELS(1),
    {"properties", 2, KN_PB_MESSAGES, offsetof(KnWireRequest, properties), &pair},
};
MESSAGE(KnWireRequest, kn_wire_create_namespace, "CreateNamespaceReq", create_namespace_fields);

static const KnPbField table_request_fields[] = {LEVELS(1), NAME};
MESSAGE(KnWireRequest, kn_wire_table_request, "TableIdentMsg", table_request_fields);

static const KnPbField create_table_fields[] = {
    LEVELS(1),
    NAME,
    {"schema_json", 3, KN_PB_TEXT, offsetof(KnWireRequest, schema_json), NULL},
    {"location", 4, KN_PB_TEXT, offsetof(KnWireRequest, location), NULL},
};
MESSAGE(KnWireRequest, kn_wire_create_table, "CreateTableReq", create_table_fields);

static const KnPbField commit_table_fields[] = {
    LEVELS(1),
    NAME,
    {"requirements_json", 3, KN_PB_TEXTS, offsetof(KnWireRequest, requirements), NULL},
    {"updates_json", 4, KN_PB_TEXTS, offsetof(KnWireRequest, updates), NULL},
};
MESSAGE(KnWireRequest, kn_wire_commit_table, "CommitTableReq", commit_table_fields);

static const KnPbField health_request_fields[] = {
    {"service", 1, KN_PB_TEXT, offsetof(KnWireRequest, service), NULL},
};
MESSAGE(KnWireRequest, kn_wire_health_request, "HealthCheckRequest", health_request_fields);

static const KnPbField watch_request_fields[] = {
    {"after", 1, KN_PB_INT64, offsetof(KnWireRequest, after), NULL},
    LEVELS(2),
};
MESSAGE(KnWireRequest, kn_wire_watch_request, "WatchRequest", watch_request_fields);

const KnPbMessage kn_wire_empty_request = {"LastRequest", sizeof(KnWireRequest), NULL, 0};

/* ---- answers ---- */

static const KnPbField ident_fields[] = {
    {"namespace", 1, KN_PB_TEXTS, offsetof(KnWireIdent, levels), NULL},
    {"name", 2, KN_PB_TEXT, offsetof(KnWireIdent, name), NULL},
};
static MESSAGE(KnWireIdent, ident, "TableIdentMsg", ident_fields);
/* In a list a namespace has no properties. */
static const KnPbMessage listed_namespace = {"Namespace", sizeof(KnWireIdent), ident_fields, 1};

static const KnPbField config_fields[] = {
    {"defaults", 1, KN_PB_MESSAGES, offsetof(KnWireAnswer, defaults), &pair},
    {"overrides", 2, KN_PB_MESSAGES, offsetof(KnWireAnswer, overrides), &pair},
};
MESSAGE(KnWireAnswer, kn_wire_config, "ConfigResponse", config_fields);

static const KnPbField namespaces_fields[] = {
    {"namespaces", 1, KN_PB_MESSAGES, offsetof(KnWireAnswer, namespaces), &listed_namespace},
};
MESSAGE(KnWireAnswer, kn_wire_namespaces, "NamespaceList", namespaces_fields);

static const KnPbField namespace_fields[] = {
    {"levels", 1, KN_PB_TEXTS, offsetof(KnWireAnswer, levels), NULL},
    {"properties", 2, KN_PB_MESSAGES, offsetof(KnWireAnswer, properties), &pair},
};
MESSAGE(KnWireAnswer, kn_wire_namespace, "Namespace", namespace_fields);

static const KnPbField exists_fields[] = {
    {"exists", 1, KN_PB_BOOL, offsetof(KnWireAnswer, exists), NULL},
};
MESSAGE(KnWireAnswer, kn_wire_exists, "Exists", exists_fields);

static const KnPbField tables_fields[] = {
    {"tables", 1, KN_PB_MESSAGES, offsetof(KnWireAnswer, tables), &ident},
};
MESSAGE(KnWireAnswer, kn_wire_tables, "TableIdentList", tables_fields);

/* A commit's result has no config. */
static const KnPbField table_fields[] = {
    {"metadata_location", 1, KN_PB_TEXT, offsetof(KnWireAnswer, metadata_location), NULL},
    {"metadata_json", 2, KN_PB_BYTES, offsetof(KnWireAnswer, metadata_json), NULL},
    {"config", 3, KN_PB_MESSAGES, offsetof(KnWireAnswer, properties), &pair},
};
MESSAGE(KnWireAnswer, kn_wire_table, "LoadTableResult", table_fields);

const KnPbMessage kn_wire_empty = {"Empty", sizeof(KnWireAnswer), NULL, 0};

static const KnPbField health_fields[] = {
    {"status", 1, KN_PB_INT64, offsetof(KnWireAnswer, number), NULL},
};
MESSAGE(KnWireAnswer, kn_wire_health, "HealthCheckResponse", health_fields);

static const KnPbField last_fields[] = {
    {"sequence", 1, KN_PB_INT64, offsetof(KnWireAnswer, number), NULL},
};
MESSAGE(KnWireAnswer, kn_wire_last, "LastResponse", last_fields);

static const KnPbField commit_fields[] = {
    {"sequence", 1, KN_PB_INT64, offsetof(KnWireCommit, sequence), NULL},
    {"timestamp_ms", 2, KN_PB_INT64, offsetof(KnWireCommit, timestamp_ms), NULL},
    {"kind", 3, KN_PB_TEXT, offsetof(KnWireCommit, kind), NULL},
    {"is_view", 4, KN_PB_BOOL, offsetof(KnWireCommit, is_view), NULL},
    {"table", 5, KN_PB_MESSAGE, offsetof(KnWireCommit, table), &ident},
    {"from", 6, KN_PB_MESSAGE, offsetof(KnWireCommit, from), &ident},
    {"snapshot_id", 7, KN_PB_INT64, offsetof(KnWireCommit, snapshot_id), NULL},
    {"metadata_location", 8, KN_PB_TEXT, offsetof(KnWireCommit, metadata_location), NULL},
};
MESSAGE(KnWireCommit, kn_wire_commit, "Commit", commit_fields);

/* ---- failures ---- */

/* UNAVAILABLE is what clients try again by themselves: only where nothing was changed. A commit of
 * which the outcome is not known is UNKNOWN, never that. */
int kn_wire_code(KnCode code, const KnErr *err)
{
    static const int codes[] = {
        [KN_OK] = KN_GRPC_OK,
        [KN_E_NOMEM] = KN_GRPC_RESOURCE_EXHAUSTED,
        [KN_E_INVAL] = KN_GRPC_INVALID_ARGUMENT,
        [KN_E_NOTFOUND] = KN_GRPC_NOT_FOUND,
        [KN_E_EXISTS] = KN_GRPC_ALREADY_EXISTS,
        [KN_E_CONFLICT] = KN_GRPC_ABORTED,
        [KN_E_UNKNOWN] = KN_GRPC_UNKNOWN,
        [KN_E_IO] = KN_GRPC_INTERNAL,
        [KN_E_CORRUPT] = KN_GRPC_DATA_LOSS,
        [KN_E_UNSUPPORTED] = KN_GRPC_UNIMPLEMENTED,
        [KN_E_REFUSED] = KN_GRPC_PERMISSION_DENIED,
        [KN_E_CANCELLED] = KN_GRPC_CANCELLED,
        [KN_E_BUSY] = KN_GRPC_UNAVAILABLE,
    };
    if (code == KN_E_NOTFOUND && err->about == KN_ABOUT_FILE)
        return KN_GRPC_DATA_LOSS; /* the pointer is there: to say "no such table" would be a lie */
    if (code == KN_E_REFUSED && err->about == KN_ABOUT_NOT_EMPTY)
        return KN_GRPC_FAILED_PRECONDITION;
    return (size_t)code < COUNT(codes) ? codes[code] : KN_GRPC_INTERNAL;
}

KnCode kn_wire_failure(int grpc_code, bool changes)
{
    switch (grpc_code) {
    case KN_GRPC_OK:
        return KN_OK;
    case KN_GRPC_INVALID_ARGUMENT:
    case KN_GRPC_FAILED_PRECONDITION:
    case KN_GRPC_OUT_OF_RANGE:
        return KN_E_INVAL;
    case KN_GRPC_NOT_FOUND:
        return KN_E_NOTFOUND;
    case KN_GRPC_ALREADY_EXISTS:
        return KN_E_EXISTS;
    case KN_GRPC_ABORTED:
        return KN_E_CONFLICT;
    case KN_GRPC_PERMISSION_DENIED:
    case KN_GRPC_UNAUTHENTICATED:
        return KN_E_REFUSED;
    case KN_GRPC_UNIMPLEMENTED:
        return KN_E_UNSUPPORTED;
    case KN_GRPC_DATA_LOSS:
        return KN_E_CORRUPT;
    case KN_GRPC_RESOURCE_EXHAUSTED:
        return KN_E_NOMEM;
    default: /* UNKNOWN, INTERNAL, UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, and what is no code */
        return changes ? KN_E_UNKNOWN : KN_E_IO;
    }
}
