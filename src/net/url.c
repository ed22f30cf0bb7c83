/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - percent-encoding and the parts of an http URL; nothing is normalised on the way. */
#include "net/url.h"

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void kn_url_encode(KnBuf *out, KnStr text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; ++i) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (is_unreserved(c) || (keep_slash && c == '/')) {
            kn_buf_char(out, (char)c);
        } else {
            char three[3] = {'%', digits[c >> 4], digits[c & 15]};
            kn_buf_append(out, three, sizeof(three));
        }
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

KnCode kn_url_decode(KnBuf *out, KnStr text, KnErr *err)
{
    for (size_t i = 0; i < text.len; ++i) {
        if (text.ptr[i] != '%') {
            kn_buf_char(out, text.ptr[i]);
            continue;
        }
        int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text.ptr[i + 2]) : -1;
        if (low < 0)
            return kn_err_set(err, KN_E_INVAL,
                              "'" KN_STR_FMT "': a '%%' without two hex digits behind it",
                              KN_STR_ARG(text));
        kn_buf_char(out, (char)(high << 4 | low));
        i += 2;
    }
    return kn_buf_check(out, err);
}

static KnStr cut(KnStr *rest, const char *ends)
{
    size_t n = 0;
    while (n < rest->len && !strchr(ends, rest->ptr[n]))
        ++n;
    KnStr part = {rest->ptr, n};
    rest->ptr += n;
    rest->len -= n;
    return part;
}

static KnCode bad_url(KnErr *err, const char *why)
{
    return kn_err_set(err, KN_E_INVAL,
                      "not a URL that can be asked (http[s]://host[:port]/path): %s", why);
}

static bool port_is_good(KnStr port)
{
    int64_t number = 0;
    return port.len == 0 || (port.ptr[0] >= '0' && port.ptr[0] <= '9' &&
                             kn_str_to_i64(port, &number) && number >= 1 && number <= 65535);
}

static KnCode parse_authority(KnStr authority, KnUrl *url, KnErr *err)
{
    if (memchr(authority.ptr, '@', authority.len))
        return bad_url(err, "a user or password has no place in it");
    KnStr rest = authority;
    if (authority.len && authority.ptr[0] == '[') {
        ++rest.ptr, --rest.len;
        url->host = cut(&rest, "]");
        if (rest.len == 0)
            return bad_url(err, "the ']' of an IPv6 address is missing");
        ++rest.ptr, --rest.len;
    } else {
        url->host = cut(&rest, ":");
    }
    url->port = rest.len ? (KnStr){rest.ptr + 1, rest.len - 1} : (KnStr){rest.ptr, 0};
    url->authority = authority;
    if (url->host.len == 0)
        return bad_url(err, "the host is missing");
    if ((rest.len && rest.ptr[0] != ':') || !port_is_good(url->port))
        return bad_url(err, "the port is not a number from 1 to 65535");
    return KN_OK;
}

KnCode kn_url_parse(KnStr text, KnUrl *ret, KnErr *err)
{
    KnUrl url = {.tls = kn_str_starts_with(text, KN_STR_LIT("https://"))};
    size_t skip = url.tls ? 8 : 7;
    if (!url.tls && !kn_str_starts_with(text, KN_STR_LIT("http://")))
        return bad_url(err, "it begins with neither http:// nor https://");
    for (size_t i = 0; i < text.len; ++i)
        if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f || text.ptr[i] == '#')
            return bad_url(err, "there is a space, a control character or a '#' in it");
    KnStr rest = {text.ptr + skip, text.len - skip};
    KN_TRY(parse_authority(cut(&rest, "/?"), &url, err));
    url.path = cut(&rest, "?");
    url.query = rest.len ? (KnStr){rest.ptr + 1, rest.len - 1} : rest;
    *ret = url;
    return KN_OK;
}
