/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - "/folder?name=value&...": what the text behind "parquet:" says, and where a target's
 * files are below that folder.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cdc/sinks/parquet/parquet_internal.h"
#include "net/url.h"

#define FORM "parquet:/FOLDER[?SETTING=VALUE&...]"

enum { MAX_COLUMNS = 16, MAX_LEVEL = 22, LEAST_GROUP = 2048, MOST_GROUP = 16 << 20 };

static const char *const NAMES[] = {"compression", "compression-level", "row-group-rows",
                                    "file-size", "partition-by"};
#define N_NAMES (sizeof(NAMES) / sizeof(NAMES[0]))

static bool set_codec(KnStr value, KnFilesSettings *set)
{
    static const char *const CODECS[][2] = {{"zstd", "zstd"},
                                            {"snappy", "snappy"},
                                            {"gzip", "gzip"},
                                            {"lz4", "lz4_raw"},
                                            {"none", "uncompressed"}};
    for (size_t i = 0; i < sizeof(CODECS) / sizeof(CODECS[0]); ++i)
        if (kn_str_eq(value, kn_str(CODECS[i][0])))
            set->codec = CODECS[i][1];
    return set->codec != NULL;
}

static bool set_columns(KnArena *arena, KnStr value, KnFilesSettings *set)
{
    const char **columns = kn_arena_zalloc(arena, MAX_COLUMNS * sizeof(*columns));
    set->partition = columns;
    while (value.len) {
        KnStr name = kn_sink_next_part(&value, ',');
        if (name.len == 0 || set->n_partition == MAX_COLUMNS)
            return false;
        columns[set->n_partition++] = kn_arena_strndup(arena, name.ptr, name.len);
    }
    return set->n_partition > 0;
}

static bool set_number(KnStr value, int64_t least, int64_t most, int64_t *ret)
{
    return kn_str_to_i64(value, ret) && *ret >= least && *ret <= most;
}

static bool set_value(KnArena *arena, const char *name, KnStr value, KnFilesSettings *set)
{
    if (name == NAMES[0])
        return set_codec(value, set);
    if (name == NAMES[1])
        return set_number(value, 1, MAX_LEVEL, &set->codec_level);
    if (name == NAMES[2])
        return set_number(value, LEAST_GROUP, MOST_GROUP, &set->group_rows);
    if (name == NAMES[3])
        return kn_str_to_bytes(value, &set->file_bytes) && set->file_bytes >= 1 << 16;
    return set_columns(arena, value, set);
}

static KnCode parse_setting(KnArena *arena, KnStr name, KnStr value, KnFilesSettings *set,
                            KnErr *err)
{
    KN_BUF_AUTO plain;
    kn_buf_init(&plain, 65536);
    KN_TRY(kn_url_decode(&plain, value, err));
    KN_TRY(kn_buf_check(&plain, err));
    value = (KnStr){plain.data ? plain.data : "", plain.len};
    for (size_t i = 0; i < N_NAMES; ++i) {
        if (!kn_str_eq(name, kn_str(NAMES[i])))
            continue;
        if (set_value(arena, NAMES[i], value, set))
            return KN_OK;
        return kn_err_set(err, KN_E_INVAL, "sink parquet: setting %s cannot be '" KN_STR_FMT "'",
                          NAMES[i], KN_STR_ARG(value));
    }
    return kn_sink_unknown_setting("parquet", name, NAMES, N_NAMES, err);
}

static KnCode find_root(KnArena *arena, KnStr text, const char **ret, KnErr *err)
{
    char real[PATH_MAX], scheme[16];
    struct stat st;
    if (text.len == 0)
        return kn_err_set(err, KN_E_INVAL, "sink parquet: expected " FORM);
    KN_TRY(kn_path_scheme(text, scheme, err));
    if (strcmp(scheme, "file") != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "sink parquet: '" KN_STR_FMT
                          "' is not a folder of this machine: an object store cannot show the "
                          "files of a window in one step",
                          KN_STR_ARG(text));
    const char *path = kn_arena_strndup(arena, text.ptr, text.len);
    if (memchr(text.ptr, ':', text.len))
        KN_TRY(kn_path_local(arena, text, &path, err));
    if (!realpath(path, real) || stat(real, &st) != 0)
        return kn_err_set(err, errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO,
                          "sink parquet: folder %s: %s", path, kn_errno_text(errno));
    if (!S_ISDIR(st.st_mode))
        return kn_err_set(err, KN_E_INVAL, "sink parquet: %s is a file, expected a folder", path);
    *ret = kn_arena_strdup(arena, real);
    return KN_OK;
}

KnCode kn_files_settings_parse(KnArena *arena, const char *place, KnFilesSettings *ret, KnErr *err)
{
    KnFilesSettings set = {0};
    KnStr rest = kn_str(place), path = kn_sink_next_part(&rest, '?');
    KN_TRY(find_root(arena, path, &set.root, err));
    while (rest.len) {
        KnStr value = kn_sink_next_part(&rest, '&'), name = kn_sink_next_part(&value, '=');
        KN_TRY(parse_setting(arena, name, value, &set, err));
    }
    if (set.codec_level && set.codec && strcmp(set.codec, "zstd") != 0)
        return kn_err_set(err, KN_E_INVAL, "sink parquet: compression-level is for zstd only");
    if (set.file_bytes && set.n_partition)
        return kn_err_set(err, KN_E_INVAL,
                          "sink parquet: file-size cannot be given with partition-by: there, "
                          "--chunk-mb bounds the files");
    *ret = set;
    return KN_OK;
}

/* Names with '=' are partitions to readers, those with '.' or '_' in front are not looked into. */
static KnCode check_folder(const char *name, KnErr *err)
{
    if (name[0] != '.' && name[0] != '_' && !strpbrk(name, "/="))
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "sink parquet: target '%s' cannot be a folder's name: without '/' and '=', "
                      "and neither '.' nor '_' in front",
                      name);
}

KnCode kn_files_places(KnFiles *files, const char *target, KnErr *err)
{
    const char *schema, *table, *dir = files->set.root;
    KnArena *arena = files->arena;
    KN_TRY(kn_sink_target_parse(arena, target, &schema, &table, err));
    KN_TRY(check_folder(schema, err));
    KN_TRY(check_folder(table, err));
    if (strcmp(schema, "main") != 0)
        dir = kn_path_join(arena, kn_str(dir), kn_str(schema));
    files->target = kn_path_join(arena, kn_str(dir), kn_str(table));
    files->work = kn_arena_printf(arena, "%s/.knut-%s", dir, table);
    files->stage = kn_path_join(arena, kn_str(files->work), KN_STR_LIT("window"));
    return KN_OK;
}
