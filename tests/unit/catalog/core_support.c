/* SPDX-License-Identifier: Apache-2.0 */
/* core_support.c - see core_support.h. */
#include "core_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "support/postgres.h"
#include "support/tempdir.h"

const char *const core_ns[1] = {"ns"};
const KnNamespace core_namespace = {.levels = core_ns, .n_levels = 1};

static KnCatalogCore *open_core(CoreFixture *fix)
{
    char warehouse[300];
    (void)snprintf(warehouse, sizeof(warehouse), "file://%s", fix->dir);
    const KnCoreOptions opts = {
        .warehouse = warehouse, .db = fix->db, .catalog = fix->catalog, .create_db = true};
    KnCatalogCore *core = NULL;
    if (kn_core_open(&opts, &core, &fix->err) != KN_OK)
        fail_msg("open: %s", fix->err.msg);
    return core;
}

static CoreFixture *fixture_new(void)
{
    char uuid[37];
    CoreFixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    (void)snprintf(fix->catalog, sizeof(fix->catalog), "c-%s", kn_random_uuid4(uuid));
    return fix;
}

int core_setup(void **state)
{
    CoreFixture *fix = fixture_new();
    (void)snprintf(fix->db, sizeof(fix->db), "%s/catalog.db", fix->dir);
    fix->core = open_core(fix);
    *state = fix;
    return 0;
}

int core_setup_postgres(void **state)
{
    CoreFixture *fix = fixture_new();
    *state = fix;
    if (!test_postgres_start())
        return 0; /* core_teardown() and the case see that there is no core */
    (void)snprintf(fix->db, sizeof(fix->db), "%s", test_postgres_uri());
    fix->core = open_core(fix);
    return 0;
}

int core_teardown(void **state)
{
    CoreFixture *fix = *state;
    kn_core_close(fix->core);
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

KnCatalogCore *core_open_again(CoreFixture *fix)
{
    return open_core(fix);
}

void core_make_namespace(CoreFixture *fix)
{
    if (!fix->core)
        skip();
    if (kn_core_namespace_create(fix->core, &core_namespace, NULL, &fix->err) != KN_OK)
        fail_msg("namespace: %s", fix->err.msg);
}

KnCode core_try_create(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO doc = NULL;
    KnSchema *schema = NULL;
    KN_TRY(kn_schema_parse_text(arena, kn_str("id long required, name string"), &schema, err));
    const KnCreateTable create = {.format_version = 2, .schema = schema};
    return kn_core_table_create(core, ident, &create, false, &doc, err);
}

void core_create(CoreFixture *fix, const char *name)
{
    KnTableIdent ident = CORE_IDENT(name);
    if (core_try_create(fix->core, &ident, &fix->err) != KN_OK)
        fail_msg("create: %s", fix->err.msg);
}

KnCode core_set(KnCatalogCore *core, const KnTableIdent *ident, const char *key, const char *value,
                KnErr *err)
{
    KN_JSON_AUTO props = json_pack("{s:s}", key, value);
    KN_DOCUMENT_AUTO doc = NULL;
    const KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    const KnRequirement req = {.kind = KN_REQUIRE_CURRENT_SCHEMA_ID, .number = 0};
    const KnTableCommit commit = {
        .requirements = &req, .n_requirements = 1, .updates = &update, .n_updates = 1};
    return kn_core_table_commit(core, ident, &commit, &doc, err);
}

int core_count_properties(KnCatalogCore *core, const KnTableIdent *ident)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    if (kn_core_table_load(core, ident, &doc, NULL) != KN_OK ||
        kn_document_metadata(doc, &md, NULL) != KN_OK)
        return -1;
    return (int)json_object_size(md->properties);
}

json_t *core_json(const char *text)
{
    char *copy = strdup(text);
    json_t *json = NULL;
    assert_non_null(copy);
    for (char *at = copy; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    if (kn_json_parse(copy, strlen(copy), &json, NULL) != KN_OK)
        fail_msg("not JSON: %s", copy);
    free(copy);
    return json;
}

typedef struct Count {
    const char *table;
    int64_t last;
    int updates;
} Count;

static KnCode count_event(void *arg, const KnCommitEvent *event, KnErr *err)
{
    (void)err;
    Count *count = arg;
    assert_int_equal(event->seq, count->last + 1);
    count->last = event->seq;
    count->updates += event->kind == KN_EVENT_UPDATE && !strcmp(event->ident.name, count->table);
    return KN_OK;
}

/* Each commit is there and in the log once. Those that were answered together have one document. */
void core_assert_history(CoreFixture *fix, const char *table, int commits)
{
    char folder[600];
    KnTableIdent ident = CORE_IDENT(table);
    Count count = {.table = table};
    (void)snprintf(folder, sizeof(folder), "%s/ns/%s/metadata", fix->dir, table);
    assert_int_equal(core_count_properties(fix->core, &ident), commits);
    assert_int_equal(kn_core_commits_since(fix->core, 0, 0, count_event, &count, &fix->err), KN_OK);
    assert_int_equal(count.updates, commits);
    assert_in_range(test_dir_count(folder), 2, (uintmax_t)commits + 1);
}
