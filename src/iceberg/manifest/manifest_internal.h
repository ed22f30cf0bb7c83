/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * manifest_internal.h - what the files manifest*.c share, and their tests.
 *
 * Manifests and manifest lists are described once, as tables of fields (manifest_fields.c): the
 * reader compiles a writer's Avro schema against them by field id, the writer makes its schemas
 * from them.
 */
#include "codec/avro.h"
#include "iceberg/manifest/manifest.h"

/* How a field is stored in its struct, and which Avro and Iceberg types it has. */
typedef enum KnManifestShape {
    KN_SHAPE_INT,       /* int32_t */
    KN_SHAPE_LONG,      /* int64_t */
    KN_SHAPE_BOOLEAN,   /* bool */
    KN_SHAPE_TRISTATE,  /* int8_t: -1 = null */
    KN_SHAPE_CONTENT,   /* bool: 1 = deletes */
    KN_SHAPE_TEXT,      /* const char * */
    KN_SHAPE_FORMAT,    /* KnFileFormat, written as text */
    KN_SHAPE_BYTES,     /* KnStr: ptr NULL = null */
    KN_SHAPE_COUNTS,    /* size_t, const KnIdCount *: map<int, long> */
    KN_SHAPE_BOUNDS,    /* size_t, const KnIdBound *: map<int, binary> */
    KN_SHAPE_LONGS,     /* size_t, const int64_t * */
    KN_SHAPE_INTS,      /* size_t, const int32_t * */
    KN_SHAPE_DATA_FILE, /* KnDataFile in place */
    KN_SHAPE_PARTITION, /* size_t, const KnValue * */
    KN_SHAPE_SUMMARIES, /* size_t, const KnFieldSummary * */
    KN_SHAPE_CONSTANT,  /* long that v1 asks for and nobody reads (block_size_in_bytes) */
} KnManifestShape;

/* In which format versions a field is written: bit 1, 2, 3. */
enum { KN_IN_V1 = 1 << 1, KN_IN_V2 = 1 << 2, KN_IN_V3 = 1 << 3 };

typedef struct KnManifestField {
    int32_t id;
    const char *name;
    KnManifestShape shape;
    uint8_t written, required; /* KN_IN_* */
    bool must_read;            /* absent or null = corrupt, whatever the version */
    bool metric;               /* left out when metrics are not wanted */
    bool not_negative;
    int32_t key_id, value_id; /* maps; lists: key_id is the element's */
    size_t offset;
    const char *doc;
} KnManifestField;

typedef struct KnManifestFields {
    const char *record; /* Avro's name */
    size_t n;
    const KnManifestField *fields;
} KnManifestFields;

extern const KnManifestFields kn_manifest_entry_fields;     /* KnManifestEntry */
extern const KnManifestFields kn_manifest_data_file_fields; /* KnDataFile */
extern const KnManifestFields kn_manifest_file_fields;      /* KnManifestFile */
extern const KnManifestFields kn_manifest_summary_fields;   /* KnFieldSummary */

enum {
    KN_MANIFEST_STATUS = 0,
    KN_MANIFEST_PARTITION = 102,
};

/* A value in a struct at a field's offset. */
static inline void *kn_manifest_at(const void *base, const KnManifestField *field)
{
    return (char *)(uintptr_t)base + field->offset;
}

/* All lists of the structs are such pairs. */
typedef struct KnManifestSeq {
    size_t n;
    const void *items;
} KnManifestSeq;

/* ---- partition tuples (manifest_partition.c) ---- */

typedef struct KnPartitionPlan KnPartitionPlan;
/** How to read tuples of spec from records of this Avro type; types from the sources in md, or from
 * Avro where the source is gone or the transform unknown. */
KN_NODISCARD KnCode kn_partition_plan_make(KnArena *arena, const KnMetadata *md,
                                           const KnPartitionSpec *spec, const KnAvroType *record,
                                           KnPartitionPlan **ret, KnErr *err);
/** Values are in the spec's order and live until the next call; bytes are views into the block. */
KN_NODISCARD KnCode kn_partition_plan_read(KnPartitionPlan *plan, KnAvroCursor *cur,
                                           KnManifestSeq *ret, KnErr *err);

/* ---- reading by plan (manifest_decode.c) ---- */

typedef struct KnManifestPlan KnManifestPlan;
typedef struct KnManifestOp {
    const KnManifestField *field; /* NULL = skip */
    const KnAvroType *type;
    KnManifestPlan *nested; /* data_file, partition summaries */
    KnPartitionPlan *partition;
} KnManifestOp;
struct KnManifestPlan {
    size_t n;
    KnManifestOp *ops;
};

typedef struct KnManifestPlanOptions {
    bool with_metrics;
    const KnMetadata *md;
    const KnPartitionSpec *spec; /* entries only */
} KnManifestPlanOptions;

/** Resolve a writer's record against our fields, once a file. A field that must be there and is
 * not, and a type that does not fit, is KN_E_CORRUPT naming the field. */
KN_NODISCARD KnCode kn_manifest_plan_make(KnArena *arena, const KnManifestFields *ours,
                                          const KnAvroType *record,
                                          const KnManifestPlanOptions *opts, KnManifestPlan **ret,
                                          KnErr *err);

typedef struct KnManifestDecoder {
    KnArena *arena; /* takes texts and lists; bytes stay views into the block */
    KnAvroCursor cur;
} KnManifestDecoder;
/** One field into base (skipped when it is not ours). Null leaves what is there. */
KN_NODISCARD KnCode kn_manifest_decode_op(KnManifestDecoder *dec, const KnManifestOp *op,
                                          void *base, KnErr *err);
KN_NODISCARD KnCode kn_manifest_decode(KnManifestDecoder *dec, const KnManifestPlan *plan,
                                       void *base, KnErr *err);

/** Absent optional fields as the headers promise them. */
KnManifestEntry kn_manifest_entry_empty(void);
KnManifestFile kn_manifest_file_empty(void);

typedef struct KnManifestBytes {
    KnBuf buf;
    KnAvroReader *reader;
} KnManifestBytes;
/** Reads a whole file and its Avro header; length -1 = not known, else it must be the file's. */
KN_NODISCARD KnCode kn_manifest_bytes_open(KnFileIO *io, const char *path, int64_t length,
                                           KnManifestBytes *ret, KnErr *err);
void kn_manifest_bytes_close(KnManifestBytes *bytes); /* accepts a zeroed one */
/* kn_manifest_read() of bytes that are there. */
KN_NODISCARD KnCode kn_manifest_read_bytes(const KnManifestBytes *bytes, const KnMetadata *md,
                                           const KnManifestFile *mf, const KnManifestVisit *visit,
                                           KnErr *err);

/* ---- writing (manifest_schema.c, manifest_encode.c, manifest_summary.c) ---- */

/* What is written in a format version; partition_type for entries only. */
typedef struct KnManifestForm {
    const KnManifestFields *fields;
    int32_t version;
    const KnType *partition_type;
} KnManifestForm;

enum { KN_MANIFEST_FIELDS_MAX = 32 };
typedef struct KnManifestOrder {
    size_t n;
    const KnManifestField *fields[KN_MANIFEST_FIELDS_MAX];
} KnManifestOrder;
/** The fields of a form in the order in which they are written. */
KnManifestOrder kn_manifest_order(const KnManifestForm *form);
bool kn_manifest_is_required(const KnManifestForm *form, const KnManifestField *field);

void kn_manifest_avro_schema(KnBuf *buf, const KnManifestForm *form);
void kn_manifest_iceberg_schema(KnBuf *buf, const KnManifestForm *form);
/** Bytes of an Avro fixed that holds every decimal of this precision. */
size_t kn_manifest_decimal_size(int32_t precision);

/** One record; KN_E_INVAL names a required field that is not set, or a value that does not fit. */
KN_NODISCARD KnCode kn_manifest_encode(KnBuf *buf, const KnManifestForm *form, const void *base,
                                       KnErr *err);

typedef struct KnManifestSummary KnManifestSummary;
/** Summaries of partition tuples, one a field of type. Values must outlive it. */
KnManifestSummary *kn_manifest_summary_new(KnArena *arena, const KnType *type);
void kn_manifest_summary_add(KnManifestSummary *summary, const KnValue *values);
KN_NODISCARD KnCode kn_manifest_summary_finish(const KnManifestSummary *summary, KnArena *arena,
                                               KnManifestFile *ret, KnErr *err);

/** write.avro.compression-codec: gzip (NULL), zstd, snappy, uncompressed. */
KN_NODISCARD KnCode kn_manifest_codec(const char *name, KnAvroCodec *ret, KnErr *err);
/** Bytes of a manifest without entries: its header, which is not compressed. */
KN_NODISCARD KnCode kn_manifest_empty_bytes(const KnManifestWrite *w, int64_t *ret, KnErr *err);
