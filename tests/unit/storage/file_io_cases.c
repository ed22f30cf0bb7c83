/* SPDX-License-Identifier: Apache-2.0 */
/* file_io_cases.c - the contract of FileIO, the same for every scheme. */
#include "unit/storage/file_io_cases.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/path.h"

enum { RACERS = 8, RACE_BYTES = 100000 };

KnStr at(KnArena *arena, const char *base, const char *name)
{
    return kn_str(kn_path_join(arena, kn_str(base), kn_str(name)));
}

KnCode put(KnFileIO *io, KnStr location, const char *text, KnWriteMode mode)
{
    return kn_io_write(io, location, text, strlen(text), mode, NULL);
}

const char *get(KnArena *arena, KnFileIO *io, KnStr location)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 0);
    KnErr err = {0};
    if (kn_io_read_all(io, location, 1 << 20, &buf, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return kn_arena_strndup(arena, buf.data, buf.len);
}

typedef struct Listing {
    KnBuf text;
    size_t skip;
    int stop_after; /* -1 = never */
} Listing;

static KnCode list_one(void *arg, const KnFileInfo *info, KnErr *err)
{
    Listing *listing = arg;
    if (listing->stop_after-- == 0)
        return kn_err_set(err, KN_E_CANCELLED, "enough");
    kn_buf_printf(&listing->text, "%s ", info->location + listing->skip);
    return KN_OK;
}

const char *listed(KnArena *arena, KnFileIO *io, const char *base)
{
    Listing listing = {.skip = strlen(base) + 1, .stop_after = -1};
    kn_buf_init(&listing.text, 1 << 20);
    KnErr err = {0};
    if (kn_io_list(io, kn_str(base), list_one, &listing, &err) != KN_OK)
        fail_msg("%s", err.msg);
    const char *text = kn_arena_strdup(arena, listing.text.data);
    kn_buf_done(&listing.text);
    return text;
}

static void check_write_modes(KnFileIO *io, KnArena *arena, const char *base)
{
    KnStr x = at(arena, base, "d/e/x");
    KnErr err = {0};
    assert_int_equal(put(io, x, "one", KN_IO_CREATE), KN_OK);
    assert_int_equal(kn_io_write(io, x, "two", 3, KN_IO_CREATE, &err), KN_E_EXISTS);
    assert_non_null(strstr(err.msg, "d/e/x"));
    assert_string_equal(get(arena, io, x), "one");
    assert_int_equal(put(io, x, "three", KN_IO_REPLACE), KN_OK);
    assert_string_equal(get(arena, io, x), "three");
    assert_int_equal(put(io, x, "four", KN_IO_CREATE_OWN), KN_E_EXISTS);
    assert_string_equal(get(arena, io, x), "three");
    KnStr own = at(arena, base, "d/own");
    assert_int_equal(put(io, own, "mine", KN_IO_CREATE_OWN), KN_OK);
    assert_string_equal(get(arena, io, own), "mine");
    assert_int_equal(kn_io_remove(io, own, NULL), KN_OK);
    KnStr fresh = at(arena, base, "fresh");
    assert_int_equal(put(io, fresh, "", KN_IO_REPLACE), KN_OK);
    assert_string_equal(get(arena, io, fresh), "");
    assert_int_equal(kn_io_remove(io, fresh, NULL), KN_OK);
    assert_int_equal(kn_io_remove(io, fresh, NULL), KN_OK);
    assert_int_equal(kn_io_remove(io, at(arena, base, "no/such"), NULL), KN_OK);
}

static void check_reads(KnFileIO *io, KnArena *arena, const char *base)
{
    KnStr x = at(arena, base, "r");
    char out[8] = "-------";
    KnErr err = {0};
    assert_int_equal(put(io, x, "0123456789", KN_IO_CREATE), KN_OK);
    assert_int_equal(kn_io_read(io, x, 3, 4, out, &err), KN_OK);
    assert_string_equal(out, "3456---");
    assert_int_equal(kn_io_read(io, x, 10, 0, out, &err), KN_OK);
    assert_int_equal(kn_io_read(io, x, 8, 3, out, &err), KN_E_CORRUPT);
    assert_non_null(strstr(err.msg, "truncated"));
    assert_int_equal(kn_io_read(io, x, 100, 1, out, &err), KN_E_CORRUPT);
    assert_int_equal(kn_io_read(io, x, UINT64_MAX, 2, out, &err), KN_E_CORRUPT);
    assert_int_equal(kn_io_read(io, x, (uint64_t)INT64_MAX, 2, out, &err), KN_E_CORRUPT);
    assert_int_equal(kn_io_read(io, at(arena, base, "none"), 0, 1, out, &err), KN_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "/none'"));
}

static void check_whole_reads(KnFileIO *io, KnArena *arena, const char *base)
{
    KnStr x = at(arena, base, "r");
    KnErr err = {0};
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 3);
    kn_buf_text(&buf, "old");
    assert_int_equal(kn_io_read_all(io, x, 9, &buf, &err), KN_E_CORRUPT);
    assert_non_null(strstr(err.msg, "10 bytes where at most 9 are read"));
    assert_int_equal(kn_io_read_all(io, at(arena, base, "none"), 9, &buf, &err), KN_E_NOTFOUND);
    assert_string_equal(buf.data, "old"); /* untouched by failures */
    assert_int_equal(kn_io_read_all(io, x, 10, &buf, &err), KN_OK);
    assert_int_equal(buf.len, 10);
    assert_string_equal(buf.data, "0123456789");
    KnBuf zeroed = {0};
    assert_int_equal(kn_io_read_all(io, x, 10, &zeroed, &err), KN_OK);
    assert_string_equal(zeroed.data, "0123456789");
    kn_buf_done(&zeroed);
}

static void check_stat(KnFileIO *io, KnArena *arena, const char *base)
{
    KnFileInfo info = {.location = "x"};
    assert_int_equal(kn_io_stat(io, at(arena, base, "r"), &info, NULL), KN_OK);
    assert_int_equal(info.size, 10);
    assert_null(info.location);
    assert_true(info.modified_ms > INT64_C(1700000000000));
    info.size = 77;
    assert_int_equal(kn_io_stat(io, at(arena, base, "none"), &info, NULL), KN_E_NOTFOUND);
    assert_int_equal(kn_io_stat(io, at(arena, base, "d"), &info, NULL), KN_E_NOTFOUND);
    assert_int_equal(info.size, 77);
}

static void check_lists(KnFileIO *io, KnArena *arena, const char *base)
{
    static const char *const names[] = {"l/b", "l/a/x", "l/a-b", "l/a.b", "l/c/d/e", "l/A", "lx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        assert_int_equal(put(io, at(arena, base, names[i]), "..", KN_IO_CREATE), KN_OK);
    KnStr dir = at(arena, base, "l");
    assert_string_equal(listed(arena, io, dir.ptr), "A a-b a.b a/x b c/d/e ");
    assert_string_equal(listed(arena, io, at(arena, base, "none").ptr), "");
    Listing listing = {.stop_after = 2};
    kn_buf_init(&listing.text, 1000);
    KnErr err = {0};
    assert_int_equal(kn_io_list(io, dir, list_one, &listing, &err), KN_E_CANCELLED);
    assert_string_equal(err.msg, "enough");
    kn_buf_done(&listing.text);
}

void check_file_io_contract(KnFileIO *io, const char *base)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_string_equal(listed(arena, io, base), "");
    check_write_modes(io, arena, base);
    check_reads(io, arena, base);
    check_whole_reads(io, arena, base);
    check_stat(io, arena, base);
    check_lists(io, arena, base);
    assert_int_equal(kn_io_prepare_dir(io, at(arena, base, "p/q"), NULL), KN_OK);
    assert_int_equal(kn_io_prepare_dir(io, at(arena, base, "p/q"), NULL), KN_OK);
    assert_int_equal(kn_io_sync(io, at(arena, base, "r"), NULL), KN_OK);
}

typedef struct Racer {
    KnFileIO *io;
    KnStr location;
    pthread_barrier_t *start;
    char byte;
    KnCode code;
} Racer;

static void *race(void *arg)
{
    Racer *racer = arg;
    static _Thread_local char bytes[RACE_BYTES];
    memset(bytes, racer->byte, sizeof(bytes));
    (void)pthread_barrier_wait(racer->start);
    racer->code = kn_io_write(racer->io, racer->location, bytes, sizeof(bytes), KN_IO_CREATE, NULL);
    return NULL;
}

static void race_once(KnFileIO *io, KnArena *arena, const char *base, int round)
{
    pthread_barrier_t start;
    pthread_t threads[RACERS];
    Racer racers[RACERS];
    KnStr location = kn_str(kn_arena_printf(arena, "%s/race-%d/x", base, round));
    assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
    for (int i = 0; i < RACERS; ++i) {
        racers[i] = (Racer){io, location, &start, (char)('a' + i), KN_E_MAX_};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    char winner = 0;
    for (int i = 0; i < RACERS; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (racers[i].code == KN_OK) {
            assert_int_equal(winner, 0);
            winner = racers[i].byte;
        } else {
            assert_int_equal(racers[i].code, KN_E_EXISTS);
        }
    }
    (void)pthread_barrier_destroy(&start);
    const char *text = get(arena, io, location);
    assert_int_equal(strlen(text), RACE_BYTES);
    for (int i = 0; i < RACE_BYTES; ++i)
        assert_int_equal(text[i], winner);
}

void check_file_io_create_race(KnFileIO *io, const char *base)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (int round = 0; round < 20; ++round)
        race_once(io, arena, base, round);
}
