/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.c - see postgres.h. */
#include "support/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT "python3 " KN_TEST_DATA_DIR "/e2e/lib/postgres.py "

static char folder[256], uri[256];

bool test_postgres_start(void)
{
    if (uri[0])
        return true;
    FILE *out = popen(SCRIPT "start", "r");
    if (!out)
        return false;
    int n = fscanf(out, "%255s %255s", folder, uri);
    if (pclose(out) != 0 || n != 2)
        uri[0] = '\0';
    return uri[0] != '\0';
}

const char *test_postgres_uri(void)
{
    return uri;
}

int test_postgres_stop(void **state)
{
    (void)state;
    if (!uri[0])
        return 0;
    char command[1024];
    (void)snprintf(command, sizeof(command), SCRIPT "stop %s", folder);
    uri[0] = '\0';
    return system(command); /* NOLINT(cert-env33-c): the words are ours */
}
