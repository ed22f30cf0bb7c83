/* SPDX-License-Identifier: Apache-2.0 */
/* Token files of a served catalog. Whatever they say, asking for rights must hold. */
#include <stdint.h>
#include <stdlib.h>

#include "catalog/server/auth_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnAuthSet *set = NULL;
    KnErr err = {0};
    KnCode rc = kn_auth_set_parse((KnStr){(const char *)data, size}, "tokens", &set, &err);
    if (rc != KN_OK) {
        if (err.code != rc || !err.msg[0])
            abort();
        return 0;
    }
    const KnNamespace ns = {(const char *const[]){"a", "b"}, 2};
    for (size_t i = 0; i < set->n; i++) {
        KnRight right = kn_principal_right(&set->items[i], &ns);
        if (right < kn_principal_right(&set->items[i], NULL) ||
            (right > KN_RIGHT_NONE && !kn_principal_sees(&set->items[i], &ns)))
            abort();
    }
    (void)kn_arena_free(set->arena);
    return 0;
}
