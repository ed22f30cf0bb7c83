/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_thrift.c - what is written reads back, in short and long forms; faults stay inside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/parquet_thrift.h"

static KnThrift cursor(const KnBuf *buf)
{
    const uint8_t *bytes = (const uint8_t *)buf->data;
    return (KnThrift){.at = bytes, .end = bytes + buf->len};
}

/* Ids one after another, far apart, and backwards; numbers of both signs and all lengths. */
static const int ids[] = {1, 2, 17, 33, 5, -3, 400};
static const int64_t numbers[] = {0, -1, 63, -64, INT64_MAX, INT64_MIN, 1234567890123};
enum { N = 7 };

static void fields_written_read_back(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 4096);
    int last = 0;
    for (int i = 0; i < N; i++)
        kn_thrift_write_i64(&buf, &last, ids[i], numbers[i]);
    kn_buf_char(&buf, KN_THRIFT_STOP);
    KnThrift t = cursor(&buf);
    KnThriftField f = {0};
    for (int i = 0; i < N; i++) {
        assert_true(kn_thrift_field_next(&t, &f));
        assert_int_equal(f.id, ids[i]);
        assert_true(kn_thrift_int(&t, &f, KN_THRIFT_I64) == numbers[i]);
    }
    assert_false(kn_thrift_field_next(&t, &f));
    assert_false(t.bad);
    assert_ptr_equal(t.at, t.end);
}

static void fields_after_a_dropped_one_keep_their_ids(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    KN_BUF_AUTO copy;
    kn_buf_init(&buf, 4096);
    kn_buf_init(&copy, 4096);
    int last = 0;
    for (int id = 1; id <= 40; id += 13)
        kn_thrift_write_i32(&buf, &last, id, id * 100);
    kn_buf_char(&buf, KN_THRIFT_STOP);
    KnThrift t = cursor(&buf);
    KnThriftField f = {0};
    last = 0;
    while (kn_thrift_field_next(&t, &f)) {
        if (f.id == 14 || f.id == 27)
            kn_thrift_skip(&t, f.type);
        else
            kn_thrift_copy(&copy, &last, &f, &t);
    }
    kn_buf_char(&copy, KN_THRIFT_STOP);
    t = cursor(&copy);
    f = (KnThriftField){0};
    assert_true(kn_thrift_field_next(&t, &f));
    assert_int_equal(f.id, 1);
    assert_int_equal(kn_thrift_int(&t, &f, KN_THRIFT_I32), 100);
    assert_true(kn_thrift_field_next(&t, &f));
    assert_int_equal(f.id, 40);
    assert_int_equal(kn_thrift_int(&t, &f, KN_THRIFT_I32), 4000);
    assert_false(kn_thrift_field_next(&t, &f));
    assert_false(t.bad);
}

static void lists_of_any_length_read_back(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 14, 15, 16, 300};
    for (size_t i = 0; i < 6; i++) {
        KN_BUF_AUTO buf;
        kn_buf_init(&buf, 4096);
        kn_thrift_write_list(&buf, KN_THRIFT_STRUCT, counts[i]);
        for (uint64_t n = 0; n < counts[i]; n++)
            kn_buf_char(&buf, KN_THRIFT_STOP);
        KnThrift t = cursor(&buf);
        const KnThriftField f = {.type = KN_THRIFT_LIST};
        assert_int_equal(kn_thrift_structs_open(&t, &f), counts[i]);
        assert_int_equal(t.end - t.at, counts[i]);
        t = cursor(&buf);
        kn_thrift_skip(&t, KN_THRIFT_LIST);
        assert_false(t.bad);
        assert_ptr_equal(t.at, t.end);
    }
}

static void assert_bad(const char *bytes, size_t len)
{
    const uint8_t *start = (const uint8_t *)bytes;
    KnThrift t = {.at = start, .end = start + len};
    kn_thrift_skip(&t, KN_THRIFT_STRUCT);
    assert_true(t.bad);
    assert_true(t.at <= t.end);
}

static void faults_make_the_cursor_bad(void **state)
{
    (void)state;
    assert_bad("", 0);                                                  /* no end of the struct */
    assert_bad("\x16\x80", 2);                                          /* a number cut short */
    assert_bad("\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); /* and one too long */
    assert_bad("\x18\x05"
               "abc",
               5);                               /* text longer than what is left */
    assert_bad("\x19\xfc\xff\xff\xff\x7f", 6);   /* a list of more than there is */
    assert_bad("\x1d", 1);                       /* no such type */
    assert_bad("\x05\xfe\xff\xff\xff\x0f\0", 7); /* an id beyond 16 bits */
    char deep[200];
    memset(deep, 0x1c, sizeof(deep));
    assert_bad(deep, sizeof(deep));
}

static void a_value_of_another_type_is_a_fault(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 64);
    int last = 0;
    kn_thrift_write_i64(&buf, &last, 1, 5);
    KnThrift t = cursor(&buf);
    KnThriftField f = {0};
    assert_true(kn_thrift_field_next(&t, &f));
    assert_int_equal(kn_thrift_int(&t, &f, KN_THRIFT_I32), 0);
    assert_true(t.bad);
    assert_false(kn_thrift_field_next(&t, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_written_read_back),
        cmocka_unit_test(fields_after_a_dropped_one_keep_their_ids),
        cmocka_unit_test(lists_of_any_length_read_back),
        cmocka_unit_test(faults_make_the_cursor_bad),
        cmocka_unit_test(a_value_of_another_type_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
