/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* grpc_internal.h - gRPC on a session that somebody else feeds: for tests. */
#include "net/grpc_server.h"

extern const KnH2Handler kn_grpc_handler; /* its self is a KnGrpcServer */
/** Does not listen; kn_grpc_server_close() frees it, after the session. */
KnGrpcServer *kn_grpc_server_new(const KnGrpcOptions *opts);
