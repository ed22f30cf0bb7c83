/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the rules by name; flaws as they are collected. */
#include <stdio.h>

#include "pipeline/check/checker.h"

const KnRule kn_rules[] = {
    {"empty-name", true,
     "Pipelines, inputs, datasets, flows, columns and expectations have a name"},
    {"duplicate-name", true, "A name is used once among datasets and inputs, once among flows"},
    {"names-differ-in-case", true, "Engines take names that differ in case only for the same"},
    {"unknown-target", true, "A flow writes to a dataset of the pipeline"},
    {"read-differs-in-case", false, "A read has the name of a dataset in another case"},
    {"read-not-known", false, "A read is nearly the name of a dataset or input, and is neither"},
    {"reads-sink", false, "A sink leaves the pipeline; nothing should read it"},
    {"unused-input", false, "No flow reads the input"},
    {"no-flow", false, "No flow writes the dataset"},
    {"view-with-place", false,
     "A temporary view is not stored: path, partitions and keys do nothing"},
    {"view-of-stream", false,
     "A materialized view is recomputed; streams and changes go to tables"},
    {"empty-text", true, "A text that must say something is empty"},
    {"duplicate-column", true, "A list of columns names each once"},
    {"bad-type", true, "A declared type is one of Arrow's, as Arrow displays it"},
    {"unknown-column", true, "A column is in the declared schema that it should be in"},
    {"type-mismatch", true, "A column has the type that the target declares"},
    {"missing-column", true, "A flow gives each column that the target declares as not nullable"},
    {"bad-partition", true, "A partition is a column, or a transform with its arguments"},
    {"other-partition", false, "A partition by an expression that is no transform of Iceberg's"},
    {"no-query", false, "A flow without query takes its rows from the one thing that it reads"},
    {"reads-one", true, "A projection, a filter or changes without query are of one read"},
    {"bad-event-time", true, "An event-time column is a timestamp, or milliseconds as Int64"},
    {"zero-window", true, "Sizes, slides and gaps of windows are more than zero"},
    {"huge-duration", true, "Milliseconds are within 2^63"},
    {"slide-beyond-size", false, "A hopping window that slides further than its size skips rows"},
    {"window-without-watermark", false, "Without a watermark no window ever closes"},
    {"deduplicate-without-watermark", false, "Without a watermark all keys are kept for ever"},
    {"cdc-keys", true, "A cdc flow has keys, the same as other cdc flows of its target"},
    {"cdc-columns", true, "Columns of a cdc flow are listed or excepted, and its keys are kept"},
    {"cdc-history", true, "History is tracked with type2 only, by a list or all but a list"},
    {"cdc-target", true, "The target of a cdc flow is a table or sink that only cdc flows write"},
    {"bad-query", false, "Queries and conditions are SQL that the engine reads (--queries)"},
    {"read-not-listed", true, "What a query reads is in its flow's reads (--queries)"},
    {"read-not-used", false, "What a flow's reads name is read by its query (--queries)"},
    {"cycle", true, "No dataset needs itself"},
};
const size_t kn_n_rules = sizeof(kn_rules) / sizeof(kn_rules[0]);

void kn_flaws_done(KnFlaws *flaws)
{
    kn_vec_done(&flaws->list);
}

void kn_flaws_add(KnFlaws *flaws, const KnFlaw *flaw)
{
    *kn_vec_push(&flaws->list) = *flaw;
    flaws->n_errors += flaw->error;
}

KnCode kn_flaws_fail(const KnFlaws *flaws, KnErr *err)
{
    kn_vec_foreach (&flaws->list, p) {
        if (!p->error)
            continue;
        if (flaws->n_errors > 1)
            return kn_err_set(err, KN_E_INVAL, "%s: %s (and %zu more errors)", p->where, p->text,
                              flaws->n_errors - 1);
        return kn_err_set(err, KN_E_INVAL, "%s: %s", p->where, p->text);
    }
    return KN_OK;
}

void kn_breach(const KnChecker *c, const char *rule, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    size_t i = 0;
    while (i < kn_n_rules && strcmp(kn_rules[i].name, rule) != 0)
        i++;
    assert(i < kn_n_rules);
    kn_flaws_add(c->flaws, &(KnFlaw){.error = kn_rules[i].error,
                                     .rule = kn_rules[i].name,
                                     .where = c->where,
                                     .text = kn_arena_strdup(c->flaws->arena, text)});
}
