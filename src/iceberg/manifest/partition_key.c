/* SPDX-License-Identifier: Apache-2.0 */
/* partition_key.c - see partition_key.h. */
#include "iceberg/manifest/partition_key.h"

#include <math.h>

static void key_value(KnBuf *buf, const KnValue *v)
{
    if (v->null) {
        kn_buf_char(buf, 'n');
        return;
    }
    switch (v->kind) {
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE: {
        double d = isnan(v->d) ? NAN : v->d;
        kn_buf_char(buf, 'd');
        kn_buf_append(buf, &d, sizeof(d));
        break;
    }
    case KN_TYPE_DECIMAL:
        kn_buf_char(buf, 'm');
        kn_buf_append(buf, &v->dec, sizeof(v->dec));
        break;
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        kn_buf_char(buf, 's');
        kn_buf_append(buf, &v->bytes.len, sizeof(v->bytes.len));
        kn_buf_str(buf, v->bytes);
        break;
    case KN_TYPE_BOOLEAN:
        kn_buf_char(buf, v->b ? 't' : 'f');
        break;
    default:
        kn_buf_char(buf, 'i');
        kn_buf_append(buf, &v->i, sizeof(v->i));
        break;
    }
}

void kn_partition_key(KnBuf *buf, const KnDataFile *file)
{
    kn_buf_append(buf, &file->spec_id, sizeof(file->spec_id));
    for (size_t i = 0; i < file->n_partition; i++)
        key_value(buf, &file->partition[i]);
}

static const KnStr *find_bound(const KnIdBound *bounds, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (bounds[i].id == id)
            return &bounds[i].bytes;
    return NULL;
}

KnStr kn_delete_named_data_file(const KnDataFile *file)
{
    if (file->referenced_data_file)
        return kn_str(file->referenced_data_file);
    const KnStr *lower = find_bound(file->lower, file->n_lower, KN_FIELD_ID_FILE_PATH);
    const KnStr *upper = find_bound(file->upper, file->n_upper, KN_FIELD_ID_FILE_PATH);
    if (lower && upper && kn_str_eq(*lower, *upper))
        return *lower;
    return (KnStr){0};
}
