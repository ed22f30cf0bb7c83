/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/codec/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

uint8_t *test_avro_file(const char *name, size_t *ret_len)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/data/avro/%s", KN_TEST_DATA_DIR, name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long len = ftell(file);
    assert_true(len > 0);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    uint8_t *bytes = malloc((size_t)len);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)len, file), len);
    assert_int_equal(fclose(file), 0);
    *ret_len = (size_t)len;
    return bytes;
}

static KnCode walk(KnAvroReader *reader, int64_t *n, KnErr *err)
{
    for (;;) {
        KnAvroCursor cur;
        int64_t count;
        KN_TRY(kn_avro_reader_next_block(reader, &cur, &count, err));
        if (count == 0)
            return KN_OK;
        for (; count > 0; --count, ++*n)
            KN_TRY(kn_avro_skip(&cur, kn_avro_reader_type(reader), err));
        KN_TRY(kn_avro_cursor_finish(&cur, err));
    }
}

KnCode test_avro_walk(const void *bytes, size_t len, int64_t *ret_n, KnErr *err)
{
    KnAvroReader *reader;
    *ret_n = 0;
    KN_TRY(kn_avro_reader_open(bytes, len, &reader, err));
    KnCode code = walk(reader, ret_n, err);
    (void)kn_avro_reader_close(reader);
    return code;
}
