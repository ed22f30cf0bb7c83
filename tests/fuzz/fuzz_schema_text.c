/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that a person types for a schema, a partition spec or a sort order (the first byte
 * chooses). A schema that is accepted must be written as text that gives the same schema.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/schema/partition.h"
#include "iceberg/schema/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(KnCode rc, const KnErr *err)
{
    assert(err->code == rc && err->msg[0]);
    (void)rc;
    (void)err;
}

static void try_schema(KnArena *arena, KnStr text)
{
    KnSchema *schema = NULL, *again = NULL;
    KN_BUF_AUTO buf = {0};
    KnErr err = {0};
    KnCode rc = kn_schema_parse_text(arena, text, &schema, &err);

    if (rc != KN_OK) {
        check_failure(rc, &err);
        return;
    }
    kn_buf_init(&buf, (size_t)16 << 20);
    kn_type_format(&buf, &schema->root);
    /* "struct<" and ">" around the fields */
    KnStr fields = {buf.data + 7, buf.len - 8};
    if (kn_schema_parse_text(arena, fields, &again, &err) != KN_OK ||
        !kn_type_equal(&schema->root, &again->root))
        abort();
}

static void try_terms(KnArena *arena, KnStr text, bool order)
{
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KnSortOrder *sort = NULL;
    KnErr err = {0};
    KnCode rc = kn_schema_parse_text(
        arena, KN_STR_LIT("id long, ts timestamp, name string, st struct<a date, `b c` int>"),
        &schema, &err);

    if (rc != KN_OK)
        abort();
    rc = order ? kn_sort_order_parse_text(arena, schema, text, &sort, &err)
               : kn_partition_spec_parse_text(arena, schema, text, &spec, &err);
    if (rc != KN_OK)
        check_failure(rc, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);

    if (size == 0 || size > 4096)
        return 0;
    KnStr text = {(const char *)data + 1, size - 1};
    if (data[0] == 'p' || data[0] == 'o')
        try_terms(arena, text, data[0] == 'o');
    else
        try_schema(arena, text);
    return 0;
}
