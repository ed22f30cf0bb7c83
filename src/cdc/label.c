/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label.c - how the parts of a label are spelled so that two different loads never share one.
 *
 * A name keeps [A-Za-z0-9_]; every other byte becomes '_', and a name that was changed or cut gets
 * `_` and 8 hex digits of its own hash, so '-' and ':' only ever separate parts. The budget: prefix
 * 6, db 21, ':', table 21, two snapshot ids and a chunk number of at most 19, four dashes and 16
 * hex digits make 126. The trailing hash covers every part as it was given, each text with its
 * length before it, so "a"+"bc" and "ab"+"c" differ.
 */
#include "cdc/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

#define NAME_MAX_LEN 21
#define LABEL_SEED   UINT64_C(0x6b6e75742d6c6162)

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void spell_name(const char *name, char out[NAME_MAX_LEN + 1])
{
    size_t len = strlen(name);
    bool changed = len == 0 || len > NAME_MAX_LEN;
    for (size_t i = 0; i < len && !changed; ++i)
        changed = !is_plain(name[i]);
    size_t keep = changed && len > NAME_MAX_LEN - 9 ? NAME_MAX_LEN - 9 : len;
    for (size_t i = 0; i < keep; ++i)
        if (is_plain(name[i]))
            out[i] = name[i];
        else
            out[i] = '_';
    out[keep] = '\0';
    if (changed)
        (void)snprintf(out + keep, 10, "_%08" PRIx32, (uint32_t)kn_hash64(name, len, LABEL_SEED));
}

/* Little-endian bytes, so that every machine derives the same label. */
static uint64_t cover_number(uint64_t seed, uint64_t number)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof(bytes); ++i)
        bytes[i] = (uint8_t)(number >> (8 * i));
    return kn_hash64(bytes, sizeof(bytes), seed);
}

static uint64_t cover_text(uint64_t seed, const char *text)
{
    size_t len = strlen(text);
    return kn_hash64(text, len, cover_number(seed, len));
}

static uint64_t window_hash(const KnLabelParts *parts)
{
    uint64_t hash = cover_text(LABEL_SEED, parts->source);
    hash = cover_text(hash, parts->sink);
    hash = cover_text(hash, parts->db);
    hash = cover_text(hash, parts->table);
    hash = cover_number(hash, (uint64_t)parts->epoch);
    hash = cover_number(hash, (uint64_t)parts->from);
    hash = cover_number(hash, (uint64_t)parts->to);
    return cover_number(hash, parts->plan_digest);
}

static void spell_window(const KnLabelParts *parts, char out[KN_LABEL_SIZE])
{
    char db[NAME_MAX_LEN + 1], table[NAME_MAX_LEN + 1], from[24] = "init";
    spell_name(parts->db, db);
    spell_name(parts->table, table);
    if (parts->from >= 0)
        (void)snprintf(from, sizeof(from), "%" PRId64, parts->from);
    (void)snprintf(out, KN_LABEL_SIZE, "skade-%s:%s-%s-%" PRId64, db, table, from, parts->to);
}

const char *kn_label_window(const KnLabelParts *parts, char out[KN_LABEL_SIZE])
{
    char hex[17];
    spell_window(parts, out);
    size_t len = strlen(out);
    (void)snprintf(out + len, KN_LABEL_SIZE - len, "-%s", kn_hex64(window_hash(parts), hex));
    return out;
}

const char *kn_label_format(const KnLabelParts *parts, char out[KN_LABEL_SIZE])
{
    char hex[17], chunk[24] = "claim";
    uint64_t hash = cover_number(window_hash(parts), (uint64_t)parts->chunk);
    if (parts->chunk != KN_LABEL_CLAIM)
        (void)snprintf(chunk, sizeof(chunk), "%" PRId64, parts->chunk);
    spell_window(parts, out);
    size_t len = strlen(out);
    (void)snprintf(out + len, KN_LABEL_SIZE - len, "-%s-%s", chunk, kn_hex64(hash, hex));
    return out;
}

bool kn_label_is_valid(const char *label)
{
    size_t len = 0;
    for (; label[len] != '\0'; ++len)
        if (!is_plain(label[len]) && label[len] != '-' && label[len] != ':')
            return false;
    return len >= 1 && len < KN_LABEL_SIZE;
}
