/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_protobuf.c - any bytes as a message; what was read is written and read to the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Pair {
    const char *key, *value;
} Pair;

typedef struct All {
    bool flag;
    int64_t number;
    const char *text;
    KnStr bytes;
    KnPbTexts texts;
    Pair pair;
    KnPbMessages pairs;
} All;

static const KnPbField pair_fields[] = {
    {"key", 1, KN_PB_TEXT, offsetof(Pair, key), NULL},
    {"value", 2, KN_PB_TEXT, offsetof(Pair, value), NULL},
};
static const KnPbMessage pair_message = {"Pair", sizeof(Pair), pair_fields, 2};
static const KnPbField all_fields[] = {
    {"flag", 1, KN_PB_BOOL, offsetof(All, flag), NULL},
    {"number", 2, KN_PB_INT64, offsetof(All, number), NULL},
    {"text", 3, KN_PB_TEXT, offsetof(All, text), NULL},
    {"bytes", 4, KN_PB_BYTES, offsetof(All, bytes), NULL},
    {"texts", 5, KN_PB_TEXTS, offsetof(All, texts), NULL},
    {"pair", 6, KN_PB_MESSAGE, offsetof(All, pair), &pair_message},
    {"pairs", 7, KN_PB_MESSAGES, offsetof(All, pairs), &pair_message},
};
static const KnPbMessage all_message = {"All", sizeof(All), all_fields, 7};

static void check(const All *all)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO first;
    KN_BUF_AUTO second;
    kn_buf_init(&first, (size_t)64 << 20);
    kn_buf_init(&second, (size_t)64 << 20);
    All again;
    kn_pb_encode(&all_message, all, &first);
    if (kn_pb_decode(&all_message, (KnStr){first.data, first.len}, arena, &again, NULL) != KN_OK)
        abort();
    kn_pb_encode(&all_message, &again, &second);
    if (first.len != second.len || (first.len && memcmp(first.data, second.data, first.len) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    All all;
    if (kn_pb_decode(&all_message, (KnStr){(const char *)data, size}, arena, &all, NULL) == KN_OK)
        check(&all);
    return 0;
}
