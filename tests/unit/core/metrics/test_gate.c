/* Aim: a gate passes only when every run of the stage has a value within its bounds, and says which
 * run keeps it shut. Method: rows of runs against bounds, at their limits. */
#include "core/metrics/gate.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const struct spec_gate below = {.metric = "loss", .has_below = true, .below = 3.0};
static const struct spec_gate above = {.metric = "acc", .has_above = true, .above = 0.5};
static const struct spec_gate between = {
    .metric = "x", .has_below = true, .has_above = true, .below = 2, .above = 1};

static void test_gate__bounds_are_not_within(void **state)
{
    (void)state;
    static const struct {
        const struct spec_gate *gate;
        double value;
        const char *why; /* "": it passes */
    } rows[] = {
        {&below, 2.999999, ""},
        {&below, 3.0, "loss is 3 at step 500 of run 4, not below 3"},
        {&below, 3.21, "loss is 3.21 at step 500 of run 4, not below 3"},
        {&below, -1e99, ""},
        {&below, NAN, "loss is nan at step 500 of run 4, not below 3"},
        {&above, 0.5, "acc is 0.5 at step 500 of run 4, not above 0.5"},
        {&above, 0.500001, ""},
        {&above, NAN, "acc is nan at step 500 of run 4, not above 0.5"},
        {&between, 1.5, ""},
        {&between, 1, "x is 1 at step 500 of run 4, not above 1"},
        {&between, 2, "x is 2 at step 500 of run 4, not below 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char why[200] = "";
        const struct gate_run run = {.seq = 4, .known = true, .value = rows[i].value, .step = 500};
        bool passes = gate_passes(rows[i].gate, &run, 1, 0, why, sizeof why);
        assert_string_equal(passes ? "" : why, rows[i].why);
    }
}

static void test_gate__every_run_must_pass(void **state)
{
    (void)state;
    char why[200];
    struct gate_run runs[] = {{.seq = 0, .known = true, .value = 1, .step = 9},
                              {.seq = 1, .known = true, .value = 2, .step = -1}};
    assert_true(gate_passes(&below, runs, 2, 0, why, sizeof why));
    runs[1].value = 7;
    assert_false(gate_passes(&below, runs, 2, 0, why, sizeof why));
    assert_string_equal(why, "loss is 7 of run 1, not below 3");
    runs[1].known = false;
    assert_false(gate_passes(&below, runs, 2, 0, why, sizeof why));
    assert_string_equal(why, "run 1 printed no loss");
    runs[1].partly_read = true;
    assert_false(gate_passes(&below, runs, 2, 0, why, sizeof why));
    assert_string_equal(why, "the log of run 1 was not read to its end: loss is not known");
    assert_true(gate_passes(&below, runs, 1, 0, why, sizeof why));
    assert_false(gate_passes(&below, runs, 1, 1, why, sizeof why));
    assert_string_equal(why, "1 of its runs was skipped: loss is not known");
    assert_false(gate_passes(&below, NULL, 0, 3, why, sizeof why));
    assert_string_equal(why, "3 of its runs were skipped: loss is not known");
    assert_false(gate_passes(&below, NULL, 0, 0, why, sizeof why));
    assert_string_equal(why, "none of its runs ended well");
}

static void test_gate__only_so_many_runs_are_looked_at(void **state)
{
    (void)state;
    char why[200];
    struct gate_run *runs = xcalloc(GATE_RUNS_MAX, sizeof *runs);
    for (int i = 0; i < GATE_RUNS_MAX; i++) {
        runs[i] = (struct gate_run){.seq = i, .known = true, .value = 1};
    }
    assert_true(gate_passes(&below, runs, GATE_RUNS_MAX, 0, why, sizeof why));
    assert_false(gate_passes(&below, runs, GATE_RUNS_MAX + 1, 0, why, sizeof why));
    assert_string_equal(why, "more runs than a gate looks at");
    runs[GATE_RUNS_MAX - 1].value = 4;
    assert_false(gate_passes(&below, runs, GATE_RUNS_MAX, 0, why, sizeof why));
    assert_string_equal(why, "loss is 4 at step 0 of run 999, not below 3");
    free(runs);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate__bounds_are_not_within),
        cmocka_unit_test(test_gate__every_run_must_pass),
        cmocka_unit_test(test_gate__only_so_many_runs_are_looked_at),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
