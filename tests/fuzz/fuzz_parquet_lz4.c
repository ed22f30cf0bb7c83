/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parquet_lz4.c - whole Parquet files: copying stays inside; a copy can be copied, and has no
 * chunk of codec LZ4. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/parquet_lz4.h"
#include "engine/parquet_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file is memory, the name leads to it. */
static int memory_file(char *name, size_t len)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    int n = snprintf(name, len, "/proc/self/fd/%d", fd);
    assert(fd >= 0 && n > 0 && (size_t)n < len);
    (void)n;
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char from[32];
    char to[32];
    char again[32];
    int fds[] = {memory_file(from, sizeof(from)), memory_file(to, sizeof(to)),
                 memory_file(again, sizeof(again))};
    if (size > 0 && write(fds[0], data, size) != (ssize_t)size)
        return 0;
    if (kn_parquet_lz4_copy(from, to, NULL) == KN_OK) {
        KnErr err = {0};
        KnCode code = kn_parquet_lz4_copy(to, again, &err);
        if (code != KN_OK)
            fprintf(stderr, "a copy cannot be copied: %s\n", err.msg);
        assert(code == KN_OK);
        assert((kn_pq_codecs_of(to) >> KN_PQ_LZ4 & 1) == 0);
    }
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    return 0;
}
