/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_narrow.c - reading again, but only some of the rows.
 *
 * The rows wanted come as bits. The engine leaves out row groups by ranges of the row number, so a
 * file is read in spans of blocks that hold a wanted row, and inside them kn_wanted(read, file,
 * row) has the last word. Where the wanted rows are everywhere, spans are no gain and files are
 * read as before.
 */
#include "iceberg/scan/read_internal.h"

/* Rows of a block; a Parquet row group has some 10^5. Spans in all, before they are given up. */
enum { BLOCK = 1 << 15, MAX_SPANS = 256 };

static bool any_in_block(const KnReadFile *file, int64_t block)
{
    uint64_t word = (uint64_t)block * (BLOCK / 64);
    uint64_t end = ((uint64_t)file->n_rows + 63) / 64;
    for (size_t i = 0; i < BLOCK / 64 && word < end; i++, word++)
        if (file->wanted[word])
            return true;
    return false;
}

static int64_t n_blocks(const KnReadFile *file)
{
    return (file->n_rows + BLOCK - 1) / BLOCK;
}

/* The next span at or after block *at; false = there is none. */
static bool next_span(const KnReadFile *file, int64_t *at, int64_t *ret_from, int64_t *ret_to)
{
    int64_t n = n_blocks(file);
    while (*at < n && !any_in_block(file, *at))
        ++*at;
    if (*at == n)
        return false;
    *ret_from = *at * BLOCK;
    while (*at < n && any_in_block(file, *at))
        ++*at;
    *ret_to = *at * BLOCK < file->n_rows ? *at * BLOCK : file->n_rows;
    return true;
}

static bool is_whole(const KnReadFile *file, int64_t from, int64_t to)
{
    return from == 0 && to == file->n_rows;
}

static size_t count_spans(const KnRead *read)
{
    size_t n = 0;
    for (size_t i = 0; i < read->n_files; i++) {
        int64_t from, to;
        for (int64_t at = 0; next_span(&read->files[i], &at, &from, &to);)
            n++;
    }
    return n;
}

static void add_spans(KnRead *read, size_t i)
{
    int64_t from, to;
    for (int64_t at = 0; next_span(&read->files[i], &at, &from, &to);) {
        kn_read_add_groups(read, i, i + 1);
        KnReadGroup *group = &read->groups[read->n_groups - 1];
        group->from = from;
        group->to = to;
    }
}

/* Files that are read whole and follow one another stay together. */
static void make_groups(KnRead *read, bool with_spans)
{
    size_t first = 0;
    for (size_t i = 0; i < read->n_files; i++) {
        int64_t from, to;
        int64_t at = 0;
        bool any = next_span(&read->files[i], &at, &from, &to);
        if (any && (!with_spans || is_whole(&read->files[i], from, to)))
            continue;
        kn_read_add_groups(read, first, i);
        first = i + 1;
        if (any)
            add_spans(read, i);
    }
    kn_read_add_groups(read, first, read->n_files);
}

KnCode kn_read_narrow(KnRead *read, const uint64_t *bits, const uint64_t *firsts, KnErr *err)
{
    for (size_t i = 0; i < read->n_files; i++)
        read->files[i].wanted = bits + firsts[i] / 64;
    size_t n_spans = count_spans(read);
    bool with_spans = n_spans <= MAX_SPANS;
    size_t most = read->n_files + 1 + (with_spans ? n_spans : 0);
    read->groups = kn_arena_zalloc(read->arena, most * sizeof(*read->groups));
    read->n_groups = 0;
    read->is_narrow = true;
    make_groups(read, with_spans);
    if (read->n_groups > 0)
        KN_TRY(kn_read_live_open(read, err));
    return kn_read_write_groups(read, err);
}
