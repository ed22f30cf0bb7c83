/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - known answers of XXH64 and of Iceberg's bucket hash. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static int32_t long_hash(int64_t v)
{
    uint64_t le = htole64((uint64_t)v);
    return kn_murmur3_32(&le, sizeof(le));
}

static void bucket_hashes_are_those_of_the_specification(void **state)
{
    (void)state;
    /* Iceberg spec, appendix B */
    assert_int_equal(long_hash(34), 2017239379);
    assert_int_equal(long_hash(17486), -653330422);                /* date 2017-11-16 */
    assert_int_equal(long_hash(INT64_C(81068000000)), -662762989); /* time 22:31:08 */
    assert_int_equal(long_hash(INT64_C(1510871468000000)), -2047944441);
    assert_int_equal(long_hash(INT64_C(1510871468000001)), -1207196810);
    assert_int_equal(kn_murmur3_32("iceberg", 7), 1210000089);
    static const unsigned char uuid[] = {0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd,
                                         0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7};
    assert_int_equal(kn_murmur3_32(uuid, sizeof(uuid)), 1488055340);
    assert_int_equal(kn_murmur3_32("\x00\x01\x02\x03", 4), -188683207);
    assert_int_equal(kn_murmur3_32("\x05\x8c", 2), -500754589); /* decimal 14.20 */
}

static void murmur_covers_every_tail_length(void **state)
{
    (void)state;
    assert_int_equal(kn_murmur3_32("", 0), 0);
    assert_int_equal((uint32_t)kn_murmur3_32("a", 1), 0x3c2569b2);
    assert_int_equal((uint32_t)kn_murmur3_32("abc", 3), 0xb3dd93fa);
    assert_int_equal((uint32_t)kn_murmur3_32("Hello, world!", 13), 0xc0363e43);
}

static void xxh64_is_the_published_one(void **state)
{
    (void)state;
    assert_true(kn_hash64("", 0, 0) == 0xef46db3751d8e999U);
    assert_true(kn_hash64(NULL, 0, 0) == 0xef46db3751d8e999U);
    assert_true(kn_hash64("a", 1, 0) == 0xd24ec4f1a98c6e5bU);
    assert_true(kn_hash64("abc", 3, 0) == 0x44bc2cf5ad770999U);
    assert_true(kn_hash64("abc", 3, 1) != 0x44bc2cf5ad770999U);
}

static void hexadecimal_has_sixteen_digits(void **state)
{
    (void)state;
    char out[17];
    assert_string_equal(kn_hex64(0, out), "0000000000000000");
    assert_string_equal(kn_hex64(0xef46db3751d8e999U, out), "ef46db3751d8e999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_hashes_are_those_of_the_specification),
        cmocka_unit_test(murmur_covers_every_tail_length),
        cmocka_unit_test(xxh64_is_the_published_one),
        cmocka_unit_test(hexadecimal_has_sixteen_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
