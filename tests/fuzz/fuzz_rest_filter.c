/* SPDX-License-Identifier: Apache-2.0 */
/* JSON predicates of scan planning, over a schema with every kind of column. */
#include <stdint.h>
#include <stdlib.h>

#include "catalog/server/rest_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnSchema *schema = NULL;
    if (kn_schema_parse_text(arena,
                             KN_STR_LIT("id long required, ts timestamp, d date, name string, "
                                        "st struct<a int, `b c` float>, b boolean, u uuid, "
                                        "dec decimal(9,2), bin binary"),
                             &schema, NULL) != KN_OK)
        abort();
    KN_JSON_AUTO doc = NULL;
    const KnExpr *expr = NULL;
    KnErr err = {0};
    if (size > 65536 || kn_json_parse((const char *)data, size, &doc, NULL) != KN_OK)
        return 0;
    const KnRestFilter ctx = {arena, schema, (size & 1) != 0};
    KnCode rc = kn_rest_filter_parse(&ctx, doc, &expr, &err);
    if (rc != KN_OK && (err.code != rc || !err.msg[0]))
        abort();
    return 0;
}
