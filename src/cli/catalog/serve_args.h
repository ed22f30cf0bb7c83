/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* serve_args.h - the flags of `knut catalog serve`: rows, what goes together, what they open. */
#include "catalog/server/front.h"
#include "cli/command.h"
#include "storage/s3/s3.h"

typedef struct KnServeOptions {
    KnCommonOptions common;
    const char *warehouse, *warehouse_uri, *db, *catalog;
    KnOptList allow_locations;
    const char *rest, *grpc;
    const char *port_file;
    KnS3Options s3;
    const char *sts_endpoint, *sts_role_arn;
    double sts_duration;
    bool remote_signing;
    const char *tokens;
    double token_lifetime;
    const char *tls_cert, *tls_key, *tls_client_ca;
    const char *audit_log;
    KnOptList cors_origins;
    uint64_t max_body;
    uint64_t cache;
    int64_t log_keep;
    double drain;
} KnServeOptions;

enum { KN_SERVE_FRONTS = 2, KN_SERVE_ROWS = 23 };
extern const KnOption kn_serve_rows[KN_SERVE_ROWS];

/** A front that was asked for. */
typedef struct KnServeFront {
    const KnFrontOps *ops;
    KnListen listening;
    KnFront *front; /* NULL until it is open */
} KnServeFront;

/** Which flags go together; nothing is opened or looked up. KN_E_INVAL, one line. */
KN_NODISCARD KnCode kn_serve_check(const KnServeOptions *opts, KnErr *err);
/** The sockets; those that were opened are in fronts also on failure. */
KN_NODISCARD KnCode kn_serve_listen(const KnServeOptions *opts, KnServeFront *fronts, size_t *ret_n,
                                    KnErr *err);
/** Texts live in arena. */
KN_NODISCARD KnCode kn_serve_core_options(const KnServeOptions *opts, KnArena *arena,
                                          KnCoreOptions *ret, KnErr *err);
/** What all clients are told about the store behind io: where it is, never how to get in. Nothing
 * when it is no object store. */
void kn_serve_client_config(const KnFileIO *io, KnArena *arena, const KnTextPair **ret,
                            size_t *ret_n);
/** What lends keys for tables' folders; NULL where that was not asked for. */
KN_NODISCARD KnCode kn_serve_open_lender(const KnServeOptions *opts, KnS3Lender **ret, KnErr *err);
/** Lines "FRONT PORT", complete when the file appears. */
KN_NODISCARD KnCode kn_serve_write_ports(const char *file, const KnServeFront *fronts, size_t n,
                                         KnArena *arena, KnErr *err);
