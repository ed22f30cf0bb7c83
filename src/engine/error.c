/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - the engine's messages as codes and single lines.
 *
 * The engine reports text: "IO Error: Cannot open file ...\nLINE 1: ...". Prepared statements and
 * appenders give no error type at all, so the kind is always read off the text's first words, which
 * are the names of the engine's exception types. What follows the first line is advice and carets;
 * only a file named there is worth keeping.
 *
 * Errors of our own callbacks travel through the engine as "Invalid Input Error: <RS><code> <text>"
 * and come out with the code they went in with. Thread-safe; no state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_internal.h"

#define OWN_MARK '\x1e'

typedef struct ErrorClass {
    const char *prefix;
    KnCode code;
} ErrorClass;

static const ErrorClass classes[] = {
    {"IO Error: ", KN_E_IO},
    {"HTTP Error: ", KN_E_IO},
    {"Connection Error: ", KN_E_IO},
    {"Conversion Error: ", KN_E_CORRUPT},
    {"Serialization Error: ", KN_E_CORRUPT},
    {"Out of Range Error: ", KN_E_CORRUPT},
    {"Mismatch Type Error: ", KN_E_CORRUPT},
    {"Out of Memory Error: ", KN_E_NOMEM},
    {"Object Size Error: ", KN_E_NOMEM},
    {"INTERRUPT Error: ", KN_E_CANCELLED},
    {"Constraint Error: ", KN_E_EXISTS},
    {"TransactionContext Error: ", KN_E_CONFLICT},
    {"Not implemented Error: ", KN_E_UNSUPPORTED},
    {"Missing Extension Error: ", KN_E_UNSUPPORTED},
    {"Extension Autoloading Error: ", KN_E_UNSUPPORTED},
    {"Permission Error: ", KN_E_REFUSED},
    {"Parser Error: ", KN_E_INVAL},
    {"Binder Error: ", KN_E_INVAL},
    {"Catalog Error: ", KN_E_INVAL},
    {"Invalid Input Error: ", KN_E_INVAL},
    {"Invalid Error: ", KN_E_INVAL},
    {"FATAL Error: ", KN_E_IO},
    {"INTERNAL Error: ", KN_E_UNSUPPORTED},
};

/* Words of the Parquet reader about bytes that are not Parquet; seen under several exception types.
 */
static const char *const corrupt_words[] = {
    "magic bytes",
    "too small to be a Parquet",
    "Footer length",
    "TProtocolException",
    "invalid TType",
    "Variable-length int",
    "Failed to read Parquet file",
    "Failed to read file",
    "Malformed Parquet",
    "orrupt",
    "ecompress",
    "arquet file",
    "ut of buffer",
    "Could not read enough bytes",
    "Prefetch registered for bytes outside",
    "Incorrect stats size",
    "converted type can only be set",
    "DECIMAL requires a length",
    "page header",
    "PageHeader",
    "rle_bp",
    "RLE",
    "ictionary",
    "it-packed",
    "Invalid string encoding",
    "Page was written",
    "don't know what type",
    "not valid UTF",
    "Invalid unicode",
};

static bool has_any(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(text, words[i]))
            return true;
    }
    return false;
}

static const char *const missing_words[] = {
    "No such file or directory", "No files found that match", "HTTP 404", "404 (Not Found)"};
static const char *const full_words[] = {"No space left", "max_temp_directory_size"};

/* A code that the kind alone does not tell. */
static KnCode refine(KnCode code, const char *msg)
{
    if (strstr(msg, "Could not set lock on file"))
        return KN_E_BUSY;
    if (has_any(msg, full_words, sizeof(full_words) / sizeof(full_words[0])))
        return KN_E_IO;
    if (code == KN_E_IO &&
        has_any(msg, missing_words, sizeof(missing_words) / sizeof(missing_words[0])))
        return KN_E_NOTFOUND;
    if (strstr(msg, "std::bad_alloc"))
        return KN_E_NOMEM;
    if (strstr(msg, "Unsupported compression codec"))
        return KN_E_UNSUPPORTED;
    bool vague = code == KN_E_IO || code == KN_E_INVAL || code == KN_E_UNSUPPORTED;
    if (vague && strncmp(msg, "Parser", 6) != 0 && strncmp(msg, "Binder", 6) != 0 &&
        strncmp(msg, "Catalog", 7) != 0 &&
        has_any(msg, corrupt_words, sizeof(corrupt_words) / sizeof(corrupt_words[0])))
        return KN_E_CORRUPT;
    return code;
}

/* A message of ours that went through the engine. */
static bool unpack(KnErr *err, const char *text, KnCode *ret)
{
    int number = 0;
    int used = 0;
    if (*text != OWN_MARK || sscanf(text + 1, "%3d %n", &number, &used) != 1 || used == 0)
        return false;
    if (number <= KN_OK || number >= KN_E_MAX_)
        return false;
    const char *line = text + 1 + used;
    *ret = kn_err_set(err, (KnCode)number, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}

const char *kn_engine_error_pack(const KnErr *err, KnCode code, char out[640])
{
    if (snprintf(out, 640, "%c%d %s", OWN_MARK, (int)code, err->msg) < 0)
        out[0] = '\0';
    return out;
}

/* The first line, without a caret's "LINE 1:" and without links to the engine's manual. */
static size_t first_line(const char *text)
{
    static const char *const ends[] = {" LINE 1:", ". See also http", ", see http",
                                       " Possible solutions"};
    size_t len = strcspn(text, "\n");
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *end = memmem(text, len, ends[i], strlen(ends[i]));
        if (end)
            len = (size_t)(end - text);
    }
    while (len && strchr(" .:\r\t", text[len - 1]))
        len--;
    return len;
}

/* The file that only the lines after the first one name: `file "/a/b.parquet"`. */
static KnStr later_file(const char *text, size_t line_len)
{
    KnStr none = {"", 0};
    if (memchr(text, '/', line_len))
        return none;
    const char *file = strstr(text + line_len, "file \"");
    if (!file)
        return none;
    file += strlen("file \"");
    return (KnStr){file, strcspn(file, "\"\n")};
}

/* What the CSV reader says of a line stands two lines below where it says which, and the file below
 * that: "CSV Error on Line: 2 / Original Line: ... / Error when ... / ... / file = /a/b.csv". */
static bool csv_line(KnErr *err, KnCode code, const char *text)
{
    const char *why = strncmp(text, "CSV Error on Line", 17) == 0 ? strstr(text, "\nError ") : NULL;
    const char *file = why ? strstr(why, "\n  file = ") : NULL;
    if (!file)
        return false;
    file += strlen("\n  file = ");
    why++;
    (void)kn_err_set(err, code, "%.*s, %.*s: %.*s", (int)strcspn(file, "\n"), file,
                     (int)strcspn(text + 10, "\n"), text + 10, (int)first_line(why), why);
    return true;
}

KnCode kn_engine_error(KnErr *err, const char *msg)
{
    if (!msg || !*msg)
        return kn_err_set(err, KN_E_IO, "the engine failed and gave no reason");
    KnCode code = KN_E_INVAL;
    const char *text = msg;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        size_t len = strlen(classes[i].prefix);
        if (strncmp(msg, classes[i].prefix, len) == 0) {
            code = classes[i].code;
            text = msg + len;
            break;
        }
    }
    KnCode own;
    if (unpack(err, text, &own))
        return own;
    code = refine(code, msg);
    if (csv_line(err, code, text))
        return code;
    size_t len = first_line(text);
    KnStr file = later_file(text, len);
    const char *advice = code == KN_E_NOMEM ? "; raise --memory-limit" : "";
    if (code == KN_E_CANCELLED)
        return kn_err_set(err, code, "interrupted");
    return kn_err_set(err, code, "%.*s%s%.*s%s", (int)len, text, file.len ? ", file " : "",
                      (int)file.len, file.ptr, advice);
}

/* The literal that starts behind *at's quote; *at moves behind its end. */
static void literal_take(const char **at, KnScanFiles *ret)
{
    size_t len = 0;
    const char *p = *at;
    for (; *p && (*p != '\'' || p[1] == '\''); p++) {
        if (ret->n == 0 && len + 1 < sizeof(ret->first))
            ret->first[len++] = *p;
        p += *p == '\'';
    }
    if (ret->n++ == 0)
        ret->first[len] = '\0';
    *at = *p ? p + 1 : p;
}

void kn_scan_files_find(const char *sql, KnScanFiles *ret)
{
    *ret = (KnScanFiles){.n = 0};
    const char *at = strstr(sql, "read_parquet(");
    if (!at)
        return;
    at += strlen("read_parquet(");
    while (*at && strchr("[, \n'", *at)) {
        if (*at++ == '\'')
            literal_take(&at, ret);
    }
}

KnCode kn_engine_error_in(KnErr *err, const char *msg, const KnScanFiles *files)
{
    KnErr own = {0};
    KnCode code = kn_engine_error(&own, msg);
    if (err)
        *err = own;
    bool about_bytes = code == KN_E_CORRUPT || code == KN_E_IO || code == KN_E_UNSUPPORTED;
    if (!about_bytes || files->n == 0 || strchr(own.msg, '/'))
        return code;
    if (files->n == 1)
        return kn_err_wrap(err, code, "%s", files->first);
    return kn_err_wrap(err, code, "one of %zu files from %s on", files->n, files->first);
}
