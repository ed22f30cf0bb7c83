/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* reflection.h - the files that gRPC's server reflection knows, as descriptors.c has them. */
#include "base/str.h"

typedef struct KnGrpcFile {
    const char *name;
    KnStr bytes; /* a FileDescriptorProto */
} KnGrpcFile;

/** One package each; none imports another. */
extern const KnGrpcFile kn_grpc_files[];
extern const size_t kn_grpc_n_files;
