/* The oracle's own arithmetic and the job history it tells. Aim: prices and costs are exact and
 * rounded half up once; a job's history is gap-free, billed seconds are rounded up. Method: fixed
 * cases and a sweep against 128-bit long division written out here. */
#include "tests/unit/unit.h"

#include "local/jobs/job.h"
#include "local/oracle/invoice.h"

static void test_oracle__price_texts_become_micro_usd(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t musd;
    } good[] = {
        {"0.115", 115000},
        {"37.688", 37688000},
        {"0", 0},
        {"12.3400000000", 12340000},
        {"0.0000005", 1},
        {"0.0000004999", 0},
        {"1.9999995", 2000000},
        {".5", 500000},
        {"7.", 7000000},
        {"0.000001", 1},
        {"99999", 99999000000},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t v = -1;
        assert_true(invoice_price(good[i].text, &v));
        assert_int_equal(v, good[i].musd);
    }
}

static void test_oracle__bad_price_texts_are_refused(void **state UNUSED)
{
    static const char *const bad[] = {
        "", ".", "-1", "1e3", "1,5", " 1", "1 ", "0x1", "1.2.3", "abc", "999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = 42;
        assert_false(invoice_price(bad[i], &v));
        assert_int_equal(v, 42);
    }
}

/* Digit by digit, so that it shares nothing with what is tested. */
static int64_t cost_slowly(int64_t price, int64_t instances, int64_t seconds)
{
    int64_t whole = 0;
    int64_t rest = 0; /* of 3600 */
    for (int64_t i = 0; i < instances * seconds; i++) {
        whole += price / 3600;
        rest += price % 3600;
        whole += rest / 3600;
        rest %= 3600;
    }
    return whole + (rest >= 1800);
}

static void test_oracle__cost_is_rounded_half_up_once(void **state UNUSED)
{
    assert_int_equal(invoice_cost(115000, 1, 1), 32);
    assert_int_equal(invoice_cost(1800, 1, 1), 1);
    assert_int_equal(invoice_cost(1799, 1, 1), 0);
    assert_int_equal(invoice_cost(37688000, 24, 86400), INT64_C(21708288000));
    assert_int_equal(invoice_cost(0, 24, 86400), 0);
    for (int64_t price = 0; price < 4000000; price += 123457) {
        for (int64_t s = 0; s < 120; s += 7) {
            assert_int_equal(invoice_cost(price, 3, s), cost_slowly(price, 3, s));
        }
    }
}

static struct local_job *job_fresh(void)
{
    AUTO_JSON json_t *request = json_pack("{s:{s:s, s:i}}", "ResourceConfig", "InstanceType",
                                          "ml.m5.large", "InstanceCount", 2);
    return job_new("j", request, 1000 * USEC_PER_SEC);
}

static void test_job__history_has_no_gaps_and_bills_whole_seconds(void **state UNUSED)
{
    static const struct {
        int64_t span_us;
        int64_t billed;
    } cases[] = {{0, 1}, {1, 1}, {999999, 1}, {1000000, 1}, {1000001, 2}, {59999999, 60}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct local_job *job = job_fresh();
        usec_t start = 1001 * USEC_PER_SEC;
        job->started = job->run_started = start;
        job_enter(job, PHASE_DOWNLOADING, start);
        job_enter(job, PHASE_TRAINING, start);
        job_end(job, PHASE_COMPLETED, "", start + cases[i].span_us, start + cases[i].span_us + 5);
        assert_int_equal(job->billable_s, cases[i].billed);
        assert_int_equal(job->status, JOB_COMPLETED);
        assert_int_equal(job->released, job->ended + 5);
        for (size_t t = 1; t < job->transitions_n; t++) {
            assert_int_equal(job->transitions[t - 1].end, job->transitions[t].start);
        }
        assert_true(job_is_over(job));
        job_free(job);
    }
}

static void test_job__time_never_goes_back(void **state UNUSED)
{
    struct local_job *job = job_fresh();
    job->started = 1001 * USEC_PER_SEC;
    job_enter(job, PHASE_DOWNLOADING, 1001 * USEC_PER_SEC);
    job_end(job, PHASE_FAILED, "AlgorithmError: , exit code: 1", 900 * USEC_PER_SEC,
            901 * USEC_PER_SEC);
    assert_int_equal(job->ended, 1001 * USEC_PER_SEC);
    assert_int_equal(job->released, job->ended);
    assert_int_equal(job->billable_s, 1);
    job_free(job);
}

static void test_job__json_gives_the_same_job_back(void **state UNUSED)
{
    struct local_job *job = job_fresh();
    struct local_job *copy = job_fresh();
    struct err err = ERR_INIT;
    job->started = 1001 * USEC_PER_SEC;
    job_enter(job, PHASE_TRAINING, 1001 * USEC_PER_SEC);
    job_enter(job, PHASE_STOPPING, 1002 * USEC_PER_SEC);
    job_end(job, PHASE_STOPPED, "", 1003 * USEC_PER_SEC, 1004 * USEC_PER_SEC);
    AUTO_JSON json_t *o = job_to_json(job);
    assert_true(job_from_json(copy, o, &err));
    AUTO_JSON json_t *again = job_to_json(copy);
    assert_true(json_equal(o, again));
    assert_int_equal(copy->status, JOB_STOPPED);
    job_free(job);
    job_free(copy);
}

static void test_job__broken_json_is_refused(void **state UNUSED)
{
    static const char *const bad[] = {
        "{}", "{\"tags\":[],\"reason\":\"\",\"inject_reason\":\"\",\"transitions\":[]}",
        "{\"tags\":[],\"reason\":\"\",\"inject_reason\":\"\",\"transitions\":[[99,1,2]]}",
        "{\"tags\":[],\"reason\":\"\",\"inject_reason\":\"\",\"transitions\":[[-1,1,2]]}",
        "{\"tags\":{},\"reason\":\"\",\"inject_reason\":\"\",\"transitions\":[[0,1,2]]}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct local_job *job = job_fresh();
        struct err err = ERR_INIT;
        AUTO_JSON json_t *o = json_loads(bad[i], 0, NULL);
        assert_false(job_from_json(job, o, &err));
        assert_int_equal(err.code, ERR_MALFORMED);
        job_free(job);
    }
}

static void test_jobs__live_ones_are_those_not_released(void **state UNUSED)
{
    struct jobs jobs;
    char name[16];
    jobs_init(&jobs);
    for (int i = 0; i < 600; i++) {
        struct local_job *job = job_fresh();
        (void)snprintf(name, sizeof name, "j-%d", i);
        memcpy(job->name, name, sizeof name);
        jobs_add(&jobs, job);
        if (i % 3 == 0) {
            job_end(job, PHASE_FAILED, "", job->created, job->created + 1);
            jobs_retire(&jobs, job);
        }
    }
    assert_int_equal(jobs.live_n, 400);
    for (size_t i = 1; i < jobs.live_n; i++) {
        assert_true(jobs.live[i - 1]->seq < jobs.live[i]->seq);
    }
    assert_int_equal(jobs_find(&jobs, "j-599")->seq, 599);
    assert_null(jobs_find(&jobs, "j-600"));
    jobs_done(&jobs);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle__price_texts_become_micro_usd),
        cmocka_unit_test(test_oracle__bad_price_texts_are_refused),
        cmocka_unit_test(test_oracle__cost_is_rounded_half_up_once),
        cmocka_unit_test(test_job__history_has_no_gaps_and_bills_whole_seconds),
        cmocka_unit_test(test_job__time_never_goes_back),
        cmocka_unit_test(test_job__json_gives_the_same_job_back),
        cmocka_unit_test(test_job__broken_json_is_refused),
        cmocka_unit_test(test_jobs__live_ones_are_those_not_released),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("local_oracle", tests, NULL, NULL);
}
