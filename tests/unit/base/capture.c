/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - stderr is pointed at an unlinked temporary file for a while. */
#include "unit/base/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int saved_stderr = -1;
static FILE *file;

void capture_begin(void)
{
    (void)fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    file = tmpfile();
    if (saved_stderr < 0 || !file || dup2(fileno(file), STDERR_FILENO) < 0)
        abort();
}

const char *capture_end(char *out, size_t cap)
{
    if (dup2(saved_stderr, STDERR_FILENO) < 0)
        abort();
    (void)close(saved_stderr);
    ssize_t n = pread(fileno(file), out, cap - 1, 0);
    out[n < 0 ? 0 : n] = '\0';
    (void)fclose(file);
    return out;
}
