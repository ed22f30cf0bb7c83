/* SPDX-License-Identifier: Apache-2.0 */
/* auth_file.c - the token file: its lines, read and made (see auth.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "catalog/server/auth_internal.h"

enum { FILE_MAX = 8 << 20, PRINCIPALS_MAX = 100000, LEVELS_MAX = 32, NAME_MAX_BYTES = 128 };

static const char hash_prefix[] = "sha256:";

/* The next word of a line (blanks between, quotes kept), cut off from it; empty at the end. */
static KnStr next_word(KnStr *line)
{
    while (line->len && (*line->ptr == ' ' || *line->ptr == '\t' || *line->ptr == '\r')) {
        line->ptr++;
        line->len--;
    }
    KnStr word = {line->ptr, 0};
    bool quoted = false;
    while (line->len &&
           (quoted || (*line->ptr != ' ' && *line->ptr != '\t' && *line->ptr != '\r'))) {
        quoted = *line->ptr == '"' ? !quoted : quoted;
        line->ptr++;
        line->len--;
        word.len++;
    }
    return word;
}

static bool parse_hash(KnStr word, uint8_t out[KN_SHA256_LEN])
{
    KnStr prefix = kn_str(hash_prefix);
    if (!kn_str_starts_with(word, prefix) || word.len != prefix.len + 2 * (size_t)KN_SHA256_LEN)
        return false;
    for (size_t i = 0; i < KN_SHA256_LEN; i++) {
        unsigned int byte = 0;
        for (size_t d = 0; d < 2; d++) {
            char c = word.ptr[prefix.len + 2 * i + d];
            static const char digits[] = "0123456789abcdefABCDEF";
            const char *at = c ? strchr(digits, c) : NULL;
            if (!at)
                return false;
            size_t digit = (size_t)(at - digits);
            byte = byte << 4 | (unsigned int)(digit < 16 ? digit : digit - 6);
        }
        out[i] = (uint8_t)byte;
    }
    return true;
}

/* `a.b`, `"a.b".c` or `*` as levels. */
static bool parse_namespace(KnArena *arena, KnStr text, KnNamespace *ret)
{
    const char *levels[LEVELS_MAX];
    size_t n = 0;
    if (kn_str_eq(text, KN_STR_LIT("*"))) {
        *ret = (KnNamespace){0};
        return true;
    }
    while (text.len) {
        bool quoted = *text.ptr == '"';
        const char *from = text.ptr + (quoted ? 1 : 0);
        size_t left = text.len - (quoted ? 1 : 0);
        const char *end = memchr(from, quoted ? '"' : '.', left);
        size_t len = end ? (size_t)(end - from) : left;
        size_t used = len + (quoted ? 2 : 0);
        bool more = used < text.len;
        if (!len || (quoted && !end) || n == LEVELS_MAX || (more && text.ptr[used] != '.') ||
            (!quoted && memchr(from, '"', len)) || (more && used + 1 == text.len))
            return false;
        levels[n++] = kn_arena_strndup(arena, from, len);
        text.ptr += used + (more ? 1 : 0);
        text.len -= used + (more ? 1 : 0);
    }
    const char **copy = kn_arena_alloc(arena, n * sizeof(*copy) + 1);
    memcpy(copy, levels, n * sizeof(*copy));
    *ret = (KnNamespace){copy, n};
    return n > 0;
}

static bool parse_grant(KnArena *arena, KnStr word, KnGrant *ret)
{
    static const struct {
        const char *word;
        KnRight right;
    } rights[] = {{"read:", KN_RIGHT_READ}, {"write:", KN_RIGHT_WRITE}, {"admin:", KN_RIGHT_ADMIN}};
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        KnStr prefix = kn_str(rights[i].word);
        if (!kn_str_starts_with(word, prefix))
            continue;
        ret->right = rights[i].right;
        return parse_namespace(arena, (KnStr){word.ptr + prefix.len, word.len - prefix.len},
                               &ret->ns);
    }
    return false;
}

static bool name_is_fine(KnStr name)
{
    return name.len && name.len <= NAME_MAX_BYTES && !memchr(name.ptr, ':', name.len) &&
           !memchr(name.ptr, '"', name.len) && kn_str_is_utf8(name);
}

static KnCode parse_grants(KnArena *arena, KnStr line, KnPrincipal *who, KnErr *err)
{
    enum { GRANTS_MAX = 1000 };
    KnGrant *grants = kn_arena_zalloc(arena, sizeof(*grants));
    size_t n = 0, cap = 1;
    for (KnStr word = next_word(&line); word.len; word = next_word(&line)) {
        if (n == cap) {
            KnGrant *more = kn_arena_zalloc(arena, 2 * cap * sizeof(*more));
            memcpy(more, grants, n * sizeof(*more));
            grants = more;
            cap *= 2;
        }
        if (n == GRANTS_MAX || !parse_grant(arena, word, &grants[n]))
            return kn_err_set(err, KN_E_INVAL,
                              "'" KN_STR_FMT "' is no grant: read:, write: or admin: and a "
                              "namespace (a.b) or *",
                              KN_STR_ARG(word));
        n++;
    }
    who->grants = grants;
    who->n_grants = n;
    return KN_OK;
}

/* One line that is not empty. */
static KnCode parse_line(KnArena *arena, KnStr line, KnPrincipal *ret, KnErr *err)
{
    KnStr name = next_word(&line), hash = next_word(&line);
    if (!name_is_fine(name))
        return kn_err_set(err, KN_E_INVAL,
                          "a line is: NAME sha256:HEX GRANT..., the name without ':' and '\"'");
    ret->name = kn_arena_strndup(arena, name.ptr, name.len);
    if (!parse_hash(hash, ret->hash))
        return kn_err_set(err, KN_E_INVAL,
                          "%s: the hash is sha256: and 64 hexadecimal digits ('knut catalog token' "
                          "makes a line)",
                          ret->name);
    return parse_grants(arena, line, ret, err);
}

KnCode kn_auth_set_parse(KnStr text, const char *source, KnAuthSet **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnAuthSet *set = kn_arena_zalloc(arena, sizeof(*set));
    size_t lines = 1, number = 0;
    KnCode rc = KN_OK;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    set->arena = arena;
    set->items = kn_arena_try_array(arena, lines, sizeof(*set->items));
    if (!set->items || lines > PRINCIPALS_MAX)
        rc = kn_err_set(err, KN_E_NOMEM, "more than %d lines", PRINCIPALS_MAX);
    while (rc == KN_OK && text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        KnStr line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        text.ptr += line.len + (end ? 1 : 0);
        text.len -= line.len + (end ? 1 : 0);
        number++;
        KnStr look = line, word = next_word(&look);
        if (!word.len || word.ptr[0] == '#')
            continue;
        rc = parse_line(arena, line, &set->items[set->n++], err);
    }
    if (rc != KN_OK) {
        (void)kn_arena_free(arena);
        return kn_err_wrap(err, rc, "%s, line %zu", source, number);
    }
    *ret = set;
    return KN_OK;
}

KnCode kn_auth_set_read(const char *file, KnAuthSet **ret, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, FILE_MAX);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "token file %s: %s", file, kn_errno_text(errno));
    char part[16384];
    ssize_t got;
    while ((got = read(fd, part, sizeof(part))) > 0)
        kn_buf_append(&text, part, (size_t)got);
    int failure = errno;
    (void)close(fd);
    if (got < 0)
        return kn_err_set(err, KN_E_IO, "token file %s: %s", file, kn_errno_text(failure));
    KN_TRY(kn_buf_check(&text, err));
    return kn_auth_set_parse((KnStr){text.data, text.len}, file, ret, err);
}

KnCode kn_auth_make_line(KnArena *arena, const char *name, const KnOptList *grants,
                         KnTokenLine *ret, KnErr *err)
{
    uint8_t secret[32], hash[KN_SHA256_LEN];
    char hex[2 * sizeof(secret) + 1];
    if (!name_is_fine(kn_str(name)) || strpbrk(name, " \t\r\n#"))
        return kn_err_set(err, KN_E_INVAL,
                          "'%.100s': a principal's name has 1 to %d bytes and no blanks, ':', '\"' "
                          "or '#'",
                          name, NAME_MAX_BYTES);
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        abort();
    const char *token = kn_arena_printf(arena, "knut_%s", kn_hex(secret, sizeof(secret), hex));
    kn_sha256(kn_str(token), hash);
    const char *line =
        kn_arena_printf(arena, "%s %s%s", name, hash_prefix, kn_hex(hash, sizeof(hash), hex));
    for (size_t i = 0; i < grants->len; i++)
        line = kn_arena_printf(arena, "%s %s", line, grants->items[i]);
    KnPrincipal check = {0};
    KN_TRY(parse_line(arena, kn_str(line), &check, err));
    *ret = (KnTokenLine){token, line};
    return KN_OK;
}
