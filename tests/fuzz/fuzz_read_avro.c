/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_read_avro.c - any bytes as an Avro data file: columns of its schema, rows of its datums. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "iceberg/scan/read_avro.h"

enum { ROWS_MAX = 10000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One for all inputs. */
static KnEngine *engine(void)
{
    static KnEngine *eng;
    const KnEngineOptions opts = {.threads = 1};
    if (!eng && kn_engine_open(&opts, &eng, NULL) != KN_OK)
        assert(!"the engine opens");
    return eng;
}

static KnCode read_rows(KnAvroReader *reader, const KnAvroShape *shape, KnBuilder *builder)
{
    KnAvroRows rows = {.zero_left = KN_AVRO_ZERO_MAX};
    int64_t n_rows = 0;
    for (;;) {
        int64_t count;
        KN_TRY(kn_avro_reader_next_block(reader, &rows.cur, &count, NULL));
        if (count == 0)
            return KN_OK;
        for (; count > 0 && n_rows < ROWS_MAX; count--, n_rows++) {
            for (size_t i = 0; i < shape->root.n_children; i++)
                KN_TRY(kn_read_avro_put(&rows, &shape->root.children[i],
                                        kn_builder_column(builder, i), NULL));
            kn_builder_end_row(builder);
            if (kn_builder_full(builder))
                kn_batch_unref(kn_builder_take(builder));
        }
        KN_TRY(kn_avro_cursor_finish(&rows.cur, NULL));
    }
}

static KnCode read_file(KnAvroReader *reader, KnArena *arena)
{
    KnAvroShape shape;
    KnBuilder *builder = NULL;
    KN_TRY(kn_read_avro_shape(arena, kn_avro_reader_type(reader), &shape, NULL));
    KN_TRY(kn_builder_open(engine(), shape.sql_types, shape.root.n_children, &builder, NULL));
    KnCode rc = read_rows(reader, &shape, builder);
    if (rc == KN_OK) /* else the last row may be half there */
        kn_batch_unref(kn_builder_take(builder));
    kn_builder_close(builder);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnAvroReader *reader;
    if (kn_avro_reader_open(data, size, &reader, NULL) != KN_OK)
        return 0;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    (void)read_file(reader, arena);
    (void)kn_avro_reader_close(reader);
    return 0;
}
