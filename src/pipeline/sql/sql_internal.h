/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sql_internal.h - what the files of this folder share: the parser's state, the parts of a
 * statement, queries.
 *
 * The parser holds one token. A function that parses something begins at its first token and ends
 * behind its last; a failure is in p->err with file, line and column, and recovery is script.c's.
 */
#include "base/json.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "pipeline/ir/ir.h"
#include "pipeline/sql/lex.h"
#include "pipeline/surface/surface.h"

/* Deeper nesting of types, and of brackets in queries, is refused. */
#define KN_SDP_MAX_DEPTH 200

typedef struct KnSdpParser {
    KnArena *arena;
    const char *origin;
    KnSession
        *session; /* NULL: queries are not shown to the engine and nothing is read from them */
    KnNotes *notes;
    KnErr *err;
    KnNote *failure; /* place and text of the last one */
    KnSdpLex lex;    /* behind tok */
    KnSdpToken tok;
    size_t last_end; /* of the token before tok */
} KnSdpParser;

/* ---- parser.c: tokens ---- */
void kn_sdp_take(KnSdpParser *p);
/** The next tokens are the engine's (query) or the definition's; the one at hand is read again. */
void kn_sdp_speak(KnSdpParser *p, bool query);
/** The token behind the one at hand; n = 1 the next. */
KnSdpToken kn_sdp_ahead(const KnSdpParser *p, size_t n);
KnStr kn_sdp_here(const KnSdpParser *p); /* text of the token at hand */
bool kn_sdp_token_is(const KnSdpParser *p, const KnSdpToken *token, const char *word);
/** words: "ON VIOLATION"; true when they are the next tokens, and takes them. Signs likewise. */
bool kn_sdp_at(const KnSdpParser *p, const char *words);
bool kn_sdp_accept(KnSdpParser *p, const char *words);
KN_NODISCARD KnCode kn_sdp_expect(KnSdpParser *p, const char *words);
bool kn_sdp_at_name(const KnSdpParser *p); /* a word or a quoted name */
/** True at the end of a statement: `;`, the end, or where the next definition begins. */
bool kn_sdp_at_end(const KnSdpParser *p);
/** "FILE:line:column: expected WHAT, found 'x'". */
KnCode kn_sdp_expected(KnSdpParser *p, const char *what);
/** "FILE:line:column: ..." at a token, or at the byte of the file. */
KnCode kn_sdp_fail(KnSdpParser *p, const KnSdpToken *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
KnCode kn_sdp_fail_at(KnSdpParser *p, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- parts.c: names, texts, lists, intervals ---- */
/** One part of a name, as it is meant. */
KN_NODISCARD KnCode kn_sdp_ident(KnSdpParser *p, const char **ret);
/** Parts joined by dots; a part with a dot in it stays between double quotes. */
KN_NODISCARD KnCode kn_sdp_name(KnSdpParser *p, const char **ret);
void kn_sdp_name_part(KnBuf *out, KnStr part);
/** A name as SQL says it: its parts plain where they can be, else between quote. */
void kn_sdp_print_name(KnBuf *out, const char *name, char quote);
KN_NODISCARD KnCode kn_sdp_literal(KnSdpParser *p, const char *what, const char **ret);
/** ( a, b ): plain names. */
KN_NODISCARD KnCode kn_sdp_names(KnSdpParser *p, KnutNames *ret);
/** ( expr, expr ): as written. */
KN_NODISCARD KnCode kn_sdp_exprs(KnSdpParser *p, KnutNames *ret);
/** An expression of the engine up to where stop says so at depth 0; as written. */
KN_NODISCARD KnCode kn_sdp_expr(KnSdpParser *p, bool (*stop)(const KnSdpParser *p),
                                const char *what, const char **ret);
/** A key: 'k', `k`, a.b */
KN_NODISCARD KnCode kn_sdp_key(KnSdpParser *p, const char **ret);
/** ( 'k' = 'v', a.b = 1, w t ): sorted, the last of a key counts. */
KN_NODISCARD KnCode kn_sdp_pairs(KnSdpParser *p, KnutPairs *ret);
/** INTERVAL 10 SECONDS, INTERVAL '1 hour 30 minutes', '10 seconds'. */
KN_NODISCARD KnCode kn_sdp_interval(KnSdpParser *p, uint64_t *ret_ms);
/** "1 hour 30 minutes", with or without INTERVAL in front. */
bool kn_sdp_parse_interval(KnStr text, uint64_t *ret_ms);
void kn_sdp_print_interval(KnBuf *out, uint64_t ms); /* "90 SECONDS" */

typedef KN_VEC(const char *) KnSdpStrings;
KnutNames kn_sdp_keep(KnArena *arena, KnSdpStrings *strings); /* and empties it */

/* ---- type.c ---- */
/** A type of a column, spelled as Arrow displays it. */
KN_NODISCARD KnCode kn_sdp_type(KnSdpParser *p, size_t depth, KnBuf *arrow);
/** The other way; false: SQL has no such type. */
bool kn_sdp_print_type(KnBuf *out, KnStr arrow, size_t depth);

/* ---- column.c: what stands in brackets behind a dataset's name ---- */
typedef struct KnSdpColumns {
    KN_VEC(KnutSchemaField) fields;
    KN_VEC(KnutExpectation) expectations;
    KnutNames keys;
} KnSdpColumns;
void kn_sdp_columns_done(KnSdpColumns *columns);
/** ( column, CONSTRAINT ..., PRIMARY KEY (...) ); fields says whether columns may be there. */
KN_NODISCARD KnCode kn_sdp_columns(KnSdpParser *p, bool fields, KnSdpColumns *ret);
KnutSchema kn_sdp_schema(KnArena *arena, const KnSdpColumns *columns);
KnutExpectations kn_sdp_expectations(KnArena *arena, const KnSdpColumns *columns);

/* ---- query.c, stream.c, window.c: a query's text ---- */
/* What stands in the file from at to end is text in the query. */
typedef struct KnSdpEdit {
    size_t at, end;
    const char *text;
} KnSdpEdit;

typedef struct KnSdpStream {
    KnutSource source;
    const char *name; /* as the query reads it */
    const KnutWatermark *watermark;
    KnSdpToken place;
} KnSdpStream;

typedef struct KnSdpQuery {
    KnSdpToken place; /* its first token */
    const char *text; /* for the engine; NULL before it is made */
    KnutNames reads;
    const KnutWindow *window;
    KnSdpToken window_place, window_column;
    KN_VEC(KnSdpToken) tokens;
    KN_VEC(KnSdpStream) streams; /* each once, in order */
    KN_VEC(KnSdpEdit) edits;
} KnSdpQuery;
void kn_sdp_query_done(KnSdpQuery *query);
/** A query up to the end of the statement, or (bracketed) up to the bracket that closes it. */
KN_NODISCARD KnCode kn_sdp_query(KnSdpParser *p, bool bracketed, KnSdpQuery *ret);
/** Take its tokens only. */
KN_NODISCARD KnCode kn_sdp_query_tokens(KnSdpParser *p, bool bracketed, KnSdpQuery *ret);
/** Find STREAM and WATERMARK, note the edits. */
KN_NODISCARD KnCode kn_sdp_query_streams(KnSdpParser *p, KnSdpQuery *query);
/** Find window() in GROUP BY, note the edits. */
KN_NODISCARD KnCode kn_sdp_query_window(KnSdpParser *p, KnSdpQuery *query);
/** What to write instead, by the word at a byte of the file at which the engine stumbles; or "". */
const char *kn_sdp_hint(KnSdpParser *p, size_t at);
/** The words of a condition or query with backticks as double quotes. */
char *kn_sdp_engine_text(KnArena *arena, KnStr file, size_t at, size_t end);
/** What a source is called by a query that reads it: a name as those of reads. */
const char *kn_sdp_source_name(KnArena *arena, const KnutSource *source);

/* ---- reads.c: the engine's tree ---- */
/** The tree of one query, without what is null, empty or default. On failure *ret_at is the byte of
 * the query, SIZE_MAX = of no place. The caller drops the reference. */
KN_NODISCARD KnCode kn_sdp_tree(KnSession *session, const char *query, json_t **ret, size_t *ret_at,
                                KnErr *err);
typedef struct KnSdpTable {
    const char *name;
    size_t at; /* byte of the query */
} KnSdpTable;
typedef KN_VEC(KnSdpTable) KnSdpTables;
/** The tables that a query names, in order of the tree: no CTEs, no functions, no files. On
 * failure *ret_at is the byte of the query, SIZE_MAX = of no place. */
KN_NODISCARD KnCode kn_sdp_tables(KnArena *arena, KnSession *session, const char *query,
                                  KnSdpTables *ret, size_t *ret_at, KnErr *err);

/* ---- statements ---- */
typedef enum KnSdpForm {
    KN_SDP_MATERIALIZED_VIEW,
    KN_SDP_STREAMING_TABLE,
    KN_SDP_TABLE,
    KN_SDP_VIEW,
    KN_SDP_SINK,
    KN_SDP_INPUT,
} KnSdpForm;

/* How a flow runs, where it is said. */
typedef struct KnSdpSettings {
    KnutTrigger trigger;
    KnutOutputMode output_mode;
    KnutNames deduplicate;
    bool given;
    KnSdpToken place;
} KnSdpSettings;
/** TRIGGER, OUTPUT MODE, DEDUPLICATE BY, when one is at hand. */
KN_NODISCARD KnCode kn_sdp_setting(KnSdpParser *p, KnSdpSettings *settings, bool *ret_was);

typedef struct KnSdpDataset {
    KnSdpForm form;
    KnutDataset it;
    KnSdpToken place; /* its name */
} KnSdpDataset;

typedef struct KnSdpFlow {
    KnutFlow it;
    KnSdpQuery query;
    KnSdpSettings settings;
    KnSdpToken place;
} KnSdpFlow;

typedef struct KnSdpScript {
    KnSdpParser p;
    KnPipelineBuilder *builder;
    KN_VEC(KnSdpDataset) datasets;
    KN_VEC(KnSdpFlow) flows;
} KnSdpScript;

/** A dataset behind CREATE ... and its kind. */
KN_NODISCARD KnCode kn_sdp_define(KnSdpScript *s, KnSdpForm form);
/** A flow behind CREATE FLOW, or at AUTO CDC INTO, APPLY CHANGES INTO. */
KN_NODISCARD KnCode kn_sdp_flow(KnSdpScript *s);
/** Behind AUTO CDC; into: the target is yet to come, and the name may be. */
KN_NODISCARD KnCode kn_sdp_cdc(KnSdpScript *s, KnSdpFlow *flow, bool into);
KnSdpFlow *kn_sdp_add_flow(KnSdpScript *s, const char *name, const char *target,
                           const KnSdpToken *place);
/* ---- resolve.c: once all definitions are known ---- */
KN_NODISCARD KnCode kn_sdp_resolve_flow(KnSdpScript *s, size_t i);
KN_NODISCARD KnCode kn_sdp_resolve_dataset(KnSdpScript *s, size_t i);

/** Read a document with or without an engine: what the surface and the fuzzer call. */
KN_NODISCARD KnCode kn_sdp_read(KnArena *arena, const KnDocument *doc, KnNotes *notes,
                                const KnPipeline **ret, KnErr *err);
/* ---- write*.c ---- */
/** Writes with a session, by which it reads back what it wrote. */
KN_NODISCARD KnCode kn_sdp_write(const KnPipeline *pipeline, KnSession *session, KnBuf *out,
                                 KnNotes *notes, KnErr *err);
