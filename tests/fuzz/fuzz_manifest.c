/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_manifest.c - any bytes as a manifest of one fixed table: read as data and as deletes, with
 * and without metrics. The bytes stand in memory under the path that the list would give.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "iceberg/manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char metadata[] =
    "{\"format-version\":3,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
    "\"location\":\"mem://t\",\"last-sequence-number\":9,\"last-updated-ms\":1,"
    "\"last-column-id\":9,\"next-row-id\":0,\"current-schema-id\":0,\"schemas\":[{\"type\":"
    "\"struct\",\"schema-id\":0,\"fields\":["
    "{\"id\":1,\"name\":\"id\",\"required\":false,\"type\":\"int\"},"
    "{\"id\":2,\"name\":\"bo\",\"required\":false,\"type\":\"boolean\"},"
    "{\"id\":3,\"name\":\"l\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":4,\"name\":\"de\",\"required\":false,\"type\":\"decimal(10, 2)\"},"
    "{\"id\":5,\"name\":\"dt\",\"required\":false,\"type\":\"date\"},"
    "{\"id\":6,\"name\":\"ts\",\"required\":false,\"type\":\"timestamptz\"},"
    "{\"id\":7,\"name\":\"s\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":8,\"name\":\"b\",\"required\":false,\"type\":\"binary\"},"
    "{\"id\":9,\"name\":\"f\",\"required\":false,\"type\":\"float\"}]}],"
    "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":["
    "{\"name\":\"bo\",\"transform\":\"identity\",\"source-id\":2,\"field-id\":1000},"
    "{\"name\":\"l_trunc\",\"transform\":\"truncate[10]\",\"source-id\":3,\"field-id\":1001},"
    "{\"name\":\"de_trunc\",\"transform\":\"truncate[50]\",\"source-id\":4,\"field-id\":1002},"
    "{\"name\":\"dt_month\",\"transform\":\"month\",\"source-id\":5,\"field-id\":1003},"
    "{\"name\":\"ts_day\",\"transform\":\"day\",\"source-id\":6,\"field-id\":1004},"
    "{\"name\":\"s\",\"transform\":\"identity\",\"source-id\":7,\"field-id\":1005},"
    "{\"name\":\"b_bucket\",\"transform\":\"bucket[3]\",\"source-id\":8,\"field-id\":1006},"
    "{\"name\":\"f\",\"transform\":\"identity\",\"source-id\":9,\"field-id\":1007}]}],"
    "\"last-partition-id\":1007,\"default-sort-order-id\":0,"
    "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}]}";

/* Touches everything that an entry points to, through the copy. */
static KnCode look(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)arg;
    (void)err;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    return kn_manifest_entry_copy(arena, entry)->file.path ? KN_OK : KN_E_INVAL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static KnMetadata *md;
    KnFileIO *io;
    if (!md && kn_metadata_parse(KN_STR_LIT(metadata), "fuzz", &md, NULL) != KN_OK)
        abort();
    if (kn_io_memory_open(&io, NULL) != KN_OK)
        abort();
    KnManifestFile mf = {.path = "mem://m", .length = -1, .added_snapshot_id = 1};
    if (kn_io_write(io, kn_str(mf.path), data, size, KN_IO_CREATE, NULL) != KN_OK)
        abort();
    for (int way = 0; way < 4; ++way) {
        KnManifestVisit visit = {{.with_metrics = way & 1, .with_deleted = way & 1}, look, NULL};
        mf.deletes = way & 2;
        mf.sequence_number = way;
        (void)kn_manifest_read(io, md, &mf, &visit, NULL);
    }
    (void)kn_io_close(io);
    return 0;
}
