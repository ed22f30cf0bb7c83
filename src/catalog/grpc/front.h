/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * front.h - a catalog served over gRPC: skade.katalog.v1.Catalog, health, and a stream of commits.
 *
 * proto/ holds the contracts. Tokens come as the metadata `authorization: Bearer …`; health asks
 * for none.
 */
#include "catalog/server/front.h"

extern const KnFrontOps kn_front_grpc;
