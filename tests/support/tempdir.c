/* SPDX-License-Identifier: Apache-2.0 */
/* tempdir.c - folders for tests; any failure aborts, because a test cannot go on without. */
#include "support/tempdir.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *test_tempdir_make(char out[256])
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(out, 256, "%s/knut-test-XXXXXX", base && base[0] == '/' ? base : "/tmp");
    if (n <= 0 || n >= 256 || !mkdtemp(out))
        abort();
    return out;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

void test_tempdir_remove(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

size_t test_dir_count(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        abort();
    size_t n = 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    (void)closedir(dir);
    return n;
}
