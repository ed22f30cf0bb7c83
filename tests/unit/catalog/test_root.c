/* SPDX-License-Identifier: Apache-2.0 */
/* Bare tables: which document is the newest, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "catalog/catalog.h"
#include "catalog/metadata_file.h"
#include "support/tempdir.h"

typedef struct Fixture {
    char dir[256];
    KnFileIO *io;
    KnErr err;
} Fixture;

static int setup(void **state)
{
    Fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    assert_int_equal(kn_io_local_open(&fix->io, &fix->err), KN_OK);
    *state = fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_io_close(fix->io);
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

/* A document whose property "which" says which one it is. */
static void put_document(Fixture *fix, const char *name, const char *which, bool gzip)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long"), &schema, &fix->err), KN_OK);
    KN_JSON_AUTO props = json_pack("{s:s, s:s}", "which", which, "write.metadata.compression-codec",
                                   gzip ? "gzip" : "none");
    KnCreateTable create = {
        .format_version = 2, .location = fix->dir, .schema = schema, .properties = props};
    KN_METADATA_AUTO md = NULL;
    assert_int_equal(kn_metadata_create(&create, &md, &fix->err), KN_OK);
    const char *path = kn_arena_printf(arena, "%s/metadata/%s", fix->dir, name);
    assert_int_equal(kn_metadata_file_write(fix->io, md, path, &fix->err), KN_OK);
}

static void put_text(Fixture *fix, const char *name, const char *text)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = kn_arena_printf(arena, "%s/metadata/%s", fix->dir, name);
    assert_int_equal(
        kn_io_write(fix->io, kn_str(path), text, strlen(text), KN_IO_REPLACE, &fix->err), KN_OK);
}

static void expect_loaded(Fixture *fix, const char *which)
{
    KnLocator loc = {.root = fix->dir};
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    if (kn_locator_load(&loc, &cat, &tbl, &fix->err) != KN_OK)
        fail_msg("load: %s", fix->err.msg);
    assert_string_equal(kn_metadata_property(tbl->md, "which", ""), which);
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void the_highest_number_wins_whatever_its_digits(void **state)
{
    Fixture *fix = *state;
    put_document(fix, "00009-aaaa.metadata.json", "nine", false);
    put_document(fix, "00010-aaaa.metadata.json", "ten", false);
    put_text(fix, "99999-not-a-document.json", "{}");
    put_text(fix, "snap-1-manifest.avro", "x");
    expect_loaded(fix, "ten");
    put_document(fix, "100000-aaaa.metadata.json", "hundred thousand", false);
    expect_loaded(fix, "hundred thousand");
}

static void a_gzip_document_is_read(void **state)
{
    Fixture *fix = *state;
    put_document(fix, "00001-aaaa.gz.metadata.json", "packed", true);
    expect_loaded(fix, "packed");
}

static void the_hint_is_believed_when_its_document_is_there(void **state)
{
    Fixture *fix = *state;
    put_document(fix, "v1.metadata.json", "one", false);
    put_document(fix, "v2.metadata.json", "two", false);
    put_text(fix, "version-hint.text", "1\n");
    expect_loaded(fix, "one");
    put_text(fix, "version-hint.text", "7");
    expect_loaded(fix, "two");
    put_text(fix, "version-hint.text", "seven");
    expect_loaded(fix, "two");
}

static void nothing_there_says_what_a_root_is(void **state)
{
    Fixture *fix = *state;
    KnLocator loc = {.root = fix->dir};
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    assert_int_equal(kn_locator_load(&loc, &cat, &tbl, &fix->err), KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "no table here"));
    assert_null(cat);
}

static void writing_is_refused(void **state)
{
    Fixture *fix = *state;
    put_document(fix, "00000-aaaa.metadata.json", "zero", false);
    KnLocator loc = {.root = fix->dir};
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    assert_int_equal(kn_locator_load(&loc, &cat, &tbl, &fix->err), KN_OK);
    KnTableCommit commit = {0};
    assert_int_equal(kn_table_commit(tbl, &commit, &fix->err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(fix->err.msg, "read-only"));
    kn_table_free(tbl);
    kn_catalog_close(cat);
}

static void exactly_one_place_is_named(void **state)
{
    Fixture *fix = *state;
    KnCatalog *cat = NULL;
    KnLocator none = {0}, two = {.root = "/a", .metadata = "/b"},
              mixed = {.root = "/a", .table = "ns.t"};
    assert_int_equal(kn_catalog_open(&none, false, &cat, &fix->err), KN_E_INVAL);
    assert_non_null(strstr(fix->err.msg, "--warehouse"));
    assert_int_equal(kn_catalog_open(&two, false, &cat, &fix->err), KN_E_INVAL);
    assert_string_equal(fix->err.msg, "--root and --metadata both name a place: give one");
    assert_int_equal(kn_catalog_open(&mixed, false, &cat, &fix->err), KN_E_INVAL);
    assert_non_null(strstr(fix->err.msg, "--table goes with --warehouse"));
}

static void versions_come_from_both_naming_schemes(void **state)
{
    (void)state;
    assert_int_equal(kn_metadata_file_version(kn_str("00012-ab.metadata.json")), 12);
    assert_int_equal(kn_metadata_file_version(kn_str("v3.metadata.json")), 3);
    assert_int_equal(kn_metadata_file_version(kn_str("v3.gz.metadata.json")), 3);
    assert_int_equal(kn_metadata_file_version(kn_str("v3.metadata.json.gz")), 3);
    assert_int_equal(kn_metadata_file_version(kn_str("version.metadata.json")), -1);
    assert_int_equal(kn_metadata_file_version(kn_str("00012-ab.json")), -1);
    assert_int_equal(kn_metadata_file_version(kn_str("99999999999999999999-a.metadata.json")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_highest_number_wins_whatever_its_digits, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_gzip_document_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(the_hint_is_believed_when_its_document_is_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_there_says_what_a_root_is, setup, teardown),
        cmocka_unit_test_setup_teardown(writing_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(exactly_one_place_is_named, setup, teardown),
        cmocka_unit_test(versions_come_from_both_naming_schemes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
