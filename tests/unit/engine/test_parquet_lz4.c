/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_lz4.c - files of codec LZ4 are read through copies; damage is told, never followed.
 * Where the files in tests/data/parquet come from is told there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "engine/parquet.h"
#include "engine/parquet_fix.h"
#include "engine/parquet_lz4.h"
#include "engine/parquet_meta.h"
#include "unit/engine/support.h"

#define DATA(name) KN_TEST_DATA_DIR "/data/parquet/" name

static const char *path_of(const Bench *b, const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", b->dir, name);
    return path;
}

static void file_read(const char *path, KnBuf *buf)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    kn_buf_init(buf, 1 << 24);
    char *to = kn_buf_reserve(buf, (size_t)st.st_size);
    assert_non_null(to);
    assert_int_equal(read(fd, to, (size_t)st.st_size), st.st_size);
    buf->len = (size_t)st.st_size;
    close(fd);
}

static void file_write(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

/* ---- files of other writers ---- */

#define NESTED_ROWS                                                                                \
    "SELECT i AS p, i AS id, CASE WHEN i % 4 = 0 THEN NULL ELSE 'n' || (i % 7) END AS name, "      \
    "i / 4 AS d, CASE WHEN i % 5 = 0 THEN NULL ELSE {'a': i::INTEGER, 'b': CASE WHEN i % 3 = 0 "   \
    "THEN NULL ELSE repeat('x', i % 11) END} END AS st, CASE WHEN i % 6 = 0 THEN NULL "            \
    "WHEN i % 6 = 1 THEN [] ELSE [i, NULL, i + 1] END AS li, CASE WHEN i % 8 = 0 THEN NULL "       \
    "ELSE MAP {'k' || i: i::INTEGER} END AS mp, NULL::VARCHAR AS nothing, i % 2 = 0 AS even, "     \
    "i::DECIMAL(20, 3) AS dec FROM range(1000) t(i)"
#define BLOCK_ROWS                                                                                 \
    "SELECT i AS p, i AS id, repeat('row ' || (i // 100) || ' ', 60) AS text FROM range(2000) "    \
    "t(i)"
#define JAVA_ROWS                                                                                  \
    "SELECT i AS p, 'lz4' AS codec, i::INTEGER AS i, repeat('x', i) AS s FROM range(20) t(i)"

/* Rows that are in one of the two and not in the other, by number and value. */
static void assert_same_rows(Bench *b, const char *path, const char *rows)
{
    const char *differ =
        bench_text(b,
                   "WITH f AS (SELECT file_row_number AS p, * FROM read_parquet('%s')), "
                   "r AS (%s) SELECT (SELECT count(*) FROM (FROM f EXCEPT ALL FROM r)) || ' ' || "
                   "(SELECT count(*) FROM (FROM r EXCEPT ALL FROM f)) || ' ' || "
                   "(SELECT count(*) = (SELECT count(*) FROM r) FROM f)",
                   path, rows);
    assert_string_equal(differ, "0 0 true");
}

static KnPqFile *footer_of(Bench *b, KnArena *arena, const char *path)
{
    KnPqFile *file = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &file, &b->err));
    return file;
}

/* Offsets and sizes in the copy's footer are what is in the file. */
static void assert_footer_is_right(Bench *b, const char *path)
{
    static const char sql[] =
        "SELECT count(*) FILTER (compression = 'LZ4' OR bloom_filter_offset IS NOT NULL) || ' ' || "
        "bool_and(start = coalesce(before, 4)) || ' ' || bool_and(row_group_compressed_bytes = "
        "total) || ' ' || bool_and(row_group_bytes = plain) || ' ' || bool_and(data_page_offset >= "
        "start AND data_page_offset < start + total_compressed_size) FROM (SELECT *, "
        "lag(start + total_compressed_size) OVER (ORDER BY start) AS before, "
        "sum(total_compressed_size) OVER (PARTITION BY row_group_id) AS total, "
        "sum(total_uncompressed_size) OVER (PARTITION BY row_group_id) AS plain FROM (SELECT *, "
        "coalesce(dictionary_page_offset, data_page_offset) AS start FROM parquet_metadata('%s')))";
    char query[2048];
    (void)snprintf(query, sizeof(query), sql, path);
    assert_string_equal(bench_text(b, "%s", query), "0 true true true true");
}

static void check_java_file(Bench *b, const char *path, const char *rows, int64_t n_groups)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *copy = path_of(b, "copy.parquet");
    KnPqFile *file = footer_of(b, arena, path);
    assert_true(file->hadoop_lz4);
    assert_int_equal(file->n_row_groups, n_groups);
    assert_ok(b, kn_parquet_lz4_copy(path, copy, &b->err));
    KnPqFile *made = footer_of(b, arena, copy);
    assert_false(made->hadoop_lz4);
    assert_int_equal(made->n_row_groups, n_groups);
    assert_string_equal(made->shape, file->shape);
    assert_same_rows(b, copy, rows);
    assert_footer_is_right(b, copy);
}

static void files_of_javas_lz4_are_read(void **state)
{
    Bench *b = *state;
    check_java_file(b, DATA("lz4_iceberg_java.parquet"), JAVA_ROWS, 1);
    check_java_file(b, DATA("lz4_hadoop_v1.parquet"), NESTED_ROWS, 4);
    check_java_file(b, DATA("lz4_hadoop_v2.parquet"), NESTED_ROWS, 2);
    check_java_file(b, DATA("lz4_hadoop_blocks.parquet"), BLOCK_ROWS, 1);
}

static void the_engine_itself_refuses_them(void **state)
{
    Bench *b = *state;
    KnStream *stream = NULL;
    KnBatch *batch = NULL;
    KnCode code = kn_session_query(
        b->ses, "SELECT * FROM read_parquet('" DATA("lz4_iceberg_java.parquet") "')", &stream,
        &b->err);
    if (code == KN_OK)
        code = kn_stream_next(stream, &batch, &b->err);
    assert_int_not_equal(code, KN_OK);
    assert_non_null(strstr(b->err.msg, "LZ4"));
    kn_stream_close(stream);
}

/* ---- files made for the test ---- */

/* The same pages under another codec, in chunks of which `which` says so. */
static void recode(const char *path, int codec, bool (*which)(size_t chunk))
{
    KnErr err;
    KnPqMeta meta;
    KN_BUF_AUTO bytes;
    KN_BUF_AUTO footer;
    file_read(path, &bytes);
    kn_buf_init(&footer, 1 << 24);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(kn_pq_meta_read(fd, (int64_t)bytes.len, &meta, &err), KN_OK);
    for (size_t i = 0; i < meta.chunks.len; i++)
        if (which(i))
            meta.chunks.items[i].codec = codec;
    assert_int_equal(kn_pq_meta_write(&meta, &footer, &err), KN_OK);
    bytes.len = (size_t)meta.data_end;
    kn_buf_append(&bytes, footer.data, footer.len);
    uint32_t len = (uint32_t)footer.len;
    kn_buf_append(&bytes, &len, 4);
    kn_buf_text(&bytes, "PAR1");
    file_write(path, bytes.data, bytes.len);
    kn_pq_meta_done(&meta);
    close(fd);
}

static bool every(size_t chunk)
{
    (void)chunk;
    return true;
}

static bool odd(size_t chunk)
{
    return chunk % 2 == 1;
}

static const char *arrow_file(const Bench *b)
{
    KN_BUF_AUTO bytes;
    const char *path = path_of(b, "arrow.parquet");
    file_read(DATA("lz4_raw_arrow.parquet"), &bytes);
    file_write(path, bytes.data, bytes.len);
    return path;
}

static void bare_blocks_under_the_old_number_are_read(void **state)
{
    Bench *b = *state;
    const char *path = arrow_file(b);
    const char *copy = path_of(b, "copy.parquet");
    recode(path, KN_PQ_LZ4, every);
    assert_true(kn_pq_codecs_of(path) == 1 << KN_PQ_LZ4);
    assert_ok(b, kn_parquet_lz4_copy(path, copy, &b->err));
    assert_same_rows(
        b, copy,
        "SELECT file_row_number AS p, * FROM read_parquet('" DATA("lz4_raw_arrow.parquet") "')");
    assert_footer_is_right(b, copy);
}

static void chunks_of_other_codecs_are_taken_over(void **state)
{
    Bench *b = *state;
    const char *path = arrow_file(b);
    const char *copy = path_of(b, "copy.parquet");
    recode(path, KN_PQ_LZ4, odd);
    assert_true(kn_pq_codecs_of(path) == (1 << KN_PQ_LZ4 | 1 << KN_PQ_LZ4_RAW));
    assert_ok(b, kn_parquet_lz4_copy(path, copy, &b->err));
    assert_same_rows(
        b, copy,
        "SELECT file_row_number AS p, * FROM read_parquet('" DATA("lz4_raw_arrow.parquet") "')");
    assert_footer_is_right(b, copy);
    /* A copy of a copy has nothing left to change. */
    const char *again = path_of(b, "again.parquet");
    KN_BUF_AUTO one;
    KN_BUF_AUTO two;
    assert_ok(b, kn_parquet_lz4_copy(copy, again, &b->err));
    file_read(copy, &one);
    file_read(again, &two);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
}

static void codecs_that_cannot_be_read_are_named(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path = arrow_file(b);
    KnPqFile *files = NULL;
    recode(path, KN_PQ_LZO, odd);
    assert_code(b, kn_parquet_footers(b->ses, arena, &path, 1, &files, &b->err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(b->err.msg, "LZO"));
    assert_non_null(strstr(b->err.msg, path));
}

/* The engine writes nanoseconds unadjusted only; setting the bit makes the other kind. */
static void set_adjusted(const char *path)
{
    KN_BUF_AUTO bytes;
    static const char from[] = {0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00};
    file_read(path, &bytes);
    char *at = memmem(bytes.data, bytes.len, from, sizeof(from));
    assert_non_null(at);
    *at = 0x11;
    file_write(path, bytes.data, bytes.len);
}

static void both_fixes_go_into_one_copy(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path = path_of(b, "ns.parquet");
    const char *copy = path_of(b, "copy.parquet");
    static const char ask[] = "SELECT typeof(t) || ' ' || min(epoch_ns(t)) FROM read_parquet('%s') "
                              "GROUP BY typeof(t)";
    char query[512];
    bench_exec(b,
               "COPY (SELECT i AS id, make_timestamp_ns(1700000000123456789 + i) AS t "
               "FROM range(5000) t(i)) TO '%s' (FORMAT parquet, CODEC lz4_raw)",
               path);
    set_adjusted(path);
    recode(path, KN_PQ_LZ4, every);
    KnPqFile *file = footer_of(b, arena, path);
    assert_true(file->hadoop_lz4);
    assert_true(file->root.children[1].nanos_utc);
    assert_ok(b, kn_parquet_fix_copy(path, copy, KN_PQ_FIX_LZ4 | KN_PQ_FIX_NANOS, &b->err));
    (void)snprintf(query, sizeof(query), ask, copy);
    assert_string_equal(bench_text(b, "%s", query), "TIMESTAMP_NS 1700000000123456789");
    assert_ok(b, kn_parquet_fix_copy(path, copy, KN_PQ_FIX_LZ4, &b->err));
    (void)snprintf(query, sizeof(query), ask, copy);
    assert_string_equal(bench_text(b, "%s", query), "TIMESTAMP WITH TIME ZONE 1700000000123456000");
    /* Nanoseconds alone do not touch the pages. */
    assert_ok(b, kn_parquet_fix_copy(path, copy, KN_PQ_FIX_NANOS, &b->err));
    file = footer_of(b, arena, copy);
    assert_true(file->hadoop_lz4);
    assert_false(file->root.children[1].nanos_utc);
    assert_code(b, kn_parquet_fix_copy("/nowhere/x", copy, KN_PQ_FIX_LZ4, &b->err), KN_E_NOTFOUND);
}

/* ---- pages ---- */

static KnCode decode(const char *page, size_t len, size_t plain_len, KnStr *block, char *plain)
{
    char *copy = malloc(len + 1); /* its own size, for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, page, len);
    KnErr err;
    KnStr in_copy = {0};
    KnCode code =
        kn_parquet_lz4_decode((KnStr){copy, len}, (uint8_t *)plain, plain_len, &in_copy, &err);
    if (code == KN_OK)
        *block = (KnStr){in_copy.ptr ? page + (in_copy.ptr - copy) : NULL, in_copy.len};
    free(copy);
    return code;
}

/* Blocks of literals only: a token that counts them, and they. */
static void pages_are_frames_or_a_bare_block(void **state)
{
    (void)state;
    KnStr block = {0};
    char plain[64];
    static const char one[] = "\0\0\0\3\0\0\0\4\x30"
                              "abc";
    assert_int_equal(decode(one, 12, 3, &block, plain), KN_OK);
    assert_memory_equal(plain, "abc", 3);
    assert_ptr_equal(block.ptr, one + 8);
    assert_int_equal(block.len, 4);
    assert_int_equal(decode(one + 8, 4, 3, &block, plain), KN_OK);
    assert_ptr_equal(block.ptr, one + 8);

    static const char two_blocks[] = "\0\0\0\3\0\0\0\4\x30"
                                     "abc\0\0\0\1\0\0\0\2\x10"
                                     "d\0\0\0\0";
    assert_int_equal(decode(two_blocks, 26, 4, &block, plain), KN_OK);
    assert_memory_equal(plain, "abcd", 4);
    assert_null(block.ptr);
    static const char two_chunks[] = "\0\0\0\4\0\0\0\4\x30"
                                     "abc\0\0\0\2\x10"
                                     "d";
    assert_int_equal(decode(two_chunks, 18, 4, &block, plain), KN_OK);
    assert_memory_equal(plain, "abcd", 4);
    assert_null(block.ptr);
}

static void pages_that_lie_about_sizes_are_corrupt(void **state)
{
    (void)state;
    KnStr block = {0};
    char plain[64];
    static const char page[] = "\0\0\0\4\0\0\0\4\x30"
                               "abc\0\0\0\2\x10"
                               "d";
    for (size_t len = 0; len < 18; len++)
        assert_int_equal(decode(page, len, 4, &block, plain), KN_E_CORRUPT);
    for (size_t plain_len = 0; plain_len < 9; plain_len++)
        if (plain_len != 4)
            assert_int_equal(decode(page, 18, plain_len, &block, plain), KN_E_CORRUPT);
    assert_int_equal(decode("\xff\xff\xff\xff\0\0\0\2\x10"
                            "d",
                            10, 1, &block, plain),
                     KN_E_CORRUPT);
    assert_int_equal(decode("\0\0\0\1\xff\xff\xff\xff\x10"
                            "d",
                            10, 1, &block, plain),
                     KN_E_CORRUPT);
    assert_int_equal(decode("\0\0\0\1\0\0\0\0\0\0\0\0", 12, 1, &block, plain), KN_E_CORRUPT);
}

/* ---- damage ---- */

static void assert_told(Bench *b, const char *bad, const char *copy)
{
    b->err = (KnErr){0};
    KnCode code = kn_parquet_lz4_copy(bad, copy, &b->err);
    if (code == KN_OK) {
        assert_true((kn_pq_codecs_of(copy) & 1 << KN_PQ_LZ4) == 0);
        return;
    }
    assert_true(code == KN_E_CORRUPT || code == KN_E_UNSUPPORTED);
    assert_non_null(strstr(b->err.msg, bad));
    assert_null(strchr(b->err.msg, '\n'));
    assert_int_equal(access(copy, F_OK), -1);
}

static void files_cut_short_are_corrupt(void **state)
{
    Bench *b = *state;
    KN_BUF_AUTO bytes;
    const char *bad = path_of(b, "bad.parquet");
    const char *copy = path_of(b, "copy.parquet");
    file_read(DATA("lz4_iceberg_java.parquet"), &bytes);
    for (size_t len = 0; len < bytes.len; len += 7) {
        file_write(bad, bytes.data, len);
        assert_code(b, kn_parquet_lz4_copy(bad, copy, &b->err), KN_E_CORRUPT);
        assert_int_equal(access(copy, F_OK), -1);
    }
    /* What is cut out of the middle leaves a footer that speaks of bytes that are not there. */
    for (size_t cut = 16; cut + 700 < bytes.len; cut += 13) {
        KN_BUF_AUTO rest;
        kn_buf_init(&rest, 1 << 20);
        kn_buf_append(&rest, bytes.data, 4);
        kn_buf_append(&rest, bytes.data + cut, bytes.len - cut);
        file_write(bad, rest.data, rest.len);
        assert_code(b, kn_parquet_lz4_copy(bad, copy, &b->err), KN_E_CORRUPT);
    }
}

static void a_flipped_bit_is_told_or_harmless(void **state)
{
    Bench *b = *state;
    static const char *const files[] = {DATA("lz4_iceberg_java.parquet"),
                                        DATA("lz4_hadoop_v2.parquet")};
    static const size_t steps[] = {1, 31};
    const char *bad = path_of(b, "bad.parquet");
    const char *copy = path_of(b, "copy.parquet");
    for (size_t f = 0; f < 2; f++) {
        KN_BUF_AUTO bytes;
        file_read(files[f], &bytes);
        for (size_t i = 0; i < bytes.len; i += steps[f]) {
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << i % 8);
            file_write(bad, bytes.data, bytes.len);
            assert_told(b, bad, copy);
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << i % 8);
        }
    }
}

static void encrypted_files_are_refused(void **state)
{
    Bench *b = *state;
    KN_BUF_AUTO bytes;
    const char *bad = path_of(b, "bad.parquet");
    const char *copy = path_of(b, "copy.parquet");
    file_read(DATA("lz4_iceberg_java.parquet"), &bytes);
    bytes.data[bytes.len - 1] = 'E';
    file_write(bad, bytes.data, bytes.len);
    assert_code(b, kn_parquet_lz4_copy(bad, copy, &b->err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(b->err.msg, "encrypted"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(files_of_javas_lz4_are_read),
        CASE(the_engine_itself_refuses_them),
        CASE(bare_blocks_under_the_old_number_are_read),
        CASE(chunks_of_other_codecs_are_taken_over),
        CASE(codecs_that_cannot_be_read_are_named),
        CASE(both_fixes_go_into_one_copy),
        cmocka_unit_test(pages_are_frames_or_a_bare_block),
        cmocka_unit_test(pages_that_lie_about_sizes_are_corrupt),
        CASE(files_cut_short_are_corrupt),
        CASE(a_flipped_bit_is_told_or_harmless),
        CASE(encrypted_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
