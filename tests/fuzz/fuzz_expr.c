/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_expr.c - any bytes as a filter; what parses becomes SQL and is put to a file without
 * metrics, which it must not prune unless it is FALSE. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "iceberg/expr/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnStr text = KN_STR_LIT("i int, l long, f float, d double, m decimal(9,2), s string, t date, "
                            "z timestamptz, n timestamp_ns, u uuid, x fixed[2], b binary, "
                            "o boolean, st struct<a int, b struct<c string>>");
    const KnExpr *expr = NULL;
    if (kn_schema_parse_text(arena, text, &schema, NULL) != KN_OK)
        abort();
    if (kn_expr_parse(arena, (KnStr){(const char *)data, size}, schema, &expr, NULL) != KN_OK)
        return 0;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)64 << 20);
    (void)!kn_expr_sql(&sql, expr, NULL);
    KnDataFile file = {.record_count = 1};
    if (expr->op != KN_EXPR_FALSE && !kn_expr_may_match_file(expr, &file))
        abort();
    return 0;
}
