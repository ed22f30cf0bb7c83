/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * wire.h - the messages of the catalog's gRPC services, for the server and the client.
 *
 * The contract is in proto/; here are its numbers. All requests share one struct, of which each
 * message fills its part.
 */
#include "codec/protobuf.h"
#include "iceberg/table.h"
#include "net/grpc_frame.h"

typedef struct KnWirePair {
    const char *key, *value;
} KnWirePair;

typedef struct KnWireRequest {
    KnPbTexts levels;        /* of the namespace */
    const char *name;        /* of the table */
    KnPbMessages properties; /* KnWirePair */
    const char *schema_json, *location;
    KnPbTexts requirements, updates; /* one JSON text each */
    const char *warehouse, *service;
    int64_t after;
} KnWireRequest;

typedef struct KnWireIdent {
    KnPbTexts levels;
    const char *name;
} KnWireIdent;

/** Any of the answers. */
typedef struct KnWireAnswer {
    bool exists;
    int64_t number;                   /* a status of health, a sequence number */
    KnPbMessages defaults, overrides; /* KnWirePair */
    KnPbTexts levels;                 /* of a namespace */
    KnPbMessages properties;          /* KnWirePair: of a namespace, or a table's config */
    KnPbMessages namespaces, tables;  /* KnWireIdent */
    const char *metadata_location;
    KnStr metadata_json;
} KnWireAnswer;

typedef struct KnWireCommit {
    int64_t sequence, timestamp_ms;
    const char *kind;
    bool is_view;
    KnWireIdent table, from;
    int64_t snapshot_id;
    const char *metadata_location;
} KnWireCommit;

/* Requests (KnWireRequest). */
extern const KnPbMessage kn_wire_config_request, kn_wire_namespace_request,
    kn_wire_create_namespace, kn_wire_table_request, kn_wire_create_table, kn_wire_commit_table,
    kn_wire_health_request, kn_wire_watch_request, kn_wire_empty_request;
/* Answers (KnWireAnswer, KnWireCommit). */
extern const KnPbMessage kn_wire_config, kn_wire_namespaces, kn_wire_namespace, kn_wire_exists,
    kn_wire_tables, kn_wire_table, kn_wire_empty, kn_wire_health, kn_wire_last, kn_wire_commit;

#define KN_WIRE_CATALOG "/skade.katalog.v1.Catalog/"

/** The status of a failure. */
int kn_wire_code(KnCode code, const KnErr *err);
/** Back, for a client; changes: the call may have changed something there. */
KnCode kn_wire_failure(int grpc_code, bool changes);
