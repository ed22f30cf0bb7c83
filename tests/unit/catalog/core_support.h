/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* core_support.h - a core over SQLite or PostgreSQL for one test case. */
#include "catalog/core/core.h"

typedef struct CoreFixture {
    char dir[256]; /* the warehouse */
    char db[600];
    char catalog[64]; /* of this case alone: cases share a server */
    KnCatalogCore *core;
    KnErr err;
} CoreFixture;

int core_setup(void **state);          /* SQLite */
int core_setup_postgres(void **state); /* skips the case when there is no PostgreSQL */
int core_teardown(void **state);
/** Another core on the same database, as another process would have it. */
KnCatalogCore *core_open_again(CoreFixture *fix);

#define CORE_IDENT(table) ((KnTableIdent){.levels = core_ns, .n_levels = 1, .name = (table)})
extern const char *const core_ns[1]; /* "ns" */
extern const KnNamespace core_namespace;

void core_make_namespace(CoreFixture *fix);
/** A table of v2 with columns id and name. */
KnCode core_try_create(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err);
void core_create(CoreFixture *fix, const char *name);
/** A commit that sets a property, with a requirement that always holds. */
KnCode core_set(KnCatalogCore *core, const KnTableIdent *ident, const char *key, const char *value,
                KnErr *err);
/** The number of properties of a table; -1 when it cannot be loaded. */
int core_count_properties(KnCatalogCore *core, const KnTableIdent *ident);
/** So many commits of the table set a property each, and each is in the log once. */
void core_assert_history(CoreFixture *fix, const char *table, int commits);
/** JSON with ' in place of ". */
json_t *core_json(const char *text);
/** The cmocka rows of a case over both databases. */
#define CORE_BOTH(fn)                                                                              \
    {#fn " (SQLite)", fn, core_setup, core_teardown, NULL},                                        \
    {                                                                                              \
#fn " (PostgreSQL)", fn, core_setup_postgres, core_teardown, NULL                          \
    }
