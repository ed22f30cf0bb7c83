/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest_series.c - manifests in order, fetched ahead where storage is far. labels: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/manifest/manifest_series.h"
#include "unit/iceberg/manifest_support.h"

enum { N = 3 * KN_MANIFESTS_AHEAD + 1 };

/* A storage in memory that says of itself that it is far. */
typedef struct Far {
    TestTable table;
    KnFileIOOps ops;
    KnManifestFile files[N];
    const KnManifestFile *list[N];
    size_t begun, told; /* in this order */
    size_t stop_at;     /* the entry at which the callback fails */
} Far;

static void far_open(Far *far)
{
    *far = (Far){.stop_at = SIZE_MAX};
    test_table_make(2, &far->table);
    far->ops = *far->table.io->ops;
    far->ops.remove_batch = 2; /* requests are worth gathering */
    far->table.io->ops = &far->ops;
    const KnManifestForm form = {&kn_manifest_entry_fields, 2, test_partition_type(&far->table)};
    for (size_t i = 0; i < N; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "mem://t/%zu.avro", i);
        const KnManifestEntry entry = test_entry(KN_ENTRY_ADDED, path, (int64_t)i);
        test_manifest_put(&far->table, &form, path, &entry, 1);
        far->files[i] = kn_manifest_file_empty();
        far->files[i].path = kn_arena_strdup(far->table.arena, path);
        far->files[i].length = -1;
        far->files[i].spec_id = 7;
        far->files[i].added_snapshot_id = 1;
        far->files[i].sequence_number = 1;
        far->list[i] = &far->files[i];
    }
}

static KnCode begun(void *arg, const KnManifestFile *mf, KnErr *err)
{
    Far *far = arg;
    (void)err;
    assert_ptr_equal(mf, far->list[far->begun++]);
    return KN_OK;
}

static KnCode told(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Far *far = arg;
    assert_string_equal(entry->file.path, far->list[far->told]->path);
    assert_int_equal(far->begun, far->told + 1);
    if (far->told++ == far->stop_at)
        return kn_err_set(err, KN_E_REFUSED, "enough");
    return KN_OK;
}

static KnCode read_all(Far *far, KnErr *err)
{
    const KnManifestSeries series = {
        .files = far->list, .n = N, .visit = {.fn = told, .arg = far}, .begin = begun};
    far->begun = far->told = 0;
    return kn_manifest_read_series(far->table.io, far->table.md, &series, err);
}

static void entries_come_in_the_order_of_the_files(void **state)
{
    (void)state;
    Far far;
    far_open(&far);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_all(&far, NULL), KN_OK);
        assert_int_equal(far.told, N);
        far.ops.remove_batch = 1; /* the same, one by one */
    }
    test_table_close(&far.table);
}

static void a_failure_ends_the_series_where_it_is(void **state)
{
    (void)state;
    Far far;
    KnErr err = {0};
    far_open(&far);
    far.stop_at = 9;
    assert_int_equal(read_all(&far, &err), KN_E_REFUSED);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(far.told, 10);
    far.stop_at = SIZE_MAX;
    assert_int_equal(kn_io_remove(far.table.io, kn_str(far.files[12].path), NULL), KN_OK);
    assert_int_equal(read_all(&far, &err), KN_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "mem://t/12.avro"));
    assert_int_equal(far.told, 12);
    test_table_close(&far.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_in_the_order_of_the_files),
        cmocka_unit_test(a_failure_ends_the_series_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
