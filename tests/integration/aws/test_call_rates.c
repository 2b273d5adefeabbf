/* Aim: what AWS throttles is sent more rarely, later or not at all, and nothing else is touched.
 * Method: the clients against drover-local, which throttles on order and counts what reaches it. */
#include "aws/call_rates.h"
#include "aws/hosting.h"
#include "aws/job_log.h"
#include "aws/sagemaker.h"
#include "common/clock.h"
#include "common/s3.h"
#include "tests/kit/local.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct aws_gate open_gate = {NULL, NULL};
static struct local local;
static struct loop *l;
static struct aws_client *c;
static struct call_rates *rates;

struct got {
    int n, order;
    struct aws_failure failure; /* AWS_OK: none */
};
static int answers;

static void take(struct got *g, const struct aws_failure *f)
{
    g->n++;
    g->order = ++answers;
    g->failure = f != NULL ? *f : (struct aws_failure){.outcome = AWS_OK};
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n, const char *next,
                    const struct aws_failure *f)
{
    (void)jobs;
    (void)n;
    (void)next;
    take(ctx, f);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    (void)job;
    (void)not_found;
    take(ctx, f);
}

static void on_stop(void *ctx, bool ended, bool not_found, const struct aws_failure *f)
{
    (void)ended;
    (void)not_found;
    take(ctx, f);
}

static void on_create(void *ctx, const char *arn, bool exists, const struct aws_failure *f)
{
    (void)arn;
    (void)exists;
    take(ctx, f);
}

static void on_log(void *ctx, const struct log_line *lines, size_t n, const struct aws_failure *f)
{
    (void)lines;
    (void)n;
    take(ctx, f);
}

static void run_until(const struct got *g)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    while (g->n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 100 * USEC_PER_MSEC);
    }
}

static struct sagemaker_call *list(struct got *g)
{
    const struct job_list_query q = {.contains = "x", .status = "", .pool = "", .token = ""};
    *g = (struct got){.n = 0};
    return sagemaker_list(c, open_gate, &q, on_list, g);
}

static struct got describe(void)
{
    struct got g = {.n = 0};
    (void)sagemaker_describe(c, open_gate, "nobody", on_describe, &g);
    run_until(&g);
    return g;
}

static int start(void **state)
{
    (void)state;
    struct aws_config cfg = {.user_agent = "drover-test/1"};
    rates = call_rates_new();
    if (!aws_client_new(l, &cfg, &c, NULL)) {
        return -1;
    }
    call_rates_attach(rates, c);
    return 0;
}

static int end(void **state)
{
    (void)state;
    aws_client_free(c);
    call_rates_free(rates);
    return 0;
}

static void test_rates__hold_nothing_before_a_throttle(void **state)
{
    (void)state;
    struct got g[40];
    for (size_t i = 0; i < ARRAY_LEN(g); i++) {
        g[i] = (struct got){.n = 0};
        (void)sagemaker_describe(c, open_gate, "nobody", on_describe, &g[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(g); i++) {
        run_until(&g[i]);
        assert_int_equal(g[i].failure.outcome, AWS_OK);
    }
    assert_int_equal(call_rates_held_n(rates), 0);
    assert_true(aws_client_signed_n(c) >= 40);
}

static void test_rates__lists_that_wait_hold_up_nothing_else(void **state)
{
    (void)state;
    struct got lists[3], stopped = {.n = 0};
    struct sagemaker_call *waiting[3];
    (void)list(&lists[0]);
    run_until(&lists[0]);
    assert_int_equal(lists[0].failure.outcome, AWS_THROTTLED);
    uint64_t signed_n = aws_client_signed_n(c);
    for (int i = 0; i < 3; i++) {
        waiting[i] = list(&lists[i]);
    }
    assert_int_equal(describe().failure.outcome, AWS_OK);
    (void)sagemaker_stop(c, open_gate, "nobody", on_stop, &stopped);
    run_until(&stopped);
    assert_int_equal(aws_client_signed_n(c), signed_n + 2);
    assert_int_equal(call_rates_held_n(rates), 3);
    sagemaker_cancel(waiting[1]); /* no answer comes, and no request leaves */
    run_until(&lists[0]);
    assert_int_equal(lists[0].failure.outcome, AWS_OK);
    assert_true(lists[0].order > stopped.order);
    assert_int_equal(lists[1].n + lists[2].n, 0);
    assert_int_equal(aws_client_signed_n(c), signed_n + 3);
    aws_client_free(c); /* what waits is given back */
    assert_int_equal(lists[2].n, 1);
    assert_int_equal(lists[2].failure.outcome, AWS_UNSENT);
    call_rates_free(rates);
    assert_int_equal(start(NULL), 0);
}

static void test_rates__what_waits_is_signed_when_it_is_sent(void **state)
{
    (void)state;
    struct got g[4];
    assert_int_equal(describe().failure.outcome, AWS_THROTTLED);
    for (size_t i = 0; i < ARRAY_LEN(g); i++) {
        g[i] = (struct got){.n = 0};
        (void)sagemaker_describe(c, open_gate, "nobody", on_describe, &g[i]);
    }
    assert_int_equal(aws_client_signed_n(c), 1);
    for (size_t i = 0; i < ARRAY_LEN(g); i++) {
        run_until(&g[i]);
        assert_int_equal(g[i].failure.outcome, AWS_OK); /* there is no such job */
        assert_true(i == 0 || g[i].order > g[i - 1].order);
    }
    assert_int_equal(call_rates_held_n(rates), 4);
}

static void test_rates__a_create_is_not_kept_for_later(void **state)
{
    (void)state;
    const struct str request =
        STR("{\"ModelName\":\"throttled\",\"PrimaryContainer\":{\"Image\":\"sh\"},"
            "\"ExecutionRoleArn\":\"arn:aws:iam::123456789012:role/r\"}");
    struct got g = {.n = 0};
    (void)hosting_create(c, open_gate, HOSTING_MODEL, request, on_create, &g);
    run_until(&g);
    assert_int_equal(g.failure.outcome, AWS_THROTTLED);
    uint64_t signed_n = aws_client_signed_n(c);
    g = (struct got){.n = 0};
    (void)hosting_create(c, open_gate, HOSTING_MODEL, request, on_create, &g);
    assert_int_equal(g.n, 0);
    run_until(&g);
    assert_int_equal(g.failure.outcome, AWS_UNSENT);
    assert_in_range(g.failure.retry_after_us, 1, 2 * USEC_PER_SEC);
    assert_non_null(strstr(g.failure.message, "CreateModel"));
    assert_int_equal(aws_client_signed_n(c), signed_n);
}

/* The tail of a failed job's log: many jobs fail at once. */
static void test_rates__a_throttled_log_is_read_more_rarely(void **state)
{
    (void)state;
    static struct got g[2];
    (void)job_log_read(c, open_gate, "nobody", on_log, &g[0]);
    run_until(&g[0]);
    assert_int_equal(g[0].failure.outcome, AWS_THROTTLED);
    (void)job_log_read(c, open_gate, "nobody", on_log, &g[1]);
    assert_int_equal(call_rates_held_n(rates), 1);
    assert_int_equal(aws_client_signed_n(c), 1);
    run_until(&g[1]);
    assert_int_equal(g[1].failure.outcome, AWS_OK); /* it has no log */
}

static const char config[] = "{\"images\":{\"sh\":[\"/bin/sh\",\"-c\"]},\"faults\":["
                             "{\"operation\":\"ListTrainingJobs\",\"kind\":\"throttle\"},"
                             "{\"operation\":\"DescribeTrainingJob\",\"kind\":\"throttle\"},"
                             "{\"operation\":\"DescribeLogStreams\",\"kind\":\"throttle\"},"
                             "{\"operation\":\"CreateModel\",\"kind\":\"throttle\"}]}";

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    local_start(&local, config);
    if (!loop_new(&l, NULL)) {
        return 1;
    }
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_rates__what_waits_is_signed_when_it_is_sent), /* takes the Describe's throttle */
        TEST(test_rates__hold_nothing_before_a_throttle),
        TEST(test_rates__lists_that_wait_hold_up_nothing_else),
        TEST(test_rates__a_create_is_not_kept_for_later),
        TEST(test_rates__a_throttled_log_is_read_more_rarely),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    loop_free(l);
    local_stop(&local);
    return failed;
}
