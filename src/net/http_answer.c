/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_answer.c - see http_answer.h.
 *
 * Written for answers of a few kilobytes that come in a few pieces: each call begins at the first
 * byte again. Lines may end in a bare newline, as lenient clients allow; nothing else is lenient.
 */
#include "net/http_answer.h"

static KnStr trim(KnStr s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        ++s.ptr;
        --s.len;
    }
    while (s.len &&
           (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' || s.ptr[s.len - 1] == '\r'))
        --s.len;
    return s;
}

/* The line at the front of rest, without its end; false = it has not ended yet. */
static bool take_line(KnStr *rest, KnStr *ret)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - rest->ptr);
    *ret = (KnStr){rest->ptr, len && end[-1] == '\r' ? len - 1 : len};
    rest->ptr += len + 1;
    rest->len -= len + 1;
    return true;
}

/* How bytes that are no HTTP begin, fit for a message. */
static KnCode not_http(KnStr bytes, KnErr *err)
{
    char shown[33];
    size_t n = 0;
    for (; n < bytes.len && n < sizeof(shown) - 1; ++n)
        shown[n] = bytes.ptr[n];
    for (size_t i = 0; i < n; ++i)
        if (shown[i] < ' ' || shown[i] > '~')
            shown[i] = '?';
    shown[n] = '\0';
    return kn_err_set(err, KN_E_CORRUPT,
                      "the answer is not HTTP, it begins '%s': is this the http port?", shown);
}

static bool parse_status(KnStr line, int *ret)
{
    if (line.len < 12 || memcmp(line.ptr, "HTTP/1.", 7) != 0 || line.ptr[8] != ' ' ||
        (line.len > 12 && line.ptr[12] != ' '))
        return false;
    int status = 0;
    for (size_t i = 9; i < 12; ++i) {
        if (line.ptr[i] < '0' || line.ptr[i] > '9')
            return false;
        status = status * 10 + (line.ptr[i] - '0');
    }
    *ret = status;
    return status >= 100 && status <= 599;
}

/* Could these first bytes become a status line? */
static bool may_begin(KnStr bytes)
{
    static const char START[] = "HTTP/1.";
    size_t n = bytes.len < 7 ? bytes.len : 7;
    return memcmp(bytes.ptr, START, n) == 0;
}

KnStr kn_http_answer_header(const KnHttpAnswer *answer, const char *name)
{
    KnStr rest = answer->fields, line, wanted = kn_str(name);
    while (take_line(&rest, &line)) {
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        if (!colon || !kn_str_eq_nocase((KnStr){line.ptr, (size_t)(colon - line.ptr)}, wanted))
            continue;
        size_t at = (size_t)(colon - line.ptr) + 1;
        return trim((KnStr){line.ptr + at, line.len - at});
    }
    return (KnStr){0};
}

/* ---- bodies ---- */

static bool parse_hex(KnStr line, size_t *ret)
{
    size_t n = 0, i = 0;
    for (; i < line.len && i < 8; ++i) {
        char c = line.ptr[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        n = n * 16 + (size_t)digit;
    }
    *ret = n;
    return i > 0 && (i == line.len || line.ptr[i] == ';' || line.ptr[i] == ' ');
}

/* One chunk at the front of rest: 1 taken, 0 more bytes are needed, -1 it makes no sense. Its size
 * 0 is the last one's. */
static int take_chunk(KnStr *rest, KnStr *ret)
{
    KnStr at = *rest, line;
    size_t size;
    if (!take_line(&at, &line))
        return at.len > 1024 ? -1 : 0;
    if (!parse_hex(line, &size) || size > KN_HTTP_ANSWER_MAX_BODY)
        return -1;
    *ret = (KnStr){at.ptr, size};
    if (size == 0) { /* trailers, and the empty line */
        do {
            if (!take_line(&at, &line))
                return at.len > KN_HTTP_ANSWER_MAX_HEAD ? -1 : 0;
        } while (line.len);
        *rest = at;
        return 1;
    }
    if (at.len < size + 2)
        return 0;
    if (memcmp(at.ptr + size, "\r\n", 2) != 0)
        return -1;
    *rest = (KnStr){at.ptr + size + 2, at.len - size - 2};
    return 1;
}

static KnCode frame_chunked(KnStr rest, KnHttpAnswer *ret, KnErr *err)
{
    KnStr at = rest, chunk = {NULL, 1};
    int step;
    do
        step = take_chunk(&at, &chunk);
    while (step == 1 && chunk.len);
    if (step < 0)
        return kn_err_set(err, KN_E_CORRUPT, "the answer's chunks make no sense");
    ret->chunked = true;
    ret->whole = step == 1;
    ret->raw = (KnStr){rest.ptr, rest.len - at.len};
    return KN_OK;
}

static KnCode frame_body(KnStr rest, bool ended, KnHttpAnswer *ret, KnErr *err)
{
    KnStr coding = kn_http_answer_header(ret, "Transfer-Encoding");
    KnStr length = kn_http_answer_header(ret, "Content-Length");
    int64_t n = -1;
    if (ret->status / 100 == 1 || ret->status == 204 || ret->status == 304)
        n = 0;
    else if (coding.ptr && kn_str_eq_nocase(coding, KN_STR_LIT("chunked")))
        return frame_chunked(rest, ret, err);
    else if (length.ptr && (!kn_str_to_i64(length, &n) || n < 0 || n > KN_HTTP_ANSWER_MAX_BODY))
        return kn_err_set(err, KN_E_CORRUPT, "the answer's Content-Length '" KN_STR_FMT "'",
                          KN_STR_ARG(length));
    if (n < 0 && rest.len > KN_HTTP_ANSWER_MAX_BODY)
        return kn_err_set(err, KN_E_CORRUPT, "the answer is larger than %d bytes",
                          KN_HTTP_ANSWER_MAX_BODY);
    ret->whole = n < 0 ? ended : rest.len >= (size_t)n;
    ret->raw = (KnStr){rest.ptr, n < 0 || rest.len < (size_t)n ? rest.len : (size_t)n};
    return KN_OK;
}

KnCode kn_http_answer_parse(KnStr bytes, bool ended, KnHttpAnswer *ret, KnErr *err)
{
    KnHttpAnswer answer = {0};
    KnStr rest = bytes, line = {0};
    if (bytes.len && !may_begin(bytes))
        return not_http(bytes, err);
    bool lines = take_line(&rest, &line);
    if (lines && !parse_status(line, &answer.status))
        return not_http(bytes, err);
    answer.fields.ptr = rest.ptr;
    while (lines && (lines = take_line(&rest, &line)) && line.len)
        answer.fields.len = (size_t)(rest.ptr - answer.fields.ptr);
    answer.headed = lines;
    if (!lines && bytes.len > KN_HTTP_ANSWER_MAX_HEAD)
        return kn_err_set(err, KN_E_CORRUPT, "the answer's headers are more than %d bytes",
                          KN_HTTP_ANSWER_MAX_HEAD);
    if (lines)
        KN_TRY(frame_body(rest, ended, &answer, err));
    if (ended && !answer.whole)
        return kn_err_set(err, KN_E_CORRUPT, "the answer ends after %zu bytes", bytes.len);
    answer.length = (size_t)(rest.ptr - bytes.ptr) + answer.raw.len;
    *ret = answer;
    return KN_OK;
}

KnCode kn_http_answer_body(const KnHttpAnswer *answer, KnBuf *out, KnErr *err)
{
    KnStr rest = answer->raw, chunk;
    if (!answer->chunked)
        kn_buf_str(out, rest);
    while (answer->chunked && take_chunk(&rest, &chunk) == 1 && chunk.len)
        kn_buf_str(out, chunk);
    return kn_buf_check(out, err);
}
