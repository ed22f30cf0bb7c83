/* SPDX-License-Identifier: Apache-2.0 */
/* metadata_file.c - see metadata_file.h. No state; thread-safe as the FileIO is. */
#include "catalog/metadata_file.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/path.h"
#include "base/random.h"

KnCode kn_metadata_file_read(KnFileIO *io, KnStr location, KnMetadata **ret, KnErr *err)
{
    KN_BUF_AUTO bytes = {0};
    kn_buf_init(&bytes, KN_METADATA_FILE_MAX);
    KN_TRY(kn_io_read_all(io, location, KN_METADATA_FILE_MAX, &bytes, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *source = kn_arena_strndup(arena, location.ptr, location.len);
    return kn_metadata_parse((KnStr){bytes.data, bytes.len}, source, ret, err);
}

static bool wants_gzip(const json_t *properties)
{
    const char *codec =
        json_string_value(json_object_get(properties, "write.metadata.compression-codec"));
    return codec && kn_str_eq_nocase(kn_str(codec), KN_STR_LIT("gzip"));
}

const char *kn_metadata_file_next(KnArena *arena, const KnMetadata *md, const char *previous)
{
    return kn_metadata_file_next_in(arena, md->location, md->properties, previous);
}

const char *kn_metadata_file_next_in(KnArena *arena, const char *location, const json_t *properties,
                                     const char *previous)
{
    int64_t version = -1;
    if (previous)
        version = kn_metadata_file_version(kn_path_basename(kn_str(previous)));
    char uuid[37];
    char *name = kn_arena_printf(arena, "%05lld-%s%s.metadata.json", (long long)version + 1,
                                 kn_random_uuid4(uuid), wants_gzip(properties) ? ".gz" : "");
    const char *folder = json_string_value(json_object_get(properties, "write.metadata.path"));
    if (!folder)
        folder = kn_path_join(arena, kn_str(location), KN_STR_LIT("metadata"));
    return kn_path_join(arena, kn_str(folder), kn_str(name));
}

/* A gzip member around the whole text, as Java writes it. */
static KnCode gzip(KnStr text, KnBuf *out, KnErr *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text.ptr, .avail_in = (uInt)text.len};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return kn_err_set(err, KN_E_NOMEM, "no memory to compress a metadata document");
    uLong bound = deflateBound(&z, (uLong)text.len);
    void *room = kn_buf_reserve(out, bound);
    if (!room) {
        (void)deflateEnd(&z);
        return kn_buf_check(out, err);
    }
    z.next_out = room;
    z.avail_out = (uInt)bound;
    int rc = deflate(&z, Z_FINISH);
    out->len += z.total_out;
    (void)deflateEnd(&z);
    if (rc != Z_STREAM_END)
        return kn_err_set(err, KN_E_IO, "compressing a metadata document of %zu bytes failed",
                          text.len);
    return KN_OK;
}

KnCode kn_metadata_file_write(KnFileIO *io, const KnMetadata *md, const char *location, KnErr *err)
{
    KN_BUF_AUTO json = {0};
    kn_buf_init(&json, KN_METADATA_FILE_MAX);
    KN_TRY(kn_metadata_to_json(md, &json, err));
    return kn_metadata_file_write_text(io, (KnStr){json.data, json.len}, location, err);
}

KnCode kn_metadata_file_write_text(KnFileIO *io, KnStr json, const char *location, KnErr *err)
{
    if (!kn_str_ends_with(kn_str(location), KN_STR_LIT(".gz.metadata.json")))
        return kn_io_write(io, kn_str(location), json.ptr, json.len, KN_IO_CREATE_OWN, err);
    KN_BUF_AUTO packed = {0};
    kn_buf_init(&packed, KN_METADATA_FILE_MAX + 4096);
    KN_TRY(gzip(json, &packed, err));
    return kn_io_write(io, kn_str(location), packed.data, packed.len, KN_IO_CREATE_OWN, err);
}

bool kn_metadata_file_is_name(KnStr name)
{
    return kn_str_ends_with(name, KN_STR_LIT(".metadata.json")) ||
           kn_str_ends_with(name, KN_STR_LIT(".metadata.json.gz"));
}

int64_t kn_metadata_file_version(KnStr name)
{
    if (!kn_metadata_file_is_name(name))
        return -1;
    if (name.ptr[0] == 'v')
        name = (KnStr){name.ptr + 1, name.len - 1};
    size_t digits = 0;
    while (digits < name.len && name.ptr[digits] >= '0' && name.ptr[digits] <= '9')
        digits++;
    int64_t version = -1;
    if (!digits || !kn_str_to_i64((KnStr){name.ptr, digits}, &version))
        return -1;
    return version;
}
