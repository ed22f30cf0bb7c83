/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_avro.c - any bytes as an Avro container file: every datum is walked by the file's schema. */
#include <stddef.h>
#include <stdint.h>

#include "codec/avro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static KnCode walk(KnAvroReader *reader)
{
    for (;;) {
        KnAvroCursor cur;
        int64_t count;
        KN_TRY(kn_avro_reader_next_block(reader, &cur, &count, NULL));
        if (count == 0)
            return KN_OK;
        for (; count > 0; --count)
            KN_TRY(kn_avro_skip(&cur, kn_avro_reader_type(reader), NULL));
        KN_TRY(kn_avro_cursor_finish(&cur, NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnAvroReader *reader;
    if (kn_avro_reader_open(data, size, &reader, NULL) != KN_OK)
        return 0;
    (void)walk(reader);
    (void)kn_avro_reader_close(reader);
    return 0;
}
