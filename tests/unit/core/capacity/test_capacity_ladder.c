/* Aim: the ladder goes down on capacity errors, remembers for as long as the wait of cause capacity
 * says (2, 4, 8 .. 30 minutes without a row), comes back up, and lets one attempt at a time find
 * out. Method: tables of events with the rung expected after each, at both sides of every
 * boundary. */
#include "core/capacity/capacity_ladder.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define T0         INT64_C(1700000000000000)
#define MIN_       (60 * USEC_PER_SEC)
#define SHUT       (-2)
#define LONGEST_US (30 * MIN_) /* of cause.def's row */

enum what { CHOOSE, REFUSE, WORK, START };
struct step {
    int64_t at_s; /* after T0 */
    enum what what;
    int type, subnet; /* told, or expected: type SHUT: none is open */
    bool probe;
    int64_t open_s; /* expected with SHUT; -1: never */
};

static void run(const char *name, int types, int subnets, const struct step *steps, size_t n)
{
    struct spec_stage stage = {.instance_type_n = types, .subnets_n = subnets};
    struct capacity_ladder p = {0};
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        usec_t now = T0 + s->at_s * USEC_PER_SEC;
        struct capacity_ladder_choice c = {.instance_type_i = 77, .subnet_i = 77};
        bool ok;
        switch (s->what) {
        case CHOOSE:
            ok = capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c);
            if (ok != (s->type != SHUT) ||
                (ok && (c.instance_type_i != s->type || c.subnet_i != s->subnet ||
                        c.probe != s->probe)) ||
                (!ok && (c.open_us != T0 + s->open_s * USEC_PER_SEC || c.instance_type_i != 77))) {
                fail_msg("%s, step %zu: ok %d type %d subnet %d probe %d open %.1f s", name, i, ok,
                         c.instance_type_i, c.subnet_i, c.probe, (double)(c.open_us - T0) / 1e6);
            }
            break;
        case REFUSE:
            capacity_ladder_refused(&p, &stage, s->type, s->subnet, now);
            break;
        case WORK:
            capacity_ladder_worked(&p, &stage, s->type, s->subnet);
            break;
        case START:
            capacity_ladder_started(&p, &stage, s->type, s->subnet, now);
            break;
        }
    }
}
#define RUN(types, subnets, ...)                                                                   \
    do {                                                                                           \
        static const struct step steps_[] = {__VA_ARGS__};                                         \
        run(__func__, types, subnets, steps_, ARRAY_LEN(steps_));                                  \
    } while (0)

static void test_place__a_capacity_error_moves_down_and_time_brings_it_back(void **state)
{
    (void)state;
    RUN(3, 0, {0, CHOOSE, 0, -1, false, 0}, {0, REFUSE, 0, -1, false, 0},
        {0, CHOOSE, 1, -1, false, 0}, {5, REFUSE, 1, -1, false, 0}, {5, CHOOSE, 2, -1, false, 0},
        {119, CHOOSE, 2, -1, false, 0}, {120, CHOOSE, 0, -1, true, 0});
}

static void test_place__shut_for_2_4_8_16_30_30_minutes(void **state)
{
    (void)state;
    static const int64_t want_min[] = {2, 4, 8, 16, 30, 30, 30};
    struct spec_stage stage = {.instance_type_n = 1};
    struct capacity_ladder p = {0};
    usec_t now = T0;
    for (size_t i = 0; i < ARRAY_LEN(want_min); i++) {
        struct capacity_ladder_choice c;
        capacity_ladder_refused(&p, &stage, 0, -1, now);
        assert_false(capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c));
        assert_int_equal(c.open_us - now, want_min[i] * MIN_);
        assert_false(capacity_ladder_choose(&p, &stage, 0, c.open_us - 1, NULL, NULL, &c));
        now = c.open_us;
        assert_true(capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c));
        assert_true(c.probe);
    }
    for (int i = 0; i < 1000; i++) { /* for ever */
        capacity_ladder_refused(&p, &stage, 0, -1, now);
        now += LONGEST_US;
    }
    struct capacity_ladder_choice c;
    assert_true(capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c));
    capacity_ladder_worked(&p, &stage, 0, -1);
    capacity_ladder_refused(&p, &stage, 0, -1, now);
    assert_false(capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c));
    assert_int_equal(c.open_us - now, 2 * MIN_); /* a success forgot it all */
}

static void test_place__subnets_of_a_type_come_before_the_next_type(void **state)
{
    (void)state;
    RUN(2, 3, {0, CHOOSE, 0, 0, false, 0}, {0, REFUSE, 0, 0, false, 0}, {0, CHOOSE, 0, 1, false, 0},
        {0, REFUSE, 0, 1, false, 0}, {0, CHOOSE, 0, 2, false, 0}, {0, REFUSE, 0, 2, false, 0},
        {0, CHOOSE, 1, 0, false, 0}, {9, WORK, 0, 1, false, 0}, {9, CHOOSE, 0, 1, false, 0});
    /* one subnet is no choice: it is not named */
    RUN(2, 1, {0, CHOOSE, 0, -1, false, 0}, {0, REFUSE, 0, -1, false, 0},
        {0, CHOOSE, 1, -1, false, 0});
    /* a job that named them all speaks for all of that type */
    RUN(2, 16, {0, REFUSE, 0, -1, false, 0}, {0, CHOOSE, 1, 0, false, 0},
        {0, REFUSE, 1, 0, false, 0}, {0, CHOOSE, 1, 1, false, 0}, {0, WORK, 0, -1, false, 0},
        {0, CHOOSE, 0, 0, false, 0});
}

static void test_place__all_shut_says_when_the_first_opens(void **state)
{
    (void)state;
    RUN(2, 0, {0, REFUSE, 0, -1, false, 0}, {30, REFUSE, 1, -1, false, 0},
        {30, CHOOSE, SHUT, 0, false, 120}, {119, CHOOSE, SHUT, 0, false, 120},
        {120, CHOOSE, 0, -1, true, 0}, {120, REFUSE, 0, -1, false, 0},
        {120, CHOOSE, SHUT, 0, false, 150}, {150, CHOOSE, 1, -1, true, 0},
        {150, REFUSE, 1, -1, false, 0}, {150, CHOOSE, SHUT, 0, false, 360});
}

static void test_place__one_probe_at_a_time(void **state)
{
    (void)state;
    /* others wait until it has told, at most 15 minutes */
    RUN(1, 0, {0, REFUSE, 0, -1, false, 0}, {120, CHOOSE, 0, -1, true, 0},
        {120, START, 0, -1, false, 0}, {120, CHOOSE, SHUT, 0, false, 1020},
        {200, REFUSE, 0, -1, false, 0}, {200, CHOOSE, SHUT, 0, false, 440},
        {440, START, 0, -1, false, 0}, {500, WORK, 0, -1, false, 0}, {500, CHOOSE, 0, -1, false, 0},
        {500, START, 0, -1, false, 0}, {500, CHOOSE, 0, -1, false, 0});
    RUN(1, 0, {0, REFUSE, 0, -1, false, 0}, {120, START, 0, -1, false, 0},
        {1019, CHOOSE, SHUT, 0, false, 1020}, {1020, CHOOSE, 0, -1, true, 0});
    /* others go further down meanwhile */
    RUN(2, 0, {0, REFUSE, 0, -1, false, 0}, {120, START, 0, -1, false, 0},
        {121, CHOOSE, 1, -1, false, 0});
    /* a start that was sent before the rung was shut is no probe */
    RUN(1, 0, {0, REFUSE, 0, -1, false, 0}, {10, START, 0, -1, false, 0},
        {120, CHOOSE, 0, -1, true, 0});
}

static void test_place__many_refusals_of_one_wave_count_once(void **state)
{
    (void)state;
    struct spec_stage stage = {.instance_type_n = 1};
    struct capacity_ladder p = {0};
    for (int i = 0; i < 18; i++) {
        capacity_ladder_refused(&p, &stage, 0, -1, T0 + i * USEC_PER_SEC);
    }
    struct capacity_ladder_choice c;
    assert_false(capacity_ladder_choose(&p, &stage, 0, T0 + 20 * USEC_PER_SEC, NULL, NULL, &c));
    assert_int_equal(c.open_us, T0 + 2 * MIN_);
}

static void test_place__the_retry_row_of_capacity_says_how_long(void **state)
{
    (void)state;
    static const int64_t want_s[] = {1, 2, 3, 3};
    struct spec_stage stage = {.instance_type_n = 1};
    stage.retry[CAUSE_CAPACITY] =
        (struct spec_retry){.set = true, .wait_from_s = 1, .wait_to_s = 3};
    struct capacity_ladder p = {0};
    usec_t now = T0;
    for (size_t i = 0; i < ARRAY_LEN(want_s); i++) {
        struct capacity_ladder_choice c;
        capacity_ladder_refused(&p, &stage, 0, -1, now);
        assert_false(capacity_ladder_choose(&p, &stage, 0, now, NULL, NULL, &c));
        assert_int_equal(c.open_us - now, want_s[i] * USEC_PER_SEC);
        now = c.open_us;
    }
}

static bool fits_odd(void *ctx, int instance_type_i)
{
    (*(int *)ctx)++;
    return instance_type_i % 2 == 1;
}

static void test_place__only_what_fits_and_only_downwards(void **state)
{
    (void)state;
    struct spec_stage stage = {.instance_type_n = 4, .subnets_n = 2};
    struct capacity_ladder p = {0};
    struct capacity_ladder_choice c;
    int asked = 0;
    assert_true(capacity_ladder_choose(&p, &stage, 0, T0, fits_odd, &asked, &c));
    assert_int_equal(c.instance_type_i, 1);
    assert_int_equal(asked, 2); /* once a type */
    assert_true(capacity_ladder_choose(&p, &stage, 2, T0, fits_odd, &asked, &c));
    assert_int_equal(c.instance_type_i, 3);
    assert_true(
        capacity_ladder_choose(NULL, &stage, 2, T0, NULL, NULL, &c)); /* no memory: all open */
    assert_int_equal(c.instance_type_i, 2);
    assert_false(c.probe);
    assert_false(capacity_ladder_choose(&p, &stage, 4, T0, NULL, NULL, &c)); /* below the last */
    assert_int_equal(c.open_us, USEC_NEVER);
    capacity_ladder_refused(&p, &stage, 3, -1, T0);
    capacity_ladder_refused(&p, &stage, 1, -1, T0 + 5);
    capacity_ladder_refused(&p, &stage, 0, -1, T0 - MIN_); /* opens sooner but does not fit */
    assert_false(capacity_ladder_choose(&p, &stage, 0, T0 + 6, fits_odd, &asked, &c));
    assert_int_equal(c.open_us, T0 + 2 * MIN_);
}

static void test_place__a_clock_set_back_shuts_nothing_for_days(void **state)
{
    (void)state;
    struct spec_stage stage = {.instance_type_n = 1};
    struct capacity_ladder p = {0};
    struct capacity_ladder_choice c;
    for (int i = 0; i < 9; i++) {
        capacity_ladder_refused(&p, &stage, 0, -1, T0 + i * LONGEST_US);
    }
    usec_t shut_at = T0 + 8 * LONGEST_US;
    assert_false(capacity_ladder_choose(&p, &stage, 0, shut_at, NULL, NULL, &c));
    assert_true(
        capacity_ladder_choose(&p, &stage, 0, shut_at - 86400 * USEC_PER_SEC, NULL, NULL, &c));
    assert_true(c.probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place__a_capacity_error_moves_down_and_time_brings_it_back),
        cmocka_unit_test(test_place__shut_for_2_4_8_16_30_30_minutes),
        cmocka_unit_test(test_place__subnets_of_a_type_come_before_the_next_type),
        cmocka_unit_test(test_place__all_shut_says_when_the_first_opens),
        cmocka_unit_test(test_place__one_probe_at_a_time),
        cmocka_unit_test(test_place__many_refusals_of_one_wave_count_once),
        cmocka_unit_test(test_place__the_retry_row_of_capacity_says_how_long),
        cmocka_unit_test(test_place__only_what_fits_and_only_downwards),
        cmocka_unit_test(test_place__a_clock_set_back_shuts_nothing_for_days),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
