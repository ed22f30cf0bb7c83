/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * remote.h - files elsewhere: what the engine is told so that it opens s3:// names.
 *
 * The engine reads object stores by itself, by ranges, through its signed extension httpfs, which
 * is loaded at the first need. It is looked for in the folder KNUT_DUCKDB_EXTENSIONS, in `knut/`
 * beside libduckdb.so (an installation), and in `../ext/` from there (a clone). Keys are secrets of
 * the instance, in memory only, each for the names that begin with its scope; the engine's own look
 * into the environment is off. Thread-safe.
 */
#include "engine/engine.h"

typedef struct KnRemoteS3 {
    const char *scope;    /* "s3://bucket/" */
    const char *endpoint; /* host[:port] */
    const char *region;
    const char *ca_file; /* NULL = the system's */
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL = none */
    bool tls;
    bool path_style;
} KnRemoteS3;

/** From now on names within the scope are opened so. Does nothing when that is known already.
 * KN_E_NOTFOUND: the extension is not installed; the message says where it was looked for. */
KN_NODISCARD KnCode kn_engine_reach_s3(KnEngine *eng, const KnRemoteS3 *s3, KnErr *err);
