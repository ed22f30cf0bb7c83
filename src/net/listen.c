/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - see listen.h. */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

enum { BACKLOG = 1024 };

/* "HOST:PORT" cut in two; host is "" for all interfaces. */
static KnCode cut(const char *address, char host[256], char port[8], KnErr *err)
{
    const char *colon = strrchr(address, ':');
    const char *from = address, *to = colon ? colon : address;
    const char *number = colon ? colon + 1 : address;
    if (to > from && *from == '[' && to[-1] == ']') {
        from++;
        to--;
    } else if (memchr(from, ':', (size_t)(to - from))) {
        return kn_err_set(err, KN_E_INVAL, "%.200s: write an IPv6 address as [ADDRESS]:PORT",
                          address);
    }
    int64_t value = -1;
    if (!kn_str_to_i64(kn_str(number), &value) || value < 0 || value > 65535 ||
        (size_t)(to - from) >= 256)
        return kn_err_set(err, KN_E_INVAL,
                          "%.200s: expected HOST:PORT with a port of 0 (any) to 65535", address);
    (void)snprintf(port, 8, "%d", (int)value);
    if (!colon)
        (void)snprintf(host, 256, "127.0.0.1");
    else
        (void)snprintf(host, 256, "%.*s", (int)(to - from), from);
    return KN_OK;
}

static KnCode listen_on(const struct addrinfo *ai, const char *address, int *ret, KnErr *err)
{
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "%.200s: socket: %s", address, kn_errno_text(errno));
    int on = 1, off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (ai->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int failure = errno;
        (void)close(fd);
        return kn_err_set(err, failure == EADDRINUSE ? KN_E_BUSY : KN_E_IO,
                          "%.200s: cannot listen: %s", address, kn_errno_text(failure));
    }
    *ret = fd;
    return KN_OK;
}

/* The address as the system knows it now: with the port that port 0 became. */
static void name_socket(int fd, KnListen *listening)
{
    union { /* each as large as it is */
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } bound = {.in6 = {0}};
    socklen_t len = sizeof(bound);
    char host[INET6_ADDRSTRLEN] = "";
    (void)getsockname(fd, &bound.any, &len);
    if (bound.any.sa_family == AF_INET6) {
        listening->port = ntohs(bound.in6.sin6_port);
        (void)inet_ntop(AF_INET6, &bound.in6.sin6_addr, host, sizeof(host));
        (void)snprintf(listening->text, sizeof(listening->text), "[%s]:%d", host, listening->port);
        return;
    }
    listening->port = ntohs(bound.in4.sin_port);
    (void)inet_ntop(AF_INET, &bound.in4.sin_addr, host, sizeof(host));
    (void)snprintf(listening->text, sizeof(listening->text), "%s:%d", host, listening->port);
}

KnCode kn_listen_open(const char *address, KnListen *ret, KnErr *err)
{
    char host[256], port[8];
    KN_TRY(cut(address, host, port, err));
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(*host ? host : NULL, port, &hints, &found);
    if (rc != 0)
        return kn_err_set(err, KN_E_INVAL, "%.200s: %s", address, gai_strerror(rc));
    int fd = -1;
    KnCode code = KN_E_IO;
    for (const struct addrinfo *ai = found; ai && fd < 0; ai = ai->ai_next)
        code = listen_on(ai, address, &fd, err);
    freeaddrinfo(found);
    if (fd < 0)
        return code;
    KnListen listening = {.fd = fd};
    name_socket(fd, &listening);
    *ret = listening;
    return KN_OK;
}

void kn_listen_close(KnListen *listening)
{
    if (listening->fd > 0)
        (void)close(listening->fd);
    listening->fd = -1;
}
