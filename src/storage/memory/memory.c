/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - FileIO in memory, for tests that want no disk.
 *
 * A sorted array of objects behind one mutex; the key is the location as it is spelled, of whatever
 * scheme. Folders do not exist. The engine cannot read it: engine_path refuses. Everything goes at
 * close.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/vec.h"
#include "storage/file_io.h"

typedef struct Object {
    char *location;
    char *bytes;
    size_t len;
    int64_t modified_ms;
} Object;

typedef struct Memory {
    KnFileIO io;
    pthread_mutex_t mutex;
    KN_VEC(Object) objects; /* by location */
} Memory;

static Memory *lock(KnFileIO *io)
{
    Memory *memory = (Memory *)io;
    (void)pthread_mutex_lock(&memory->mutex);
    return memory;
}

static void unlock(Memory *memory)
{
    (void)pthread_mutex_unlock(&memory->mutex);
}

static int compare(KnStr a, KnStr b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Where the location is or belongs. */
static size_t position(const Memory *memory, KnStr location)
{
    size_t low = 0, high = memory->objects.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(kn_str(memory->objects.items[middle].location), location) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static Object *object_find(const Memory *memory, KnStr location)
{
    size_t at = position(memory, location);
    if (at == memory->objects.len)
        return NULL;
    Object *object = &memory->objects.items[at];
    return kn_str_eq(kn_str(object->location), location) ? object : NULL;
}

static KnCode not_found(KnStr location, KnErr *err)
{
    return kn_err_set(err, KN_E_NOTFOUND, "'" KN_STR_FMT "' does not exist", KN_STR_ARG(location));
}

static char *copy(const void *bytes, size_t len)
{
    char *p = malloc(len + 1);
    if (!p)
        abort();
    if (len)
        memcpy(p, bytes, len);
    p[len] = '\0';
    return p;
}

static KnCode memory_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err)
{
    Memory *memory = lock(io);
    const Object *object = object_find(memory, location);
    if (object)
        *ret = (KnFileInfo){.size = object->len, .modified_ms = object->modified_ms};
    unlock(memory);
    return object ? KN_OK : not_found(location, err);
}

static KnCode object_read(const Object *object, KnStr location, uint64_t offset, uint64_t len,
                          void *out, KnErr *err)
{
    if (!object)
        return not_found(location, err);
    if (offset > object->len || len > object->len - offset)
        return kn_err_set(err, KN_E_CORRUPT,
                          "'" KN_STR_FMT "' is truncated: it ends at byte %zu, and %llu bytes at "
                          "offset %llu are wanted",
                          KN_STR_ARG(location), object->len, (unsigned long long)len,
                          (unsigned long long)offset);
    if (len)
        memcpy(out, object->bytes + offset, len);
    return KN_OK;
}

static KnCode memory_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                          KnErr *err)
{
    Memory *memory = lock(io);
    KnCode rc = object_read(object_find(memory, location), location, offset, len, out, err);
    unlock(memory);
    return rc;
}

static void object_insert(Memory *memory, KnStr location, Object object)
{
    size_t at = position(memory, location);
    (void)kn_vec_push(&memory->objects);
    Object *items = memory->objects.items;
    memmove(&items[at + 1], &items[at], (memory->objects.len - 1 - at) * sizeof(*items));
    object.location = copy(location.ptr, location.len);
    items[at] = object;
}

static KnCode memory_write(KnFileIO *io, KnStr location, const void *bytes, size_t len,
                           KnWriteMode mode, KnErr *err)
{
    char scheme[16];
    KN_TRY(kn_path_scheme(location, scheme, err));
    Memory *memory = lock(io);
    Object *object = object_find(memory, location);
    if (object && mode != KN_IO_REPLACE) {
        unlock(memory);
        return kn_err_set(err, KN_E_EXISTS, "cannot create '" KN_STR_FMT "': it exists already",
                          KN_STR_ARG(location));
    }
    Object new = {.bytes = copy(bytes, len), .len = len, .modified_ms = kn_clock_wall_ms()};
    if (object) {
        free(object->bytes);
        new.location = object->location;
        *object = new;
    } else {
        object_insert(memory, location, new);
    }
    unlock(memory);
    return KN_OK;
}

/* A copy of what lies below prefix, because fn may call back into this FileIO. */
static KnFileInfo *snapshot(Memory *memory, KnArena *arena, KnStr prefix, size_t *ret_len)
{
    KnFileInfo *infos = kn_arena_alloc(arena, (memory->objects.len + 1) * sizeof(*infos));
    size_t n = 0;
    kn_vec_foreach (&memory->objects, object) {
        KnStr location = kn_str(object->location);
        if (kn_path_is_within(location, prefix) && location.len > prefix.len)
            infos[n++] = (KnFileInfo){kn_arena_strdup(arena, object->location), object->len,
                                      object->modified_ms};
    }
    *ret_len = n;
    return infos;
}

static KnCode memory_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    size_t n;
    Memory *memory = lock(io);
    const KnFileInfo *infos = snapshot(memory, arena, prefix, &n);
    unlock(memory);
    for (size_t i = 0; i < n; ++i)
        KN_TRY(fn(arg, &infos[i], err));
    return KN_OK;
}

static KnCode memory_remove(KnFileIO *io, KnStr location, KnErr *err)
{
    (void)err;
    Memory *memory = lock(io);
    Object *object = object_find(memory, location);
    if (object) {
        Object *items = memory->objects.items;
        size_t at = (size_t)(object - items);
        free(object->location);
        free(object->bytes);
        memmove(&items[at], &items[at + 1], (memory->objects.len - 1 - at) * sizeof(*items));
        --memory->objects.len;
    }
    unlock(memory);
    return KN_OK;
}

static KnCode memory_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                 KnErr *err)
{
    (void)io, (void)arena, (void)ret;
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "'" KN_STR_FMT "': the engine cannot read storage in memory",
                      KN_STR_ARG(location));
}

static KnCode nothing_to_do(KnFileIO *io, KnStr location, KnErr *err)
{
    (void)io, (void)location, (void)err;
    return KN_OK;
}

static void memory_close(KnFileIO *io)
{
    Memory *memory = (Memory *)io;
    kn_vec_foreach (&memory->objects, object) {
        free(object->location);
        free(object->bytes);
    }
    kn_vec_done(&memory->objects);
    (void)pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

static const KnFileIOOps memory_ops = {
    .scheme = "memory",
    .stat = memory_stat,
    .read = memory_read,
    .read_all = kn_io_plain_read_all,
    .read_ranges = kn_io_plain_read_ranges,
    .write = memory_write,
    .list = memory_list,
    .remove = memory_remove,
    .remove_batch = 1,
    .engine_path = memory_engine_path,
    .engine_target = kn_io_plain_engine_target,
    .engine_access = kn_io_plain_engine_access,
    .sync = nothing_to_do,
    .prepare_dir = nothing_to_do,
    .close = memory_close,
};

KnCode kn_io_memory_open(KnFileIO **ret, KnErr *err)
{
    (void)err;
    Memory *memory = calloc(1, sizeof(*memory));
    if (!memory || pthread_mutex_init(&memory->mutex, NULL) != 0)
        abort();
    memory->io.ops = &memory_ops;
    *ret = &memory->io;
    return KN_OK;
}
