/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_client.c - the client against a server that answers well, badly and not. labels:
 * threads */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "net/http_client.h"
#include "support/http_stub.h"

typedef struct Fixture {
    TestStub *stub;
    KnHttpClient *client;
    KnArena *arena;
    KnErr err;
} Fixture;

static Fixture fx;

/* What the request asks for by its path. */
static bool handle(void *arg, const TestRequest *req)
{
    (void)arg;
    char value[256];
    const char *what = req->target;
    if (strcmp(what, "/echo") == 0) {
        test_stub_printf(req,
                         "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nX-Method: %s\r\n"
                         "Set-Thing: one\r\nset-thing:  two  \r\nX-Agent: %s\r\nEmpty:\r\n\r\n",
                         req->body_len, req->method,
                         test_stub_header(req, "User-Agent", value, sizeof(value)));
        test_stub_send(req, req->body, strcmp(req->method, "HEAD") ? req->body_len : 0);
    } else if (strcmp(what, "/redirect") == 0) {
        test_stub_answer(req, 301, "Location: /echo\r\n", "gone");
    } else if (strcmp(what, "/missing") == 0) {
        test_stub_answer(req, 404, NULL, "no such thing");
    } else if (strcmp(what, "/short") == 0) {
        test_stub_printf(req, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        return false;
    } else if (strcmp(what, "/nothing") == 0) {
        return false;
    } else if (strcmp(what, "/silent") == 0) {
        test_stub_wait_gone(req);
        return false;
    } else if (strcmp(what, "/half") == 0) {
        test_stub_printf(req, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        test_stub_wait_gone(req);
        return false;
    } else if (strcmp(what, "/junk") == 0) {
        test_stub_printf(req, "this is not HTTP\r\n\r\n");
        return false;
    } else if (strcmp(what, "/headers") == 0) {
        test_stub_printf(req, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 30; ++i)
            test_stub_printf(req, "X-Long: %09999d\r\n", i);
        test_stub_printf(req, "Content-Length: 0\r\n\r\n");
    } else if (strcmp(what, "/chunks") == 0) {
        test_stub_printf(req, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: end\r\n\r\n");
    } else if (strcmp(what, "/continue") == 0) {
        test_stub_printf(req, "HTTP/1.1 103 Early\r\nX-Early: yes\r\n\r\n");
        test_stub_answer(req, 200, "X-Late: yes\r\n", "");
    } else if (strcmp(what, "/close-after") == 0) {
        test_stub_answer(req, 200, NULL, "kept");
        return false; /* although nothing said so */
    } else {
        test_stub_answer(req, 200, NULL, what);
    }
    return true;
}

static int setup(void **state)
{
    (void)state;
    const KnHttpClientOptions options = {.stall_ms = 20000};
    fx = (Fixture){.stub = test_stub_start(handle, NULL), .arena = kn_arena_new(0)};
    return kn_http_client_new(&options, &fx.client, NULL) == KN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fx.client = kn_http_client_free(fx.client);
    fx.stub = test_stub_stop(fx.stub);
    fx.arena = kn_arena_free(fx.arena);
    return 0;
}

static const char *url(const char *path)
{
    return kn_arena_printf(fx.arena, "http://127.0.0.1:%d%s", test_stub_port(fx.stub), path);
}

static KnCode get(const char *path, KnHttpResponse *ret)
{
    const KnHttpRequest req = {.method = "GET", .url = url(path)};
    return kn_http_perform(fx.client, &req, ret, &fx.err);
}

static void a_body_and_headers_come_back(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST", "PUT", "DELETE"};
    for (size_t i = 0; i < 3; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        const KnHttpRequest req = {
            .method = methods[i], .url = url("/echo"), .body = KN_STR_LIT("some bytes")};
        assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
        assert_int_equal(resp.status, 200);
        assert_int_equal(resp.version, 11);
        assert_string_equal(resp.body.data, "some bytes");
        assert_string_equal(kn_http_header(&resp, "X-METHOD", 0), methods[i]);
        assert_string_equal(kn_http_header(&resp, "set-thing", 0), "one");
        assert_string_equal(kn_http_header(&resp, "set-thing", 1), "two");
        assert_null(kn_http_header(&resp, "set-thing", 2));
        assert_string_equal(kn_http_header(&resp, "empty", 0), "");
        assert_string_equal(kn_http_header(&resp, "x-agent", 0), "knut/" KN_VERSION_STRING);
        KnHttpHeader header;
        assert_true(kn_http_header_at(&resp, 1, &header));
        assert_string_equal(header.name, "X-Method");
        assert_false(kn_http_header_at(&resp, 6, &header));
    }
}

static void a_head_request_has_no_body_and_keeps_the_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 3; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        const KnHttpRequest req = {.method = "HEAD", .url = url("/missing")};
        assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
        assert_int_equal(resp.status, 404);
        assert_int_equal(resp.body.len, 0);
        assert_string_equal(kn_http_header(&resp, "content-length", 0), "13");
    }
    assert_int_equal(test_stub_connections(fx.stub), 1);
}

static void any_status_is_an_answer_and_redirects_are_not_followed(void **state)
{
    (void)state;
    KN_HTTP_RESPONSE_AUTO resp = {0};
    assert_int_equal(get("/redirect", &resp), KN_OK);
    assert_int_equal(resp.status, 301);
    assert_string_equal(kn_http_header(&resp, "location", 0), "/echo");
    assert_int_equal(get("/missing", &resp), KN_OK); /* over what ret held */
    assert_int_equal(resp.status, 404);
    assert_string_equal(resp.body.data, "no such thing");
    assert_int_equal(test_stub_requests(fx.stub), 2);
}

static void the_path_is_sent_as_it_is_spelled(void **state)
{
    (void)state;
    KN_HTTP_RESPONSE_AUTO resp = {0};
    assert_int_equal(get("/a/../b/./c//%41%2f?x=%20&y", &resp), KN_OK);
    assert_string_equal(resp.body.data, "/a/../b/./c//%41%2f?x=%20&y");
}

static void trailers_and_late_headers_count_and_early_ones_do_not(void **state)
{
    (void)state;
    KN_HTTP_RESPONSE_AUTO resp = {0};
    assert_int_equal(get("/chunks", &resp), KN_OK);
    assert_string_equal(resp.body.data, "hello world");
    assert_string_equal(kn_http_header(&resp, "x-trailer", 0), "end");
    assert_int_equal(get("/continue", &resp), KN_OK);
    assert_int_equal(resp.status, 200);
    assert_null(kn_http_header(&resp, "x-early", 0));
    assert_string_equal(kn_http_header(&resp, "x-late", 0), "yes");
}

static void a_lost_answer_is_unknown_and_says_where(void **state)
{
    (void)state;
    static const char *const paths[] = {"/short", "/nothing", "/junk"};
    for (size_t i = 0; i < 3; ++i) {
        KnHttpResponse resp = {0};
        assert_int_equal(get(paths[i], &resp), KN_E_UNKNOWN);
        assert_true(fx.err.retriable);
        assert_non_null(strstr(fx.err.msg, "http://127.0.0.1:"));
        assert_int_equal(resp.status, 0); /* untouched */
        assert_int_equal(kn_http_settle(KN_E_UNKNOWN, &fx.err), KN_E_IO);
        assert_int_equal(fx.err.code, KN_E_IO);
    }
    assert_int_equal(kn_http_settle(KN_E_INVAL, &fx.err), KN_E_INVAL);
}

static void silence_ends_in_a_stall(void **state)
{
    (void)state;
    static const char *const paths[] = {"/silent", "/half"};
    static const char *const words[] = {"no answer came", "in the middle of the answer"};
    for (size_t i = 0; i < 2; ++i) {
        KnHttpResponse resp = {0};
        const KnHttpRequest req = {.method = "GET", .url = url(paths[i]), .stall_ms = 100};
        assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_UNKNOWN);
        assert_non_null(strstr(fx.err.msg, "no byte moved for 0.1 s"));
        assert_non_null(strstr(fx.err.msg, words[i]));
    }
    KnHttpResponse resp = {0};
    const KnHttpRequest req = {
        .method = "GET", .url = url("/silent"), .stall_ms = -1, .total_ms = 100};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_UNKNOWN);
    assert_non_null(strstr(fx.err.msg, "timed out"));
}

static void what_was_never_sent_is_io(void **state)
{
    (void)state;
    KnHttpResponse resp = {0};
    KnHttpRequest req = {.method = "PUT", .body = KN_STR_LIT("x")};
    req.url = kn_arena_printf(fx.arena, "http://127.0.0.1:%d/", test_stub_dead_port());
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_IO);
    assert_true(fx.err.retriable);
    assert_non_null(strstr(fx.err.msg, "check host and port, and that the server runs"));
    req.url = "http://no-such-host.invalid/";
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "no-such-host.invalid: Could not resolve host"));
    req.url = kn_arena_printf(fx.arena, "https://127.0.0.1:%d/echo", test_stub_port(fx.stub));
    req.connect_ms = 5000;
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "check that this port speaks TLS"));
}

static void nonsense_is_refused_before_anything_is_sent(void **state)
{
    (void)state;
    KnHttpResponse resp = {0};
    KnHttpRequest req = {.method = "GET", .url = "ftp://127.0.0.1/"};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_INVAL);
    const KnHttpHeader evil[] = {{"X-A", "b\r\nX-C: d"}, {"X\nA", "b"}};
    for (size_t i = 0; i < 2; ++i) {
        req = (KnHttpRequest){
            .method = "GET", .url = url("/echo"), .headers = &evil[i], .n_headers = 1};
        assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_INVAL);
    }
    assert_int_equal(test_stub_requests(fx.stub), 0);
    KnHttpClient *client = NULL;
    const KnHttpClientOptions options = {.ca_file = "/no/such/file"};
    assert_int_equal(kn_http_client_new(&options, &client, &fx.err), KN_E_INVAL);
    assert_string_equal(
        fx.err.msg,
        "CA file '/no/such/file' is missing or not readable: No such file or directory");
}

static void sizes_are_limited(void **state)
{
    (void)state;
    KnHttpResponse resp = {0};
    KnHttpRequest req = {.method = "GET", .url = url("/12345"), .max_response = 5};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_NOMEM);
    assert_string_equal(fx.err.msg, "the answer is larger than the 5 bytes expected");
    req.max_response = 6;
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
    kn_http_response_done(&resp);
    req = (KnHttpRequest){.method = "GET", .url = url("/headers")};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_NOMEM);
}

static KnCode take(void *arg, const void *bytes, size_t len, KnErr *err)
{
    KnBuf *buf = arg;
    kn_buf_append(buf, bytes, len);
    return kn_buf_check(buf, err);
}

static void a_streamed_body_goes_to_the_callback_and_an_error_body_does_not(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 8);
    KN_HTTP_RESPONSE_AUTO resp = {0};
    KnHttpRequest req = {
        .method = "GET", .url = url("/1234567"), .on_body = take, .on_body_arg = &buf};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
    assert_string_equal(buf.data, "/1234567");
    assert_int_equal(resp.body.len, 0);
    req.url = url("/missing");
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
    assert_int_equal(buf.len, 8);
    assert_string_equal(resp.body.data, "no such thing");
    req.url = url("/more"); /* the callback's own failure */
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_NOMEM);
    assert_non_null(strstr(fx.err.msg, "limit of 8 bytes"));
}

typedef struct Source {
    size_t len, fail_at;
} Source;

static KnCode give(void *arg, uint64_t offset, void *out, size_t cap, size_t *ret_n, KnErr *err)
{
    const Source *source = arg;
    if (offset >= source->fail_at)
        return kn_err_set(err, KN_E_CORRUPT, "the source is broken");
    size_t n = offset + cap > source->len ? source->len - (size_t)offset : cap;
    memset(out, 'a' + (int)(offset % 7), n);
    *ret_n = n;
    return KN_OK;
}

static void a_body_can_be_read_as_it_is_sent(void **state)
{
    (void)state;
    const uint64_t lens[] = {1000000, UINT64_MAX};
    Source source = {1000000, SIZE_MAX};
    for (size_t i = 0; i < 2; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        KnHttpRequest req = {.method = "PUT",
                             .url = url("/echo"),
                             .read = give,
                             .read_arg = &source,
                             .read_len = lens[i]};
        assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_OK);
        assert_int_equal(resp.body.len, 1000000);
        assert_int_equal(resp.body.data[0], 'a');
        assert_string_equal(kn_http_header(&resp, "x-method", 0), "PUT");
    }
    source.fail_at = 1;
    KnHttpResponse resp = {0};
    KnHttpRequest req = {.method = "POST",
                         .url = url("/echo"),
                         .read = give,
                         .read_arg = &source,
                         .read_len = 1000000};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_CORRUPT);
    assert_string_equal(fx.err.msg, "the source is broken");
}

static void connections_are_used_again_and_dead_ones_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < 5; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        assert_int_equal(get("/x", &resp), KN_OK);
    }
    assert_int_equal(test_stub_connections(fx.stub), 1);
    for (int i = 0; i < 3; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        assert_int_equal(get("/close-after", &resp), KN_OK);
        assert_string_equal(resp.body.data, "kept");
    }
}

static void a_post_is_not_sent_twice_when_a_kept_connection_ends(void **state)
{
    (void)state;
    KN_HTTP_RESPONSE_AUTO resp = {0};
    assert_int_equal(get("/x", &resp), KN_OK);
    const KnHttpRequest req = {.method = "POST", .url = url("/nothing"), .body = KN_STR_LIT("x")};
    assert_int_equal(kn_http_perform(fx.client, &req, &resp, &fx.err), KN_E_UNKNOWN);
    assert_non_null(strstr(fx.err.msg, "closed the connection without an answer"));
    assert_int_equal(test_stub_requests(fx.stub), 2);
    assert_int_equal(get("/x", &resp), KN_OK);
    assert_int_equal(get("/nothing", &resp), KN_E_UNKNOWN); /* twice, at least */
    assert_true(test_stub_requests(fx.stub) >= 5);
}

static void many_requests_go_at_once_and_each_has_its_outcome(void **state)
{
    (void)state;
    enum { N = 40 };
    KnHttpCall *calls = kn_arena_zalloc(fx.arena, N * sizeof(*calls));
    for (int i = 0; i < N; ++i) {
        calls[i].req.method = "GET";
        calls[i].req.url = i % 10 == 3   ? url("/nothing")
                           : i % 10 == 7 ? "bad:"
                                         : url(kn_arena_printf(fx.arena, "/nr-%d", i));
    }
    kn_http_perform_all(fx.client, calls, N, 8);
    for (int i = 0; i < N; ++i) {
        KnCode want = i % 10 == 3 ? KN_E_UNKNOWN : i % 10 == 7 ? KN_E_INVAL : KN_OK;
        assert_int_equal(calls[i].code, want);
        if (want != KN_OK)
            continue;
        assert_string_equal(calls[i].ret.body.data, kn_arena_printf(fx.arena, "/nr-%d", i));
        kn_http_response_done(&calls[i].ret);
    }
    kn_http_perform_all(fx.client, NULL, 0, 8);
}

static void a_cancel_descriptor_ends_what_is_under_way(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    KnHttpCall calls[3] = {{.code = KN_OK}};
    for (int i = 0; i < 3; ++i)
        calls[i].req =
            (KnHttpRequest){.method = "GET", .url = url("/silent"), .cancel_fd = &fds[0]};
    kn_http_perform_all(fx.client, calls, 3, 2);
    for (int i = 0; i < 3; ++i)
        assert_int_equal(calls[i].code, KN_E_CANCELLED);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

typedef struct Hammer {
    const char *url;
    int good;
} Hammer;

static void *hammer(void *arg)
{
    Hammer *mine = arg;
    const KnHttpRequest req = {.method = "POST", .url = mine->url, .body = KN_STR_LIT("hi")};
    for (int i = 0; i < 50; ++i) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        if (kn_http_perform(fx.client, &req, &resp, NULL) == KN_OK && resp.body.len == 2)
            ++mine->good;
    }
    return NULL;
}

static void eight_threads_share_a_client(void **state)
{
    (void)state;
    pthread_t threads[8];
    Hammer hammers[8];
    for (int i = 0; i < 8; ++i) {
        hammers[i] = (Hammer){.url = url("/echo")};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
    }
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(hammers[i].good, 50);
    }
    assert_true(test_stub_connections(fx.stub) <= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(a_body_and_headers_come_back),
        TEST(a_head_request_has_no_body_and_keeps_the_connection),
        TEST(any_status_is_an_answer_and_redirects_are_not_followed),
        TEST(the_path_is_sent_as_it_is_spelled),
        TEST(trailers_and_late_headers_count_and_early_ones_do_not),
        TEST(a_lost_answer_is_unknown_and_says_where),
        TEST(silence_ends_in_a_stall),
        TEST(what_was_never_sent_is_io),
        TEST(nonsense_is_refused_before_anything_is_sent),
        TEST(sizes_are_limited),
        TEST(a_streamed_body_goes_to_the_callback_and_an_error_body_does_not),
        TEST(a_body_can_be_read_as_it_is_sent),
        TEST(connections_are_used_again_and_dead_ones_replaced),
        TEST(a_post_is_not_sent_twice_when_a_kept_connection_ends),
        TEST(many_requests_go_at_once_and_each_has_its_outcome),
        TEST(a_cancel_descriptor_ends_what_is_under_way),
        TEST(eight_threads_share_a_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
