/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* surfaces.h - every surface, for the list in surface.c. */
#include "pipeline/surface/surface.h"

extern const KnSurface kn_surface_ron;
extern const KnSurface kn_surface_json;
extern const KnSurface kn_surface_sql;
