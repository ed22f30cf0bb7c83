/* SPDX-License-Identifier: Apache-2.0 */
/* Deletion vectors and 64-bit Roaring bitmaps: all containers, and every way to be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/puffin.h"

typedef struct Ranges {
    KnBuf text;
    uint64_t rows;
} Ranges;

static KnCode collect(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    (void)err;
    Ranges *ranges = arg;
    assert_true(count > 0);
    kn_buf_printf(&ranges->text, "%s%llu+%llu", ranges->text.len ? " " : "",
                  (unsigned long long)first, (unsigned long long)count);
    ranges->rows += count;
    return KN_OK;
}

static void put16(KnBuf *buf, unsigned value)
{
    kn_buf_char(buf, (char)(value & 0xff));
    kn_buf_char(buf, (char)(value >> 8));
}

static void put32(KnBuf *buf, uint32_t value)
{
    put16(buf, value & 0xffff);
    put16(buf, value >> 16);
}

static void put64(KnBuf *buf, uint64_t value)
{
    put32(buf, (uint32_t)value);
    put32(buf, (uint32_t)(value >> 32));
}

static void decode_is(const KnBuf *bytes, const char *want)
{
    Ranges ranges = {0};
    kn_buf_init(&ranges.text, 1 << 20);
    kn_buf_text(&ranges.text, "");
    uint64_t cardinality = 0;
    KnErr err;
    if (kn_roaring64_decode((KnStr){bytes->data, bytes->len}, collect, &ranges, &cardinality,
                            &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(ranges.text.data ? ranges.text.data : "", want);
    assert_true(cardinality == ranges.rows);
    kn_buf_done(&ranges.text);
}

static void decode_fails(const KnBuf *bytes, const char *part)
{
    Ranges ranges = {0};
    kn_buf_init(&ranges.text, 1 << 20);
    uint64_t cardinality = 77;
    KnErr err = {0};
    assert_int_equal(
        kn_roaring64_decode((KnStr){bytes->data, bytes->len}, collect, &ranges, &cardinality, &err),
        KN_E_CORRUPT);
    if (!strstr(err.msg, part))
        fail_msg("'%s' is not in: %s", part, err.msg);
    assert_true(cardinality == 77);
    kn_buf_done(&ranges.text);
}

/* One key with one array container of three values at `offset`. */
static void put_array(KnBuf *buf, uint32_t high, const uint16_t values[3], uint32_t offset)
{
    put32(buf, high);
    put32(buf, 12346);
    put32(buf, 1);
    put16(buf, 2); /* upper 16 bits of the values */
    put16(buf, 2); /* cardinality - 1 */
    put32(buf, offset);
    for (size_t i = 0; i < 3; i++)
        put16(buf, values[i]);
}

static void arrays_give_ranges(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put64(&buf, 2);
    put_array(&buf, 0, (uint16_t[]){1, 2, 9}, 16);
    put_array(&buf, 1, (uint16_t[]){0, 5, 65535}, 16);
    decode_is(&buf, "131073+2 131081+1 4295098368+1 4295098373+1 4295163903+1");
}

static void an_empty_bitmap_has_no_value(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put64(&buf, 0);
    decode_is(&buf, "");
}

/* 5000 values from 10 on: too many for an array. */
static void put_bitset(KnBuf *buf, unsigned cardinality)
{
    put64(buf, 1);
    put32(buf, 0);
    put32(buf, 12346);
    put32(buf, 1);
    put16(buf, 0);
    put16(buf, cardinality - 1);
    put32(buf, 16);
    unsigned char bits[8192] = {0};
    for (size_t i = 10; i < 5010; i++)
        bits[i / 8] |= (unsigned char)(1U << (i % 8));
    kn_buf_append(buf, bits, sizeof(bits));
}

static void bitsets_give_ranges(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put_bitset(&buf, 5000);
    decode_is(&buf, "10+5000");
    kn_buf_reset(&buf);
    put_bitset(&buf, 4999);
    decode_fails(&buf, "cardinality");
}

static void put_runs(KnBuf *buf, unsigned cardinality, unsigned second)
{
    put64(buf, 1);
    put32(buf, 0);
    put32(buf, 12347); /* one container, no offsets */
    kn_buf_char(buf, 1);
    put16(buf, 0);
    put16(buf, cardinality - 1);
    put16(buf, 2);
    put16(buf, 100);
    put16(buf, 9);
    put16(buf, second);
    put16(buf, 0);
}

static void runs_give_ranges(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put_runs(&buf, 11, 65535);
    decode_is(&buf, "100+10 65535+1");
    kn_buf_reset(&buf);
    put_runs(&buf, 11, 105);
    decode_fails(&buf, "overlap");
    kn_buf_reset(&buf);
    put_runs(&buf, 12, 65535);
    decode_fails(&buf, "cardinality");
}

static void wrong_bytes_are_named(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put64(&buf, 1);
    put_array(&buf, 0, (uint16_t[]){5, 5, 9}, 16);
    decode_fails(&buf, "do not ascend");
    kn_buf_reset(&buf);
    put64(&buf, 1);
    put_array(&buf, 0, (uint16_t[]){1, 2, 3}, 17);
    decode_fails(&buf, "offset");
    kn_buf_reset(&buf);
    put64(&buf, 2);
    put_array(&buf, 1, (uint16_t[]){1, 2, 3}, 16);
    put_array(&buf, 1, (uint16_t[]){1, 2, 3}, 16);
    decode_fails(&buf, "keys do not ascend");
    kn_buf_reset(&buf);
    put64(&buf, 1);
    put_array(&buf, 0, (uint16_t[]){1, 2, 3}, 16);
    kn_buf_char(&buf, 0);
    decode_fails(&buf, "behind the end");
    kn_buf_reset(&buf);
    put64(&buf, 1);
    put32(&buf, 0);
    put32(&buf, 1);
    decode_fails(&buf, "not a Roaring bitmap");
    kn_buf_reset(&buf);
    put64(&buf, UINT64_MAX);
    decode_fails(&buf, "truncated");
}

static void every_truncation_is_corrupt(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put64(&buf, 2);
    put_array(&buf, 0, (uint16_t[]){1, 2, 9}, 16);
    put_array(&buf, 1, (uint16_t[]){0, 5, 65535}, 16);
    for (size_t len = 0; len < buf.len; len++) {
        Ranges ranges = {0};
        kn_buf_init(&ranges.text, 1 << 20);
        char *exact = malloc(len + 1);
        assert_non_null(exact);
        memcpy(exact, buf.data, len);
        uint64_t cardinality;
        assert_int_equal(
            kn_roaring64_decode((KnStr){exact, len}, collect, &ranges, &cardinality, NULL),
            KN_E_CORRUPT);
        free(exact);
        kn_buf_done(&ranges.text);
    }
}

static void put_be32(unsigned char *to, uint32_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        to[i] = (unsigned char)value;
}

/* A vector of {131073, 131074, 131081} in bytes; returns its length. */
static size_t make_vector(unsigned char *bytes, uint32_t high)
{
    static const unsigned char magic[] = {0xD1, 0xD3, 0x39, 0x64};
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    kn_buf_append(&buf, magic, sizeof(magic));
    put64(&buf, 1);
    put_array(&buf, high, (uint16_t[]){1, 2, 9}, 16);
    put_be32(bytes, (uint32_t)buf.len);
    memcpy(bytes + 4, buf.data, buf.len);
    put_be32(bytes + 4 + buf.len,
             (uint32_t)crc32(0, (const unsigned char *)buf.data, (uInt)buf.len));
    return buf.len + 8;
}

static KnCode vector_decode(const unsigned char *bytes, size_t len, KnErr *err)
{
    Ranges ranges = {0};
    kn_buf_init(&ranges.text, 1 << 20);
    uint64_t cardinality = 0;
    KnCode rc = kn_puffin_vector_decode((KnStr){(const char *)bytes, len}, collect, &ranges,
                                        &cardinality, err);
    if (rc == KN_OK) {
        assert_string_equal(ranges.text.data, "131073+2 131081+1");
        assert_int_equal(cardinality, 3);
    }
    kn_buf_done(&ranges.text);
    return rc;
}

static void a_vector_is_checked_from_length_to_checksum(void **state)
{
    (void)state;
    unsigned char bytes[128];
    KnErr err;
    size_t len = make_vector(bytes, 0);
    assert_int_equal(vector_decode(bytes, len, &err), KN_OK);
    assert_int_equal(vector_decode(bytes, len - 1, &err), KN_E_CORRUPT);
    assert_int_equal(vector_decode(bytes, 3, &err), KN_E_CORRUPT);
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 0x10;
        assert_int_equal(vector_decode(bytes, len, &err), KN_E_CORRUPT);
        bytes[i] ^= 0x10;
    }
    len = make_vector(bytes, 0x80000000U);
    assert_int_equal(vector_decode(bytes, len, &err), KN_E_CORRUPT);
    assert_non_null(strstr(err.msg, "beyond 2^63"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_give_ranges),
        cmocka_unit_test(an_empty_bitmap_has_no_value),
        cmocka_unit_test(bitsets_give_ranges),
        cmocka_unit_test(runs_give_ranges),
        cmocka_unit_test(wrong_bytes_are_named),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(a_vector_is_checked_from_length_to_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
