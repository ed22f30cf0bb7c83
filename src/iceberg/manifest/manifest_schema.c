/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_schema.c - the two schemas in the header of a manifest or manifest list: "avro.schema"
 * with field ids, and "iceberg.schema" (spec: appendix A; names and order as Java writes them).
 *
 * Names of partition fields are made fit for Avro as Java's AvroSchemaUtil.makeCompatibleName does
 * (a leading digit gets '_', another character becomes _xHEX of its UTF-16 code), with the true
 * name beside it. Java keeps letters beyond ASCII, which Avro's own rule does not know: they are
 * coded here. Readers go by field id.
 */
#include "base/map.h"
#include "iceberg/manifest/manifest_internal.h"

static const int32_t list_order_v1[] = {500, 501, 502, 503, 504, 505, 506, 507, 512, 513, 514, 519};

static bool is_written(const KnManifestForm *form, const KnManifestField *field)
{
    return field->written & (1U << form->version);
}

bool kn_manifest_is_required(const KnManifestForm *form, const KnManifestField *field)
{
    return field->required & (1U << form->version);
}

KnManifestOrder kn_manifest_order(const KnManifestForm *form)
{
    KnManifestOrder order = {0};
    const KnManifestFields *of = form->fields;
    if (of == &kn_manifest_file_fields && form->version == 1) {
        for (size_t i = 0; i < sizeof(list_order_v1) / sizeof(list_order_v1[0]); ++i)
            for (size_t j = 0; j < of->n; ++j)
                if (of->fields[j].id == list_order_v1[i])
                    order.fields[order.n++] = &of->fields[j];
        return order;
    }
    for (size_t i = 0; i < of->n; ++i)
        if (is_written(form, &of->fields[i]))
            order.fields[order.n++] = &of->fields[i];
    return order;
}

/* ---- names ---- */

static void put_code(KnBuf *buf, uint32_t unit)
{
    kn_buf_printf(buf, "_x%X", unit);
}

/* The code point of a well-formed sequence of len bytes. */
static uint32_t code_point(const char *s, size_t len)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (uint8_t)s[0] & first_bits[len];
    for (size_t i = 1; i < len; ++i)
        c = c << 6 | ((uint8_t)s[i] & 0x3f);
    return c;
}

static void put_avro_name(KnBuf *buf, KnStr name)
{
    for (size_t i = 0; i < name.len;) {
        KnStr rest = {name.ptr + i, name.len - i};
        char c = *rest.ptr;
        bool digit = c >= '0' && c <= '9';
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        size_t len = kn_str_utf8_len(rest);
        uint32_t code = len ? code_point(rest.ptr, len) : (uint8_t)c;
        if (letter || (digit && i > 0)) {
            kn_buf_char(buf, c);
        } else if (digit) {
            kn_buf_char(buf, '_');
            kn_buf_char(buf, c);
        } else if (code > 0xffff) {
            put_code(buf, 0xd800 + ((code - 0x10000) >> 10));
            put_code(buf, 0xdc00 + ((code - 0x10000) & 0x3ff));
        } else {
            put_code(buf, code);
        }
        i += len ? len : 1;
    }
}

/* ---- types of partition fields ---- */

size_t kn_manifest_decimal_size(int32_t precision)
{
    unsigned __int128 max = 1;
    for (int32_t i = 0; i < precision; ++i)
        max *= 10;
    size_t n = 1;
    while (n < 16 && max - 1 > ((unsigned __int128)1 << (8 * n - 1)) - 1)
        ++n;
    return n;
}

/* A fixed, or only its name where it has been defined before in the same schema. */
static void put_fixed(KnBuf *buf, KnMap *defined, const char *name, size_t size, const char *more)
{
    bool is_new;
    (void)kn_map_get_or_add(defined, kn_str(name), &is_new);
    if (is_new)
        kn_buf_printf(buf, "{\"type\":\"fixed\",\"name\":\"%s\",\"size\":%zu%s}", name, size, more);
    else
        kn_buf_printf(buf, "\"%s\"", name);
}

static void put_avro_decimal(KnBuf *buf, KnMap *defined, const KnType *type)
{
    char name[64];
    char more[128];
    (void)snprintf(name, sizeof(name), "decimal_%d_%d", type->precision, type->scale);
    (void)snprintf(more, sizeof(more), ",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d",
                   type->precision, type->scale);
    put_fixed(buf, defined, name, kn_manifest_decimal_size(type->precision), more);
}

static void put_avro_type(KnBuf *buf, KnMap *defined, const KnType *type)
{
    static const char *const plain[] = {
        [KN_TYPE_BOOLEAN] = "\"boolean\"",
        [KN_TYPE_INT] = "\"int\"",
        [KN_TYPE_LONG] = "\"long\"",
        [KN_TYPE_FLOAT] = "\"float\"",
        [KN_TYPE_DOUBLE] = "\"double\"",
        [KN_TYPE_STRING] = "\"string\"",
        [KN_TYPE_BINARY] = "\"bytes\"",
        [KN_TYPE_DATE] = "{\"type\":\"int\",\"logicalType\":\"date\"}",
        [KN_TYPE_TIME] = "{\"type\":\"long\",\"logicalType\":\"time-micros\"}",
        [KN_TYPE_TIMESTAMP] = "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\","
                              "\"adjust-to-utc\":false}",
        [KN_TYPE_TIMESTAMPTZ] = "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\","
                                "\"adjust-to-utc\":true}",
        [KN_TYPE_TIMESTAMP_NS] = "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\","
                                 "\"adjust-to-utc\":false}",
        [KN_TYPE_TIMESTAMPTZ_NS] = "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\","
                                   "\"adjust-to-utc\":true}",
    };
    if (type->kind == KN_TYPE_DECIMAL) {
        put_avro_decimal(buf, defined, type);
    } else if (type->kind == KN_TYPE_UUID) {
        put_fixed(buf, defined, "uuid_fixed", 16, ",\"logicalType\":\"uuid\"");
    } else if (type->kind == KN_TYPE_FIXED) {
        char name[64];
        (void)snprintf(name, sizeof(name), "fixed_%d", type->length);
        put_fixed(buf, defined, name, (size_t)type->length, "");
    } else {
        kn_buf_text(buf, plain[type->kind]);
    }
}

/* ,"name":"…" of a partition field; a name that is taken already gets the field's id behind it. */
static void put_partition_name(KnBuf *buf, KnMap *names, const KnField *field)
{
    KN_BUF_AUTO name;
    kn_buf_init(&name, 1 << 20);
    put_avro_name(&name, kn_str(field->name));
    bool is_new;
    (void)kn_map_get_or_add(names, (KnStr){name.data, name.len}, &is_new);
    if (!is_new)
        kn_buf_printf(&name, "_%d", field->id);
    kn_buf_text(buf, "{\"name\":");
    kn_json_quote(buf, (KnStr){name.data, name.len});
}

static void put_avro_partition(KnBuf *buf, const KnType *type)
{
    KN_MAP_AUTO names = kn_map_new();
    KN_MAP_AUTO defined = kn_map_new();
    kn_buf_text(buf, "{\"type\":\"record\",\"name\":\"r102\",\"fields\":[");
    for (size_t i = 0; i < type->n_fields; ++i) {
        const KnField *field = &type->fields[i];
        if (i)
            kn_buf_char(buf, ',');
        put_partition_name(buf, names, field);
        if (field->type->kind == KN_TYPE_UNKNOWN) {
            kn_buf_text(buf, ",\"type\":\"null\"");
        } else {
            kn_buf_text(buf, ",\"type\":[\"null\",");
            put_avro_type(buf, defined, field->type);
            kn_buf_char(buf, ']');
        }
        kn_buf_printf(buf, ",\"default\":null,\"field-id\":%d", field->id);
        KN_BUF_AUTO same;
        kn_buf_init(&same, 1 << 20);
        put_avro_name(&same, kn_str(field->name));
        if (strcmp(same.data, field->name) != 0) {
            kn_buf_text(buf, ",\"iceberg-field-name\":");
            kn_json_quote(buf, kn_str(field->name));
        }
        kn_buf_char(buf, '}');
    }
    kn_buf_text(buf, "]}");
}

/* ---- the Avro schema ---- */

static void put_avro_map(KnBuf *buf, const KnManifestField *field, const char *value)
{
    kn_buf_printf(buf,
                  "{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"k%d_v%d\","
                  "\"fields\":[{\"name\":\"key\",\"type\":\"int\",\"field-id\":%d},"
                  "{\"name\":\"value\",\"type\":\"%s\",\"field-id\":%d}]},"
                  "\"logicalType\":\"map\"}",
                  field->key_id, field->value_id, field->key_id, value, field->value_id);
}

static void put_avro_shape(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field)
{
    KnManifestForm nested = *form;
    switch (field->shape) {
    case KN_SHAPE_INT:
    case KN_SHAPE_CONTENT:
        kn_buf_text(buf, "\"int\"");
        break;
    case KN_SHAPE_LONG:
        /* counts of files are int in Avro, and wide enough in our struct for any */
        kn_buf_text(buf, field->id >= 504 && field->id <= 506 ? "\"int\"" : "\"long\"");
        break;
    case KN_SHAPE_CONSTANT:
        kn_buf_text(buf, "\"long\"");
        break;
    case KN_SHAPE_BOOLEAN:
    case KN_SHAPE_TRISTATE:
        kn_buf_text(buf, "\"boolean\"");
        break;
    case KN_SHAPE_TEXT:
    case KN_SHAPE_FORMAT:
        kn_buf_text(buf, "\"string\"");
        break;
    case KN_SHAPE_BYTES:
        kn_buf_text(buf, "\"bytes\"");
        break;
    case KN_SHAPE_COUNTS:
    case KN_SHAPE_BOUNDS:
        put_avro_map(buf, field, field->shape == KN_SHAPE_COUNTS ? "long" : "bytes");
        break;
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
        kn_buf_printf(buf, "{\"type\":\"array\",\"items\":\"%s\",\"element-id\":%d}",
                      field->shape == KN_SHAPE_LONGS ? "long" : "int", field->key_id);
        break;
    case KN_SHAPE_DATA_FILE:
        nested.fields = &kn_manifest_data_file_fields;
        kn_manifest_avro_schema(buf, &nested);
        break;
    case KN_SHAPE_PARTITION:
        put_avro_partition(buf, form->partition_type);
        break;
    case KN_SHAPE_SUMMARIES:
        nested.fields = &kn_manifest_summary_fields;
        kn_buf_text(buf, "{\"type\":\"array\",\"items\":");
        kn_manifest_avro_schema(buf, &nested);
        kn_buf_printf(buf, ",\"element-id\":%d}", field->key_id);
        break;
    }
}

/* v1's partition field has no doc in Java. */
static void put_doc(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field)
{
    if (!field->doc || (field->id == KN_MANIFEST_PARTITION && form->version == 1))
        return;
    kn_buf_text(buf, ",\"doc\":");
    kn_json_quote(buf, kn_str(field->doc));
}

void kn_manifest_avro_schema(KnBuf *buf, const KnManifestForm *form)
{
    KnManifestOrder order = kn_manifest_order(form);
    kn_buf_printf(buf, "{\"type\":\"record\",\"name\":\"%s\",\"fields\":[", form->fields->record);
    for (size_t i = 0; i < order.n; ++i) {
        const KnManifestField *field = order.fields[i];
        bool required = kn_manifest_is_required(form, field);
        kn_buf_printf(buf, "%s{\"name\":\"%s\",\"type\":%s", i ? "," : "", field->name,
                      required ? "" : "[\"null\",");
        put_avro_shape(buf, form, field);
        kn_buf_text(buf, required ? "" : "]");
        put_doc(buf, form, field);
        kn_buf_printf(buf, "%s,\"field-id\":%d}", required ? "" : ",\"default\":null", field->id);
    }
    kn_buf_text(buf, "]}");
}

/* ---- the Iceberg schema ---- */

static void put_partition_struct(KnBuf *buf, const KnType *type)
{
    kn_buf_text(buf, "{\"type\":\"struct\",\"fields\":[");
    for (size_t i = 0; i < type->n_fields; ++i) {
        const KnField *field = &type->fields[i];
        kn_buf_printf(buf, "%s{\"id\":%d,\"name\":", i ? "," : "", field->id);
        kn_json_quote(buf, kn_str(field->name));
        kn_buf_text(buf, ",\"required\":false,\"type\":");
        KN_BUF_AUTO text;
        kn_buf_init(&text, 1 << 16);
        if (field->type->kind == KN_TYPE_DECIMAL)
            kn_buf_printf(&text, "decimal(%d, %d)", field->type->precision, field->type->scale);
        else
            kn_type_format(&text, field->type);
        kn_json_quote(buf, (KnStr){text.data, text.len});
        kn_buf_char(buf, '}');
    }
    kn_buf_text(buf, "]}");
}

static void put_fields(KnBuf *buf, const KnManifestForm *form);

static void put_iceberg_nested(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field)
{
    KnManifestForm nested = *form;
    if (field->shape == KN_SHAPE_DATA_FILE) {
        nested.fields = &kn_manifest_data_file_fields;
        kn_buf_text(buf, "{\"type\":\"struct\",");
        put_fields(buf, &nested);
        kn_buf_char(buf, '}');
        return;
    }
    nested.fields = &kn_manifest_summary_fields;
    kn_buf_printf(buf, "{\"type\":\"list\",\"element-id\":%d,\"element\":{\"type\":\"struct\",",
                  field->key_id);
    put_fields(buf, &nested);
    kn_buf_text(buf, "},\"element-required\":true}");
}

static void put_iceberg_shape(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field)
{
    switch (field->shape) {
    case KN_SHAPE_COUNTS:
    case KN_SHAPE_BOUNDS:
        kn_buf_printf(buf,
                      "{\"type\":\"map\",\"key-id\":%d,\"key\":\"int\",\"value-id\":%d,"
                      "\"value\":\"%s\",\"value-required\":true}",
                      field->key_id, field->value_id,
                      field->shape == KN_SHAPE_COUNTS ? "long" : "binary");
        break;
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
        kn_buf_printf(buf,
                      "{\"type\":\"list\",\"element-id\":%d,\"element\":\"%s\","
                      "\"element-required\":true}",
                      field->key_id, field->shape == KN_SHAPE_LONGS ? "long" : "int");
        break;
    case KN_SHAPE_DATA_FILE:
    case KN_SHAPE_SUMMARIES:
        put_iceberg_nested(buf, form, field);
        break;
    case KN_SHAPE_PARTITION:
        put_partition_struct(buf, form->partition_type);
        break;
    case KN_SHAPE_BYTES:
        kn_buf_text(buf, "\"binary\"");
        break;
    default:
        put_avro_shape(buf, form, field); /* the other primitives have the same names in both */
    }
}

/* "fields":[…] */
static void put_fields(KnBuf *buf, const KnManifestForm *form)
{
    KnManifestOrder order = kn_manifest_order(form);
    kn_buf_text(buf, "\"fields\":[");
    for (size_t i = 0; i < order.n; ++i) {
        const KnManifestField *field = order.fields[i];
        kn_buf_printf(buf, "%s{\"id\":%d,\"name\":\"%s\",\"required\":%s,\"type\":", i ? "," : "",
                      field->id, field->name,
                      kn_manifest_is_required(form, field) ? "true" : "false");
        put_iceberg_shape(buf, form, field);
        put_doc(buf, form, field);
        kn_buf_char(buf, '}');
    }
    kn_buf_char(buf, ']');
}

void kn_manifest_iceberg_schema(KnBuf *buf, const KnManifestForm *form)
{
    kn_buf_text(buf, "{\"type\":\"struct\",\"schema-id\":0,");
    put_fields(buf, form);
    kn_buf_char(buf, '}');
}
