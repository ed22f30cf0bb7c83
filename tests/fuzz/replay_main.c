/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over a folder of inputs, without libFuzzer.
 *
 * Linked with one fuzz_<x>.c, it makes the corpus a unit test that every compiler and sanitizer can
 * run: the empty input first, then each regular file of the folder in name order. An input passes
 * when the target returns 0; a crash or a sanitizer report names the input that was printed last.
 * A missing or empty corpus fails, so that a renamed folder cannot pass in silence.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger inputs have no place in a corpus of small cases. */
#define REPLAY_INPUT_MAX ((size_t)16 << 20)

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* An exact-size copy, so that the sanitizer sees a read one past the end. */
static int replay(const char *name, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    int rc;

    if (!copy) {
        fprintf(stderr, "out of memory for %s (%zu bytes)\n", name, size);
        return 1;
    }
    if (size)
        memcpy(copy, data, size);
    printf("%s: %zu bytes\n", name, size);
    (void)fflush(stdout);
    rc = LLVMFuzzerTestOneInput(copy, size);
    if (rc != 0)
        fprintf(stderr, "%s: the target returned %d, expected 0\n", name, rc);
    free(copy);
    return rc != 0;
}

static int replay_file(const char *dir, const char *name, uint8_t *buf)
{
    char path[4096];
    size_t size;
    FILE *file;
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);

    if (len < 0 || (size_t)len >= sizeof path) {
        fprintf(stderr, "%s/%s: path too long\n", dir, name);
        return 1;
    }
    file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size = fread(buf, 1, REPLAY_INPUT_MAX, file);
    if (ferror(file) || fgetc(file) != EOF) {
        fprintf(stderr, "%s: cannot be read, or is larger than %zu bytes\n", path,
                REPLAY_INPUT_MAX);
        fclose(file);
        return 1;
    }
    fclose(file);
    return replay(name, buf, size);
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    uint8_t *buf;
    int count;
    int failed;

    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    count = scandir(argv[1], &entries, is_input, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no corpus there\n", argv[1]);
        return 1;
    }
    buf = malloc(REPLAY_INPUT_MAX);
    if (!buf)
        return 1;
    failed = replay("(empty input)", buf, 0);
    for (int i = 0; i < count; i++) {
        failed += replay_file(argv[1], entries[i]->d_name, buf);
        free(entries[i]);
    }
    free(entries);
    free(buf);
    printf("%d inputs, %d failed\n", count + 1, failed);
    return failed != 0;
}
