/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps and Puffin files as written: bytes of the reference, and back through our reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "codec/puffin.h"

/* A plain bitmap that grows as it is told. */
typedef struct Bits {
    uint64_t *words;
    size_t n;
    uint64_t set;
} Bits;

static void bits_add(Bits *bits, uint64_t first, uint64_t count)
{
    size_t need = (size_t)((first + count) / 64 + 1);
    if (need > bits->n) {
        bits->words = realloc(bits->words, need * sizeof(*bits->words));
        assert_non_null(bits->words);
        memset(bits->words + bits->n, 0, (need - bits->n) * sizeof(*bits->words));
        bits->n = need;
    }
    for (uint64_t i = first; i < first + count; i++) {
        bits->set += !(bits->words[i / 64] >> (i % 64) & 1);
        bits->words[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

static void bits_done(Bits *bits)
{
    free(bits->words);
    *bits = (Bits){0};
}

static KnCode take(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    (void)err;
    bits_add(arg, first, count);
    return KN_OK;
}

static void same_bits(const Bits *a, const Bits *b)
{
    size_t most = a->n > b->n ? a->n : b->n;
    for (size_t i = 0; i < most; i++) {
        uint64_t x = i < a->n ? a->words[i] : 0;
        uint64_t y = i < b->n ? b->words[i] : 0;
        if (x != y)
            fail_msg("word %zu is %llx, not %llx", i, (unsigned long long)y, (unsigned long long)x);
    }
}

/* Encodes, reads back, and gives the size. */
static size_t round_trip(const Bits *bits)
{
    KnBuf buf;
    kn_buf_init(&buf, (size_t)1 << 30);
    assert_true(kn_roaring64_encode(&buf, bits->words, bits->n) == bits->set);
    assert_false(buf.failed);
    Bits back = {0};
    uint64_t cardinality = 0;
    KnErr err;
    if (kn_roaring64_decode((KnStr){buf.data, buf.len}, take, &back, &cardinality, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_true(cardinality == bits->set);
    same_bits(bits, &back);
    size_t len = buf.len;
    bits_done(&back);
    kn_buf_done(&buf);
    return len;
}

static void bytes_are_those_of_the_reference(void **state)
{
    (void)state;
    /* Java's deletion vectors of {1, 2} and {0, 1, 2, 3}. */
    static const unsigned char array[] = {1, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0x3a, 0x30, 0, 0,
                                          1, 0, 0, 0, 0, 0, 1, 0, 0x10, 0, 0, 0, 1,    0,    2, 0};
    static const unsigned char runs[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3b, 0x30,
                                         0, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 3, 0};
    Bits bits = {0};
    KnBuf buf;
    kn_buf_init(&buf, 4096);
    bits_add(&bits, 1, 2);
    kn_roaring64_encode(&buf, bits.words, bits.n);
    assert_int_equal(buf.len, sizeof(array));
    assert_memory_equal(buf.data, array, sizeof(array));
    kn_buf_reset(&buf);
    bits_add(&bits, 0, 4);
    kn_roaring64_encode(&buf, bits.words, bits.n);
    assert_int_equal(buf.len, sizeof(runs));
    assert_memory_equal(buf.data, runs, sizeof(runs));
    kn_buf_done(&buf);
    bits_done(&bits);
}

static void the_smallest_container_is_chosen(void **state)
{
    (void)state;
    Bits bits = {0};
    assert_int_equal(round_trip(&bits), 8);
    for (uint64_t i = 0; i < 4096; i++)
        bits_add(&bits, i * 3, 1);
    assert_int_equal(round_trip(&bits), 8 + 4 + 16 + 8192);
    bits_add(&bits, 60000, 1);
    assert_int_equal(round_trip(&bits), 8 + 4 + 16 + 8192);
    bits_add(&bits, 0, 65536);
    assert_int_equal(round_trip(&bits), 8 + 4 + 4 + 1 + 4 + 6);
    bits_add(&bits, 5 * 65536 - 1, 2); /* two containers more */
    assert_int_equal(round_trip(&bits), 8 + 4 + 4 + 1 + 12 + 6 + 2 + 2);
    bits_add(&bits, 9 * 65536 + 77, 1); /* a fourth: offsets appear */
    assert_int_equal(round_trip(&bits), 8 + 4 + 4 + 1 + 16 + 16 + 6 + 2 + 2 + 2);
    bits_done(&bits);
}

static void random_bitmaps_come_back(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)kn_random_id();
    print_message("seed %llu\n", (unsigned long long)seed);
    KnRng rng = {seed};
    for (int round = 0; round < 40; round++) {
        Bits bits = {0};
        uint64_t span = UINT64_C(1) << (6 + kn_rng_next(&rng) % 18);
        uint64_t longest = 1 + kn_rng_next(&rng) % (round % 3 == 0 ? 4000 : 3);
        uint64_t n = 1 + kn_rng_next(&rng) % (round % 3 == 0 ? 200 : 9000);
        for (uint64_t i = 0; i < n && bits.set < 400000; i++)
            bits_add(&bits, kn_rng_next(&rng) % span, 1 + kn_rng_next(&rng) % longest);
        round_trip(&bits);
        bits_done(&bits);
    }
}

static KnCode note(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    (void)err;
    kn_buf_printf(arg, "%llu+%llu ", (unsigned long long)first, (unsigned long long)count);
    return KN_OK;
}

static void positions_pass_32_bits(void **state)
{
    (void)state;
    size_t n = ((size_t)1 << 26) + 1;
    uint64_t *words = calloc(n, sizeof(*words)); /* never written to: pages stay unreal */
    assert_non_null(words);
    words[0] = 1 << 7;
    words[n - 1] = 7 << 5;
    KnBuf buf;
    kn_buf_init(&buf, 4096);
    assert_int_equal(kn_roaring64_encode(&buf, words, n), 4);
    assert_int_equal(buf.len, 8 + (4 + 16 + 2) + (4 + 16 + 6));
    KnBuf seen;
    kn_buf_init(&seen, 4096);
    uint64_t cardinality = 0;
    KnErr err;
    assert_int_equal(
        kn_roaring64_decode((KnStr){buf.data, buf.len}, note, &seen, &cardinality, &err), KN_OK);
    assert_string_equal(seen.data, "7+1 4294967301+3 ");
    kn_buf_done(&seen);
    kn_buf_done(&buf);
    free(words);
}

/* ---- files ---- */

static int64_t number(const json_t *obj, const char *key)
{
    assert_true(json_is_integer(json_object_get(obj, key)));
    return json_integer_value(json_object_get(obj, key));
}

static const char *text(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

/* The footer's JSON, found from the end of the file as readers do. */
static json_t *footer(KnStr file)
{
    assert_memory_equal(file.ptr, "PFA1", 4);
    const char *end = file.ptr + file.len;
    assert_memory_equal(end - 4, "PFA1", 4);
    assert_memory_equal(end - 8, "\0\0\0\0", 4);
    const uint8_t *size = (const uint8_t *)end - 12;
    size_t len = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
    assert_memory_equal(end - 12 - len - 4, "PFA1", 4);
    json_t *doc = NULL;
    KnErr err;
    if (kn_json_parse(end - 12 - len, len, &doc, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return doc;
}

static void a_file_holds_vectors_and_says_so(void **state)
{
    (void)state;
    KnErr err;
    KnPuffinWriter *w = kn_puffin_writer_new(1 << 20);
    Bits bits[2] = {{0}};
    bits_add(&bits[0], 3, 9);
    bits_add(&bits[1], 100000, 1);
    KnPuffinPlace places[2];
    static const char *const paths[] = {"file:/t/a.parquet", "file:/t/\xc3\xa9 \"b\".parquet"};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            kn_puffin_writer_add_vector(w, paths[i], bits[i].words, bits[i].n, &places[i], &err),
            KN_OK);
    assert_int_equal(places[0].offset, 4);
    assert_int_equal(places[1].offset, 4 + places[0].length);
    KnStr file;
    assert_int_equal(kn_puffin_writer_finish(w, "knut test", &file, &err), KN_OK);
    KN_JSON_AUTO doc = footer(file);
    assert_string_equal(text(json_object_get(doc, "properties"), "created-by"), "knut test");
    for (size_t i = 0; i < 2; i++) {
        const json_t *blob = json_array_get(json_object_get(doc, "blobs"), i);
        assert_string_equal(text(blob, "type"), "deletion-vector-v1");
        assert_int_equal(number(blob, "offset"), places[i].offset);
        assert_int_equal(number(blob, "length"), places[i].length);
        assert_int_equal(number(blob, "snapshot-id"), -1);
        assert_int_equal(number(blob, "sequence-number"), -1);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(blob, "fields"), 0)),
                         2147483645);
        const json_t *properties = json_object_get(blob, "properties");
        assert_string_equal(text(properties, "referenced-data-file"), paths[i]);
        assert_string_equal(text(properties, "cardinality"), i == 0 ? "9" : "1");
        Bits back = {0};
        uint64_t cardinality = 0;
        KnStr bytes = {file.ptr + places[i].offset, (size_t)places[i].length};
        assert_int_equal(kn_puffin_vector_decode(bytes, take, &back, &cardinality, &err), KN_OK);
        assert_true(cardinality == places[i].cardinality);
        same_bits(&bits[i], &back);
        bits_done(&back);
        bits_done(&bits[i]);
    }
    kn_puffin_writer_free(w);
}

static void other_blobs_go_in_as_they_are(void **state)
{
    (void)state;
    KnErr err;
    KnPuffinWriter *w = kn_puffin_writer_new(300);
    static const int32_t fields[] = {1, 2};
    KN_JSON_AUTO properties = json_object();
    json_object_set_new(properties, "ndv", json_string("12"));
    KnPuffinBlob blob = {"apache-datasketches-theta-v1", fields, 2, 17, 3, properties};
    KnPuffinPlace place;
    assert_int_equal(kn_puffin_writer_add(w, &blob, KN_STR_LIT("sketch"), &place, &err), KN_OK);
    assert_int_equal(kn_puffin_writer_size(w), 10);
    KnStr file;
    assert_int_equal(kn_puffin_writer_finish(w, "knut", &file, &err), KN_OK);
    KN_JSON_AUTO doc = footer(file);
    const json_t *noted = json_array_get(json_object_get(doc, "blobs"), 0);
    assert_int_equal(number(noted, "snapshot-id"), 17);
    assert_int_equal(number(noted, "length"), 6);
    assert_string_equal(text(json_object_get(noted, "properties"), "ndv"), "12");
    kn_puffin_writer_free(w);
    w = kn_puffin_writer_new(8);
    assert_int_equal(kn_puffin_writer_add(w, &blob, KN_STR_LIT("sketch"), &place, &err),
                     KN_E_NOMEM);
    kn_puffin_writer_free(w);
}

static void a_name_that_is_no_text_is_refused(void **state)
{
    (void)state;
    KnErr err;
    KnPuffinWriter *w = kn_puffin_writer_new(1 << 20);
    uint64_t word = 1;
    KnPuffinPlace place;
    assert_int_equal(kn_puffin_writer_add_vector(w, "a\xff", &word, 1, &place, &err), KN_E_CORRUPT);
    kn_puffin_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_reference),
        cmocka_unit_test(the_smallest_container_is_chosen),
        cmocka_unit_test(random_bitmaps_come_back),
        cmocka_unit_test(positions_pass_32_bits),
        cmocka_unit_test(a_file_holds_vectors_and_says_so),
        cmocka_unit_test(other_blobs_go_in_as_they_are),
        cmocka_unit_test(a_name_that_is_no_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
