/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * listen.h - a listening TCP socket from the text of an address.
 *
 * `HOST:PORT`, `[::1]:PORT`, `:PORT` (all interfaces) or `PORT` (the loopback interface). Port 0
 * takes a free one. Thread-safe.
 */
#include "base/err.h"

typedef struct KnListen {
    int fd;
    int port;
    char text[80]; /* "127.0.0.1:8181", "[::1]:8181": what a client connects to */
} KnListen;

/** Bound and listening, close-on-exec, not blocking. KN_E_INVAL: the text is no address; KN_E_BUSY:
 * something listens there already; KN_E_IO: the system said no. */
KN_NODISCARD KnCode kn_listen_open(const char *address, KnListen *ret, KnErr *err);
/** Closes the socket; accepts one that was never opened (zeroed) or was handed on (fd -1). */
void kn_listen_close(KnListen *listening);
