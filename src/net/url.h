/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* url.h - percent-encoding (RFC 3986) and the parts of an http URL. Thread-safe. */
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/** Appends text with all but A-Z a-z 0-9 - . _ ~ as %XX (upper case), as SigV4 wants it; '/' stays
 * when keep_slash. */
void kn_url_encode(KnBuf *out, KnStr text, bool keep_slash);
/** The decoded bytes ("%2F" is '/'; '+' stays '+'). KN_E_INVAL: a '%' without two hex digits. */
KN_NODISCARD KnCode kn_url_decode(KnBuf *out, KnStr text, KnErr *err);

/** The parts point into the text that was parsed. */
typedef struct KnUrl {
    bool tls;
    KnStr authority; /* "host:port" as spelled, without user part: what the Host header says */
    KnStr host;      /* without the brackets of an IPv6 address */
    KnStr port;      /* empty: the scheme's */
    KnStr path;      /* "" or begins with '/'; as spelled */
    KnStr query;     /* behind '?', without it; as spelled */
} KnUrl;

/** KN_E_INVAL: not http(s)://host[:port][/path][?query], or with user, fragment, space or control
 * characters in it. The message does not repeat what may be a secret (a user part). */
KN_NODISCARD KnCode kn_url_parse(KnStr text, KnUrl *ret, KnErr *err);
