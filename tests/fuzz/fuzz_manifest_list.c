/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_manifest_list.c - any bytes as a manifest list, and as a manifest of a v1 snapshot's own
 * list. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "iceberg/manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_list(KnFileIO *io, const KnSnapshot *snap)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnManifestFile *list;
    size_t n;
    if (kn_manifest_list_read(io, arena, snap, &list, &n, NULL) != KN_OK)
        return;
    for (size_t i = 0; i < n; ++i)
        if (!list[i].path)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"mem://l"};
    KnFileIO *io;
    if (kn_io_memory_open(&io, NULL) != KN_OK)
        abort();
    if (kn_io_write(io, kn_str(paths[0]), data, size, KN_IO_CREATE, NULL) != KN_OK)
        abort();
    read_list(io, &(KnSnapshot){.snapshot_id = 1, .manifest_list = paths[0]});
    read_list(io, &(KnSnapshot){.snapshot_id = 1, .n_manifests = 1, .manifests = paths});
    (void)kn_io_close(io);
    return 0;
}
