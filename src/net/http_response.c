/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_response.c - the headers of an answer.
 *
 * KnHttpResponse.fields holds "name\0value\0" one after the other, values trimmed. A status line
 * empties it: what came before belonged to an interim answer (100 Continue) or to a proxy.
 */
#include <strings.h>

#include "net/http_internal.h"

static KnStr trim(KnStr s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        ++s.ptr, --s.len;
    while (s.len && strchr(" \t\r\n", s.ptr[s.len - 1]) && s.ptr[s.len - 1])
        --s.len;
    return s;
}

bool kn_http_fields_add(KnBuf *fields, KnStr line)
{
    if (kn_str_starts_with(line, KN_STR_LIT("HTTP/"))) {
        kn_buf_reset(fields);
        return true;
    }
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
    if (!colon || memchr(line.ptr, '\0', line.len))
        return true; /* the empty line, or nothing that a caller could ask for */
    KnStr name = trim((KnStr){line.ptr, (size_t)(colon - line.ptr)});
    KnStr value = trim((KnStr){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
    kn_buf_str(fields, name);
    kn_buf_char(fields, '\0');
    kn_buf_str(fields, value);
    kn_buf_char(fields, '\0');
    return !fields->failed;
}

/* The line that begins at *at, which moves behind it. */
static bool next_field(const KnHttpResponse *resp, size_t *at, KnHttpHeader *ret)
{
    if (*at >= resp->fields.len)
        return false;
    ret->name = resp->fields.data + *at;
    ret->value = ret->name + strlen(ret->name) + 1;
    *at += strlen(ret->name) + strlen(ret->value) + 2;
    return true;
}

bool kn_http_header_at(const KnHttpResponse *resp, size_t i, KnHttpHeader *ret)
{
    KnHttpHeader header = {0};
    for (size_t at = 0; next_field(resp, &at, &header);) {
        if (i-- == 0) {
            *ret = header;
            return true;
        }
    }
    return false;
}

const char *kn_http_header(const KnHttpResponse *resp, const char *name, size_t nth)
{
    KnHttpHeader header = {0};
    for (size_t at = 0; next_field(resp, &at, &header);)
        if (strcasecmp(header.name, name) == 0 && nth-- == 0)
            return header.value;
    return NULL;
}

void kn_http_response_done(KnHttpResponse *resp)
{
    kn_buf_done(&resp->body);
    kn_buf_done(&resp->fields);
}
