/* SPDX-License-Identifier: Apache-2.0 */
/* test_grpc_server.c - calls over sockets: quick, waiting and flowing ones. labels: threads */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/grpc_server.h"
#include "unit/net/h2_peer.h"

typedef struct Fixture {
    KnGrpcServer *srv;
    uint16_t port;
    sem_t entered, go;  /* of /t.S/Wait */
    atomic_int numbers; /* that /t.S/Count may say */
    atomic_int flows_ended, waits_run;
} Fixture;

static int echo(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    (void)self;
    if (call->message.len == 0) {
        kn_err_set(err, KN_E_INVAL, "nothing to say: 0%% of it");
        return KN_GRPC_INVALID_ARGUMENT;
    }
    kn_buf_str(out, call->message);
    kn_buf_str(out, kn_grpc_call_metadata(call, "x-suffix"));
    return KN_GRPC_OK;
}

static int wait_for_go(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    (void)err;
    Fixture *fx = self;
    sem_post(&fx->entered);
    while (sem_wait(&fx->go) != 0)
        ;
    atomic_fetch_add(&fx->waits_run, 1);
    kn_buf_str(out, call->message);
    return KN_GRPC_OK;
}

/* Says 1, 2, 3 … as far as it may, four bytes each, a thousand at once; ends after -1. */
static int count(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    Fixture *fx = self;
    if (!call->state)
        call->state = kn_arena_zalloc(call->arena, sizeof(int));
    int *said = call->state, may = atomic_load(&fx->numbers);
    if (may < 0) {
        kn_err_set(err, KN_E_NOTFOUND, "out of numbers");
        return KN_GRPC_OUT_OF_RANGE;
    }
    for (int n = 0; n < 1000 && *said < may; ++n) {
        ++*said;
        size_t begin = kn_grpc_frame_begin(out);
        kn_buf_append(out, said, sizeof(*said));
        kn_grpc_frame_end(out, begin);
    }
    return KN_GRPC_GO_ON;
}

static void count_ended(void *self, KnGrpcCall *call)
{
    (void)call;
    atomic_fetch_add(&((Fixture *)self)->flows_ended, 1);
}

static const KnGrpcMethod methods[] = {
    {"/t.S/Echo", KN_GRPC_QUICK, echo, NULL, NULL},
    {"/t.S/Wait", KN_GRPC_BLOCKING, wait_for_go, NULL, NULL},
    {"/t.S/Count", KN_GRPC_FLOW, count, count_ended, NULL},
    {"/t.S/Talk", KN_GRPC_DIALOG, echo, NULL, NULL},
};

static void open_server(Fixture *fx, KnGrpcOptions opts)
{
    KnErr err = {0};
    KnListen listening = {0};
    KnGrpcService service = {methods, sizeof(methods) / sizeof(methods[0]), fx};
    opts.services = &service;
    opts.n_services = 1;
    assert_int_equal(kn_listen_open("127.0.0.1:0", &listening, &err), KN_OK);
    fx->port = (uint16_t)listening.port;
    fx->srv = kn_grpc_server_new(&opts);
    assert_int_equal(kn_grpc_server_listen(fx->srv, &listening, &err), KN_OK);
}

static int set_up(void **state)
{
    Fixture *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    sem_init(&fx->entered, 0, 0);
    sem_init(&fx->go, 0, 0);
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *fx = *state;
    (void)kn_grpc_server_close(fx->srv, 0);
    sem_destroy(&fx->entered);
    sem_destroy(&fx->go);
    free(fx);
    return 0;
}

static H2Answer *call(H2Peer *peer, const char *path, const char *frame, size_t len)
{
    return h2_peer_post(peer, path, (KnStr){frame, len}, NULL, 0);
}
#define HELLO                   "\0\0\0\0\5hello"
#define CALL(peer, path, frame) call((peer), (path), (frame), sizeof(frame) - 1)

static void an_answer_has_its_message_and_its_status(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    nghttp2_nv extra = h2_field("x-suffix", "!");
    H2Answer *answer =
        h2_peer_post(peer, "/t.S/Echo", (KnStr){HELLO, sizeof(HELLO) - 1}, &extra, 1);
    h2_peer_pump(peer);
    assert_string_equal(answer->status, "200");
    assert_string_equal(answer->grpc_status, "0");
    assert_int_equal(answer->body.len, 11);
    assert_memory_equal(answer->body.data, "\0\0\0\0\6hello!", 11);
    h2_peer_free(peer);
}

static void failures_have_a_code_and_a_text(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){.http.max_body = 100});
    H2Peer *peer = h2_peer_connect(fx->port);
    static const char large[200] = {0, 0, 0, 0, (char)195};
    nghttp2_nv gzip = h2_field("grpc-encoding", "gzip");
    const struct {
        H2Answer *answer;
        const char *code, *text;
    } cases[] = {
        {CALL(peer, "/t.S/Echo", "\0\0\0\0\0"), "3", "nothing to say: 0%25 of it"},
        {CALL(peer, "/t.S/None", HELLO), "12", "there is no such method here"},
        {CALL(peer, "/t.S/Echo", "\1\0\0\0\5hello"), "12", NULL},
        {CALL(peer, "/t.S/Echo", "\0\0\0\0\6hello"), "13", NULL},
        {CALL(peer, "/t.S/Echo", HELLO HELLO), "13", NULL},
        {CALL(peer, "/t.S/Echo", ""), "13", NULL},
        {call(peer, "/t.S/Echo", large, sizeof(large)), "8", NULL},
        {h2_peer_post(peer, "/t.S/Echo", (KnStr){HELLO, sizeof(HELLO) - 1}, &gzip, 1), "12", NULL},
    };
    h2_peer_pump(peer);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        assert_string_equal(cases[i].answer->status, "200");
        assert_string_equal(cases[i].answer->grpc_status, cases[i].code);
        assert_true(cases[i].answer->grpc_message[0]);
        if (cases[i].text)
            assert_string_equal(cases[i].answer->grpc_message, cases[i].text);
    }
    h2_peer_free(peer);
}

static void a_dialog_answers_each_message(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    static const char large[100000] = {0, 0, 1, (char)0x86};
    const struct {
        H2Answer *answer;
        const char *code;
        size_t len;
    } cases[] = {
        {CALL(peer, "/t.S/Talk", HELLO "\0\0\0\0\1x" HELLO), "0", 26},
        {CALL(peer, "/t.S/Talk", HELLO "\0\0\0\0\0" HELLO), "3", 10},
        {CALL(peer, "/t.S/Talk", HELLO "\0\0\0\0\6hello"), "13", 10},
        {CALL(peer, "/t.S/Talk", HELLO "\1\0\0\0\0"), "12", 10},
        {CALL(peer, "/t.S/Talk", HELLO "\2"), "13", 10},
        {call(peer, "/t.S/Talk", large, sizeof(large)), "8", 0},
    };
    h2_peer_pump(peer);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        assert_string_equal(cases[i].answer->grpc_status, cases[i].code);
        assert_int_equal(cases[i].answer->body.len, cases[i].len);
    }
    h2_peer_free(peer);
}

static void what_is_not_grpc_gets_an_answer_of_http(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    nghttp2_nv get[] = {h2_field(":method", "GET"), h2_field(":scheme", "http"),
                        h2_field(":authority", "x"), h2_field(":path", "/t.S/Echo")};
    nghttp2_nv post[] = {h2_field(":method", "POST"), h2_field(":scheme", "http"),
                         h2_field(":authority", "x"), h2_field(":path", "/t.S/Echo"),
                         h2_field("content-type", "application/json")};
    H2Answer *got = h2_peer_request(peer, get, 4, false);
    H2Answer *posted = h2_peer_request(peer, post, 5, false);
    h2_peer_pump(peer);
    assert_string_equal(got->status, "405");
    assert_string_equal(posted->status, "415");
    h2_peer_free(peer);
}

static void waiting_calls_do_not_hold_up_quick_ones(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){.http.loops = 1});
    H2Peer *peer = h2_peer_connect(fx->port);
    H2Answer *waiting[3];
    for (int i = 0; i < 3; ++i)
        waiting[i] = CALL(peer, "/t.S/Wait", HELLO);
    H2Answer *quick = CALL(peer, "/t.S/Echo", HELLO);
    h2_peer_await(peer, quick, SIZE_MAX);
    assert_string_equal(quick->grpc_status, "0");
    for (int i = 0; i < 3; ++i)
        while (sem_wait(&fx->entered) != 0)
            ;
    for (int i = 0; i < 3; ++i)
        assert_false(waiting[i]->closed);
    for (int i = 0; i < 3; ++i)
        sem_post(&fx->go);
    h2_peer_pump(peer);
    for (int i = 0; i < 3; ++i)
        assert_string_equal(waiting[i]->grpc_status, "0");
    h2_peer_free(peer);
}

static void calls_beyond_the_limit_are_refused_and_late_ones_not_begun(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){.workers = 1, .max_waiting = 2});
    H2Peer *peer = h2_peer_connect(fx->port);
    H2Answer *running = CALL(peer, "/t.S/Wait", HELLO);
    nghttp2_nv timeout = h2_field("grpc-timeout", "1u");
    H2Answer *late =
        h2_peer_post(peer, "/t.S/Wait", (KnStr){HELLO, sizeof(HELLO) - 1}, &timeout, 1);
    H2Answer *refused = CALL(peer, "/t.S/Wait", HELLO);
    h2_peer_await(peer, refused, SIZE_MAX);
    assert_string_equal(refused->grpc_status, "8");
    sem_post(&fx->go);
    h2_peer_pump(peer);
    assert_string_equal(running->grpc_status, "0");
    assert_string_equal(late->grpc_status, "4");
    assert_int_equal(atomic_load(&fx->waits_run), 1);
    h2_peer_free(peer);
}

static void check_numbers(const H2Answer *answer, int last)
{
    KnStr rest = {answer->body.data, answer->body.len}, message;
    for (int i = 1; i <= last; ++i) {
        int number;
        assert_int_equal(kn_grpc_frame_next(&rest, &message, NULL), KN_OK);
        assert_int_equal(message.len, sizeof(number));
        memcpy(&number, message.ptr, sizeof(number));
        assert_int_equal(number, i);
    }
    assert_int_equal(rest.len, 0);
}

static void a_flow_says_all_in_order_whenever_it_is_woken(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    atomic_store(&fx->numbers, 2);
    H2Answer *answer = CALL(peer, "/t.S/Count", HELLO);
    h2_peer_await(peer, answer, 18);
    atomic_store(&fx->numbers, 30000);
    kn_grpc_server_wake(fx->srv);
    h2_peer_await(peer, answer, (size_t)30000 * 9);
    atomic_store(&fx->numbers, -1);
    kn_grpc_server_wake(fx->srv);
    h2_peer_pump(peer);
    check_numbers(answer, 30000);
    assert_string_equal(answer->grpc_status, "11");
    assert_string_equal(answer->grpc_message, "out of numbers");
    assert_true(kn_grpc_server_close(fx->srv, 60000000));
    fx->srv = NULL;
    assert_int_equal(atomic_load(&fx->flows_ended), 1);
    h2_peer_free(peer);
}

static void *wake_often(void *arg)
{
    Fixture *fx = arg;
    for (int i = 0; i < 5000; ++i) {
        atomic_fetch_add(&fx->numbers, 1);
        kn_grpc_server_wake(fx->srv);
    }
    return NULL;
}

static void no_wake_up_is_lost(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peers[4];
    H2Answer *answers[4];
    for (int i = 0; i < 4; ++i) {
        peers[i] = h2_peer_connect(fx->port);
        answers[i] = CALL(peers[i], "/t.S/Count", HELLO);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, wake_often, fx), 0);
    for (int i = 0; i < 4; ++i)
        h2_peer_await(peers[i], answers[i], (size_t)10000 * 9);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i) {
        check_numbers(answers[i], 10000);
        h2_peer_free(peers[i]);
    }
}

static void closing_ends_flows_and_lets_calls_finish(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    H2Answer *flow = CALL(peer, "/t.S/Count", HELLO);
    H2Answer *waiting = CALL(peer, "/t.S/Wait", HELLO);
    while (!flow->status[0])
        h2_peer_await(peer, CALL(peer, "/t.S/Echo", HELLO), SIZE_MAX);
    while (sem_wait(&fx->entered) != 0)
        ;
    kn_grpc_server_shut(fx->srv);
    h2_peer_await_goaway(peer);
    sem_post(&fx->go);
    h2_peer_pump(peer);
    assert_string_equal(flow->grpc_status, "14");
    assert_string_equal(waiting->grpc_status, "0");
    assert_true(kn_grpc_server_close(fx->srv, 60000000));
    fx->srv = NULL;
    assert_int_equal(atomic_load(&fx->flows_ended), 1);
    h2_peer_free(peer);
}

static void a_client_that_leaves_ends_its_flow(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    atomic_store(&fx->numbers, 1);
    h2_peer_await(peer, CALL(peer, "/t.S/Count", HELLO), 9);
    h2_peer_free(peer);
    assert_true(kn_grpc_server_close(fx->srv, 60000000));
    fx->srv = NULL;
    assert_int_equal(atomic_load(&fx->flows_ended), 1);
}

static void a_close_without_grace_cuts_calls_off_and_waits_for_what_runs(void **state)
{
    Fixture *fx = *state;
    open_server(fx, (KnGrpcOptions){0});
    H2Peer *peer = h2_peer_connect(fx->port);
    CALL(peer, "/t.S/Wait", HELLO);
    h2_peer_await(peer, CALL(peer, "/t.S/Echo", HELLO), SIZE_MAX);
    while (sem_wait(&fx->entered) != 0)
        ;
    sem_post(&fx->go);
    (void)kn_grpc_server_close(fx->srv, 0);
    fx->srv = NULL;
    assert_int_equal(atomic_load(&fx->waits_run), 1);
    h2_peer_free(peer);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_answer_has_its_message_and_its_status),
        CASE(failures_have_a_code_and_a_text),
        CASE(a_dialog_answers_each_message),
        CASE(what_is_not_grpc_gets_an_answer_of_http),
        CASE(waiting_calls_do_not_hold_up_quick_ones),
        CASE(calls_beyond_the_limit_are_refused_and_late_ones_not_begun),
        CASE(a_flow_says_all_in_order_whenever_it_is_woken),
        CASE(no_wake_up_is_lost),
        CASE(closing_ends_flows_and_lets_calls_finish),
        CASE(a_client_that_leaves_ends_its_flow),
        CASE(a_close_without_grace_cuts_calls_off_and_waits_for_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
