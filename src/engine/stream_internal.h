/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* stream_internal.h - between session.c and stream.c. */
#include "engine/engine_internal.h"

/** Takes the result; becomes the session's live stream. files: what errors may name. */
KnStream *kn_stream_new(KnSession *ses, duckdb_result res, const KnScanFiles *files);
/** End the session's live stream, if any: it answers KN_E_INVAL from now on. */
void kn_stream_detach(KnSession *ses);
