/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_location.c - where new files go, after Java's LocationProviders.
 *
 * By default `<data folder>/<partition path>/<name>`. With write.object-storage.enabled folders are
 * made of a hash, so that an object store spreads its load: 20 bits of murmur3 over the name, in
 * folders of 4, 4, 4 and 8 binary digits. Java hashes every name; here files of one COPY command
 * share the folder of its first name, since the engine writes a command's files into one folder.
 */
#include "base/hash.h"
#include "base/path.h"
#include "iceberg/write/write_internal.h"

enum {
    HASH_BITS = 20,
    DIGITS_IN_FOLDER = 4,
    FOLDERS = 3,
    HASH_TEXT = HASH_BITS + FOLDERS + 1,
};

static const char *first_of(const KnMetadata *md, const char *const *keys, size_t n)
{
    const char *found = NULL;
    for (size_t i = 0; i < n && !found; i++)
        found = kn_metadata_property(md, keys[i], NULL);
    return found;
}

static bool is_true(const KnMetadata *md, const char *key, const char *dflt)
{
    return strcasecmp(kn_metadata_property(md, key, dflt), "true") == 0;
}

/* Without slashes at its end. */
static const char *data_folder(const KnWriter *w, bool objects)
{
    static const char *const keys[] = {"write.data.path", "write.object-storage.path",
                                       "write.folder-storage.path"};
    static const char *const plain_keys[] = {"write.data.path", "write.folder-storage.path"};
    const KnMetadata *md = w->tbl->md;
    const char *base = objects ? first_of(md, keys, 3) : first_of(md, plain_keys, 2);
    if (!base)
        return kn_path_join(w->arena, kn_str(md->location), KN_STR_LIT("data"));
    size_t len = strlen(base);
    while (len > 1 && base[len - 1] == '/')
        len--;
    return kn_arena_strndup(w->arena, base, len);
}

/* "1001/1001/1001/10011001" */
static void hash_text(KnStr name, char ret[HASH_TEXT])
{
    uint32_t hash = (uint32_t)kn_murmur3_32(name.ptr, name.len);
    size_t len = 0;
    for (int i = 0; i < HASH_BITS; i++) {
        if (i > 0 && i % DIGITS_IN_FOLDER == 0 && i <= FOLDERS * DIGITS_IN_FOLDER)
            ret[len++] = '/';
        ret[len++] = hash >> (HASH_BITS - 1 - i) & 1 ? '1' : '0';
    }
    ret[len] = '\0';
}

/* The last two parts of the table's location, for data folders that tables share. */
static KnStr context_of(KnStr location)
{
    while (location.len > 1 && location.ptr[location.len - 1] == '/')
        location.len--;
    size_t at = location.len;
    for (int parts = 0; at > 0; at--) {
        if (location.ptr[at - 1] == '/' && ++parts == 2)
            break;
    }
    return (KnStr){location.ptr + at, location.len - at};
}

/* partition: its path, or empty. */
static void place_object(const KnWriter *w, KnStr partition, const char *name, KnBuf *folder,
                         KnWritePlace *ret)
{
    const KnMetadata *md = w->tbl->md;
    bool partitioned = is_true(md, "write.object-storage.partitioned-paths", "true");
    char hash[HASH_TEXT];
    KN_BUF_AUTO full;
    kn_buf_init(&full, folder->max);
    kn_buf_str(&full, partition);
    kn_buf_text(&full, partition.len > 0 ? "/" : "");
    kn_buf_text(&full, name);
    hash_text(partitioned ? (KnStr){full.data, full.len} : kn_str(name), hash);
    bool is_within = kn_str_starts_with((KnStr){folder->data, folder->len}, kn_str(md->location));
    if (is_within && !partitioned) { /* the last digits go in front of the name */
        char *last = strrchr(hash, '/');
        ret->name_prefix = kn_arena_printf(w->arena, "%s-", last + 1);
        *last = '\0';
    }
    kn_buf_char(folder, '/');
    kn_buf_text(folder, hash);
    if (!is_within) {
        kn_buf_char(folder, '/');
        kn_buf_str(folder, context_of(kn_str(md->location)));
    }
    if (partitioned && partition.len > 0) {
        kn_buf_char(folder, '/');
        kn_buf_str(folder, partition);
    }
}

KnCode kn_write_place(const KnWriter *w, const KnWritePartition *part, const char *name,
                      KnWritePlace *ret, KnErr *err)
{
    bool objects = is_true(w->tbl->md, "write.object-storage.enabled", "false");
    KN_BUF_AUTO folder;
    KN_BUF_AUTO path;
    kn_buf_init(&folder, (size_t)1 << 20);
    kn_buf_init(&path, (size_t)1 << 20);
    if (part->values)
        KN_TRY(kn_partition_path(&path, part->spec, part->type, part->values, err));
    KnStr partition = {path.data, path.len};
    KnWritePlace place = {.name_prefix = ""};
    kn_buf_text(&folder, data_folder(w, objects));
    if (objects) {
        place_object(w, partition, name, &folder, &place);
    } else if (partition.len > 0) {
        kn_buf_char(&folder, '/');
        kn_buf_str(&folder, partition);
    }
    KN_TRY(kn_buf_check(&folder, err));
    place.folder = kn_arena_strndup(w->arena, folder.data, folder.len);
    *ret = place;
    return KN_OK;
}
