/* SPDX-License-Identifier: Apache-2.0 */
/* test_alter_spec.c - changes of partition fields and of the write order; the cases of Java's
 * TestUpdatePartitionSpec. */
#include <string.h>

#include "unit/iceberg/alter_support.h"

#define TABLE       "id long required, ts timestamptz required, category string, data string"
#define PARTITIONED "category, day(ts), bucket(16, id) as shard"

typedef struct Case {
    const char *spec, *changes, *v1, *v2; /* v2 NULL = as v1 */
} Case;

static const Case cases[] = {
    {NULL, "add partition field category", "1000 category=identity(3)", NULL},
    {NULL, "add partition field identity(category)", "1000 category=identity(3)", NULL},
    {NULL, "add partition field year(ts)", "1000 ts_year=year(2)", NULL},
    {NULL, "add partition field month(ts)", "1000 ts_month=month(2)", NULL},
    {NULL, "add partition field day(ts)", "1000 ts_day=day(2)", NULL},
    {NULL, "add partition field hour(ts)", "1000 ts_hour=hour(2)", NULL},
    {NULL, "add partition field bucket(16, id)", "1000 id_bucket_16=bucket[16](1)", NULL},
    {NULL, "add partition field truncate(data, 4)", "1000 data_trunc_4=truncate[4](4)", NULL},
    {NULL, "add partition field bucket(16, id) as shard", "1000 shard=bucket[16](1)", NULL},
    {PARTITIONED, "add partition field truncate(4, data) as prefix",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard=bucket[16](1), "
     "1003 prefix=truncate[4](4)",
     NULL},
    {"day(ts)", "add partition field hour(ts)", "1000 ts_day=day(2), 1001 ts_hour=hour(2)", NULL},
    {"bucket(16, id)", "add partition field bucket(8, id)",
     "1000 id_bucket=bucket[16](1), 1001 id_bucket_8=bucket[8](1)", NULL},
    {PARTITIONED, "drop partition field category",
     "1000 category=void(3), 1001 ts_day=day(2), 1002 shard=bucket[16](1)",
     "1001 ts_day=day(2), 1002 shard=bucket[16](1)"},
    {PARTITIONED, "drop partition field shard",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard=void(1)",
     "1000 category=identity(3), 1001 ts_day=day(2)"},
    {PARTITIONED, "drop partition field day(ts)",
     "1000 category=identity(3), 1001 ts_day=void(2), 1002 shard=bucket[16](1)",
     "1000 category=identity(3), 1002 shard=bucket[16](1)"},
    {PARTITIONED, "drop partition field bucket(16, id)",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard=void(1)",
     "1000 category=identity(3), 1001 ts_day=day(2)"},
    {PARTITIONED, "rename partition field shard to id_bucket",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 id_bucket=bucket[16](1)", NULL},
    {PARTITIONED,
     "rename partition field shard to id_bucket; drop partition field day(ts); "
     "add partition field truncate(4, data) as prefix",
     "1000 category=identity(3), 1001 ts_day=void(2), 1002 id_bucket=bucket[16](1), "
     "1003 prefix=truncate[4](4)",
     "1000 category=identity(3), 1002 id_bucket=bucket[16](1), 1003 prefix=truncate[4](4)"},
    /* The same field again stays as it was, or takes the other name. */
    {PARTITIONED, "drop partition field shard; add partition field bucket(16, id) as shard",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard=bucket[16](1)", NULL},
    {PARTITIONED, "drop partition field shard; add partition field bucket(16, id) as shard2",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard2=bucket[16](1)", NULL},
    {PARTITIONED, "drop partition field shard; add partition field bucket(8, id) as shard",
     "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard_1002=void(1), "
     "1003 shard=bucket[8](1)",
     "1000 category=identity(3), 1001 ts_day=day(2), 1003 shard=bucket[8](1)"},
    {PARTITIONED, "replace partition field ts_day with hour(ts)",
     "1000 category=identity(3), 1001 ts_day=void(2), 1002 shard=bucket[16](1), "
     "1003 ts_hour=hour(2)",
     "1000 category=identity(3), 1002 shard=bucket[16](1), 1003 ts_hour=hour(2)"},
    {PARTITIONED, "replace partition field day(ts) with month(ts) as ts_day",
     "1000 category=identity(3), 1001 ts_day_1001=void(2), 1002 shard=bucket[16](1), "
     "1003 ts_day=month(2)",
     "1000 category=identity(3), 1002 shard=bucket[16](1), 1003 ts_day=month(2)"},
    {"day(ts)", "add column n int; add partition field truncate(10, n); rename column n to m",
     "1000 ts_day=day(2), 1001 n_trunc_10=truncate[10](5)", NULL},
    {"day(ts)", "drop partition field ts_day; drop column ts", "1000 ts_day=void(2)", ""},
};

static void partition_fields_change_as_java_changes_them(void **state)
{
    Meta *m = *state;

    for (int32_t version = 1; version <= 3; version++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            const Case *c = &cases[i];
            KnMetadata *md = alter(m, alter_table(m, version, TABLE, c->spec), c->changes);
            const char *want = version > 1 && c->v2 ? c->v2 : c->v1;
            if (strcmp(alter_spec(m, md), want) != 0)
                fail_msg("v%d, %s: '%s' is not '%s'", version, c->changes, alter_spec(m, md), want);
            kn_metadata_unref(md);
        }
    }
}

static void what_java_refuses_is_refused(void **state)
{
    static const struct {
        const char *changes, *message;
    } refused[] = {
        {"add partition field truncate(4, data) as prefix; drop partition field prefix",
         "Cannot delete newly added field: prefix"},
        {"add partition field truncate(4, data) as prefix; drop partition field truncate(4, data)",
         "Cannot delete newly added field: prefix"},
        {"add partition field truncate(4, data) as prefix; add partition field truncate(4, data)",
         "Cannot add duplicate partition field data_trunc_4=truncate[4](data), conflicts with "
         "prefix"},
        {"add partition field truncate(4, data) as prefix; add partition field truncate(6, data) "
         "as prefix",
         "Cannot add duplicate partition field name: prefix"},
        {"add partition field hour(ts); add partition field month(ts)",
         "Cannot add redundant partition field: ts_hour conflicts with ts_month"},
        {"add partition field category", "Cannot add duplicate partition field category=identity"},
        {"add partition field day(ts)", "Cannot add duplicate partition field ts_day=day(ts)"},
        {"add partition field bucket(16, id)", "Cannot add duplicate partition field"},
        {"add partition field bucket(8, id) as shard",
         "Cannot add duplicate partition field name: shard"},
        {"drop partition field moon", "Cannot find partition field to remove: moon"},
        {"drop partition field hour(ts)", "Cannot find partition field to remove: hour(ts)"},
        {"drop partition field hour(moon)", "position 27: column 'moon' does not exist"},
        {"rename partition field moon to x", "Cannot find partition field to rename: moon"},
        {"add partition field truncate(4, data) as prefix; rename partition field prefix to x",
         "Cannot rename newly added partition field: prefix"},
        {"rename partition field shard to id_bucket; drop partition field bucket(16, id)",
         "Cannot rename and delete partition field: id_bucket"},
        {"drop partition field shard; rename partition field shard to id_bucket",
         "Cannot find partition field to rename: shard"},
        {"rename partition field shard to category", "Cannot add duplicate partition field name"},
        {"add partition field truncate(4, data) as id",
         "Cannot create partition from name that exists in schema: id"},
        {"add column shard int", "Cannot create partition from name that exists in schema: shard"},
        {"rename column data to ts_day", "Cannot create partition from name that exists in schema"},
        {"drop column ts", "Cannot find source column for partition field: ts_day"},
        {"add partition field day(category)", "Invalid source type string for transform: day"},
        {"add partition field moon(ts)", "position 21: 'moon' is not a transform"},
        {"write ordered by moon", "position 18: column 'moon' does not exist"},
        {"write ordered by day(category)", "Invalid source type string for transform: day"},
    };
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, TABLE, PARTITIONED);

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        alter_refused(m, md, refused[i].changes, refused[i].message);
    kn_metadata_unref(md);
}

static void a_field_of_an_older_spec_has_its_id_and_name_again(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, TABLE, PARTITIONED);

    md = alter(m, md, "drop partition field shard; drop partition field ts_day");
    md = alter(m, md, "add partition field truncate(4, data)");
    assert_string_equal(alter_spec(m, md),
                        "1000 category=identity(3), 1003 data_trunc_4=truncate[4](4)");
    md = alter(m, md, "add partition field bucket(16, id); add partition field day(ts) as d");
    assert_string_equal(alter_spec(m, md),
                        "1000 category=identity(3), 1003 data_trunc_4=truncate[4](4), "
                        "1002 shard=bucket[16](1), 1001 d=day(2)");
    assert_int_equal(md->last_partition_id, 1003);
    md = alter(m, md, "drop partition field shard; drop partition field d");
    assert_int_equal(md->default_spec_id, 2); /* the spec that was there before */
    kn_metadata_unref(md);
}

static void v1_gives_up_the_name_of_a_void_field(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 1, TABLE, PARTITIONED);

    md = alter(m, md, "drop partition field shard");
    md = alter(m, md, "add partition field bucket(16, id) as shard");
    assert_string_equal(alter_spec(m, md),
                        "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard_1002=void(1), "
                        "1003 shard=bucket[16](1)");
    md = alter(m, md, "set format version 2; drop partition field shard");
    assert_string_equal(alter_spec(m, md),
                        "1000 category=identity(3), 1001 ts_day=day(2), 1002 shard_1002=void(1)");
    kn_metadata_unref(md);
}

static const char *order_text(Meta *m, const KnMetadata *md)
{
    const KnSortOrder *order = kn_metadata_sort_order(md);
    char *text = kn_arena_printf(m->arena, "%d:", order->order_id);

    for (size_t i = 0; i < order->n_fields; i++)
        text =
            kn_arena_printf(m->arena, "%s %s(%d)%s%s", text, order->fields[i].transform.text,
                            order->fields[i].source_id, order->fields[i].descending ? " desc" : "",
                            order->fields[i].nulls_last ? " last" : "");
    return text;
}

static void the_write_order_comes_with_its_distribution(void **state)
{
    static const struct {
        const char *changes, *order, *mode;
    } orders[] = {
        {"write ordered by id, ts desc, category desc nulls first, data nulls last",
         "1: identity(1) identity(2) desc last identity(3) desc identity(4) last", "range"},
        {"write locally ordered by bucket(4, id)", "1: bucket[4](1)", "none"},
        {"write distributed by partition", "0:", "hash"},
        {"write distributed by partition locally ordered by day(ts)", "1: day(2)", "hash"},
        {"write ordered by id; write unordered", "0:", "none"},
        {"add column n int; write ordered by n", "1: identity(5)", "range"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        KnMetadata *md = alter(m, alter_table(m, 2, TABLE, "day(ts)"), orders[i].changes);
        assert_string_equal(order_text(m, md), orders[i].order);
        assert_string_equal(kn_metadata_property(md, "write.distribution-mode", "-"),
                            orders[i].mode);
        kn_metadata_unref(md);
    }
}

static void a_column_of_the_write_order_stays(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter(m, alter_table(m, 2, TABLE, NULL), "write ordered by data");

    alter_refused(m, md, "drop column data", "Cannot find source column for sort field: identity");
    md = alter(m, md, "drop column data; write unordered");
    assert_string_equal(alter_column(m, md, "data"), "none");
    kn_metadata_unref(md);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partition_fields_change_as_java_changes_them),
        TEST(what_java_refuses_is_refused),
        TEST(a_field_of_an_older_spec_has_its_id_and_name_again),
        TEST(v1_gives_up_the_name_of_a_void_field),
        TEST(the_write_order_comes_with_its_distribution),
        TEST(a_column_of_the_write_order_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
