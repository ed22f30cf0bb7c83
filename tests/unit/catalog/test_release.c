/* SPDX-License-Identifier: Apache-2.0 */
/* Several tables released as one commit, and transactions under it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog.h"
#include "iceberg/maintain/release.h"
#include "iceberg/write/transaction.h"
#include "support/tempdir.h"

typedef struct Fixture {
    char dir[256];
    KnCatalog *cat;
    KnErr err;
} Fixture;

static const char *const levels[] = {"s"};
static const KnTableIdent idents[] = {{levels, 1, "a"}, {levels, 1, "b"}};

static KnTable *load(Fixture *fix, size_t i)
{
    KnTable *tbl = NULL;
    if (kn_table_load(fix->cat, &idents[i], &tbl, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    return tbl;
}

/* A snapshot without files, on a branch or staged under wap_id. */
static int64_t put_snapshot(Fixture *fix, size_t i, const char *branch, const char *wap_id)
{
    KnTable *tbl = load(fix, i);
    const KnRef *ref = branch ? kn_metadata_find_ref(tbl->md, kn_str(branch)) : NULL;
    const KnSnapshot *now = kn_metadata_snapshot(tbl->md);
    KN_JSON_AUTO summary = json_pack("{s:s}", "operation", "append");
    if (wap_id)
        (void)json_object_set_new(summary, "wap.id", json_string(wap_id));
    int64_t id = tbl->md->last_sequence_number + 100 + (int64_t)i * 1000;
    KnUpdate updates[] = {
        {.kind = KN_UPDATE_ADD_SNAPSHOT,
         .snapshot = {.snapshot_id = id,
                      .parent_id = ref   ? ref->snapshot_id
                                   : now ? now->snapshot_id
                                         : -1,
                      .sequence_number = tbl->md->last_sequence_number + 1,
                      .timestamp_ms = tbl->md->last_updated_ms + 1,
                      .manifest_list = "/none",
                      .operation = "append",
                      .summary = summary,
                      .schema_id = 0,
                      .first_row_id = -1,
                      .added_rows = -1}},
        {.kind = KN_UPDATE_SET_SNAPSHOT_REF, .ref = {branch, id, true, -1, -1, -1}},
    };
    KnTableCommit commit = {.updates = updates, .n_updates = branch ? 2 : 1};
    if (kn_table_commit(tbl, &commit, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    kn_table_free(tbl);
    return id;
}

static int64_t current(Fixture *fix, size_t i)
{
    KnTable *tbl = load(fix, i);
    const KnSnapshot *snap = kn_metadata_snapshot(tbl->md);
    int64_t id = snap ? snap->snapshot_id : -1;
    kn_table_free(tbl);
    return id;
}

static int setup(void **state)
{
    Fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    KnLocator loc = {.warehouse = fix->dir};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    assert_int_equal(kn_catalog_open(&loc, true, &fix->cat, &fix->err), KN_OK);
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, &fix->err), KN_OK);
    for (size_t i = 0; i < 2; i++) {
        KnCreateTable create = {.format_version = 2, .schema = schema};
        KnTable *tbl = NULL;
        assert_int_equal(kn_table_create(fix->cat, &idents[i], &create, &tbl, &fix->err), KN_OK);
        kn_table_free(tbl);
    }
    *state = fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_catalog_close(fix->cat);
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

static void assert_said(const Fixture *fix, const char *part)
{
    if (!strstr(fix->err.msg, part))
        fail_msg("'%s' is not in '%s'", part, fix->err.msg);
}

static void staged_snapshots_of_two_tables_become_current_together(void **state)
{
    Fixture *fix = *state;
    int64_t a = put_snapshot(fix, 0, NULL, "w"), b = put_snapshot(fix, 1, NULL, "w");
    KnRefMove moves[2] = {0};
    KnRelease release = {.tables = idents, .n_tables = 2, .wap_id = "w", .dry_run = true};
    assert_int_equal(kn_release(fix->cat, &release, moves, &fix->err), KN_OK);
    assert_true(moves[0].changed && moves[0].after == a && moves[0].before == -1);
    assert_int_equal(current(fix, 0), -1);
    release.dry_run = false;
    release.tag = "r1";
    assert_int_equal(kn_release(fix->cat, &release, moves, &fix->err), KN_OK);
    assert_int_equal(current(fix, 0), a);
    assert_int_equal(current(fix, 1), b);
    KnTable *tbl = load(fix, 1);
    const KnRef *tag = kn_metadata_find_ref(tbl->md, kn_str("r1"));
    assert_true(tag && !tag->is_branch && tag->snapshot_id == b);
    kn_table_free(tbl);
}

static void a_table_that_cannot_go_along_holds_all_back(void **state)
{
    Fixture *fix = *state;
    int64_t a = put_snapshot(fix, 0, "main", NULL);
    (void)put_snapshot(fix, 1, "main", NULL);
    int64_t next = put_snapshot(fix, 0, "next", NULL);
    KnRefMove moves[2] = {0};
    KnRelease release = {.tables = idents, .n_tables = 2, .branch = "next"};
    assert_int_equal(kn_release(fix->cat, &release, moves, &fix->err), KN_E_NOTFOUND);
    assert_said(fix, "next");
    assert_int_equal(current(fix, 0), a);
    release.skip_missing = true;
    assert_int_equal(kn_release(fix->cat, &release, moves, &fix->err), KN_OK);
    assert_true(moves[0].changed && !moves[1].changed);
    assert_int_equal(current(fix, 0), next);
}

static void nonsense_is_refused(void **state)
{
    Fixture *fix = *state;
    const KnTableIdent twice[] = {idents[0], idents[0]};
    const struct {
        KnRelease release;
        const char *says;
    } cases[] = {
        {{.wap_id = "w"}, "no table"},
        {{.tables = idents, .n_tables = 2}, "what is to be released"},
        {{.tables = idents, .n_tables = 2, .wap_id = "w", .branch = "b"}, "what is to be released"},
        {{.tables = twice, .n_tables = 2, .wap_id = "w"}, "named twice"},
    };
    KnRefMove moves[2];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kn_release(fix->cat, &cases[i].release, moves, &fix->err), KN_E_INVAL);
        assert_said(fix, cases[i].says);
    }
    KnRelease none = {.tables = idents, .n_tables = 2, .wap_id = "w", .skip_missing = true};
    assert_int_equal(kn_release(fix->cat, &none, moves, &fix->err), KN_E_NOTFOUND);
}

static KnCode set_property(KnTable *tbl, const char *value, KnErr *err)
{
    KN_JSON_AUTO set = json_pack("{s:s}", "k", value);
    KnUpdate update = {.kind = KN_UPDATE_SET_PROPERTIES, .properties = set};
    KnRequirement same = {.kind = KN_REQUIRE_REF_SNAPSHOT_ID, .text = "main", .number = -1};
    KnTableCommit commit = {&same, 1, &update, 1};
    return kn_table_commit(tbl, &commit, err);
}

static void a_transaction_shows_its_own_changes_and_hides_them_until_it_is_committed(void **state)
{
    Fixture *fix = *state;
    KnTransaction *tx = kn_transaction_begin(fix->cat);
    KnTable *tables[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kn_transaction_table(tx, &idents[i], &tables[i], &fix->err), KN_OK);
        assert_int_equal(set_property(tables[i], "one", &fix->err), KN_OK);
        assert_int_equal(set_property(tables[i], "two", &fix->err), KN_OK);
        assert_int_equal(kn_table_refresh(tables[i], &fix->err), KN_OK);
        assert_string_equal(kn_metadata_property(tables[i]->md, "k", ""), "two");
    }
    KnTable *outside = load(fix, 0);
    assert_null(kn_metadata_property(outside->md, "k", NULL));
    assert_int_equal(kn_transaction_commit(tx, &fix->err), KN_OK);
    for (size_t i = 0; i < 2; i++) {
        KnTable *after = load(fix, i);
        assert_string_equal(kn_metadata_property(after->md, "k", ""), "two");
        kn_table_free(after);
    }
    kn_table_free(outside);
    kn_transaction_end(tx);
}

static void a_transaction_that_comes_late_changes_nothing(void **state)
{
    Fixture *fix = *state;
    KnTransaction *tx = kn_transaction_begin(fix->cat);
    for (size_t i = 0; i < 2; i++) {
        KnTable *tbl = NULL;
        assert_int_equal(kn_transaction_table(tx, &idents[i], &tbl, &fix->err), KN_OK);
        assert_int_equal(set_property(tbl, "late", &fix->err), KN_OK);
    }
    (void)put_snapshot(fix, 1, "main", NULL);
    assert_int_equal(kn_transaction_commit(tx, &fix->err), KN_E_CONFLICT);
    kn_transaction_end(tx);
    KnTable *after = load(fix, 0);
    assert_null(kn_metadata_property(after->md, "k", NULL));
    kn_table_free(after);
}

static void a_transaction_makes_and_drops_no_tables(void **state)
{
    Fixture *fix = *state;
    KnTransaction *tx = kn_transaction_begin(fix->cat);
    KnTable *tbl = NULL;
    assert_int_equal(kn_transaction_table(tx, &idents[0], &tbl, &fix->err), KN_OK);
    KnCatalog *cat = tbl->catalog;
    assert_int_equal(cat->ops->drop(cat, &idents[0], &fix->err), KN_E_UNSUPPORTED);
    assert_int_equal(cat->ops->rename(cat, &idents[0], &idents[1], &fix->err), KN_E_UNSUPPORTED);
    assert_int_equal(kn_transaction_commit(tx, &fix->err), KN_OK);
    kn_transaction_end(tx);
    assert_null(kn_transaction_end(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(staged_snapshots_of_two_tables_become_current_together,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_that_cannot_go_along_holds_all_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_transaction_shows_its_own_changes_and_hides_them_until_it_is_committed, setup,
            teardown),
        cmocka_unit_test_setup_teardown(a_transaction_that_comes_late_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_transaction_makes_and_drops_no_tables, setup, teardown),
    };
    return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
