/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pg_copy.c - any bytes as PostgreSQL's binary COPY, in two pieces, into a row of every type.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "postgres/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {
    "BOOLEAN", "SMALLINT",      "INTEGER", "BIGINT",      "FLOAT",
    "DOUBLE",  "DECIMAL(38,5)", "DATE",    "TIME",        "TIMESTAMP WITH TIME ZONE",
    "VARCHAR", "BLOB",          "UUID",    "DECIMAL(4,4)"};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static KnBuilder *builder(void)
{
    static KnEngine *engine; /* one for all inputs */
    KnBuilder *made = NULL;
    if (!engine && kn_engine_open(&(KnEngineOptions){.threads = 1}, &engine, NULL) != KN_OK)
        abort();
    if (kn_builder_open(engine, types, N_TYPES, &made, NULL) != KN_OK)
        abort();
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnPgDecoder dec = {.names = types, .n_columns = N_TYPES};
    static KnBuilder *b; /* kept while it is good: opening one costs more than all else here */
    b = b ? b : builder();
    size_t cut = size ? data[0] % (size + 1) : 0, used = 0;
    const char *bytes = (const char *)data;
    KnCode rc = kn_pg_decode(&dec, (KnStr){bytes, cut}, b, &used, NULL);
    if (rc == KN_OK && used > cut)
        abort();
    if (rc == KN_OK)
        rc = kn_pg_decode(&dec, (KnStr){bytes + used, size - used}, b, &used, NULL);
    if (rc == KN_OK)
        (void)kn_batch_unref(kn_builder_take(b));
    else if (dec.began) /* a row may be half put */
        b = kn_builder_close(b);
    return 0;
}
