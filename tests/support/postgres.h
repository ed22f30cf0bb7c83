/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* postgres.h - a PostgreSQL server of a test program's own (tests/e2e/lib/postgres.py starts it).
 */
#include <stdbool.h>

/** Starts one at the first call; false when PostgreSQL is not installed. Stopped by
 * test_postgres_stop(), which a program's group teardown calls (NULL state). */
bool test_postgres_start(void);
/** "postgresql://postgres@127.0.0.1:PORT/postgres". */
const char *test_postgres_uri(void);
int test_postgres_stop(void **state);
