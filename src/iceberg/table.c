/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - names of tables as text, which files a table's metadata may name, and which snapshot a
 * command means.
 *
 * The path policy is a check of text on normal paths (kn_path_local): symbolic links are not
 * resolved, they are the operator's own. Everything is thread-safe on an immutable table.
 */
#include "iceberg/table.h"

#include <string.h>

#include "base/path.h"
#include "iceberg/schema/value.h"

enum { MAX_LEVELS = 64 };

/* ---- identifiers ---- */

/* One part at *pos: bare up to '.', or quoted with "" for a quote inside. */
static KnCode part_parse(KnArena *arena, KnStr text, size_t *pos, const char **ret, KnErr *err)
{
    size_t i = *pos;
    char *out = kn_arena_alloc(arena, text.len + 1);
    size_t n = 0;
    bool quoted = i < text.len && text.ptr[i] == '"';
    bool closed = !quoted;
    for (i += quoted; i < text.len; i++) {
        char c = text.ptr[i];
        if (quoted && c == '"') {
            if (i + 1 >= text.len || text.ptr[i + 1] != '"') {
                closed = true;
                i++;
                break;
            }
            i++;
        } else if (!quoted && c == '.') {
            break;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    if (!closed || (quoted && i < text.len && text.ptr[i] != '.'))
        return kn_err_set(err, KN_E_INVAL,
                          "table name '" KN_STR_FMT
                          "': a quoted part must end with '\"' before '.' or the end",
                          KN_STR_ARG(text));
    *pos = i;
    *ret = out;
    return KN_OK;
}

static KnCode part_check(KnStr text, const char *part, size_t consumed, KnErr *err)
{
    const char *why = NULL;
    if (*part == '\0')
        why = "has an empty part";
    else if (strlen(part) > consumed || memchr(text.ptr, '\0', text.len))
        why = "has a NUL byte";
    else if (strchr(part, '/'))
        why = "has a '/'";
    else if (strcmp(part, "..") == 0 || strcmp(part, ".") == 0)
        why = "has a part '.' or '..'";
    if (!why)
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "table name '" KN_STR_FMT "' %s: write namespace.table, parts with dots in "
                      "double quotes",
                      KN_STR_ARG(text), why);
}

KnCode kn_table_ident_parse(KnArena *arena, KnStr text, KnTableIdent *ret, KnErr *err)
{
    const char *parts[MAX_LEVELS + 1];
    size_t n = 0;
    size_t pos = 0;
    for (;;) {
        if (n > MAX_LEVELS)
            return kn_err_set(err, KN_E_INVAL, "table name '" KN_STR_FMT "' has over %d levels",
                              KN_STR_ARG(text), MAX_LEVELS);
        size_t start = pos;
        KN_TRY(part_parse(arena, text, &pos, &parts[n], err));
        KN_TRY(part_check(text, parts[n], pos - start, err));
        n++;
        if (pos == text.len)
            break;
        pos++; /* the dot; a dot at the end leaves an empty part to be refused */
    }
    if (n < 2)
        return kn_err_set(err, KN_E_INVAL,
                          "table name '" KN_STR_FMT "' has no namespace: write namespace.table",
                          KN_STR_ARG(text));
    const char **levels = kn_arena_alloc(arena, n * sizeof(*levels));
    memcpy(levels, parts, (n - 1) * sizeof(*levels));
    *ret = (KnTableIdent){.levels = levels, .n_levels = n - 1, .name = parts[n - 1]};
    return KN_OK;
}

static void part_format(KnBuf *buf, const char *part)
{
    if (!strpbrk(part, ".\"")) {
        kn_buf_text(buf, part);
        return;
    }
    kn_buf_char(buf, '"');
    for (; *part; part++) {
        if (*part == '"')
            kn_buf_char(buf, '"');
        kn_buf_char(buf, *part);
    }
    kn_buf_char(buf, '"');
}

const char *kn_table_ident_format(KnArena *arena, const KnTableIdent *ident)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < ident->n_levels; i++) {
        part_format(&buf, ident->levels[i]);
        kn_buf_char(&buf, '.');
    }
    part_format(&buf, ident->name ? ident->name : "");
    return kn_arena_strndup(arena, buf.data, buf.len);
}

/* ---- path policy ---- */

/* Local paths become absolute and normal; other schemes stay text, without . and .. inside. */
static KnCode normal_path(KnArena *arena, KnStr location, KnStr *ret, KnErr *err)
{
    char scheme[16];
    KN_TRY(kn_path_scheme(location, scheme, err));
    if (strcmp(scheme, "file") == 0) {
        const char *path = NULL;
        KN_TRY(kn_path_local(arena, location, &path, err));
        *ret = kn_str(path);
        return KN_OK;
    }
    const char *text = kn_arena_strndup(arena, location.ptr, location.len);
    size_t len = strlen(text);
    if (len != location.len || strstr(text, "/../") || strstr(text, "/./") ||
        kn_str_ends_with(location, KN_STR_LIT("/..")) ||
        kn_str_ends_with(location, KN_STR_LIT("/.")))
        return kn_err_set(err, KN_E_REFUSED, "location '" KN_STR_FMT "' is not a plain path",
                          KN_STR_ARG(location));
    while (len > 0 && text[len - 1] == '/')
        len--;
    *ret = (KnStr){text, len};
    return KN_OK;
}

/* A folder that cannot be understood allows nothing. */
static bool within_folder(KnArena *arena, KnStr path, KnStr folder)
{
    KnStr dir = {0};
    return folder.len > 0 && normal_path(arena, folder, &dir, NULL) == KN_OK && dir.len > 1 &&
           kn_path_is_within(path, dir);
}

static bool within_named_folders(const KnTable *tbl, KnArena *arena, KnStr path)
{
    static const char *const keys[] = {"write.data.path", "write.metadata.path",
                                       "write.object-storage.path", "write.folder-storage.path"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (within_folder(arena, path, kn_str(kn_metadata_property(tbl->md, keys[i], ""))))
            return true;
    for (size_t i = 0; i < tbl->n_allowed; i++)
        if (within_folder(arena, path, kn_str(tbl->allowed[i])))
            return true;
    return false;
}

static bool within_siblings(const KnTable *tbl, KnArena *arena, KnStr path)
{
    KnStr root = {0};
    if (!kn_metadata_property(tbl->md, "schema.name-mapping.default", NULL) ||
        normal_path(arena, kn_str(tbl->md->location), &root, NULL) != KN_OK)
        return false;
    return within_folder(arena, path, kn_path_dirname(root));
}

KnCode kn_table_check_path(const KnTable *tbl, KnStr location, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStr path = {0};
    KnCode rc = normal_path(arena, location, &path, err);
    if (rc == KN_E_INVAL) /* the metadata's fault, not the user's */
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: its metadata names a file '" KN_STR_FMT "', which is no path",
                          tbl->name, KN_STR_ARG(location));
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s", tbl->name);
    if (within_folder(arena, path, kn_str(tbl->md->location)) ||
        within_named_folders(tbl, arena, path) || within_siblings(tbl, arena, path))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: file '" KN_STR_FMT "' lies outside the table's location '%s': "
                      "allow its folder with --allow-path if it is meant",
                      tbl->name, KN_STR_ARG(location), tbl->md->location);
}

KnCode kn_table_check_removable(const KnTable *tbl, KnStr location, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStr path = {0};
    KN_TRY(normal_path(arena, location, &path, err));
    if (within_folder(arena, path, kn_str(tbl->md->location)) ||
        within_named_folders(tbl, arena, path))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: file '" KN_STR_FMT "' lies outside the table's location '%s' and "
                      "is not removed: allow its folder with --allow-path if it is the table's own",
                      tbl->name, KN_STR_ARG(location), tbl->md->location);
}

KnCode kn_table_engine_path(const KnTable *tbl, KnArena *arena, KnStr location, const char **ret,
                            KnErr *err)
{
    KN_TRY(kn_table_check_path(tbl, location, err));
    return kn_io_engine_path(tbl->io, arena, location, ret, err);
}

/* ---- snapshots ---- */

static KnCode choose_by_id(const KnTable *tbl, const char *text, const KnSnapshot **ret, KnErr *err)
{
    int64_t id;
    if (!kn_str_to_i64(kn_str(text), &id))
        return kn_err_set(err, KN_E_INVAL, "--snapshot '%s': expected a snapshot id", text);
    const KnSnapshot *snap = kn_metadata_find_snapshot(tbl->md, id);
    if (!snap)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "table %s has no snapshot %lld: see knut table history", tbl->name,
                          (long long)id);
    *ret = snap;
    return KN_OK;
}

/* ISO 8601 (UTC when no zone is given), or milliseconds since 1970. */
static KnCode parse_time_ms(const char *text, int64_t *ret_ms, KnErr *err)
{
    if (kn_str_to_i64(kn_str(text), ret_ms))
        return KN_OK;
    static const KnType type = {.kind = KN_TYPE_TIMESTAMPTZ};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnValue value;
    if (kn_value_parse(arena, &type, kn_str(text), &value, NULL) != KN_OK &&
        kn_value_parse(arena, &type, kn_str(kn_arena_printf(arena, "%sT00:00:00Z", text)), &value,
                       NULL) != KN_OK &&
        kn_value_parse(arena, &type, kn_str(kn_arena_printf(arena, "%sZ", text)), &value, NULL) !=
            KN_OK)
        return kn_err_set(err, KN_E_INVAL,
                          "--as-of '%s': expected a time such as 2026-01-31T12:00:00Z", text);
    int64_t us = value.i;
    *ret_ms = us / 1000 - (us % 1000 < 0); /* floor: never later than asked */
    return KN_OK;
}

static KnCode choose_by_time(const KnTable *tbl, const char *text, const KnSnapshot **ret,
                             KnErr *err)
{
    int64_t ms;
    KN_TRY(parse_time_ms(text, &ms, err));
    const KnSnapshot *snap = kn_metadata_snapshot_as_of(tbl->md, ms);
    if (!snap)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no snapshot as old as %s", tbl->name,
                          text);
    *ret = snap;
    return KN_OK;
}

static KnCode choose_by_ref(const KnTable *tbl, const char *name, const KnSnapshot **ret,
                            KnErr *err)
{
    const KnRef *ref = kn_metadata_find_ref(tbl->md, kn_str(name));
    if (!ref)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no branch or tag '%s'", tbl->name,
                          name);
    const KnSnapshot *snap = kn_metadata_find_snapshot(tbl->md, ref->snapshot_id);
    if (!snap)
        return kn_err_set(err, KN_E_CORRUPT, "table %s: ref '%s' names snapshot %lld, unknown",
                          tbl->name, name, (long long)ref->snapshot_id);
    *ret = snap;
    return KN_OK;
}

KnCode kn_table_choose_snapshot(const KnTable *tbl, const KnSnapshotChoice *choice,
                                const KnSnapshot **ret, KnErr *err)
{
    int given = !!choice->snapshot + !!choice->as_of + !!choice->ref;
    if (given > 1)
        return kn_err_set(err, KN_E_INVAL,
                          "only one of --snapshot, --as-of and --ref may be given");
    if (choice->snapshot)
        return choose_by_id(tbl, choice->snapshot, ret, err);
    if (choice->as_of)
        return choose_by_time(tbl, choice->as_of, ret, err);
    if (choice->ref)
        return choose_by_ref(tbl, choice->ref, ret, err);
    *ret = kn_metadata_snapshot(tbl->md);
    return KN_OK;
}

const KnSchema *kn_table_choice_schema(const KnTable *tbl, const KnSnapshotChoice *choice,
                                       const KnSnapshot *snap)
{
    const KnRef *ref = choice->ref ? kn_metadata_find_ref(tbl->md, kn_str(choice->ref)) : NULL;
    bool travels = choice->snapshot || choice->as_of || (ref && !ref->is_branch);
    return snap && travels ? kn_metadata_snapshot_schema(tbl->md, snap)
                           : kn_metadata_schema(tbl->md);
}
