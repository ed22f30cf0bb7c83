/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog over SQLite: names, races, crashes, files that are not what they should be. */
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "support/tempdir.h"

static const char *const ns[] = {"ns"};
static const KnTableIdent ident = {.levels = ns, .n_levels = 1, .name = "t"};

typedef struct Fixture {
    char dir[256];
    KnLocator loc;
    KnErr err;
} Fixture;

static int setup(void **state)
{
    Fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    fix->loc = (KnLocator){.warehouse = fix->dir, .catalog = "knut", .table = "ns.t"};
    *state = fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

static KnCatalog *open_catalog(Fixture *fix, bool create)
{
    KnCatalog *cat = NULL;
    if (kn_catalog_open(&fix->loc, create, &cat, &fix->err) != KN_OK)
        fail_msg("open: %s", fix->err.msg);
    return cat;
}

static KnCode try_create(KnCatalog *cat, const KnTableIdent *id, KnTable **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    assert_int_equal(
        kn_schema_parse_text(arena, kn_str("id long required, name string"), &schema, err), KN_OK);
    KnCreateTable create = {.format_version = 2, .schema = schema};
    return kn_table_create(cat, id, &create, ret, err);
}

static KnTable *create_table(Fixture *fix, KnCatalog *cat)
{
    KnTable *tbl = NULL;
    if (try_create(cat, &ident, &tbl, &fix->err) != KN_OK)
        fail_msg("create: %s", fix->err.msg);
    return tbl;
}

static KnCode set_property(KnTable *tbl, const char *key, const char *value, KnErr *err)
{
    KN_JSON_AUTO props = json_pack("{s:s}", key, value);
    KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = props};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    return kn_table_commit(tbl, &commit, err);
}

static void a_created_table_is_loaded_with_its_schema(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat);
    assert_string_equal(tbl->name, "ns.t");
    kn_table_free(tbl);
    kn_catalog_close(cat);

    cat = NULL;
    assert_int_equal(kn_locator_load(&fix->loc, &cat, &tbl, &fix->err), KN_OK);
    assert_int_equal(kn_metadata_schema(tbl->md)->root.n_fields, 2);
    assert_string_equal(kn_metadata_schema(tbl->md)->root.fields[1].name, "name");
    assert_int_equal(tbl->md->current_snapshot_id, -1);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void a_taken_name_and_a_missing_one_are_told_apart(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat), *other = NULL;
    assert_int_equal(try_create(cat, &ident, &other, &fix->err), KN_E_EXISTS);
    assert_string_equal(fix->err.msg, "Table already exists: ns.t");
    KnTableIdent absent = {.levels = ns, .n_levels = 1, .name = "absent"};
    assert_int_equal(kn_table_load(cat, &absent, &other, &fix->err), KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "Table does not exist: ns.absent"));
    assert_int_equal(cat->ops->drop(cat, &absent, &fix->err), KN_E_NOTFOUND);
    assert_int_equal(cat->ops->drop(cat, &ident, &fix->err), KN_OK);
    assert_int_equal(kn_table_load(cat, &ident, &other, &fix->err), KN_E_NOTFOUND);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void a_dropped_table_is_registered_again_by_its_document(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat), *again = NULL;
    const char *file = tbl->metadata_location;
    static const char *const levels[] = {"fresh"};
    KnTableIdent id = {.levels = levels, .n_levels = 1, .name = "t"};
    assert_int_equal(cat->ops->register_table(cat, &ident, file, &again, &fix->err), KN_E_EXISTS);
    assert_int_equal(cat->ops->drop(cat, &ident, &fix->err), KN_OK);
    assert_int_equal(cat->ops->register_table(cat, &id, "/absent.metadata.json", &again, &fix->err),
                     KN_E_NOTFOUND);
    assert_int_equal(cat->ops->register_table(cat, &id, file, &again, &fix->err), KN_OK);
    assert_string_equal(again->name, "fresh.t");
    assert_string_equal(again->md->uuid, tbl->md->uuid);
    assert_int_equal(set_property(again, "a", "1", &fix->err), KN_OK);
    assert_string_equal(kn_metadata_property(again->md, "a", ""), "1");
    kn_table_free(again);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void a_renamed_table_keeps_its_files(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat), *loaded = NULL;
    static const char *const levels[] = {"fresh"};
    KnTableIdent to = {.levels = levels, .n_levels = 1, .name = "t"};
    assert_int_equal(cat->ops->rename(cat, &to, &ident, &fix->err), KN_E_NOTFOUND);
    assert_int_equal(cat->ops->rename(cat, &ident, &to, &fix->err), KN_OK);
    assert_int_equal(kn_table_load(cat, &ident, &loaded, &fix->err), KN_E_NOTFOUND);
    assert_int_equal(kn_table_load(cat, &to, &loaded, &fix->err), KN_OK);
    assert_string_equal(loaded->metadata_location, tbl->metadata_location);
    kn_table_free(tbl);
    tbl = create_table(fix, cat);
    assert_int_equal(cat->ops->rename(cat, &ident, &to, &fix->err), KN_E_EXISTS);
    assert_string_equal(fix->err.msg, "Cannot rename ns.t to fresh.t. Table already exists");
    kn_table_free(loaded);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void a_dot_inside_a_level_is_not_a_separator(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    static const char *const dotted[] = {"a.b"}, *const nested[] = {"a", "b"};
    KnTableIdent one = {.levels = dotted, .n_levels = 1, .name = "t"};
    KnTableIdent two = {.levels = nested, .n_levels = 2, .name = "t"};
    KnTable *tbl = NULL, *other = NULL;
    assert_int_equal(try_create(cat, &one, &tbl, &fix->err), KN_OK);
    assert_int_equal(kn_table_load(cat, &two, &other, &fix->err), KN_E_NOTFOUND);
    assert_int_equal(try_create(cat, &two, &other, &fix->err), KN_OK);
    assert_string_not_equal(tbl->md->location, other->md->location);
    kn_table_free(tbl);
    kn_table_free(other);
    kn_catalog_close(cat);
}

static void a_stale_handle_commits_on_the_newest_metadata(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *one = create_table(fix, cat), *two = NULL;
    assert_int_equal(kn_table_load(cat, &ident, &two, &fix->err), KN_OK);
    assert_int_equal(set_property(one, "a", "1", &fix->err), KN_OK);
    assert_int_equal(set_property(two, "b", "2", &fix->err), KN_OK);
    assert_string_equal(kn_metadata_property(two->md, "a", "none"), "1");
    assert_string_equal(kn_metadata_property(two->md, "b", "none"), "2");
    assert_int_equal(two->md->n_metadata_log, 2);
    assert_int_equal(kn_table_refresh(one, &fix->err), KN_OK);
    assert_string_equal(one->metadata_location, two->metadata_location);
    kn_table_free(one);
    kn_table_free(two);
    kn_catalog_close(cat);
}

static void a_requirement_that_no_longer_holds_is_a_conflict(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat);
    char *before = strdup(tbl->metadata_location);
    KnRequirement require = {.kind = KN_REQUIRE_UUID,
                             .text = "00000000-0000-4000-8000-000000000000"};
    KnTableCommit commit = {.requirements = &require, .n_requirements = 1};
    assert_int_equal(kn_table_commit(tbl, &commit, &fix->err), KN_E_CONFLICT);
    assert_string_equal(tbl->metadata_location, before);
    assert_int_equal(kn_table_refresh(tbl, &fix->err), KN_OK);
    assert_string_equal(tbl->metadata_location, before);
    free(before);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

enum { WRITERS = 6, COMMITS = 10 };

static void commit_from_child(Fixture *fix, int writer)
{
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    if (kn_locator_load(&fix->loc, &cat, &tbl, &fix->err) != KN_OK)
        _exit(2);
    for (int i = 0; i < COMMITS; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "w%d-%d", writer, i);
        if (set_property(tbl, key, "x", &fix->err) != KN_OK)
            _exit(3);
    }
    _exit(0);
}

static void racing_processes_lose_no_commit(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    kn_table_free(create_table(fix, cat));
    kn_catalog_close(cat);
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = fork();
        assert_true(pids[w] >= 0);
        if (!pids[w])
            commit_from_child(fix, w);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = 0;
        assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    KnTable *tbl = NULL;
    assert_int_equal(kn_locator_load(&fix->loc, &cat, &tbl, &fix->err), KN_OK);
    assert_int_equal(json_object_size(tbl->md->properties), WRITERS * COMMITS);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

/* Runs a commit in a child that is killed at a fault point; true = the child died there. */
static bool killed_at(Fixture *fix, const char *fault)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (kn_fault_set(fault, NULL, &fix->err) != KN_OK)
            _exit(4);
        KnCatalog *cat = NULL;
        KnTable *tbl = NULL;
        if (kn_locator_load(&fix->loc, &cat, &tbl, &fix->err) != KN_OK)
            _exit(2);
        _exit(set_property(tbl, "killed", fault, &fix->err) == KN_OK ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void a_killed_commit_is_there_whole_or_not_at_all(void **state)
{
    Fixture *fix = *state;
    static const struct {
        const char *fault;
        bool applied;
    } cases[] = {
        {"io-write-before:1:kill", false},
        {"io-write-after-temp:1:kill", false},
        {"catalog-metadata-written:1:kill", false},
        {"catalog-pointer-moved:1:kill", true},
    };
    KnCatalog *cat = open_catalog(fix, true);
    kn_table_free(create_table(fix, cat));
    kn_catalog_close(cat);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(killed_at(fix, cases[i].fault));
        KnTable *tbl = NULL;
        assert_int_equal(kn_locator_load(&fix->loc, &cat, &tbl, &fix->err), KN_OK);
        const char *seen = kn_metadata_property(tbl->md, "killed", "");
        assert_int_equal(strcmp(seen, cases[i].fault) == 0, cases[i].applied);
        assert_int_equal(set_property(tbl, "next", "ok", &fix->err), KN_OK);
        kn_table_free(tbl);
        kn_catalog_close(cat);
    }
}

static void a_lost_answer_is_settled_by_the_pointer(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (kn_fault_set("catalog-pointer-moved:1:fail", NULL, &fix->err) != KN_OK)
            _exit(4);
        KnCatalog *child_cat = NULL;
        KnTable *child = NULL;
        if (kn_locator_load(&fix->loc, &child_cat, &child, &fix->err) != KN_OK)
            _exit(2);
        _exit(set_property(child, "lost", "no", &fix->err) == KN_OK ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(kn_table_refresh(tbl, &fix->err), KN_OK);
    assert_string_equal(kn_metadata_property(tbl->md, "lost", ""), "no");
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void a_file_that_is_no_database_is_corrupt_and_left_alone(void **state)
{
    Fixture *fix = *state;
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s/catalog.db", fix->dir);
    write_file(path,
               "this is not a database, but it is long enough to look at as one ................");
    KnCatalog *cat = NULL;
    assert_int_equal(kn_catalog_open(&fix->loc, true, &cat, &fix->err), KN_E_CORRUPT);
    assert_non_null(strstr(fix->err.msg, "catalog.db"));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 80);
}

static void a_database_without_a_catalog_and_no_database_are_not_found(void **state)
{
    Fixture *fix = *state;
    char path[4200];
    KnCatalog *cat = NULL;
    assert_int_equal(kn_catalog_open(&fix->loc, false, &cat, &fix->err), KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "no catalog at"));
    (void)snprintf(path, sizeof(path), "%s/catalog.db", fix->dir);
    write_file(path, "");
    assert_int_equal(kn_catalog_open(&fix->loc, false, &cat, &fix->err), KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "without the tables of a catalog"));
}

/* Java's first schema had no iceberg_type. */
static void the_older_schema_is_read_and_written(void **state)
{
    Fixture *fix = *state;
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s/catalog.db", fix->dir);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace"
            " VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location"
            " VARCHAR(1000), previous_metadata_location VARCHAR(1000), PRIMARY KEY"
            " (catalog_name, table_namespace, table_name))",
            NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    KnCatalog *cat = open_catalog(fix, true);
    KnTable *tbl = create_table(fix, cat);
    assert_int_equal(set_property(tbl, "a", "1", &fix->err), KN_OK);
    assert_int_equal(kn_table_refresh(tbl, &fix->err), KN_OK);
    assert_string_equal(kn_metadata_property(tbl->md, "a", ""), "1");
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static KnCode count_names(void *arg, const KnTableIdent *id, KnErr *err)
{
    (void)err;
    assert_int_equal(id->n_levels, 1);
    (*(int *)arg)++;
    return KN_OK;
}

static void listing_shows_this_catalog_only(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = open_catalog(fix, true);
    kn_table_free(create_table(fix, cat));
    int n = 0;
    assert_int_equal(cat->ops->list(cat, count_names, &n, &fix->err), KN_OK);
    assert_int_equal(n, 1);
    kn_catalog_close(cat);
    fix->loc.catalog = "other";
    cat = open_catalog(fix, false);
    n = 0;
    assert_int_equal(cat->ops->list(cat, count_names, &n, &fix->err), KN_OK);
    assert_int_equal(n, 0);
    kn_catalog_close(cat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_created_table_is_loaded_with_its_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(a_taken_name_and_a_missing_one_are_told_apart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_dropped_table_is_registered_again_by_its_document, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_renamed_table_keeps_its_files, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dot_inside_a_level_is_not_a_separator, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stale_handle_commits_on_the_newest_metadata, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_requirement_that_no_longer_holds_is_a_conflict, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(racing_processes_lose_no_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_commit_is_there_whole_or_not_at_all, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_lost_answer_is_settled_by_the_pointer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_database_is_corrupt_and_left_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_database_without_a_catalog_and_no_database_are_not_found,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_older_schema_is_read_and_written, setup, teardown),
        cmocka_unit_test_setup_teardown(listing_shows_this_catalog_only, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
