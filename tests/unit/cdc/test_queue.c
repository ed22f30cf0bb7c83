/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue.c - batches between threads. labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cdc/queue.h"
#include "engine/engine.h"

enum { CHUNKS = 20, ROWS = 30000 };

/* Numbered rows, cut into chunks by a reader thread; each taker takes whole chunks. */
typedef struct Shared {
    KnQueue *queue;
    KnEngine *eng;
    pthread_mutex_t lock;
    size_t next;
    int64_t sums[CHUNKS], rows[CHUNKS];
    KnCode push_rc;
} Shared;

static void push_chunks(Shared *sh)
{
    KnErr err = {0};
    KnSession *ses;
    assert_int_equal(kn_session_open(sh->eng, &ses, &err), KN_OK);
    for (size_t i = 0; i < CHUNKS && sh->push_rc == KN_OK; ++i) {
        KnStream *stream;
        assert_int_equal(kn_session_query(ses, "SELECT range, 'text ' || range FROM range(30000)",
                                          &stream, &err),
                         KN_OK);
        for (;;) {
            KnBatch *batch;
            assert_int_equal(kn_stream_next(stream, &batch, &err), KN_OK);
            if (!batch)
                break;
            sh->push_rc = kn_queue_push(sh->queue, batch, &err);
            if (sh->push_rc != KN_OK)
                break;
        }
        stream = kn_stream_close(stream);
        if (sh->push_rc == KN_OK)
            sh->push_rc = kn_queue_push_end(sh->queue, &err);
    }
    ses = kn_session_close(ses);
}

static void *reader_main(void *arg)
{
    push_chunks(arg);
    return NULL;
}

static void *taker_main(void *arg)
{
    Shared *sh = arg;
    for (;;) {
        pthread_mutex_lock(&sh->lock);
        size_t turn = sh->next < CHUNKS ? sh->next++ : CHUNKS;
        pthread_mutex_unlock(&sh->lock);
        if (turn == CHUNKS)
            return NULL;
        for (;;) {
            KN_BATCH_AUTO batch = NULL;
            if (kn_queue_take(sh->queue, turn, &batch, NULL) != KN_OK || !batch)
                break;
            KnVector vec = kn_batch_vector(batch, 0);
            sh->rows[turn] += (int64_t)kn_batch_rows(batch);
            for (size_t i = 0; i < kn_batch_rows(batch); ++i)
                sh->sums[turn] += ((const int64_t *)vec.data)[i];
        }
    }
}

static void shared_open(Shared *sh, uint64_t max_bytes)
{
    memset(sh, 0, sizeof(*sh));
    const KnEngineOptions opts = {.threads = 1};
    assert_int_equal(kn_engine_open(&opts, &sh->eng, NULL), KN_OK);
    sh->queue = kn_queue_new(max_bytes);
    pthread_mutex_init(&sh->lock, NULL);
}

static void shared_close(Shared *sh)
{
    pthread_mutex_destroy(&sh->lock);
    sh->queue = kn_queue_free(sh->queue);
    sh->eng = kn_engine_close(sh->eng);
}

static void every_chunk_reaches_its_taker_whole(void **state)
{
    (void)state;
    static const uint64_t BOUNDS[] = {1, 100000, 1 << 30};
    for (size_t b = 0; b < 3; ++b) {
        Shared sh;
        pthread_t reader, takers[3];
        shared_open(&sh, BOUNDS[b]);
        assert_int_equal(pthread_create(&reader, NULL, reader_main, &sh), 0);
        for (size_t i = 0; i < 3; ++i)
            assert_int_equal(pthread_create(&takers[i], NULL, taker_main, &sh), 0);
        for (size_t i = 0; i < 3; ++i)
            assert_int_equal(pthread_join(takers[i], NULL), 0);
        assert_int_equal(pthread_join(reader, NULL), 0);
        for (size_t i = 0; i < CHUNKS; ++i) {
            assert_int_equal(sh.rows[i], ROWS);
            assert_int_equal(sh.sums[i], (int64_t)ROWS * (ROWS - 1) / 2);
        }
        shared_close(&sh);
    }
}

static void a_reader_that_waits_for_room_is_let_go_by_a_cancel(void **state)
{
    (void)state;
    Shared sh;
    pthread_t reader;
    KnErr err = {0};
    KnBatch *batch = NULL;
    shared_open(&sh, 1);
    assert_int_equal(pthread_create(&reader, NULL, reader_main, &sh), 0);
    assert_int_equal(kn_queue_take(sh.queue, 0, &batch, &err), KN_OK);
    batch = kn_batch_unref(batch);
    kn_queue_cancel(sh.queue);
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_int_equal(sh.push_rc, KN_E_CANCELLED);
    assert_int_equal(kn_queue_take(sh.queue, 0, &batch, &err), KN_E_CANCELLED);
    shared_close(&sh);
}

static void takers_get_the_readers_failure(void **state)
{
    (void)state;
    KnQueue *queue = kn_queue_new(100);
    KnErr err = {0}, why = {0};
    KnBatch *batch = NULL;
    assert_int_equal(kn_err_set(&why, KN_E_CORRUPT, "file is torn"), KN_E_CORRUPT);
    kn_queue_fail(queue, KN_E_CORRUPT, &why);
    kn_queue_cancel(queue); /* the first failure stays */
    assert_int_equal(kn_queue_take(queue, 7, &batch, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg, "file is torn");
    queue = kn_queue_free(queue);
}

static void the_end_of_a_chunk_can_be_asked_for_again(void **state)
{
    (void)state;
    KnQueue *queue = kn_queue_new(100);
    KnBatch *batch = (KnBatch *)queue;
    assert_int_equal(kn_queue_push_end(queue, NULL), KN_OK);
    assert_int_equal(kn_queue_take(queue, 0, &batch, NULL), KN_OK);
    assert_null(batch);
    batch = (KnBatch *)queue;
    assert_int_equal(kn_queue_take(queue, 0, &batch, NULL), KN_OK);
    assert_null(batch);
    queue = kn_queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_reaches_its_taker_whole),
        cmocka_unit_test(a_reader_that_waits_for_room_is_let_go_by_a_cancel),
        cmocka_unit_test(takers_get_the_readers_failure),
        cmocka_unit_test(the_end_of_a_chunk_can_be_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
