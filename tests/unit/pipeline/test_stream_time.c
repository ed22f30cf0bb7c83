/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_time.c - watermarks over several inputs, by an injected clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/native/stream/time.h"

static KnWatermarkInput inputs[2];
static KnStreamWatermark mark;

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        inputs[i] = (KnWatermarkInput){
            .name = i ? "b" : "a", .lateness_ms = 50, .idle_ms = 1000, .max_time = INT64_MIN};
    mark = (KnStreamWatermark){.value = INT64_MIN, .inputs = inputs, .n = 2};
    return 0;
}

static int64_t at(int64_t now_ms)
{
    kn_watermark_advance(&mark, now_ms);
    return mark.value;
}

static void it_is_the_least_of_the_inputs_less_their_lateness(void **state)
{
    (void)state;
    kn_watermark_see(&inputs[0], 1000, 1);
    assert_int_equal(at(1), INT64_MIN); /* of b nothing is known */
    kn_watermark_see(&inputs[1], 300, 2);
    assert_int_equal(at(2), 250);
    kn_watermark_see(&inputs[1], 5000, 3);
    assert_int_equal(at(3), 950);
}

static void it_never_goes_back(void **state)
{
    (void)state;
    kn_watermark_see(&inputs[0], 1000, 1);
    kn_watermark_see(&inputs[1], 1000, 1);
    assert_int_equal(at(1), 950);
    kn_watermark_see(&inputs[0], -7, 2);
    inputs[1].lateness_ms = 500;
    assert_int_equal(at(2), 950);
}

static void an_input_that_is_idle_holds_up_no_other_until_it_speaks(void **state)
{
    (void)state;
    kn_watermark_see(&inputs[0], 1000, 0);
    kn_watermark_see(&inputs[1], 300, 0);
    kn_watermark_see(&inputs[0], 2000, 999);
    assert_int_equal(at(999), 250);
    assert_int_equal(at(1000), 1950); /* b was silent for 1,000 ms of the clock */
    kn_watermark_see(&inputs[1], 400, 1001);
    kn_watermark_see(&inputs[0], 9000, 1001);
    assert_int_equal(at(1001), 1950); /* b counts again, and is behind */
}

static void without_a_time_out_nobody_is_idle(void **state)
{
    (void)state;
    inputs[1].idle_ms = 0;
    kn_watermark_see(&inputs[0], 1000, 0);
    assert_int_equal(at(INT64_MAX), INT64_MIN);
}

static void all_idle_leaves_it_where_it_is(void **state)
{
    (void)state;
    kn_watermark_see(&inputs[0], 1000, 0);
    kn_watermark_see(&inputs[1], 1000, 0);
    assert_int_equal(at(0), 950);
    assert_int_equal(at(100000), 950);
}

static void it_goes_through_a_checkpoint(void **state)
{
    (void)state;
    kn_watermark_see(&inputs[0], 1000, 0);
    KN_JSON_AUTO doc = kn_watermark_json(&mark);
    (void)set_up(NULL);
    kn_watermark_load(&mark, doc, 77);
    assert_int_equal(inputs[0].max_time, 1000);
    assert_int_equal(inputs[1].max_time, INT64_MIN);
    assert_int_equal(inputs[1].seen_ms, 77);
}

#define test(f) cmocka_unit_test_setup(f, set_up)
int main(void)
{
    const struct CMUnitTest tests[] = {
        test(it_is_the_least_of_the_inputs_less_their_lateness),
        test(it_never_goes_back),
        test(an_input_that_is_idle_holds_up_no_other_until_it_speaks),
        test(without_a_time_out_nobody_is_idle),
        test(all_idle_leaves_it_where_it_is),
        test(it_goes_through_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
