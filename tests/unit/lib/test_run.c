/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c - pipelines run through the public header: rows in and out as Arrow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knut/run.h"

#include "lib_support.h"
#include "support/tempdir.h"

typedef struct Fixture {
    char dir[256];
    KnErr err;
    KnutOpen open;
    KnutPipeline *pipeline;
    int64_t sum, pieces;
    int refuse_at; /* the piece that is not wanted; 0 = all are */
    int events;
    KnutRunControl *control;
} Fixture;

static int setup(void **state)
{
    Fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    make_warehouse(fix->dir);
    fix->open =
        (KnutOpen){.size = sizeof(fix->open), .warehouse = fix->dir, .table = "ns.t", .threads = 1};
    fix->pipeline = knut_pipeline_new("p");
    fix->control = knut_run_control_new();
    *state = fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    knut_pipeline_free(fix->pipeline);
    knut_run_control_free(fix->control);
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

/* The input `rows` through a query into a dataset that nobody writes. */
static void build(const Fixture *fix, const char *query)
{
    knut_pipeline_dataset(fix->pipeline, &(KnutDataset){.name = "out"});
    knut_pipeline_flow(
        fix->pipeline,
        &(KnutFlow){.name = "f", .target = "out", .reads = KNUT_NAMES("rows"), .query = query});
}

static int take(void *arg, const char *dataset, const struct ArrowSchema *schema,
                struct ArrowArray *rows)
{
    Fixture *fix = arg;
    assert_string_equal(dataset, "out");
    assert_int_equal(schema->n_children, 1);
    assert_string_equal(schema->children[0]->name, "v");
    assert_string_equal(schema->children[0]->format, "l");
    const int64_t *values = rows->children[0]->buffers[1];
    for (int64_t i = 0; i < rows->length; i++)
        fix->sum += values[rows->offset + rows->children[0]->offset + i];
    fix->pieces++;
    rows->release(rows);
    return fix->pieces == fix->refuse_at;
}

static void hear(void *arg, const KnutRunEvent *event)
{
    Fixture *fix = arg;
    assert_non_null(event->message);
    fix->events++;
}

static KnutRun run_of(Fixture *fix)
{
    return (KnutRun){.size = sizeof(KnutRun),
                     .open = &fix->open,
                     .control = fix->control,
                     .on_event = hear,
                     .on_rows = take,
                     .arg = fix};
}

static struct ArrowArrayStream scan(Fixture *fix, KnutTable **ret_table)
{
    struct ArrowArrayStream stream = {0};
    assert_int_equal(knut_table_open(&fix->open, ret_table, &fix->err), KN_OK);
    assert_int_equal(knut_table_scan(*ret_table, NULL, &stream, &fix->err), KN_OK);
    return stream;
}

static KnCode run_with_rows(Fixture *fix, const char *name)
{
    KnutTable *table = NULL;
    struct ArrowArrayStream stream = scan(fix, &table);
    const KnutRunRows input = {name, &stream};
    KnutRun run = run_of(fix);
    run.inputs = &input;
    run.n_inputs = 1;
    KnCode rc = knut_pipeline_run(fix->pipeline, &run, &fix->err);
    assert_null(stream.release); /* in any case */
    knut_table_close(table);
    return rc;
}

static void rows_of_a_program_go_in_and_rows_come_out(void **state)
{
    Fixture *fix = *state;
    build(fix, "SELECT id AS v FROM rows UNION ALL SELECT id FROM rows"); /* read twice */
    if (run_with_rows(fix, "rows") != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_int_equal(fix->sum, 2 * (int64_t)ROWS_SUM);
    assert_true(fix->pieces > 1);
    assert_true(fix->events > 2);
}

static void tables_are_read_through_the_catalog(void **state)
{
    Fixture *fix = *state;
    build(fix, "SELECT sum(id)::BIGINT AS v FROM rows");
    knut_pipeline_input(fix->pipeline,
                        &(KnutInput){.name = "rows", .path = "ns.t", .format = "iceberg"});
    KnutRun run = run_of(fix);
    if (knut_pipeline_run(fix->pipeline, &run, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_int_equal(fix->sum, ROWS_SUM);
    run.open = NULL;
    assert_int_equal(knut_pipeline_run(fix->pipeline, &run, &fix->err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(fix->err.msg, "in which catalog?"));
}

static void a_run_ends_when_it_is_told_to(void **state)
{
    Fixture *fix = *state;
    build(fix, "SELECT id AS v FROM rows");
    fix->refuse_at = 1;
    assert_int_equal(run_with_rows(fix, "rows"), KN_E_CANCELLED);
    assert_int_equal(fix->pieces, 1);
    knut_run_cancel(fix->control);
    assert_int_equal(run_with_rows(fix, "rows"), KN_E_CANCELLED);
}

static void what_is_missing_is_refused(void **state)
{
    Fixture *fix = *state;
    build(fix, "SELECT id AS v FROM rows");
    assert_int_equal(run_with_rows(fix, "other"), KN_E_UNSUPPORTED);
    assert_non_null(strstr(fix->err.msg, "nothing supplies that"));
}

/* ---- a stream that fails ---- */

static void nothing(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int one_column(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    (void)stream;
    static struct ArrowSchema id = {.format = "l", .name = "id", .flags = 2, .release = nothing};
    static struct ArrowSchema *children[] = {&id};
    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = children, .release = nothing};
    return 0;
}

static int fails_at_once(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    (void)stream;
    (void)out;
    return 5;
}

static const char *reason(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the tape is torn";
}

static void let_go(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static void a_stream_that_fails_says_why(void **state)
{
    Fixture *fix = *state;
    struct ArrowArrayStream stream = {.get_schema = one_column,
                                      .get_next = fails_at_once,
                                      .get_last_error = reason,
                                      .release = let_go};
    const KnutRunRows input = {"rows", &stream};
    KnutRun run = run_of(fix);
    run.inputs = &input;
    run.n_inputs = 1;
    build(fix, "SELECT id AS v FROM rows");
    assert_int_not_equal(knut_pipeline_run(fix->pipeline, &run, &fix->err), KN_OK);
    if (!strstr(fix->err.msg, "the tape is torn") || !strstr(fix->err.msg, "rows"))
        fail_msg("%s", fix->err.msg);
    assert_null(stream.release);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_of_a_program_go_in_and_rows_come_out),
        CASE(tables_are_read_through_the_catalog),
        CASE(a_run_ends_when_it_is_told_to),
        CASE(what_is_missing_is_refused),
        CASE(a_stream_that_fails_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
