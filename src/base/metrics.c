/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - the process's counters and gauges.
 *
 * One registry behind a mutex: a map from `name{labels}` to the metric. Metrics are never freed, so
 * a pointer is good for ever and an update is one atomic add without the mutex. Text is written
 * sorted by name and labels, because the format wants all samples of one name together under one
 * HELP and TYPE.
 */
#include "base/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct KnMetric {
    KnMetricKind kind;
    const char *name;
    const char *labels;
    const char *help;
    _Atomic int64_t value;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static KnMap *registry;
static KnArena *memory;

KnMetric *kn_metric_get(KnMetricKind kind, const char *name, const char *labels, const char *help)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, 1 << 20);
    kn_buf_printf(&key, "%s{%s}", name, labels);
    assert(!key.failed);
    (void)pthread_mutex_lock(&mutex);
    if (!registry) {
        registry = kn_map_new();
        memory = kn_arena_new(0);
    }
    bool is_new;
    void **slot = kn_map_get_or_add(registry, (KnStr){key.data, key.len}, &is_new);
    if (is_new) {
        KnMetric *metric = kn_arena_zalloc(memory, sizeof(*metric));
        metric->kind = kind;
        metric->name = kn_arena_strdup(memory, name);
        metric->labels = kn_arena_strdup(memory, labels);
        metric->help = kn_arena_strdup(memory, help);
        *slot = metric;
    }
    KnMetric *metric = *slot;
    (void)pthread_mutex_unlock(&mutex);
    assert(metric->kind == kind);
    return metric;
}

void kn_metric_add(KnMetric *metric, int64_t n)
{
    assert(metric->kind == KN_METRIC_GAUGE || n >= 0);
    atomic_fetch_add_explicit(&metric->value, n, memory_order_relaxed);
}

void kn_metric_set(KnMetric *metric, int64_t value)
{
    assert(metric->kind == KN_METRIC_GAUGE);
    atomic_store_explicit(&metric->value, value, memory_order_relaxed);
}

int64_t kn_metric_value(const KnMetric *metric)
{
    return atomic_load_explicit(&metric->value, memory_order_relaxed);
}

void kn_metric_label(KnBuf *out, const char *name, KnStr value)
{
    kn_buf_printf(out, "%s%s=\"", out->len ? "," : "", name);
    while (value.len) {
        size_t n = kn_str_utf8_len(value);
        if (n == 0)
            kn_buf_append(out, "\xef\xbf\xbd", 3); /* the format is UTF-8 throughout */
        else if (*value.ptr == '\n')
            kn_buf_append(out, "\\n", 2);
        else if (*value.ptr == '"' || *value.ptr == '\\')
            kn_buf_printf(out, "\\%c", *value.ptr);
        else
            kn_buf_append(out, value.ptr, n);
        n += n == 0;
        value = (KnStr){value.ptr + n, value.len - n};
    }
    kn_buf_char(out, '"');
}

static int by_name(const void *a, const void *b)
{
    const KnMetric *x = *(KnMetric *const *)a, *y = *(KnMetric *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->labels, y->labels);
}

static void head_write(KnBuf *out, const KnMetric *metric)
{
    kn_buf_printf(out, "# HELP %s ", metric->name);
    for (const char *p = metric->help; *p; ++p) {
        if (*p == '\\' || *p == '\n')
            kn_buf_printf(out, "\\%c", *p == '\n' ? 'n' : '\\');
        else
            kn_buf_char(out, *p);
    }
    kn_buf_printf(out, "\n# TYPE %s %s\n", metric->name,
                  metric->kind == KN_METRIC_COUNTER ? "counter" : "gauge");
}

void kn_metrics_write(KnBuf *out)
{
    KN_VEC(KnMetric *) all = {0};
    (void)pthread_mutex_lock(&mutex);
    void *metric;
    for (size_t i = 0; registry && kn_map_entry(registry, i, NULL, &metric); ++i)
        *kn_vec_push(&all) = metric;
    (void)pthread_mutex_unlock(&mutex);
    if (all.len)
        qsort(all.items, all.len, sizeof(*all.items), by_name);
    const char *last = "";
    kn_vec_foreach (&all, p) {
        const KnMetric *m = *p;
        if (strcmp(last, m->name) != 0)
            head_write(out, m);
        last = m->name;
        kn_buf_text(out, m->name);
        if (m->labels[0])
            kn_buf_printf(out, "{%s}", m->labels);
        kn_buf_printf(out, " %lld\n", (long long)kn_metric_value(m));
    }
    kn_vec_done(&all);
}
