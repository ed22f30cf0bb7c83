/* SPDX-License-Identifier: Apache-2.0 */
/* http_stub.c - one accepting thread, one thread for each connection, one lock around the handler.
 */
#include "support/http_stub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 256, MAX_REQUEST = 64 << 20 };

typedef struct Connection {
    TestStub *stub;
    pthread_t thread;
    int fd, number;
} Connection;

struct TestStub {
    TestStubFn fn;
    void *arg;
    int listener, port;
    int stop[2]; /* a pipe: closed writer = stop */
    pthread_t thread;
    pthread_mutex_t mutex;
    int n_requests, n_connections;
    Connection connections[MAX_CONNECTIONS];
};

static void die(const char *what)
{
    perror(what);
    abort();
}

/* ---- reading a request -------------------------------------------------------------------- */

typedef struct Input {
    int fd, stop;
    char *bytes;
    size_t len, cap;
} Input;

/* More bytes behind what is there; false at the end of the connection. */
static bool more(Input *in)
{
    struct pollfd fds[2] = {{.fd = in->fd, .events = POLLIN}, {.fd = in->stop, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    if (fds[1].revents)
        return false;
    if (in->len + 65536 >= in->cap) {
        in->cap = (in->cap + 65536) * 2;
        in->bytes = realloc(in->bytes, in->cap);
        if (!in->bytes || in->cap > MAX_REQUEST)
            die("http_stub");
    }
    ssize_t n = recv(in->fd, in->bytes + in->len, in->cap - in->len - 1, 0);
    if (n <= 0)
        return false;
    in->len += (size_t)n;
    in->bytes[in->len] = '\0';
    return true;
}

static const char *header_of(const char *head, const char *name, char *out, size_t cap)
{
    size_t n = strlen(name);
    out[0] = '\0';
    for (const char *line = head; line && *line; line = strstr(line, "\r\n")) {
        line += line[0] == '\r' ? 2 : 0;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1 + strspn(line + n + 1, " ");
        size_t len = strcspn(value, "\r");
        if (len >= cap)
            len = cap - 1;
        memcpy(out, value, len);
        out[len] = '\0';
        break;
    }
    return out;
}

/* Chunks at `at`, put together in place; false when the connection ends. */
static bool read_chunks(Input *in, size_t at, size_t *ret_len, size_t *ret_end)
{
    size_t to = at, from = at;
    for (;;) {
        char *line_end;
        while (!(line_end = in->len > from ? strstr(in->bytes + from, "\r\n") : NULL))
            if (!more(in))
                return false;
        size_t size = strtoul(in->bytes + from, NULL, 16);
        from = (size_t)(line_end + 2 - in->bytes);
        while (in->len < from + size + 2)
            if (!more(in))
                return false;
        memmove(in->bytes + to, in->bytes + from, size);
        to += size;
        from += size + 2;
        if (size == 0)
            break;
    }
    *ret_len = to - at;
    *ret_end = from;
    return true;
}

/* The next request; what lies behind it moves to the front at the next call (through *used). */
static bool read_request(Input *in, size_t *used, TestRequest *req)
{
    memmove(in->bytes, in->bytes + *used, in->len - *used);
    in->len -= *used;
    in->bytes[in->len] = '\0';
    char *end, value[64];
    while (!(end = strstr(in->bytes, "\r\n\r\n")))
        if (in->bytes[0] == 0x16 || !more(in)) /* a TLS greeting: no HTTP will come */
            return false;
    size_t head_len = (size_t)(end + 4 - in->bytes);
    char *head = strndup(in->bytes, head_len);
    if (header_of(head, "Expect", value, sizeof(value))[0])
        (void)!send(in->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    size_t body_len = 0, total = head_len;
    bool good = true;
    if (header_of(head, "Transfer-Encoding", value, sizeof(value))[0]) {
        good = read_chunks(in, head_len, &body_len, &total);
    } else {
        body_len = strtoul(header_of(head, "Content-Length", value, sizeof(value)), NULL, 10);
        total = head_len + body_len;
        while (good && in->len < total)
            good = more(in);
    }
    char *body = good ? malloc(body_len + 1) : NULL;
    if (body) {
        memcpy(body, in->bytes + head_len, body_len);
        body[body_len] = '\0';
    }
    *used = total;
    char *method = head, *target = strchr(head, ' ');
    *target++ = '\0';
    char *rest = strchr(target, ' ');
    *rest++ = '\0';
    req->method = method; /* owns the whole head */
    req->target = target;
    req->head = strstr(rest, "\r\n") + 2;
    req->body = body;
    req->body_len = body_len;
    if (!good)
        free(head);
    return good;
}

static void *serve(void *arg)
{
    Connection *connection = arg;
    TestStub *stub = connection->stub;
    Input in = {
        .fd = connection->fd, .stop = stub->stop[0], .bytes = calloc(1, 65536), .cap = 65536};
    size_t used = 0;
    TestRequest req = {.connection = connection->number, .fd = connection->fd, .stub = stub};
    for (bool open = true; open && read_request(&in, &used, &req);) {
        (void)pthread_mutex_lock(&stub->mutex);
        req.number = ++stub->n_requests;
        open = stub->fn(stub->arg, &req);
        (void)pthread_mutex_unlock(&stub->mutex);
        free((char *)req.body);
        free((char *)req.method);
    }
    free(in.bytes);
    (void)shutdown(connection->fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *arg)
{
    TestStub *stub = arg;
    for (;;) {
        struct pollfd fds[2] = {{.fd = stub->listener, .events = POLLIN},
                                {.fd = stub->stop[0], .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            die("poll");
        if (fds[1].revents)
            return NULL;
        int fd = accept(stub->listener, NULL, NULL);
        if (fd < 0)
            continue;
        int one = 1; /* answers go out in several pieces */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        (void)pthread_mutex_lock(&stub->mutex);
        int n = stub->n_connections++;
        (void)pthread_mutex_unlock(&stub->mutex);
        if (n >= MAX_CONNECTIONS)
            die("http_stub: too many connections");
        stub->connections[n] = (Connection){.stub = stub, .fd = fd, .number = n + 1};
        if (pthread_create(&stub->connections[n].thread, NULL, serve, &stub->connections[n]) != 0)
            die("pthread_create");
    }
}

/* ---- the public part ---------------------------------------------------------------------- */

static int listen_anywhere(int *ret_port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
        die("listen");
    *ret_port = ntohs(addr.sin_port);
    return fd;
}

TestStub *test_stub_start(TestStubFn fn, void *arg)
{
    TestStub *stub = calloc(1, sizeof(*stub));
    if (!stub || pipe(stub->stop) != 0 || pthread_mutex_init(&stub->mutex, NULL) != 0)
        die("http_stub");
    stub->fn = fn;
    stub->arg = arg;
    stub->listener = listen_anywhere(&stub->port);
    if (pthread_create(&stub->thread, NULL, accept_all, stub) != 0)
        die("pthread_create");
    return stub;
}

TestStub *test_stub_stop(TestStub *stub)
{
    if (!stub)
        return NULL;
    (void)close(stub->stop[1]);
    (void)pthread_join(stub->thread, NULL);
    for (int i = 0; i < stub->n_connections; ++i) {
        (void)pthread_join(stub->connections[i].thread, NULL);
        (void)close(stub->connections[i].fd);
    }
    (void)close(stub->stop[0]);
    (void)close(stub->listener);
    (void)pthread_mutex_destroy(&stub->mutex);
    free(stub);
    return NULL;
}

int test_stub_port(const TestStub *stub)
{
    return stub->port;
}

int test_stub_requests(TestStub *stub)
{
    (void)pthread_mutex_lock(&stub->mutex);
    int n = stub->n_requests;
    (void)pthread_mutex_unlock(&stub->mutex);
    return n;
}

int test_stub_connections(TestStub *stub)
{
    (void)pthread_mutex_lock(&stub->mutex);
    int n = stub->n_connections;
    (void)pthread_mutex_unlock(&stub->mutex);
    return n;
}

const char *test_stub_header(const TestRequest *req, const char *name, char *out, size_t cap)
{
    return header_of(req->head, name, out, cap);
}

void test_stub_send(const TestRequest *req, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len) {
        ssize_t n = send(req->fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the client went away: its matter */
        p += n;
        len -= (size_t)n;
    }
}

void test_stub_printf(const TestRequest *req, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        die("vasprintf");
    test_stub_send(req, text, (size_t)n);
    free(text);
}

void test_stub_answer(const TestRequest *req, int status, const char *extra, const char *text)
{
    test_stub_printf(req, "HTTP/1.1 %d Something\r\nContent-Length: %zu\r\n%s\r\n%s", status,
                     strlen(text), extra ? extra : "",
                     strcmp(req->method, "HEAD") == 0 ? "" : text);
}

void test_stub_wait_gone(const TestRequest *req)
{
    (void)pthread_mutex_unlock(&req->stub->mutex);
    struct pollfd fds[2] = {{.fd = req->fd, .events = POLLIN},
                            {.fd = req->stub->stop[0], .events = POLLIN}};
    char byte;
    while (poll(fds, 2, -1) < 0 || (!fds[1].revents && recv(req->fd, &byte, 1, 0) > 0))
        ;
    (void)pthread_mutex_lock(&req->stub->mutex);
}

int test_stub_dead_port(void)
{
    int port, fd = listen_anywhere(&port);
    (void)close(fd);
    return port;
}
