/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * metrics.h - counters and gauges, registered once, written as Prometheus text (format 0.0.4).
 * Names are documented in docs/metrics.md. Updates are atomic and thread-safe; registering the same
 * name with the same labels gives the same metric. Metrics live as long as the process.
 */
#include <stdint.h>

#include "base/buf.h"

typedef enum KnMetricKind { KN_METRIC_COUNTER, KN_METRIC_GAUGE } KnMetricKind;
typedef struct KnMetric KnMetric;

/** labels: `table="ns.t",sink="duckdb"` already escaped with kn_metric_label(), or "". */
KnMetric *kn_metric_get(KnMetricKind kind, const char *name, const char *labels, const char *help);
void kn_metric_add(KnMetric *metric, int64_t n);
void kn_metric_set(KnMetric *metric, int64_t value);
int64_t kn_metric_value(const KnMetric *metric);
void kn_metric_label(KnBuf *out, const char *name, KnStr value);
void kn_metrics_write(KnBuf *out);
