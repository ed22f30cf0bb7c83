/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* option_internal.h - what parsing, values and help of options share. */
#include "base/option.h"

typedef struct KnOptionRow {
    const KnOption *option;
    size_t base;  /* of its group */
    size_t index; /* over all groups */
} KnOptionRow;

/** The index-th row over all groups; false past the last. */
bool kn_option_row_at(const KnOptSpec *spec, size_t index, KnOptionRow *ret);
bool kn_option_is_list(const KnOption *option);
/** The size of the C type that the field has. */
size_t kn_option_field_size(KnOptType type);
void kn_option_list_append(KnOptList *list, KnArena *arena, const char *item);
