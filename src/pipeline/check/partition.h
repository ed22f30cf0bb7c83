/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* partition.h - partition columns as pipelines write them: a column, or a transform of one. */
#include "base/err.h"
#include "base/str.h"

typedef enum KnPartitionKind {
    KN_PARTITION_IDENTITY,
    KN_PARTITION_YEARS,
    KN_PARTITION_MONTHS,
    KN_PARTITION_DAYS,
    KN_PARTITION_HOURS,
    KN_PARTITION_BUCKET,
    KN_PARTITION_TRUNCATE,
} KnPartitionKind;

typedef struct KnPartition {
    KnPartitionKind kind;
    KnStr column; /* a view into the text, without quotes */
    int64_t n;    /* of bucket and truncate */
} KnPartition;

/** `region`, `"a b"`, `days(ts)`, `bucket(16, id)`, `truncate(id, 4)`; names of transforms in any
 * case, also in the singular. KN_E_INVAL: a transform with wrong arguments; KN_E_UNSUPPORTED: an
 * expression that is no transform of Iceberg's. */
KN_NODISCARD KnCode kn_partition_parse(KnStr text, KnPartition *ret, KnErr *err);
