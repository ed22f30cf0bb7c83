/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * doris_internal.h - what the files of this sink share.
 *
 *   settings.c  the place "http://fe:8030?name=value&..." and the environment
 *   api.c       the frontend's small requests: health, schema, statements, states of labels
 *   table.c     the target as SHOW CREATE TABLE tells it; type.c its types
 *   plan.c      a window's columns against the target's: differences, or an encoder's plan
 *   json.c      rows as JSON lines (json_value.c their values)
 *   arrow.c     rows as an Arrow stream (arrow_column.c, arrow_ipc.c); which targets take one
 *   body.c      where they wait for their length to be known
 *   reply.c     what an answer means
 *   load.c      one chunk: frontend, backend, verdict, again
 *   ddl.c       CREATE TABLE for a schema
 *   doris.c     the sink
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "cdc/sink.h"
#include "net/http_client.h"

/* ---- settings ---- */

typedef struct KnDorisRewrite {
    const char *from, *to; /* "host:port" */
} KnDorisRewrite;

typedef struct KnDorisSettings {
    const char *cluster; /* the stable half of the identity */
    size_t n_fe;
    const char **fe; /* "http://host:port" */
    size_t n_be;
    const char **be; /* likewise; loads go there directly */
    size_t n_rewrites;
    KnDorisRewrite *rewrites;
    const char *redirect_policy; /* or NULL */
    const char *be_scheme;       /* "http", "https": instead of what the frontend says; or NULL */
    bool allow_downgrade;        /* https may redirect to http */
    const char *ca_file;
    bool arrow;         /* format=arrow; else JSON */
    int64_t arrow_zone; /* hours east of UTC at which Doris shows Arrow's timestamps; -1 = not
                           said: they are refused */
    int64_t connect_ms, answer_ms, stall_ms;
    int64_t load_timeout_s; /* header `timeout` */
    int64_t grace_ms;       /* an earlier attempt may take so long before it is fenced */
    int64_t retry_ms;       /* first pause; doubles */
    int64_t max_retries;
    int64_t label_keep_s; /* labels are trusted to be remembered so long */
    bool two_phase;       /* loads are held until all of a window are there */
    bool create_table;
    int64_t buckets;     /* 0 = AUTO */
    int64_t replication; /* 0 = the cluster's default */
} KnDorisSettings;

/** Parses a place. Credentials in it are refused; no message shows them. In arena. */
KN_NODISCARD KnCode kn_doris_settings_parse(KnArena *arena, const char *place, KnDorisSettings *ret,
                                            KnErr *err);

/* ---- types and tables ---- */

typedef enum KnDorisKind {
    KN_DORIS_BOOLEAN,
    KN_DORIS_TINYINT,
    KN_DORIS_SMALLINT,
    KN_DORIS_INT,
    KN_DORIS_BIGINT,
    KN_DORIS_LARGEINT,
    KN_DORIS_FLOAT,
    KN_DORIS_DOUBLE,
    KN_DORIS_DECIMAL,
    KN_DORIS_DATE,
    KN_DORIS_DATETIME,
    KN_DORIS_CHAR,
    KN_DORIS_VARCHAR,
    KN_DORIS_STRING,
    KN_DORIS_JSON,
    KN_DORIS_ARRAY,
    KN_DORIS_MAP,
    KN_DORIS_STRUCT,
    KN_DORIS_OTHER, /* VARIANT, BITMAP, HLL, ...: nothing is delivered into it */
} KnDorisKind;

typedef struct KnDorisType {
    KnDorisKind kind;
    int32_t precision, scale; /* DECIMAL; scale of DATETIME */
    int32_t length;           /* bytes of CHAR and VARCHAR; -1 = not said */
    size_t n_children;
    struct KnDorisType *children;
    const char **names; /* STRUCT */
} KnDorisType;

/** "varchar(20)", "array<struct<a:int,b:text>>". Types that are not known are OTHER; KN_E_CORRUPT
 * for what is no type at all. In arena. */
KN_NODISCARD KnCode kn_doris_type_parse(KnArena *arena, KnStr text, KnDorisType *ret, KnErr *err);
/** The type that holds every value of an Iceberg type; key: as a key column. KN_E_UNSUPPORTED. */
KN_NODISCARD KnCode kn_doris_type_sql(KnBuf *out, const KnType *type, bool key, KnErr *err);
/** May every value of `from` be stored in `to` and be read back as the same? NULL = yes, else why
 * not (a static text). */
const char *kn_doris_type_mismatch(const KnType *from, const KnDorisType *to);

typedef enum KnDorisModel { KN_DORIS_DUPLICATE, KN_DORIS_UNIQUE, KN_DORIS_AGGREGATE } KnDorisModel;

typedef struct KnDorisColumn {
    const char *name;
    const char *type_text;
    KnDorisType type;
    bool not_null;
    bool has_default; /* also AUTO_INCREMENT and generated columns */
} KnDorisColumn;

typedef struct KnDorisTable {
    size_t n_columns;
    KnDorisColumn *columns;
    KnDorisModel model;
    size_t n_keys;
    const char **keys;
    const char *sequence_type; /* property function_column.sequence_type, or NULL */
    const char *sequence_col;  /* property function_column.sequence_col, or NULL */
    const char *group_commit;  /* property group_commit_mode, or NULL */
} KnDorisTable;

/** Of the text of SHOW CREATE TABLE. KN_E_CORRUPT says what is missing. In arena. */
KN_NODISCARD KnCode kn_doris_table_parse(KnArena *arena, KnStr ddl, KnDorisTable *ret, KnErr *err);
/** By name, any case: Doris does not tell column names by case. */
const KnDorisColumn *kn_doris_table_find(const KnDorisTable *table, const char *name);

/** CREATE TABLE for a schema. */
KN_NODISCARD KnCode kn_doris_ddl(KnBuf *out, const KnDorisSettings *set, const char *db,
                                 const char *table, const KnSinkWindow *win, KnErr *err);
void kn_doris_ident(KnBuf *out, const char *name); /* in backticks */

/* ---- what is sent ---- */

typedef struct KnDorisField {
    const KnField *source;
    const KnDorisColumn *target;
    bool base64; /* sent as text, turned back by the `columns` header */
} KnDorisField;

typedef struct KnDorisPlan {
    size_t n;
    KnDorisField *fields;
    const char *columns;        /* header of inserts */
    const char *delete_columns; /* header of deletes: keys and what may not be NULL */
    bool *in_delete;            /* by field */
    const char *sequence;       /* "" or the value of the sequence column */
    bool arrow;                 /* rows go as Arrow */
    int64_t arrow_shift_us;     /* taken off timestamps */
    bool unique;
} KnDorisPlan;

#define KN_DORIS_SEQUENCE_COLUMN "__knut_sequence"

/** KN_E_REFUSED lists all differences in one line. set: the format; in arena. */
KN_NODISCARD KnCode kn_doris_plan(KnArena *arena, const KnDorisSettings *set,
                                  const KnDorisTable *table, const KnSinkWindow *win,
                                  KnDorisPlan *ret, KnErr *err);
/** Why a column cannot be sent as Arrow (a static text), or NULL. */
const char *kn_doris_arrow_mismatch(const KnDorisField *field, const KnDorisSettings *set);

/* Bytes whose number must be known before they are sent: in memory, then in a file without a name.
 */
typedef struct KnDorisBody {
    const char *folder; /* for the file */
    char *mem;
    size_t mem_len;
    int fd; /* -1 = none yet */
    uint64_t len;
} KnDorisBody;
void kn_doris_body_init(KnDorisBody *body, const char *folder);
void kn_doris_body_done(KnDorisBody *body);
KN_NODISCARD KnCode kn_doris_body_append(KnDorisBody *body, const void *bytes, size_t len,
                                         KnErr *err);
KnCode kn_doris_body_read(void *arg, uint64_t offset, void *out, size_t cap, size_t *ret_n,
                          KnErr *err); /* a KnHttpReadFn */

typedef struct KnDorisJson KnDorisJson;
/** deletes: only the fields of key-only deletes. The plan must outlive it. */
KnDorisJson *kn_doris_json_new(const KnDorisPlan *plan, bool deletes, KnDorisBody *body);
KnDorisJson *kn_doris_json_free(KnDorisJson *enc);
/** One line a row. KN_E_REFUSED names column and value that the target cannot hold. */
KN_NODISCARD KnCode kn_doris_json_rows(KnDorisJson *enc, const KnBatch *batch, KnErr *err);
KN_NODISCARD KnCode kn_doris_json_end(KnDorisJson *enc, KnErr *err);

typedef struct KnDorisArrow KnDorisArrow;
/** As kn_doris_json_*, for a plan with `arrow`: one IPC stream. */
KnDorisArrow *kn_doris_arrow_new(const KnDorisPlan *plan, bool deletes, KnDorisBody *body);
KnDorisArrow *kn_doris_arrow_free(KnDorisArrow *enc);
KN_NODISCARD KnCode kn_doris_arrow_rows(KnDorisArrow *enc, const KnBatch *batch, KnErr *err);
KN_NODISCARD KnCode kn_doris_arrow_end(KnDorisArrow *enc, KnErr *err);

/* ---- answers ---- */

typedef struct KnDorisReply {
    bool frontend; /* the frontend refused: text is all there is */
    bool unauthorized;
    const char *status; /* "Success", "Fail", ... */
    const char *label;
    const char *existing;  /* ExistingJobStatus, "" */
    const char *text;      /* Message, or the frontend's words */
    const char *error_url; /* "" */
    bool group_commit;
    bool held; /* TwoPhaseCommit: the transaction waits for its commit */
    int64_t txn, total, loaded, filtered, unselected;
} KnDorisReply;

/** Any of the three shapes. KN_E_CORRUPT: no verdict in it. In arena. */
KN_NODISCARD KnCode kn_doris_reply_parse(KnArena *arena, KnStr body, KnDorisReply *ret, KnErr *err);

typedef enum KnDorisNext {
    KN_DORIS_LANDED,    /* all rows, durable */
    KN_DORIS_REPEATED,  /* an earlier attempt has landed */
    KN_DORIS_ASK,       /* the label's state decides; then the same again */
    KN_DORIS_ASK_LATER, /* likewise, after a long pause */
    KN_DORIS_STOP,      /* nothing of it is there, and trying again does not help */
    KN_DORIS_WRONG,     /* something else than the rows has landed */
} KnDorisNext;

typedef struct KnDorisAsked {
    const char *label;
    int64_t rows;
    bool first_try; /* no attempt with this label has ever been made */
} KnDorisAsked;

/** err is set for all but LANDED and REPEATED. */
KnDorisNext kn_doris_judge(const KnDorisReply *reply, const KnDorisAsked *asked, KnErr *err);

typedef enum KnDorisState {
    KN_DORIS_STATE_UNKNOWN,
    KN_DORIS_STATE_PREPARE,
    KN_DORIS_STATE_PRECOMMITTED,
    KN_DORIS_STATE_LANDED, /* COMMITTED, VISIBLE */
    KN_DORIS_STATE_ABORTED,
} KnDorisState;
/** Of the answer of get_load_state. KN_E_IO: it could not be said. */
KN_NODISCARD KnCode kn_doris_state_parse(KnStr body, KnDorisState *ret, KnErr *err);

/* ---- the sink ---- */

typedef struct KnDoris {
    KnSink base;
    KnArena *arena; /* lives as long as the sink */
    KnDorisSettings set;
    const char *db, *table;
    const char *where; /* "doris db.t": begins every message */
    const char *spill_dir;
    char *authorization; /* "Basic ...": never shown */
    KnHttpClient *http;
    atomic_uint turn; /* of frontends and backends */
    KnArena *win_arena;
    KnDorisTable target;
    KnDorisPlan plan;
    bool present; /* the target exists */
    int64_t planned_ms;
} KnDoris;

/** A small request to a frontend (each in turn until one answers); parses nothing. */
KN_NODISCARD KnCode kn_doris_get(KnDoris *dor, const char *path, KnBuf *ret, KnErr *err);
/** A statement; the first column of each row, or nothing. In arena. */
KN_NODISCARD KnCode kn_doris_statement(KnDoris *dor, KnArena *arena, const char *sql,
                                       json_t **ret_rows, KnErr *err);
KN_NODISCARD KnCode kn_doris_health(KnDoris *dor, KnErr *err);
/** Reads the target into dor->target; *ret_there false when it does not exist. */
KN_NODISCARD KnCode kn_doris_read_table(KnDoris *dor, bool *ret_there, KnErr *err);
KN_NODISCARD KnCode kn_doris_state(KnDoris *dor, const char *label, KnDorisState *ret, KnErr *err);
/** Makes sure that no earlier attempt with the label can land any more: waits for a final state,
 * fences when the grace time is over, or at once when the attempt was held: nobody else commits it.
 * Never PREPARE, never PRECOMMITTED. */
KN_NODISCARD KnCode kn_doris_settle(KnDoris *dor, const char *label, KnDorisState *ret, KnErr *err);
/** What became of the transaction held under label. */
KN_NODISCARD KnCode kn_doris_find_held(KnDoris *dor, const char *label, int64_t txn, KnHeld *ret,
                                       KnErr *err);
KN_NODISCARD KnCode kn_doris_commit_held(KnDoris *dor, const char *label, int64_t txn, KnErr *err);
/** Ends a held transaction as far as that can be; the label's state tells. */
void kn_doris_drop_held(KnDoris *dor, const char *label, int64_t txn);
/** A label that Doris does not know any more, for a chunk that was sent: KN_E_REFUSED when that
 * does not say that its rows are not there. */
KN_NODISCARD KnCode kn_doris_check_unknown(KnDoris *dor, const char *label, KnErr *err);
/** PUT _stream_load_2pc. who: {"txn_id", "7"} or {"label", ...}; operation: "commit", "abort". The
 * words of the answer. */
KN_NODISCARD KnCode kn_doris_2pc(KnDoris *dor, const KnHttpHeader *who, const char *operation,
                                 KnBuf *ret, KnErr *err);
/** The first lines of the page behind an ErrorURL, in one line; what keeps them from being read is
 * said instead. No credentials are sent. In arena; never NULL. */
const char *kn_doris_error_log(KnDoris *dor, KnArena *arena, const char *url);
KN_NODISCARD KnCode kn_doris_load(KnDoris *dor, const KnSinkChunk *chunk, const KnRowSource *rows,
                                  KnVerdict *ret, KnErr *err);
/** Where a redirect points to: scheme, host and port (rewritten, the user part dropped), path and
 * query. base: the URL that was asked. KN_E_REFUSED: https to http. In arena. */
KN_NODISCARD KnCode kn_doris_redirect(KnArena *arena, const KnDorisSettings *set, const char *base,
                                      KnStr location, const char **ret, KnErr *err);
/** A percent-encoded path: "/api/db/t/what". */
const char *kn_doris_path(KnArena *arena, const char *const *parts, size_t n);
