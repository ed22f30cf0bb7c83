/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_doris.c - any bytes as what a Doris says: a verdict, a label's state, a table's statement.
 * No answer without our label and row count is ever a success. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cdc/sinks/doris/doris_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnStr bytes = {(const char *)data, size};
    KnDorisReply reply;
    KnDorisState state;
    KnDorisTable table;
    const KnDorisAsked asked = {.label = "skade-l", .rows = 3};
    if (kn_doris_reply_parse(arena, bytes, &reply, NULL) == KN_OK &&
        kn_doris_judge(&reply, &asked, NULL) == KN_DORIS_LANDED &&
        (strcmp(reply.label, asked.label) != 0 || reply.loaded != 3))
        abort();
    KN_IGNORE(kn_doris_state_parse(bytes, &state, NULL));
    if (kn_doris_table_parse(arena, bytes, &table, NULL) == KN_OK && table.n_columns == 0)
        abort();
    const KnDorisSettings set = {0};
    const char *url;
    KN_IGNORE(kn_doris_redirect(arena, &set, "http://fe:8030/x", bytes, &url, NULL));
    return 0;
}
