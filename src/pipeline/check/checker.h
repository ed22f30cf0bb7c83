/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* checker.h - what the files that check share. */
#include "pipeline/check/check.h"

typedef struct KnChecker {
    const KnGraph *graph;
    const KnPipeline *pipeline;
    KnFlaws *flaws;
    const char *where;  /* what is looked at */
    size_t *hints_left; /* looking for near names costs the number of names */
} KnChecker;

/** Report a breach of a rule of kn_rules; whether it is an error is said there. */
void kn_breach(const KnChecker *c, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** A list of columns or other names, called what: none empty, none twice. */
void kn_check_names(const KnChecker *c, const KnutNames *names, const char *what);
/** A text that must hold something. */
void kn_check_given(const KnChecker *c, const char *text, const char *what);
void kn_check_schema(const KnChecker *c, const KnutSchema *schema);
void kn_check_expectations(const KnChecker *c, const KnutExpectations *expectations);
void kn_check_pairs(const KnChecker *c, const KnutPairs *pairs, const char *what);
/** A column that a declared schema must have; nothing where none is declared. of: whose schema. */
void kn_check_column(const KnChecker *c, const KnutSchema *schema, const char *column,
                     const char *what);
/** The field of a column (as engines find it), or NULL. */
const KnutSchemaField *kn_schema_find(const KnutSchema *schema, KnStr column);

void kn_check_dataset(const KnChecker *c, const KnutDataset *dataset, size_t place);
void kn_check_flow(const KnChecker *c, const KnutFlow *flow, size_t place);
void kn_check_streaming(const KnChecker *c, const KnutFlow *flow, size_t place);
void kn_check_cdc(const KnChecker *c, const KnutFlow *flow, size_t place);

/** The declared schema of what a flow reads; NULL = not declared, or not known. */
const KnutSchema *kn_read_schema(const KnChecker *c, const KnGraphRead *read);
/** Append "; did you mean `x`?" where a dataset or input has nearly that name. */
void kn_hint_name(const KnChecker *c, KnBuf *buf, const char *name);
