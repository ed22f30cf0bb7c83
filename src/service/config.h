/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * config.h - knut.yaml: many deliveries of one process.
 *
 *     state: knut-state.db
 *     defaults: {interval: 10s}
 *     sources:
 *       lake: {warehouse: /data/lake}
 *     sinks:
 *       copy: {sink: "duckdb:/data/copy.duckdb", chunk-mb: 16}
 *     deliveries:
 *       - {source: lake, table: shop.orders, sink: copy, target: orders}
 *
 * A delivery's settings are its defaults, then its source's, then its sink's, then its own, later
 * ones winning. Keys are the names of the options; `${NAME}` and `${NAME:-default}` in a value are
 * taken from the environment, `$$` is a dollar sign. Everything that is not understood is an error
 * with its line and column. Nothing is opened.
 */
#include "service/settings.h"

typedef struct KnServiceDelivery {
    const char *name; /* unique in the file */
    int line;
    KnDeliverySettings set;
    const KnSinkOps *sink_ops;
    const char *sink_id; /* without secrets: what destinations are told apart by */
    uint64_t print;      /* of all that the file says of it: another one is another delivery */
} KnServiceDelivery;

/* Of the process; rows kn_service_rows. */
typedef struct KnServiceOptions {
    const char *state, *listen, *spill_dir;
    int64_t workers, threads;
    uint64_t memory_limit;
    const char *lineage, *lineage_namespace; /* URL or file:PATH; NULL = no events */
    const char *airflow, *airflow_prefix;
} KnServiceOptions;

typedef struct KnServiceConfig {
    const char *path;
    KnServiceOptions opts;
    size_t n;
    KnServiceDelivery *deliveries; /* in the order of the file */
} KnServiceConfig;

/** Rows for KnServiceOptions, offsets from its start. */
extern const KnOptGroup kn_service_rows;

enum { KN_SERVICE_MIN_MEMORY_MB = 32 }; /* for each worker */

/** Reads and checks the file; release with kn_service_config_unref(). KN_E_INVAL: it is wrong;
 * KN_E_NOTFOUND, KN_E_IO: it cannot be read. */
KN_NODISCARD KnCode kn_service_config_load(const char *path, KnServiceConfig **ret, KnErr *err);
/** The same from text; name is what messages call it. */
KN_NODISCARD KnCode kn_service_config_parse(const char *name, KnStr text, KnServiceConfig **ret,
                                            KnErr *err);
/** References are counted, thread-safe. */
KnServiceConfig *kn_service_config_ref(KnServiceConfig *config);
KnServiceConfig *kn_service_config_unref(KnServiceConfig *config); /* accepts NULL, returns NULL */
/** By name; KN_E_NOTFOUND lists those there are. */
KN_NODISCARD KnCode kn_service_config_find(const KnServiceConfig *config, const char *name,
                                           const KnServiceDelivery **ret, KnErr *err);

/** `text` with its ${NAME} filled in; in arena. KN_E_INVAL says which is not set. */
KN_NODISCARD KnCode kn_config_expand(KnArena *arena, const char *text, const char **ret,
                                     KnErr *err);
