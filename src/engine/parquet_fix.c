/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_fix.c - both fixes in one copy. The LZ4 one writes a file anew, the other changes bits of
 * a footer, and so comes after it.
 */
#include "engine/parquet_fix.h"

#include <unistd.h>

#include "engine/parquet_lz4.h"
#include "engine/parquet_nanos.h"

KnCode kn_parquet_fix_copy(const char *from, const char *to, unsigned fixes, KnErr *err)
{
    size_t n_patched;
    assert(fixes != 0);
    if (!(fixes & KN_PQ_FIX_LZ4))
        return kn_parquet_nanos_copy(from, to, &n_patched, err);
    KN_TRY(kn_parquet_lz4_copy(from, to, err));
    if (!(fixes & KN_PQ_FIX_NANOS))
        return KN_OK;
    KnCode code = kn_parquet_nanos_patch_file(to, &n_patched, err);
    if (code != KN_OK)
        (void)unlink(to);
    return code;
}
