/* Aim: lines of a log become values as the metric definitions say, and a hostile pattern or line
 * costs a bounded amount. Method: lines as trainers print them; a pattern that runs away. */
#include "core/metrics/metric_line.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const struct spec_metric trainer[] = {
    {"loss", "loss=([0-9.e-]+)"}, {"step", "step=([0-9]+)"}, {"speed", "images/s: *(\\S+)"}};

static int read_line(struct metric_lines *m, const char *line, struct metric_value *ret)
{
    return metric_lines_read(m, 7, str_of(line), ret);
}

static void test_metric_line__a_line_gives_its_values_with_their_step(void **state)
{
    (void)state;
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(trainer, 3);
    assert_int_equal(metric_lines_step(m), -1);
    assert_int_equal(read_line(m, "loss=9 before any step", v), 1);
    assert_true(v[0].step == -1 && v[0].value == 9);
    assert_int_equal(read_line(m, "step=12 loss=0.5e-1 images/s:  33.5 x", v), 2);
    assert_true(v[0].metric_i == 0 && v[0].step == 12 && v[0].value == 0.05 && v[0].at_us == 7);
    assert_true(v[1].metric_i == 2 && v[1].step == 12 && v[1].value == 33.5);
    assert_int_equal(read_line(m, "loss=3", v), 1); /* of the step before */
    assert_int_equal(v[0].step, 12);
    assert_int_equal(read_line(m, "step=13", v), 0);
    assert_int_equal(metric_lines_step(m), 13);
    assert_int_equal(read_line(m, "nothing of all this", v), 0);
    metric_lines_free(m);
}

static void test_metric_line__a_step_is_whole_and_not_below_0(void **state)
{
    (void)state;
    static const struct spec_metric of[] = {{"loss", "loss=(\\S+)"}, {"step", "step=(\\S+)"}};
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(of, 2);
    metric_lines_set_step(m, 40); /* as read by the leader before */
    assert_int_equal(read_line(m, "loss=1 step=-1", v), 1);
    assert_int_equal(v[0].step, 40);
    assert_int_equal(read_line(m, "loss=1 step=1e16", v), 1);
    assert_int_equal(v[0].step, 40);
    assert_int_equal(read_line(m, "loss=1 step=0", v), 1);
    assert_int_equal(v[0].step, 0);
    metric_lines_free(m);
    m = metric_lines_new(of, 1); /* none is the step */
    assert_int_equal(read_line(m, "loss=7 step=3", v), 1);
    assert_true(v[0].value == 7 && v[0].step == -1);
    metric_lines_free(m);
}

static void test_metric_line__what_is_no_number_is_no_value(void **state)
{
    (void)state;
    double d;
    static const char *const bad[] = {"",     " ",     "1.2.3", "nan", "inf", "-inf",
                                      "1e3x", "1e400", "1e101", "--1", "0x",  "."};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (metric_number(str_of(bad[i]), &d)) {
            fail_msg("'%s' is %g", bad[i], d);
        }
    }
    assert_true(metric_number(STR(" -1.5e3 "), &d) && d == -1500);
    assert_true(metric_number(STR("1e100"), &d));
    char wide[80];
    memset(wide, '1', sizeof wide);
    assert_false(metric_number((struct str){wide, 64}, &d));
    assert_true(metric_number((struct str){wide, 63}, &d));
}

static void test_metric_line__what_is_printed_and_not_finite_is_told(void **state)
{
    (void)state;
    static const struct spec_metric of[] = {{"loss", "loss=(\\S+)"}, {"step", "step=(\\S+)"}};
    static const char *const lines[] = {"loss=nan", "loss=NaN", "loss=-inf", "loss=Infinity",
                                        "loss=1e101"};
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(of, 2);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(read_line(m, lines[i], v), 1);
        assert_true(isnan(v[0].value));
    }
    assert_int_equal(read_line(m, "loss=none step=nan", v), 0); /* a word is no number */
    assert_int_equal(metric_lines_step(m), -1);
    metric_lines_free(m);
}

static void test_metric_line__a_pattern_without_a_group_finds_nothing(void **state)
{
    (void)state;
    static const struct spec_metric none[] = {{"a", "loss=[0-9]+"}, {"b", "x(?:1)|(2)"}};
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(none, 2);
    assert_int_equal(read_line(m, "loss=3 x1", v), 0);
    metric_lines_free(m);
}

static void test_metric_line__long_lines_are_cut_and_odd_bytes_do_no_harm(void **state)
{
    (void)state;
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(trainer, 3);
    char *line = xmalloc(METRIC_LINE_CHARS_MAX + 32);
    memset(line, ' ', METRIC_LINE_CHARS_MAX + 32);
    memcpy(line + METRIC_LINE_CHARS_MAX - 6, "loss=777", 8);
    assert_int_equal(metric_lines_read(m, 0, (struct str){line, METRIC_LINE_CHARS_MAX + 32}, v), 1);
    assert_true(v[0].value == 7);
    memcpy(line, "\xff\xfe loss=5 \xc3", 12);
    assert_int_equal(metric_lines_read(m, 0, (struct str){line, 12}, v), 1);
    assert_true(v[0].value == 5);
    free(line);
    metric_lines_free(m);
}

static void test_metric_line__a_pattern_that_runs_away_is_set_aside(void **state)
{
    (void)state;
    static const struct spec_metric bad[] = {{"loss", "loss=([0-9]+)"}, {"evil", "((?:1+)+)b"}};
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(bad, 2);
    const char *line = "111111111111111111111111111111111111111111111111111111c loss=4 b";
    for (int i = 0; i < METRIC_RUNAWAYS_MAX; i++) {
        assert_int_equal(read_line(m, "nothing", v), 0);
    }
    assert_int_equal(read_line(m, "11b", v), 1); /* not finding anything is no fault of it */
    for (int i = 0; i < METRIC_RUNAWAYS_MAX; i++) {
        assert_null(metric_lines_set_aside(m));
        assert_int_equal(read_line(m, line, v), 1); /* the other one is found all the same */
    }
    assert_string_equal(metric_lines_set_aside(m), "evil");
    assert_int_equal(read_line(m, "11b", v), 0);
    metric_lines_free(m);
}

static void test_metric_line__a_pattern_that_does_not_compile_is_never_found(void **state)
{
    (void)state;
    static const struct spec_metric bad[] = {{"x", "("}};
    struct metric_value v[SPEC_METRICS_MAX];
    struct metric_lines *m = metric_lines_new(bad, 1);
    assert_int_equal(read_line(m, "(", v), 0);
    assert_int_equal(metric_lines_n(m), 1);
    assert_string_equal(metric_lines_name(m, 0), "x");
    metric_lines_free(m);
    metric_lines_free(NULL);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metric_line__a_line_gives_its_values_with_their_step),
        cmocka_unit_test(test_metric_line__a_step_is_whole_and_not_below_0),
        cmocka_unit_test(test_metric_line__what_is_no_number_is_no_value),
        cmocka_unit_test(test_metric_line__what_is_printed_and_not_finite_is_told),
        cmocka_unit_test(test_metric_line__a_pattern_without_a_group_finds_nothing),
        cmocka_unit_test(test_metric_line__long_lines_are_cut_and_odd_bytes_do_no_harm),
        cmocka_unit_test(test_metric_line__a_pattern_that_runs_away_is_set_aside),
        cmocka_unit_test(test_metric_line__a_pattern_that_does_not_compile_is_never_found),
    };
    return cmocka_run_group_tests_name("metric_line", tests, NULL, NULL);
}
