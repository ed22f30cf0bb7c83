/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that a person types for a table, read and planned against a table of v1, v2 or v3 (the
 * first byte chooses). What is accepted must come out as metadata that is read again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "iceberg/alter/alter_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static KnMetadata *new_table(KnArena *arena, int32_t version)
{
    KnCreateTable table = {.format_version = version, .location = "file:///w/t"};
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KnMetadata *md = NULL;

    if (kn_schema_parse_text(arena,
                             KN_STR_LIT("id long required, ts timestamp, d date, name string, "
                                        "st struct<a int, `b c` float>, li list<struct<x int>>, "
                                        "m map<struct<k int>, decimal(9,2)>"),
                             &schema, NULL) != KN_OK ||
        kn_partition_spec_parse_text(arena, schema, KN_STR_LIT("day(ts), bucket(16, id)"), &spec,
                                     NULL) != KN_OK)
        abort();
    table.schema = schema;
    table.spec = spec;
    if (kn_metadata_create(&table, &md, NULL) != KN_OK)
        abort();
    return md;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_METADATA_AUTO md = NULL;
    KN_METADATA_AUTO after = NULL;
    KnChanges changes = {0};
    KnAlterPlan plan = {0};
    KnErr err = {0};
    KnCode rc;

    if (size == 0 || size > 4096)
        return 0;
    const KnAlterOptions opts = {.allow_incompatible = data[0] & 4};
    md = new_table(arena, 1 + data[0] % 3);
    rc = kn_changes_parse(arena, (KnStr){(const char *)data + 1, size - 1}, &changes, &err);
    if (rc == KN_OK)
        rc = kn_alter_plan(arena, md, &changes, &opts, &plan, &err);
    if (rc == KN_OK)
        rc = kn_metadata_apply(md, plan.updates, plan.n_updates, NULL, &after, &err);
    if (rc != KN_OK && (err.code != rc || !err.msg[0]))
        abort();
    return 0;
}
