/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_summary.c - what a manifest's line in the list says about its partition values (spec:
 * "Manifest Lists", field_summary; Java's PartitionSummary).
 *
 * Bounds leave out null and NaN. Values of all entries count, DELETED ones too, as in Java.
 */
#include <math.h>

#include "iceberg/manifest/manifest_internal.h"

#define BOUND_MAX ((size_t)64 << 20)

typedef struct Field {
    bool null, nan;
    const KnValue *min, *max; /* NULL = none */
} Field;

struct KnManifestSummary {
    const KnType *type;
    Field *fields;
};

KnManifestSummary *kn_manifest_summary_new(KnArena *arena, const KnType *type)
{
    KnManifestSummary *summary = kn_arena_zalloc(arena, sizeof(*summary));
    summary->type = type;
    summary->fields = kn_arena_zalloc(arena, type->n_fields * sizeof(Field));
    return summary;
}

static bool is_nan(const KnType *type, const KnValue *value)
{
    return (type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE) && isnan(value->d);
}

void kn_manifest_summary_add(KnManifestSummary *summary, const KnValue *values)
{
    for (size_t i = 0; i < summary->type->n_fields; ++i) {
        Field *field = &summary->fields[i];
        const KnValue *value = &values[i];
        if (value->null) {
            field->null = true;
        } else if (is_nan(summary->type->fields[i].type, value)) {
            field->nan = true;
        } else {
            if (!field->min || kn_value_compare(value, field->min) < 0)
                field->min = value;
            if (!field->max || kn_value_compare(value, field->max) > 0)
                field->max = value;
        }
    }
}

static KnCode keep_bound(KnArena *arena, const KnType *type, const KnValue *value, KnStr *ret,
                         KnErr *err)
{
    if (!value)
        return KN_OK;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, BOUND_MAX);
    kn_value_encode(&buf, type, value);
    KN_TRY(kn_buf_check(&buf, err));
    *ret = (KnStr){kn_arena_strndup(arena, buf.data, buf.len), buf.len};
    return KN_OK;
}

KnCode kn_manifest_summary_finish(const KnManifestSummary *summary, KnArena *arena,
                                  KnManifestFile *ret, KnErr *err)
{
    size_t n = summary->type->n_fields;
    KnFieldSummary *list = kn_arena_zalloc(arena, n * sizeof(*list));
    for (size_t i = 0; i < n; ++i) {
        const Field *field = &summary->fields[i];
        const KnType *type = summary->type->fields[i].type;
        list[i].contains_null = field->null;
        list[i].contains_nan = field->nan ? 1 : 0;
        KN_TRY(keep_bound(arena, type, field->min, &list[i].lower, err));
        KN_TRY(keep_bound(arena, type, field->max, &list[i].upper, err));
    }
    ret->n_partitions = n;
    ret->partitions = list;
    return KN_OK;
}
