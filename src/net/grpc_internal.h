/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* grpc_internal.h - gRPC on a session that somebody else feeds: for tests. */
#include "net/grpc_server.h"

extern const KnH2Handler kn_grpc_handler; /* its self is a KnGrpcServer that does not listen */
