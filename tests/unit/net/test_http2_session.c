/* SPDX-License-Identifier: Apache-2.0 */
/* test_http2_session.c - one connection, fed by hand: answers, limits, and frames of bad will. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "unit/net/h2_peer.h"

/* Answers each request with its body, twice when the path is /twice; /later keeps the stream. */
typedef struct Echo {
    int seen, closed, drained, too_large;
    KnH2Stream *kept;
} Echo;

static void send_text(KnH2Stream *st, const char *text, size_t len, bool end)
{
    KnH2Field head = {KN_STR_LIT(":status"), KN_STR_LIT("200")};
    KN_BUF_AUTO body;
    kn_buf_init(&body, 16 << 20);
    kn_buf_append(&body, text, len);
    kn_h2_stream_send(st, &(KnH2Send){.head = &head, .n_head = 1, .body = &body, .end = end});
}

static void on_request(void *self, KnH2Stream *st)
{
    Echo *echo = self;
    const KnH2Request *req = kn_h2_stream_request(st);
    ++echo->seen;
    echo->too_large += req->too_large;
    if (kn_str_eq(req->path, KN_STR_LIT("/later"))) {
        echo->kept = kn_h2_stream_ref(st);
        return;
    }
    bool twice = kn_str_eq(req->path, KN_STR_LIT("/twice"));
    send_text(st, req->body.ptr, req->body.len, !twice);
    if (!twice)
        return;
    KnH2Field trailer = {KN_STR_LIT("grpc-status"), KN_STR_LIT("7")};
    KN_BUF_AUTO body;
    kn_buf_init(&body, 16 << 20);
    kn_buf_str(&body, req->body);
    kn_h2_stream_send(
        st, &(KnH2Send){.body = &body, .end = true, .trailers = &trailer, .n_trailers = 1});
}

static void on_drained(void *self, KnH2Stream *st)
{
    (void)st;
    ++((Echo *)self)->drained;
}

static void on_closed(void *self, KnH2Stream *st)
{
    (void)st;
    ++((Echo *)self)->closed;
}

static const KnH2Handler handler = {on_request, on_drained, on_closed, NULL, NULL};

typedef struct Fixture {
    Echo echo;
    KnH2Shared shared;
    KnH2Mail *mail;
    KnH2Session *ses;
    H2Peer *peer;
} Fixture;

static int set_up(void **state)
{
    Fixture *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    h2_shared_init(&fx->shared, &handler, &fx->echo);
    assert_int_equal(kn_h2_mail_open(&fx->mail, NULL), KN_OK);
    assert_int_equal(kn_h2_session_new(&fx->shared, fx->mail, "tester:1", &fx->ses, NULL), KN_OK);
    fx->peer = h2_peer_new(fx->ses);
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *fx = *state;
    h2_peer_free(fx->peer);
    fx->ses = kn_h2_session_free(fx->ses);
    assert_int_equal(atomic_load(&fx->shared.held), 0);
    assert_int_equal(fx->echo.seen, fx->echo.closed);
    fx->echo.kept = kn_h2_stream_unref(fx->echo.kept);
    kn_h2_mail_close(fx->mail);
    free(fx);
    return 0;
}

static void a_request_is_answered_with_its_body(void **state)
{
    Fixture *fx = *state;
    H2Answer *answer = h2_peer_post(fx->peer, "/", KN_STR_LIT("hello"), NULL, 0);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->status, "200");
    assert_string_equal(answer->body.data, "hello");
    assert_true(answer->closed);
    assert_int_equal(answer->error, NGHTTP2_NO_ERROR);
}

static void bytes_of_several_sends_come_in_order_with_trailers_behind(void **state)
{
    Fixture *fx = *state;
    H2Answer *answer = h2_peer_post(fx->peer, "/twice", KN_STR_LIT("abc"), NULL, 0);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->body.data, "abcabc");
    assert_string_equal(answer->grpc_status, "7");
    assert_true(answer->closed);
}

static void a_body_larger_than_all_windows_goes_both_ways(void **state)
{
    Fixture *fx = *state;
    size_t len = 900000;
    char *big = malloc(len);
    assert_non_null(big);
    for (size_t i = 0; i < len; ++i)
        big[i] = (char)(i * 31 >> 3);
    H2Answer *answer = h2_peer_post(fx->peer, "/twice", (KnStr){big, len}, NULL, 0);
    h2_peer_pump(fx->peer);
    assert_int_equal(answer->body.len, 2 * len);
    assert_memory_equal(answer->body.data, big, len);
    assert_memory_equal(answer->body.data + len, big, len);
    assert_true(answer->closed);
    free(big);
}

static void a_body_above_its_limit_is_answered_and_cut(void **state)
{
    Fixture *fx = *state;
    fx->shared.opts.max_body = 1000;
    char big[5000];
    memset(big, 'x', sizeof(big));
    H2Answer *answer = h2_peer_post(fx->peer, "/", (KnStr){big, sizeof(big)}, NULL, 0);
    h2_peer_pump(fx->peer);
    assert_int_equal(fx->echo.too_large, 1);
    assert_string_equal(answer->status, "200");
    assert_true(answer->closed);
    H2Answer *next = h2_peer_post(fx->peer, "/", KN_STR_LIT("small"), NULL, 0);
    h2_peer_pump(fx->peer);
    assert_string_equal(next->body.data, "small");
}

static void bodies_of_many_requests_are_bounded_together(void **state)
{
    Fixture *fx = *state;
    fx->shared.opts.max_held = 3000;
    char big[1000];
    memset(big, 'x', sizeof(big));
    nghttp2_nv fields[] = {h2_field(":method", "POST"), h2_field(":scheme", "http"),
                           h2_field(":authority", "localhost"), h2_field(":path", "/later")};
    for (int i = 0; i < 4; ++i) {
        H2Answer *answer = h2_peer_request(fx->peer, fields, 4, true);
        answer->body_at = big;
        answer->left = sizeof(big);
    }
    h2_peer_pump(fx->peer);
    assert_int_equal(fx->echo.seen, 1); /* the one that was too much */
    assert_int_equal(fx->echo.too_large, 1);
    assert_true(atomic_load(&fx->shared.held) <= 4000);
}

static void too_many_fields_are_431(void **state)
{
    Fixture *fx = *state;
    char long_value[3000];
    memset(long_value, 'v', sizeof(long_value) - 1);
    long_value[sizeof(long_value) - 1] = '\0';
    nghttp2_nv extra[] = {h2_field("a", long_value), h2_field("b", long_value)};
    H2Answer *answer = h2_peer_post(fx->peer, "/", KN_STR_LIT("x"), extra, 2);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->status, "431");
    assert_int_equal(fx->echo.seen, 0);
}

static void an_answer_may_come_later_and_is_dropped_when_the_client_has_left(void **state)
{
    Fixture *fx = *state;
    H2Answer *answer = h2_peer_post(fx->peer, "/later", KN_STR_LIT("x"), NULL, 0);
    h2_peer_pump(fx->peer);
    assert_non_null(fx->echo.kept);
    assert_false(kn_h2_stream_is_gone(fx->echo.kept));
    send_text(fx->echo.kept, "first", 5, false);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->body.data, "first");
    assert_true(fx->echo.drained > 0);
    assert_int_equal(
        nghttp2_submit_rst_stream(fx->peer->ng, NGHTTP2_FLAG_NONE, answer->id, NGHTTP2_CANCEL), 0);
    h2_peer_pump(fx->peer);
    assert_true(kn_h2_stream_is_gone(fx->echo.kept));
    assert_int_equal(fx->echo.closed, 1);
    send_text(fx->echo.kept, "second", 6, true);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->body.data, "first");
}

static void what_is_no_http2_ends_the_session(void **state)
{
    Fixture *fx = *state;
    const char *http1 = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_false(kn_h2_session_recv(fx->ses, (const uint8_t *)http1, strlen(http1)));
}

static void a_frame_larger_than_agreed_ends_the_session_with_goaway(void **state)
{
    Fixture *fx = *state;
    h2_peer_pump(fx->peer);
    const uint8_t huge[] = {0xff, 0xff, 0xff, 0x00, 0x00, 0, 0, 0, 1}; /* DATA of 16 MiB */
    (void)kn_h2_session_recv(fx->ses, huge, sizeof(huge));
    h2_peer_pump(fx->peer);
    assert_true(fx->peer->goaway);
    assert_int_equal(fx->peer->goaway_error, NGHTTP2_FRAME_SIZE_ERROR);
    assert_true(kn_h2_session_is_over(fx->ses));
}

static void a_stream_that_opens_and_resets_without_end_is_stopped(void **state)
{
    Fixture *fx = *state;
    nghttp2_nv fields[] = {h2_field(":method", "POST"), h2_field(":scheme", "http"),
                           h2_field(":authority", "localhost"), h2_field(":path", "/later")};
    int rounds = 0;
    while (!fx->peer->goaway && rounds < 3000) {
        fx->peer->n_answers = 0; /* bodies are empty: nothing to free */
        H2Answer *answer = h2_peer_request(fx->peer, fields, 4, true);
        h2_peer_pump(fx->peer);
        (void)nghttp2_submit_rst_stream(fx->peer->ng, NGHTTP2_FLAG_NONE, answer->id,
                                        NGHTTP2_CANCEL);
        h2_peer_pump(fx->peer);
        ++rounds;
    }
    assert_true(fx->peer->goaway);
    assert_true(rounds < 3000);
}

static void a_request_that_never_ends_is_noticed(void **state)
{
    Fixture *fx = *state;
    nghttp2_nv fields[] = {h2_field(":method", "POST"), h2_field(":scheme", "http"),
                           h2_field(":authority", "localhost"), h2_field(":path", "/")};
    h2_peer_request(fx->peer, fields, 4, true);
    h2_peer_pump(fx->peer);
    int64_t now_us = kn_clock_mono_us();
    assert_false(kn_h2_session_has_slow_request(fx->ses, now_us));
    assert_true(kn_h2_session_has_slow_request(fx->ses, now_us + 1100000));
}

static void shutting_lets_open_requests_end_and_names_the_last(void **state)
{
    Fixture *fx = *state;
    H2Answer *answer = h2_peer_post(fx->peer, "/later", KN_STR_LIT("x"), NULL, 0);
    h2_peer_pump(fx->peer);
    kn_h2_session_shut(fx->ses, false);
    kn_h2_session_shut(fx->ses, true);
    h2_peer_pump(fx->peer);
    assert_true(fx->peer->goaway);
    assert_int_equal(fx->peer->goaway_last, answer->id);
    assert_false(answer->closed);
    send_text(fx->echo.kept, "bye", 3, true);
    h2_peer_pump(fx->peer);
    assert_string_equal(answer->body.data, "bye");
    assert_true(answer->closed);
    assert_true(kn_h2_session_is_over(fx->ses));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_request_is_answered_with_its_body),
        CASE(bytes_of_several_sends_come_in_order_with_trailers_behind),
        CASE(a_body_larger_than_all_windows_goes_both_ways),
        CASE(a_body_above_its_limit_is_answered_and_cut),
        CASE(bodies_of_many_requests_are_bounded_together),
        CASE(too_many_fields_are_431),
        CASE(an_answer_may_come_later_and_is_dropped_when_the_client_has_left),
        CASE(what_is_no_http2_ends_the_session),
        CASE(a_frame_larger_than_agreed_ends_the_session_with_goaway),
        CASE(a_stream_that_opens_and_resets_without_end_is_stopped),
        CASE(a_request_that_never_ends_is_noticed),
        CASE(shutting_lets_open_requests_end_and_names_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
