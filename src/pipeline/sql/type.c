/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - types of columns. The IR has Arrow's display strings; a script has Spark's names. What
 * SQL has no name for is spelled as Arrow does, and such a spelling is taken as it stands:
 *
 *     ARRAY<INT>               List(Int32)
 *     STRUCT<a: INT NOT NULL>  Struct("a": non-null Int32)
 *     MAP<STRING, INT>         Map("entries": non-null Struct("key": non-null Utf8, "value":
 * Int32), unsorted)
 */
#include <stdio.h>

#include "base/json.h"
#include "pipeline/sql/sql_internal.h"

#define MAP_KEY   "\"entries\": non-null Struct(\"key\": non-null "
#define MAP_VALUE ", \"value\": "
#define MAP_END   "), unsorted"
#define UTC       "Timestamp(Microsecond, Some(\"UTC\"))"
#define NTZ       "Timestamp(Microsecond, None)"

/* The first spelling of a type is the one that is written. */
static const struct {
    const char *sql;
    const char *arrow;
} plain[] = {
    {"BOOLEAN", "Boolean"},
    {"BOOL", "Boolean"},
    {"TINYINT UNSIGNED", "UInt8"},
    {"SMALLINT UNSIGNED", "UInt16"},
    {"INT UNSIGNED", "UInt32"},
    {"INTEGER UNSIGNED", "UInt32"},
    {"BIGINT UNSIGNED", "UInt64"},
    {"TINYINT", "Int8"},
    {"BYTE", "Int8"},
    {"SMALLINT", "Int16"},
    {"SHORT", "Int16"},
    {"INT", "Int32"},
    {"INTEGER", "Int32"},
    {"BIGINT", "Int64"},
    {"LONG", "Int64"},
    {"FLOAT", "Float32"},
    {"REAL", "Float32"},
    {"DOUBLE PRECISION", "Float64"},
    {"DOUBLE", "Float64"},
    {"STRING", "Utf8"},
    {"TEXT", "Utf8"},
    {"BINARY", "Binary"},
    {"VARBINARY", "Binary"},
    {"BLOB", "Binary"},
    {"BYTEA", "Binary"},
    {"DATE", "Date32"},
    {"TIMESTAMP_NTZ", NTZ},
    {"DATETIME", NTZ},
    {"TIMESTAMP_LTZ", UTC},
    {"TIMESTAMPTZ", UTC},
    {"TIMESTAMP WITHOUT TIME ZONE", NTZ},
    {"TIMESTAMP WITH TIME ZONE", UTC},
    {"TIMESTAMP", NTZ},
    {"TIME", "Time64(Microsecond)"},
};

/* As Arrow spells them; a + says that brackets follow. */
static const char *const arrow_names[] = {"Null",
                                          "Boolean",
                                          "Int8",
                                          "Int16",
                                          "Int32",
                                          "Int64",
                                          "UInt8",
                                          "UInt16",
                                          "UInt32",
                                          "UInt64",
                                          "Float16",
                                          "Float32",
                                          "Float64",
                                          "Utf8",
                                          "LargeUtf8",
                                          "Utf8View",
                                          "Binary",
                                          "LargeBinary",
                                          "BinaryView",
                                          "Date32",
                                          "Date64",
                                          "+Timestamp",
                                          "+Time32",
                                          "+Time64",
                                          "+Duration",
                                          "+Interval",
                                          "+Decimal32",
                                          "+Decimal64",
                                          "+Decimal128",
                                          "+Decimal256",
                                          "+FixedSizeBinary",
                                          "+List",
                                          "+LargeList",
                                          "+ListView",
                                          "+LargeListView",
                                          "+FixedSizeList",
                                          "+Struct",
                                          "+Map",
                                          "+Union",
                                          "+Dictionary",
                                          "+RunEndEncoded"};

/* ---- reading ---- */

/* Is the token at hand Arrow's name of a type, by case and with the brackets it needs? */
static bool at_arrow(const KnSdpParser *p, bool *ret_brackets)
{
    if (p->tok.kind != KN_SDP_WORD)
        return false;
    for (size_t i = 0; i < sizeof(arrow_names) / sizeof(*arrow_names); i++) {
        bool brackets = arrow_names[i][0] == '+';
        if (!kn_str_eq(kn_sdp_here(p), kn_str(arrow_names[i] + brackets)))
            continue;
        KnSdpToken next = kn_sdp_ahead(p, 1);
        *ret_brackets = brackets;
        return !brackets || kn_sdp_token_is(p, &next, "(");
    }
    return false;
}

static KnCode arrow_type(KnSdpParser *p, bool brackets, KnBuf *arrow)
{
    size_t at = p->tok.at, depth = 0;
    do {
        kn_sdp_take(p);
        if (!brackets)
            break;
        if (p->tok.kind == KN_SDP_END || p->tok.kind == KN_SDP_BAD)
            return kn_sdp_expected(p, ")");
        depth += kn_sdp_at(p, "(");
        depth -= kn_sdp_at(p, ")");
    } while (depth > 0);
    if (brackets)
        kn_sdp_take(p);
    kn_buf_append(arrow, p->lex.text.ptr + at, p->last_end - at);
    return KN_OK;
}

static KnCode number_of(KnSdpParser *p, const char *what, int64_t *ret)
{
    if (p->tok.kind != KN_SDP_NUMBER || !kn_str_to_i64(kn_sdp_here(p), ret))
        return kn_sdp_expected(p, what);
    kn_sdp_take(p);
    return KN_OK;
}

static KnCode decimal(KnSdpParser *p, KnBuf *arrow)
{
    int64_t precision = 38, scale = 10;
    KnSdpToken at = p->tok;
    if (kn_sdp_accept(p, "(")) {
        scale = 0;
        KN_TRY(number_of(p, "a precision", &precision));
        if (kn_sdp_accept(p, ","))
            KN_TRY(number_of(p, "a scale", &scale));
        KN_TRY(kn_sdp_expect(p, ")"));
    }
    if (precision < 1 || precision > 38 || scale < 0 || scale > precision)
        return kn_sdp_fail(p, &at, "a DECIMAL has a precision from 1 to 38 and no larger scale");
    kn_buf_printf(arrow, "Decimal128(%d, %d)", (int)precision, (int)scale);
    return KN_OK;
}

static KnCode array(KnSdpParser *p, size_t depth, KnBuf *arrow)
{
    KN_TRY(kn_sdp_expect(p, "<"));
    kn_buf_text(arrow, "List(");
    KN_TRY(kn_sdp_type(p, depth + 1, arrow));
    kn_buf_text(arrow, ")");
    return kn_sdp_expect(p, ">");
}

static KnCode map(KnSdpParser *p, size_t depth, KnBuf *arrow)
{
    KN_TRY(kn_sdp_expect(p, "<"));
    kn_buf_text(arrow, "Map(" MAP_KEY);
    KN_TRY(kn_sdp_type(p, depth + 1, arrow));
    KN_TRY(kn_sdp_expect(p, ","));
    kn_buf_text(arrow, MAP_VALUE);
    KN_TRY(kn_sdp_type(p, depth + 1, arrow));
    kn_buf_text(arrow, MAP_END ")");
    return kn_sdp_expect(p, ">");
}

static KnCode struct_field(KnSdpParser *p, size_t depth, KnBuf *arrow)
{
    const char *name, *comment;
    KN_BUF_AUTO type = {.max = arrow->max};
    KN_TRY(kn_sdp_ident(p, &name));
    (void)kn_sdp_accept(p, ":");
    KN_TRY(kn_sdp_type(p, depth + 1, &type));
    bool nullable = !kn_sdp_accept(p, "NOT NULL");
    KnSdpToken at = p->tok;
    if (kn_sdp_accept(p, "COMMENT")) {
        size_t line, column;
        kn_sdp_place(p->lex.text, at.at, &line, &column);
        KN_TRY(kn_sdp_literal(p, "a comment", &comment));
        kn_notes_add(p->notes, line, column,
                     "the comment of the field '%.100s' of a STRUCT is left out", name);
    }
    kn_json_quote(arrow, kn_str(name));
    kn_buf_printf(arrow, ": %s%s", nullable ? "" : "non-null ", type.data ? type.data : "");
    return KN_OK;
}

static KnCode structure(KnSdpParser *p, size_t depth, KnBuf *arrow)
{
    KN_TRY(kn_sdp_expect(p, "<"));
    kn_buf_text(arrow, "Struct(");
    for (size_t i = 0; !kn_sdp_at(p, ">"); i++) {
        if (i > 0) {
            KN_TRY(kn_sdp_expect(p, ","));
            kn_buf_text(arrow, ", ");
        }
        KN_TRY(struct_field(p, depth, arrow));
    }
    kn_buf_text(arrow, ")");
    return kn_sdp_expect(p, ">");
}

static KnCode length_of_text(KnSdpParser *p, KnBuf *arrow)
{
    int64_t length;
    kn_buf_text(arrow, "Utf8");
    if (!kn_sdp_accept(p, "("))
        return KN_OK;
    KN_TRY(number_of(p, "a length", &length));
    return kn_sdp_expect(p, ")");
}

KnCode kn_sdp_type(KnSdpParser *p, size_t depth, KnBuf *arrow)
{
    bool brackets;
    if (depth > KN_SDP_MAX_DEPTH)
        return kn_sdp_fail(p, &p->tok, "types are nested more than %d deep", KN_SDP_MAX_DEPTH);
    if (at_arrow(p, &brackets))
        return arrow_type(p, brackets, arrow);
    if (kn_sdp_accept(p, "ARRAY"))
        return array(p, depth, arrow);
    if (kn_sdp_accept(p, "MAP"))
        return map(p, depth, arrow);
    if (kn_sdp_accept(p, "STRUCT"))
        return structure(p, depth, arrow);
    if (kn_sdp_accept(p, "DECIMAL") || kn_sdp_accept(p, "NUMERIC") || kn_sdp_accept(p, "DEC"))
        return decimal(p, arrow);
    if (kn_sdp_accept(p, "VARCHAR") || kn_sdp_accept(p, "CHAR") || kn_sdp_accept(p, "CHARACTER"))
        return length_of_text(p, arrow);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (kn_sdp_accept(p, plain[i].sql)) {
            kn_buf_text(arrow, plain[i].arrow);
            return KN_OK;
        }
    return kn_sdp_expected(p,
                           "a type (BIGINT, STRING, TIMESTAMP, DECIMAL(10, 2), ARRAY<INT>, ...)");
}

/* ---- writing ---- */

/* "Name(" ... ")" around what it returns in inner. */
static bool unwrap(KnStr text, const char *name, KnStr *inner)
{
    size_t n = strlen(name);
    if (!kn_str_starts_with(text, kn_str(name)) || text.len < n + 2 || text.ptr[n] != '(' ||
        text.ptr[text.len - 1] != ')')
        return false;
    *inner = (KnStr){text.ptr + n + 1, text.len - n - 2};
    return true;
}

static bool takes(KnStr *text, const char *prefix)
{
    if (!kn_str_starts_with(*text, kn_str(prefix)))
        return false;
    size_t n = strlen(prefix);
    *text = (KnStr){text->ptr + n, text->len - n};
    return true;
}

/* The bytes up to a comma or the end at depth 0, outside quotes. */
static size_t item_len(KnStr text)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '(')
            depth++;
        else if (!quoted && depth == 0 && (c == ')' || c == ','))
            return i;
        else if (!quoted && c == ')')
            depth--;
    }
    return text.len;
}

/* "name": non-null Type, of a Struct; the name's quoting is JSON's. */
static bool print_field(KnBuf *out, KnStr *rest, size_t depth)
{
    size_t len = 1;
    while (len < rest->len && rest->ptr[len] != '"')
        len += rest->ptr[len] == '\\' ? 2 : 1;
    if (rest->len < 2 || rest->ptr[0] != '"' || len >= rest->len)
        return false;
    KN_BUF_AUTO list = {.max = rest->len + 8};
    kn_buf_printf(&list, "[%.*s]", (int)len + 1, rest->ptr);
    KN_JSON_AUTO json = NULL;
    if (kn_json_parse(list.data, list.len, &json, NULL) != KN_OK)
        return false;
    const char *name = json_string_value(json_array_get(json, 0));
    *rest = (KnStr){rest->ptr + len + 1, rest->len - len - 1};
    if (!name || !takes(rest, ": "))
        return false;
    bool nullable = !takes(rest, "non-null ");
    KnStr type = {rest->ptr, item_len(*rest)};
    kn_buf_char(out, '`');
    for (const char *c = name; *c; c++)
        kn_buf_text(out, *c == '`' ? "``" : (char[]){*c, '\0'});
    kn_buf_text(out, "`: ");
    if (!kn_sdp_print_type(out, type, depth + 1))
        return false;
    if (!nullable)
        kn_buf_text(out, " NOT NULL");
    *rest = (KnStr){rest->ptr + type.len, rest->len - type.len};
    return rest->len == 0 || takes(rest, ", ");
}

static bool print_nested(KnBuf *out, KnStr arrow, size_t depth)
{
    KnStr in;
    if (unwrap(arrow, "List", &in) && item_len(in) == in.len && !takes(&in, "non-null ")) {
        kn_buf_text(out, "ARRAY<");
        bool known = kn_sdp_print_type(out, in, depth + 1);
        kn_buf_text(out, ">");
        return known;
    }
    if (unwrap(arrow, "Map", &in) && takes(&in, MAP_KEY) &&
        kn_str_ends_with(in, KN_STR_LIT(MAP_END))) {
        in.len -= strlen(MAP_END);
        KnStr key = {in.ptr, item_len(in)};
        KnStr value = {in.ptr + key.len, in.len - key.len};
        if (!takes(&value, MAP_VALUE))
            return false;
        kn_buf_text(out, "MAP<");
        bool known = kn_sdp_print_type(out, key, depth + 1);
        kn_buf_text(out, ", ");
        known = kn_sdp_print_type(out, value, depth + 1) && known;
        kn_buf_text(out, ">");
        return known;
    }
    if (!unwrap(arrow, "Struct", &in) || in.len == 0)
        return false;
    kn_buf_text(out, "STRUCT<");
    for (size_t i = 0; in.len > 0; i++) {
        if (i > 0)
            kn_buf_text(out, ", ");
        if (!print_field(out, &in, depth))
            return false;
    }
    kn_buf_text(out, ">");
    return true;
}

static bool print_decimal(KnBuf *out, KnStr arrow)
{
    int precision, scale, end = -1;
    char text[40];
    if (arrow.len >= sizeof(text))
        return false;
    memcpy(text, arrow.ptr, arrow.len);
    text[arrow.len] = '\0';
    int n = sscanf(text, "Decimal128(%3d, %3d)%n", &precision, &scale, &end);
    if (n != 2 || end != (int)arrow.len || precision < 1 || precision > 38 || scale < 0 ||
        scale > precision)
        return false;
    kn_buf_printf(out, "DECIMAL(%d, %d)", precision, scale);
    return true;
}

/* Would the reader take it as Arrow's own spelling? */
static bool is_arrow(KnStr text)
{
    KnSdpParser p = {.lex = kn_sdp_lex(text)};
    KN_BUF_AUTO arrow = {.max = text.len + 64};
    bool brackets;
    kn_sdp_take(&p);
    return at_arrow(&p, &brackets) && arrow_type(&p, brackets, &arrow) == KN_OK &&
           p.tok.kind == KN_SDP_END && arrow.len == text.len;
}

bool kn_sdp_print_type(KnBuf *out, KnStr arrow, size_t depth)
{
    if (depth > KN_SDP_MAX_DEPTH)
        return false;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (kn_str_eq(arrow, kn_str(plain[i].arrow))) {
            kn_buf_text(out, plain[i].sql);
            return true;
        }
    if (print_decimal(out, arrow))
        return true;
    size_t before = out->len;
    if (print_nested(out, arrow, depth))
        return true;
    out->len = before;
    if (!is_arrow(arrow))
        return false;
    kn_buf_str(out, arrow);
    return true;
}
