/* Aim: figures of samples and the chance behind a difference are right to many digits, and odd
 * samples have an answer. Method: values from Python: statistics.quantiles(method="inclusive"), and
 * Student's tail by Simpson's rule over its density; the tail where it has a closed form. */
#include "common/rng.h"
#include "core/metrics/sample.h"
#include "tests/unit/unit.h"
#include <math.h>

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) {
        fail_msg("%.17g, not %.17g", got, want);
    }
}

static double first[] = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                         21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
static double second[] = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                          24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.8, 16.9};

static void test_sample__figures(void **state)
{
    (void)state;
    struct metric_sample s;
    double one[] = {3}, two[] = {4, 1};
    sample_of(first, ARRAY_LEN(first), &s);
    assert_int_equal(s.n, 15);
    assert_near(s.mean, 20.82);
    assert_near(s.variance, 7.867428571428573);
    assert_near(s.p25, 19);
    assert_near(s.median, 21);
    assert_near(s.p75, 22.25);
    assert_true(s.min == 16.9 && s.max == 27.5);
    sample_of(one, 1, &s);
    assert_true(s.n == 1 && s.mean == 3 && s.variance == 0 && s.p25 == 3 && s.median == 3);
    sample_of(two, 2, &s);
    assert_near(s.median, 2.5);
    assert_near(s.variance, 4.5);
    sample_of(NULL, 0, &s);
    assert_true(s.n == 0 && s.mean == 0);
}

static void test_sample__students_tail(void **state)
{
    (void)state;
    static const struct {
        double t, df, p;
    } cases[] = {
        {0, 5, 1},
        {1, 1, 0.5},
        {2, 1, 0.2951672353010797},
        {2.0, 10, 0.0733880347707303},
        {-2.228, 10, 0.050011771817122574},
        {1.5, 3.7, 0.21359816920200558},
        {0.01, 500, 0.9920252759930348},
        {5, 4, 0.007490433881252034},
        {3.1, 87.3, 0.00260502373077387},
        {12, 2.5, 0.0028362150300895728},
        {1.96, 1e6, 0.04999606810460755},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_near(sample_student_tail(cases[i].t, cases[i].df), cases[i].p);
    }
    for (int k = 1; k < 200; k++) { /* one degree: 1 - 2 atan(t) / pi; two: 1 - t / sqrt(2 + t^2) */
        double t = k * 0.37;
        assert_near(sample_student_tail(t, 1), 1 - 2 * atan(t) / M_PI);
        assert_near(sample_student_tail(t, 2), 1 - t / sqrt(2 + t * t));
    }
    assert_true(sample_student_tail(1e6, 30) >= 0 && sample_student_tail(1e6, 30) < 1e-100);
}

static void test_sample__welch(void **state)
{
    (void)state;
    struct metric_sample a, b;
    struct sample_test t;
    double same[] = {5, 5, 5}, other[] = {6, 6, 6};
    sample_of(first, ARRAY_LEN(first), &a);
    sample_of(second, ARRAY_LEN(second), &b);
    assert_true(sample_welch(&a, &b, &t));
    assert_near(t.t, 2.3110929062703844);
    assert_near(t.df, 28.986538119043118);
    assert_near(t.p, 0.028137925860614588);
    assert_true(sample_welch(&b, &a, &t));
    assert_near(t.t, -2.3110929062703844);
    sample_of(same, 3, &a);
    assert_true(sample_welch(&a, &a, &t) && t.p == 1 && t.df == 0);
    sample_of(other, 3, &b);
    assert_true(sample_welch(&a, &b, &t) && t.p == 0);
    sample_of(other, 1, &b);
    assert_false(sample_welch(&a, &b, &t));
    assert_true(t.p == 1);
}

/* Of equal sources 5 % differ "significantly", by the meaning of the word; of unequal ones most. */
static void test_sample__five_in_a_hundred_by_chance(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    int by_chance = 0, found = 0, rounds = 4000;
    for (int i = 0; i < rounds; i++) {
        double x[12], y[30], z[30];
        struct metric_sample a, b, c;
        struct sample_test t;
        for (int k = 0; k < 30; k++) {
            double wide = 3 * rng_normal(&r);
            y[k] = wide;
            z[k] = 10 + wide;
            x[k % 12] = rng_normal(&r);
        }
        sample_of(x, 12, &a);
        sample_of(y, 30, &b);
        sample_of(z, 30, &c);
        by_chance += sample_welch(&a, &b, &t) && t.p < SAMPLE_SIGNIFICANT_P;
        found += sample_welch(&a, &c, &t) && t.p < SAMPLE_SIGNIFICANT_P;
    }
    if (by_chance < rounds * 4 / 100 || by_chance > rounds * 6 / 100 || found < rounds) {
        fail_msg("%d and %d of %d", by_chance, found, rounds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample__figures),
        cmocka_unit_test(test_sample__students_tail),
        cmocka_unit_test(test_sample__welch),
        cmocka_unit_test(test_sample__five_in_a_hundred_by_chance),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
