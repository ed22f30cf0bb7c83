/* SPDX-License-Identifier: Apache-2.0 */
/* check_dataset.c - one dataset: its place, schema, partitions, keys. */
#include "pipeline/check/checker.h"
#include "pipeline/check/partition.h"

static void check_partitions(const KnChecker *c, const KnutDataset *dataset)
{
    kn_check_names(c, &dataset->partition_cols, "the partition columns");
    for (size_t i = 0; i < dataset->partition_cols.len; i++) {
        KnPartition partition;
        KnErr err = {0};
        const char *text = dataset->partition_cols.items[i];
        KnCode rc = text[0] ? kn_partition_parse(kn_str(text), &partition, &err) : KN_E_CANCELLED;
        if (rc == KN_E_INVAL)
            kn_breach(c, "bad-partition", "%s", err.msg);
        else if (rc == KN_E_UNSUPPORTED)
            kn_breach(c, "other-partition", "%s", err.msg);
        else if (rc == KN_OK)
            kn_check_column(
                c, &dataset->schema,
                kn_arena_strndup(c->flaws->arena, partition.column.ptr, partition.column.len),
                "the partition column");
    }
}

static void check_place(const KnChecker *c, const KnutDataset *dataset)
{
    if (dataset->output_type == KNUT_OUTPUT_TEMPORARY_VIEW &&
        (dataset->path || dataset->partition_cols.len > 0 || dataset->keys.len > 0))
        kn_breach(
            c, "view-with-place",
            "a temporary view is not stored: its path, partition columns and keys do nothing");
    if (dataset->path)
        kn_check_given(c, dataset->path, "the path");
    if (dataset->format)
        kn_check_given(c, dataset->format, "the format");
}

void kn_check_dataset(const KnChecker *c, const KnutDataset *dataset, size_t place)
{
    check_place(c, dataset);
    kn_check_schema(c, &dataset->schema);
    check_partitions(c, dataset);
    kn_check_names(c, &dataset->cluster_by, "the clustering columns");
    for (size_t i = 0; i < dataset->cluster_by.len; i++)
        kn_check_column(c, &dataset->schema, dataset->cluster_by.items[i], "the clustering column");
    kn_check_names(c, &dataset->keys, "the keys");
    for (size_t i = 0; i < dataset->keys.len; i++)
        kn_check_column(c, &dataset->schema, dataset->keys.items[i], "the key");
    kn_check_expectations(c, &dataset->expectations);
    kn_check_pairs(c, &dataset->properties, "the properties");
    if (c->graph->writers[place].len == 0 && kn_graph_dataset(c->graph, dataset->name) == place)
        kn_breach(c, "no-flow", "no flow writes it");
}
