/* SPDX-License-Identifier: Apache-2.0 */
/* labels: threads */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/http_server.h"

/* A server that echoes, and a client that speaks bytes. */
typedef struct Fixture {
    KnHttpd *server;
    int port;
    _Atomic int done, last_status, waiting;
    pthread_mutex_t gate; /* held = requests to /wait wait */
    /* /large */
    int packed;      /* how often it was packed */
    char kept[4096]; /* what came of it */
    size_t n_kept;
} Fixture;

static void keep_packed(void *arg, KnStr packed)
{
    Fixture *fix = arg;
    assert_true(packed.len <= sizeof(fix->kept));
    memcpy(fix->kept, packed.ptr, packed.len);
    fix->n_kept = packed.len;
    fix->packed++;
}

static size_t admit(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    (void)arg;
    if (req->target.n_segments && !strcmp(req->target.segments[0].ptr, "refused"))
        rsp->status = 401;
    return 1000;
}

static KnHttpdWhen handle(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    Fixture *fix = arg;
    const char *what = req->target.n_segments ? req->target.segments[0].ptr : "";
    if (!strcmp(what, "wait")) {
        if (!req->on_pool)
            return KN_HTTPD_LATER;
        fix->waiting++;
        (void)pthread_mutex_lock(&fix->gate);
        (void)pthread_mutex_unlock(&fix->gate);
    }
    rsp->status = 200;
    kn_httpd_response_header(rsp, "Content-Type", "text/plain");
    if (!strcmp(what, "large")) {
        char *text = kn_arena_alloc(req->arena, 100000);
        memset(text, 'x', 100000);
        kn_httpd_response_piece(rsp, (KnStr){text, 50000});
        kn_httpd_response_piece(rsp, (KnStr){text + 50000, 50000});
        rsp->packed = (KnStr){fix->kept, fix->n_kept};
        rsp->on_packed = keep_packed;
        rsp->on_packed_arg = fix;
        return KN_HTTPD_NOW;
    }
    if (!strcmp(what, "alone")) {
        kn_httpd_response_piece(rsp, kn_str(req->alone ? "alone" : "in company"));
        return KN_HTTPD_NOW;
    }
    kn_httpd_response_piece(rsp, KN_STR_LIT("["));
    kn_httpd_response_piece(rsp, req->body);
    kn_httpd_response_piece(rsp, KN_STR_LIT("]"));
    return KN_HTTPD_NOW;
}

static void give_failure(void *arg, KnHttpdRequest *req, int status, const char *message,
                         KnHttpdResponse *rsp)
{
    (void)arg;
    rsp->status = status;
    kn_httpd_response_piece(rsp, kn_str(kn_arena_strdup(req->arena, message)));
}

static void done(void *arg, const KnHttpdRequest *req, int status, int64_t bytes)
{
    Fixture *fix = arg;
    (void)req;
    (void)bytes;
    fix->last_status = status;
    fix->done++;
}

static void open_with(Fixture *fix, KnHttpdOptions opts)
{
    KnListen listening;
    KnErr err = {0};
    (void)pthread_mutex_init(&fix->gate, NULL);
    opts.handler = (KnHttpdHandler){fix, admit, handle, give_failure, done};
    opts.threads = 2;
    assert_int_equal(kn_listen_open("127.0.0.1:0", &listening, &err), KN_OK);
    fix->port = listening.port;
    assert_int_equal(kn_httpd_open(&listening, &opts, &fix->server, &err), KN_OK);
}

static int connect_to(const Fixture *fix)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fix->port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

/* One answer: headers, and the body by its Content-Length. Returns the status; -1 at the end. */
static int hear(int fd, char *out, size_t cap)
{
    size_t n = 0, want = SIZE_MAX;
    char *body = NULL;
    while (n < want && n + 1 < cap) {
        ssize_t got = recv(fd, out + n, body ? want - n : 1, 0);
        if (got <= 0)
            return -1;
        n += (size_t)got;
        out[n] = '\0';
        if (!body && n > 4 && !memcmp(out + n - 4, "\r\n\r\n", 4)) {
            const char *length = strcasestr(out, "Content-Length: ");
            body = out + n;
            want = n + (length ? strtoul(length + 16, NULL, 10) : 0);
        }
    }
    return (int)strtol(out + 9, NULL, 10);
}

static void requests_share_a_connection(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096];
    open_with(&fix, (KnHttpdOptions){0});
    int fd = connect_to(&fix);
    for (int i = 0; i < 3; i++) {
        say_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_int_equal(hear(fd, text, sizeof(text)), 200);
        assert_non_null(strstr(text, "\r\n\r\n[hi]"));
        say_text(fd, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_int_equal(hear(fd, text, sizeof(text)), 200);
        assert_non_null(strstr(text, "\r\n\r\n[]"));
    }
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
    assert_int_equal(fix.done, 6);
}

static void a_body_above_the_limit_is_413_also_in_chunks_and_unpacked(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096], packed[1000], zeros[5000] = {0};
    open_with(&fix, (KnHttpdOptions){0});
    int fd = connect_to(&fix);
    say_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
    say(fd, zeros, 1001);
    assert_int_equal(hear(fd, text, sizeof(text)), 413);
    say_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
    say(fd, zeros, 1001);
    say_text(fd, "\r\n0\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 413);
    z_stream stream = {.next_in = (Bytef *)zeros, .avail_in = sizeof(zeros)};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, 0), Z_OK);
    stream.next_out = (Bytef *)packed;
    stream.avail_out = sizeof(packed);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t len = stream.total_out;
    assert_int_equal(deflateEnd(&stream), Z_OK);
    char head[200];
    int n = snprintf(head, sizeof(head),
                     "POST /x HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     len);
    say(fd, head, (size_t)n);
    say(fd, packed, len);
    assert_int_equal(hear(fd, text, sizeof(text)), 413);
    say_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 413);
    assert_int_equal(hear(fd, text, sizeof(text)), -1);
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
}

static void gzip_goes_both_ways(void **state)
{
    (void)state;
    Fixture fix = {0};
    static char text[200000];
    open_with(&fix, (KnHttpdOptions){0});
    int fd = connect_to(&fix);
    static const unsigned char hello[] = {0x1f, 0x8b, 8,    0,    0,    0,    0, 0, 0,
                                          3,    0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86,
                                          0xa6, 0x10, 0x36, 5,    0,    0,    0};
    char head[200];
    int n = snprintf(head, sizeof(head),
                     "POST /x HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     sizeof(hello));
    say(fd, head, (size_t)n);
    say(fd, hello, sizeof(hello));
    assert_int_equal(hear(fd, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "[hello]"));
    say(fd, head, (size_t)n);
    say(fd, hello, sizeof(hello) - 2);
    say_text(fd, "xx");
    assert_int_equal(hear(fd, text, sizeof(text)), 400);
    say_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br, gzip\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "Content-Encoding: gzip"));
    say_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 200);
    assert_null(strstr(text, "Content-Encoding"));
    assert_int_equal(strspn(strstr(text, "\r\n\r\n") + 4, "x"), 100000);
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
}

static void what_was_packed_before_is_not_packed_again(void **state)
{
    (void)state;
    Fixture fix = {0};
    char first[4096], again[4096], *body;
    open_with(&fix, (KnHttpdOptions){0});
    int fd = connect_to(&fix);
    say_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_int_equal(hear(fd, first, sizeof(first)), 200);
    say_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_int_equal(hear(fd, again, sizeof(again)), 200);
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
    body = strstr(again, "\r\n\r\n") + 4;
    assert_non_null(strstr(again, "Content-Encoding: gzip"));
    assert_memory_equal(body, strstr(first, "\r\n\r\n") + 4, fix.n_kept);
    assert_memory_equal(body, fix.kept, fix.n_kept);
    assert_int_equal(fix.packed, 1);
}

static void a_handler_is_told_whether_others_are_connected(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096];
    open_with(&fix, (KnHttpdOptions){0});
    static const char ask[] = "GET /alone HTTP/1.1\r\nHost: a\r\n\r\n";
    int one = connect_to(&fix);
    say_text(one, ask);
    assert_int_equal(hear(one, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "\r\n\r\nalone"));
    int two = connect_to(&fix);
    say_text(two, ask);
    assert_int_equal(hear(two, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "\r\n\r\nin company"));
    say_text(one, ask);
    assert_int_equal(hear(one, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "\r\n\r\nin company"));
    (void)close(one);
    (void)close(two);
    assert_true(kn_httpd_close(fix.server, 1000000));
}

static void a_refusal_keeps_the_connection_and_a_bad_target_is_400(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096];
    open_with(&fix, (KnHttpdOptions){0});
    int fd = connect_to(&fix);
    say_text(fd, "POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    assert_int_equal(hear(fd, text, sizeof(text)), 401);
    say_text(fd, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 400);
    say_text(fd, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(hear(fd, text, sizeof(text)), 200);
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
}

static void *closer(void *arg)
{
    static bool all;
    all = kn_httpd_close(((Fixture *)arg)->server, 20000000);
    return &all;
}

static void closing_finishes_what_is_in_flight_and_takes_no_new_connection(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096];
    pthread_t thread;
    void *all = NULL;
    open_with(&fix, (KnHttpdOptions){0});
    (void)pthread_mutex_lock(&fix.gate);
    int fd = connect_to(&fix);
    say_text(fd, "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    while (fix.waiting == 0)
        (void)poll(NULL, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, closer, &fix), 0);
    for (bool refused = false; !refused;) { /* until the socket is closed */
        struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fix.port)};
        addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int other = socket(AF_INET, SOCK_STREAM, 0);
        refused = connect(other, (struct sockaddr *)&addr, sizeof(addr)) != 0;
        (void)close(other);
    }
    (void)pthread_mutex_unlock(&fix.gate);
    assert_int_equal(hear(fd, text, sizeof(text)), 200);
    assert_non_null(strstr(text, "[hi]"));
    assert_non_null(strcasestr(text, "Connection: close"));
    assert_int_equal(pthread_join(thread, &all), 0);
    assert_true(*(bool *)all);
    (void)close(fd);
}

static void a_client_that_dribbles_is_cut_off(void **state)
{
    (void)state;
    Fixture fix = {0};
    char text[4096];
    open_with(&fix, (KnHttpdOptions){.idle_timeout_s = 1, .header_timeout_s = 1});
    int fd = connect_to(&fix);
    say_text(fd, "GET /x HTTP/1.1\r\nHost: a\r\nX: ");
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    int64_t began = kn_clock_mono_us();
    bool over = false;
    while (!over && kn_clock_mono_us() - began < 30000000) { /* a byte each 50 ms */
        over = poll(&ended, 1, 50) > 0 && recv(fd, text, sizeof(text), 0) <= 0;
        over = over || send(fd, "x", 1, MSG_NOSIGNAL) < 0;
    }
    assert_true(over);
    (void)close(fd);
    assert_true(kn_httpd_close(fix.server, 1000000));
}

static void a_header_list_is_searched_by_token(void **state)
{
    (void)state;
    assert_true(kn_httpd_header_lists("gzip", "gzip"));
    assert_true(kn_httpd_header_lists("br;q=1, GZIP;q=0.5", "gzip"));
    assert_false(kn_httpd_header_lists("x-gzip, deflate", "gzip"));
    assert_false(kn_httpd_header_lists("gzip;q=0", "gzip"));
    assert_false(kn_httpd_header_lists("gzip;q=0.000, br", "gzip"));
    assert_false(kn_httpd_header_lists("", "gzip"));
    assert_false(kn_httpd_header_lists(NULL, "gzip"));
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "host", "1.2.3.4:", ":70000", "::1:80", "[::1]", "a:b"};
    KnListen listening = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(kn_listen_open(bad[i], &listening, NULL), KN_E_INVAL);
    assert_int_equal(kn_listen_open("0", &listening, NULL), KN_OK);
    char again[32];
    (void)snprintf(again, sizeof(again), "127.0.0.1:%d", listening.port);
    KnListen other = {0};
    assert_string_equal(listening.text, again);
    assert_int_equal(kn_listen_open(again, &other, NULL), KN_E_BUSY);
    kn_listen_close(&listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_share_a_connection),
        cmocka_unit_test(a_body_above_the_limit_is_413_also_in_chunks_and_unpacked),
        cmocka_unit_test(gzip_goes_both_ways),
        cmocka_unit_test(what_was_packed_before_is_not_packed_again),
        cmocka_unit_test(a_handler_is_told_whether_others_are_connected),
        cmocka_unit_test(a_refusal_keeps_the_connection_and_a_bad_target_is_400),
        cmocka_unit_test(closing_finishes_what_is_in_flight_and_takes_no_new_connection),
        cmocka_unit_test(a_client_that_dribbles_is_cut_off),
        cmocka_unit_test(a_header_list_is_searched_by_token),
        cmocka_unit_test(an_address_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
