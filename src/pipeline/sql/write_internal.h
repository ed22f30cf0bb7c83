/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * write_internal.h - the writer's parts. What SQL cannot say is taken off a copy of the pipeline
 * first, each thing with a note (lower.c); what is left is written without loss, and the text is
 * read back to prove it (write.c).
 */
#include "pipeline/sql/sql_internal.h"

typedef struct KnSdpWriter {
    KnArena *arena;
    KnSession *session;
    KnNotes *notes;
    KnPipeline *p; /* what SQL can say of the pipeline */
    KnBuf *out;
} KnSdpWriter;

/* ---- lower.c ---- */
void kn_sdp_lower(KnSdpWriter *w);
/** Form in which the dataset is defined. */
KnSdpForm kn_sdp_form_of(const KnPipeline *p, const KnutDataset *dataset);

/* ---- write_flow.c ---- */
/** CREATE FLOW ... ; */
void kn_sdp_write_flow(KnSdpWriter *w, const KnutFlow *flow);
/** TRIGGER and the like, a line each. */
void kn_sdp_write_settings(KnSdpWriter *w, const KnutFlow *flow);
/** The flow's query with STREAM, WATERMARK, window(), and backticks. */
void kn_sdp_write_query(KnSdpWriter *w, const KnutFlow *flow);
void kn_sdp_write_text(KnBuf *out, const char *text);   /* 'it''s' */
void kn_sdp_write_engine(KnBuf *out, const char *text); /* an expression: "a" is `a` */
void kn_sdp_write_names(KnBuf *out, KnutNames names);   /* (a, `b c`) */
void kn_sdp_write_expectation(KnBuf *out, const KnutExpectation *expectation);
