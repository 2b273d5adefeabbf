/* Aim: time goes to the phase that it was spent in, a bill is shared out by it to the last
 * micro-USD, and advice is given for what is worth cutting. Method: tables worked out by hand;
 * random bills, whose shares must add up. */
#include "common/rng.h"
#include "core/money/cost_advice.h"
#include "tests/unit/unit.h"

#define SEC USEC_PER_SEC

static void test_cost_phase__a_status_is_a_phase(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        enum cost_phase with_files, without;
    } cases[] = {
        {"Pending", COST_PHASE_WAIT, COST_PHASE_WAIT},
        {"Starting", COST_PHASE_START, COST_PHASE_START},
        {"LaunchingMLInstances", COST_PHASE_START, COST_PHASE_START},
        {"PreparingTrainingStack", COST_PHASE_START, COST_PHASE_START},
        {"Downloading", COST_PHASE_DATA, COST_PHASE_IMAGE},
        {"DownloadingTrainingImage", COST_PHASE_IMAGE, COST_PHASE_IMAGE},
        {"Training", COST_PHASE_TRAINING, COST_PHASE_TRAINING},
        {"Uploading", COST_PHASE_UPLOAD, COST_PHASE_UPLOAD},
        {"Stopping", COST_PHASE_UPLOAD, COST_PHASE_UPLOAD},
        {"Interrupted", COST_PHASE_WAIT, COST_PHASE_WAIT},
        {"Completed", COST_PHASE_COUNT, COST_PHASE_COUNT},
        {"Failed", COST_PHASE_COUNT, COST_PHASE_COUNT},
        {"Stopped", COST_PHASE_COUNT, COST_PHASE_COUNT},
        {"Hibernating", COST_PHASE_COUNT, COST_PHASE_COUNT},
        {"", COST_PHASE_COUNT, COST_PHASE_COUNT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(cost_phase_of_status(cases[i].status, true), cases[i].with_files);
        assert_int_equal(cost_phase_of_status(cases[i].status, false), cases[i].without);
    }
    assert_string_equal(cost_phase_name(COST_PHASE_WAIT), "capacity_wait");
    for (enum cost_phase p = 0; p < COST_PHASE_COUNT; p++) {
        struct cost_phase_sums s = {{0}, {0}, {0}};
        s.musd[p] = 1;
        bool works = p == COST_PHASE_TRAINING || p == COST_PHASE_HOSTING || p == COST_PHASE_STORAGE;
        assert_int_equal(cost_phase_total(&s, true).musd, works ? 0 : 1);
    }
}

static const struct cost_phase_span job[] = {
    {COST_PHASE_WAIT, 1 * SEC, 11 * SEC},      {COST_PHASE_START, 11 * SEC, 31 * SEC},
    {COST_PHASE_DATA, 31 * SEC, 61 * SEC},     {COST_PHASE_TRAINING, 61 * SEC, 121 * SEC},
    {COST_PHASE_UPLOAD, 121 * SEC, 131 * SEC}, {COST_PHASE_COUNT, 131 * SEC, 131 * SEC},
};

static void test_cost_phase__only_what_is_billed_counts_for_the_bill(void **state)
{
    (void)state;
    struct cost_phase_times t;
    cost_phase_measure(job, ARRAY_LEN(job), 31 * SEC, 131 * SEC, false, &t);
    static const int64_t elapsed_s[] = {10, 20, 0, 30, 60, 10};
    static const int64_t billed_s[] = {0, 0, 0, 30, 60, 10};
    for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
        assert_int_equal(t.elapsed_us[p], elapsed_s[p] * SEC);
        assert_int_equal(t.billed_us[p], billed_s[p] * SEC);
    }
    struct cost_phase_sums s;
    cost_phase_split(&t, 200, 1000001, &s); /* two instances */
    assert_int_equal(s.elapsed_ms[COST_PHASE_START], 20000);
    assert_int_equal(s.seconds[COST_PHASE_DATA], 60);
    assert_int_equal(s.seconds[COST_PHASE_TRAINING], 120);
    assert_int_equal(s.seconds[COST_PHASE_UPLOAD], 20);
    assert_int_equal(s.musd[COST_PHASE_DATA], 300000);     /* 300000.3 */
    assert_int_equal(s.musd[COST_PHASE_TRAINING], 600001); /* to 900000.9 */
    assert_int_equal(s.musd[COST_PHASE_UPLOAD], 100000);   /* to 1000001 */
    assert_int_equal(s.musd[COST_PHASE_OTHER], 0);
    assert_int_equal(s.musd[COST_PHASE_START], 0);
    struct cost_phase_total all = cost_phase_total(&s, false), idle = cost_phase_total(&s, true);
    assert_true(all.musd == 1000001 && all.seconds == 200 && all.elapsed_ms == 130000);
    assert_true(idle.musd == 400000 && idle.seconds == 80 && idle.elapsed_ms == 70000);
}

static void test_cost_phase__open_odd_and_missing_spans(void **state)
{
    (void)state;
    struct cost_phase_times t;
    static const struct cost_phase_span odd[] = {
        {COST_PHASE_TRAINING, 10 * SEC, 0},         /* until the end */
        {COST_PHASE_TRAINING, 30 * SEC, 20 * SEC},  /* backwards */
        {COST_PHASE_UPLOAD, 0, 20 * SEC},           /* without a beginning */
        {COST_PHASE_WARM_IDLE, 10 * SEC, 20 * SEC}, /* no phase of a job */
    };
    cost_phase_measure(odd, ARRAY_LEN(odd), 10 * SEC, 40 * SEC, false, &t);
    assert_int_equal(t.elapsed_us[COST_PHASE_TRAINING], 30 * SEC);
    assert_int_equal(t.elapsed_us[COST_PHASE_UPLOAD], 0);
    cost_phase_measure(odd, ARRAY_LEN(odd), 0, 0, false, &t); /* it never started */
    assert_int_equal(t.elapsed_us[COST_PHASE_TRAINING], 0);
    struct cost_phase_sums s;
    cost_phase_split(&t, 60, 500, &s); /* and is billed all the same */
    assert_true(s.seconds[COST_PHASE_OTHER] == 60 && s.musd[COST_PHASE_OTHER] == 500);
}

/* Spot: the waits between two runs are not billed, although they lie between start and end. */
static void test_cost_phase__spot_waits_are_free(void **state)
{
    (void)state;
    static const struct cost_phase_span runs[] = {
        {COST_PHASE_TRAINING, 10 * SEC, 20 * SEC}, {COST_PHASE_WAIT, 20 * SEC, 50 * SEC},
        {COST_PHASE_START, 50 * SEC, 60 * SEC},    {COST_PHASE_IMAGE, 60 * SEC, 70 * SEC},
        {COST_PHASE_TRAINING, 70 * SEC, 90 * SEC},
    };
    struct cost_phase_times t;
    cost_phase_measure(runs, ARRAY_LEN(runs), 10 * SEC, 90 * SEC, true, &t);
    assert_int_equal(t.elapsed_us[COST_PHASE_WAIT], 30 * SEC);
    assert_int_equal(t.billed_us[COST_PHASE_WAIT] + t.billed_us[COST_PHASE_START], 0);
    assert_int_equal(t.billed_us[COST_PHASE_TRAINING], 30 * SEC);
    cost_phase_measure(runs, ARRAY_LEN(runs), 10 * SEC, 90 * SEC, false, &t);
    assert_int_equal(t.billed_us[COST_PHASE_START], 10 * SEC); /* a restart on demand is billed */
}

static void test_cost_phase__shares_add_up(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 12);
    for (int i = 0; i < 2000; i++) {
        struct cost_phase_times t = {{0}, {0}};
        struct cost_phase_sums s;
        int64_t figures[PHASE_FIGURES_N], seconds, warm;
        musd_t musd;
        for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
            t.billed_us[p] =
                rng_below(&r, 3) == 0 ? 0 : (int64_t)rng_below(&r, UINT64_C(1) << (i % 40));
        }
        seconds = (int64_t)rng_below(&r, 1000000);
        musd = (int64_t)rng_below(&r, UINT64_C(1) << (i % 60));
        warm = (int64_t)rng_below(&r, 1000);
        cost_phase_split(&t, seconds, musd, &s);
        cost_phase_store(&s, figures);
        cost_phase_read(figures, seconds, musd, warm, 7 * warm, &s);
        struct cost_phase_total all = cost_phase_total(&s, false);
        assert_int_equal(all.seconds, seconds + warm);
        assert_int_equal(all.musd, musd + 7 * warm);
        for (int p = 0; p < COST_PHASE_COUNT; p++) {
            assert_true(s.seconds[p] >= 0 && s.musd[p] >= 0);
        }
    }
}

static void test_cost_phase__what_no_phase_explains_is_other(void **state)
{
    (void)state;
    int64_t figures[PHASE_FIGURES_N] = {0};
    struct cost_phase_sums s, sum = {{0}, {0}, {0}};
    figures[3 * COST_PHASE_TRAINING + 1] = 40;
    figures[3 * COST_PHASE_TRAINING + 2] = 4000;
    cost_phase_read(figures, 100, 10000, 5, 50, &s); /* older attempts have no phases */
    assert_true(s.seconds[COST_PHASE_OTHER] == 60 && s.musd[COST_PHASE_OTHER] == 6000);
    assert_true(s.seconds[COST_PHASE_WARM_IDLE] == 5 && s.musd[COST_PHASE_WARM_IDLE] == 50);
    cost_phase_add(&sum, &s);
    cost_phase_add(&sum, &s);
    assert_int_equal(cost_phase_total(&sum, false).musd, 2 * 10050);
    assert_int_equal(cost_phase_total(&sum, true).musd, 2 * 6050);
}

static void test_cost_phase__advice_for_what_is_worth_it(void **state)
{
    (void)state;
    struct cost_advice_facts f = {.attempts = 8, .one_type = true};
    struct cost_advice a[COST_ADVICE_MAX];
    f.sums.musd[COST_PHASE_TRAINING] = 960000;
    f.sums.elapsed_ms[COST_PHASE_TRAINING] = 960000;
    f.sums.musd[COST_PHASE_IMAGE] = 20000; /* 2 % */
    f.sums.elapsed_ms[COST_PHASE_IMAGE] = 20000;
    assert_int_equal(cost_advise(&f, a), 0);
    f.sums.musd[COST_PHASE_DATA] = 100000; /* 9 % */
    f.sums.musd[COST_PHASE_IMAGE] = 40000;
    f.sums.elapsed_ms[COST_PHASE_START] = 300000; /* free, and long */
    assert_int_equal(cost_advise(&f, a), 3);
    assert_int_equal(a[0].phase, COST_PHASE_DATA);
    assert_non_null(strstr(a[0].text, "FastFile"));
    assert_int_equal(a[1].phase, COST_PHASE_IMAGE);
    assert_non_null(strstr(a[1].text, "smaller image, or"));
    assert_int_equal(a[1].musd, 40000);
    assert_int_equal(a[2].phase, COST_PHASE_START);
    assert_non_null(strstr(a[2].text, "warm_pool"));
    assert_true(a[2].musd == 0 && a[2].elapsed_ms == 300000);
    f.warm_pool = true; /* its instances are kept already */
    assert_int_equal(cost_advise(&f, a), 2);
    assert_string_equal(a[1].text, "a smaller image");
    f.sums.elapsed_ms[COST_PHASE_WAIT] = 900000;
    f.sums.musd[COST_PHASE_WARM_IDLE] = 500000;
    assert_int_equal(cost_advise(&f, a), 3); /* the image is 2 % of the bill by now */
    assert_int_equal(a[0].phase, COST_PHASE_WARM_IDLE);
    assert_int_equal(a[2].phase, COST_PHASE_WAIT);
    assert_non_null(strstr(a[2].text, "instance_type: ["));
    f.one_type = false;
    assert_int_equal(cost_advise(&f, a), 3);
    assert_null(strstr(a[2].text, "instance_type: ["));
    f.sums = (struct cost_phase_sums){{0}, {0}, {0}};
    assert_int_equal(cost_advise(&f, a), 0); /* nothing was spent */
    f.sums.musd[COST_PHASE_IMAGE] = 9999; /* all of the bill, but less than a cent and a minute */
    f.sums.elapsed_ms[COST_PHASE_IMAGE] = 59999;
    assert_int_equal(cost_advise(&f, a), 0);
    f.sums.musd[COST_PHASE_IMAGE] = 10000;
    assert_int_equal(cost_advise(&f, a), 1);
}

static void test_cost_phase__another_bill_is_shared_out_as_before(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 13);
    for (int i = 0; i < 500; i++) {
        struct cost_phase_sums s = {{0}, {0}, {0}}, again;
        int64_t figures[PHASE_FIGURES_N];
        int64_t less_s = (int64_t)rng_below(&r, 5000), all_s = 0;
        for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
            s.elapsed_ms[p] = (int64_t)rng_below(&r, 100000);
            s.seconds[p] = rng_below(&r, 2) == 0 ? 0 : (int64_t)rng_below(&r, 10000);
            s.musd[p] = 7 * s.seconds[p];
            all_s += s.seconds[p];
        }
        cost_phase_store(&s, figures);
        cost_phase_share_again(figures, less_s, 5 * less_s);
        cost_phase_read(figures, less_s, 5 * less_s, 0, 0, &again);
        assert_true(all_s == 0 || again.seconds[COST_PHASE_OTHER] == 0);
        assert_int_equal(again.musd[COST_PHASE_OTHER], 5 * again.seconds[COST_PHASE_OTHER]);
        for (int p = 0; p < COST_PHASES_OF_JOB; p++) {
            assert_int_equal(again.elapsed_ms[p], s.elapsed_ms[p]);
            int64_t share = all_s == 0 ? 0 : s.seconds[p] * less_s / all_s;
            assert_in_range(again.seconds[p], MAX(0, share - 1), share + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_phase__a_status_is_a_phase),
        cmocka_unit_test(test_cost_phase__only_what_is_billed_counts_for_the_bill),
        cmocka_unit_test(test_cost_phase__open_odd_and_missing_spans),
        cmocka_unit_test(test_cost_phase__spot_waits_are_free),
        cmocka_unit_test(test_cost_phase__shares_add_up),
        cmocka_unit_test(test_cost_phase__what_no_phase_explains_is_other),
        cmocka_unit_test(test_cost_phase__another_bill_is_shared_out_as_before),
        cmocka_unit_test(test_cost_phase__advice_for_what_is_worth_it),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
