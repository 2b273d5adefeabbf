/* Aim: the SageMaker, CloudWatch Logs and Service Quotas clients say of warm pools, spot, tags,
 * logs and quotas exactly what the service told, and that a pool could not be changed is told apart
 * from what failed. Method: build/bin/drover-local, which keeps pools by code of its own. */
#include "aws/job_log.h"
#include "aws/log_pages.h"
#include "aws/logs.h"
#include "aws/quotas.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/kit/local.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define WAIT_US (120 * USEC_PER_SEC) /* for a job's end, on a busy machine */

static struct local local;
static struct loop *l;
static struct aws_client *c;

struct got {
    int n;
    bool no_pool, not_found, failed;
    struct aws_failure failure;
    struct job_description job;
    struct job_summary jobs[16];
    size_t jobs_n;
    struct quota_reading quotas;
    char text[1024];
};

static void run_until_answered(struct got *g)
{
    int64_t deadline_us = clock_mono_us() + WAIT_US;
    while (g->n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
    assert_int_equal(g->n, 1);
}

static void keep_failure(struct got *g, const struct aws_failure *f)
{
    g->n++;
    g->failed = f != NULL;
    if (f != NULL) {
        g->failure = *f;
    }
}

static void on_create(void *ctx, const char *arn, const struct aws_failure *f)
{
    keep_failure(ctx, f);
    assert_true((arn != NULL) == (f == NULL));
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->not_found = not_found;
    if (job != NULL) {
        g->job = *job;
    }
}

static void on_update(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->no_pool = no_pool;
    g->not_found = not_found;
}

static void on_list(void *ctx, const struct job_summary *jobs, size_t n, const char *next,
                    const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    assert_true(n <= ARRAY_LEN(g->jobs));
    memcpy(g->jobs, jobs, n * sizeof jobs[0]);
    g->jobs_n = n;
    assert_string_equal(next, "");
}

static struct quota_value *copy_values(const struct quota_value *v, size_t n)
{
    struct quota_value *copy = xcalloc(n + 1, sizeof *copy);
    if (n > 0) {
        memcpy(copy, v, n * sizeof *v);
    }
    return copy;
}

static void on_quotas(void *ctx, const struct quota_reading *r, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    assert_non_null(r);
    g->quotas = *r;
    g->quotas.training = copy_values(r->training, r->training_n);
    g->quotas.warm = copy_values(r->warm, r->warm_n);
    g->quotas.spot = copy_values(r->spot, r->spot_n);
}

static const struct aws_gate open_gate;

#define RULES                                                                                      \
    "\"DebugRuleConfigurations\":[{\"RuleConfigurationName\":\"LossIssuesFound\","                 \
    "\"RuleEvaluatorImage\":\"rules\"},{\"RuleConfigurationName\":\"Weights\","                    \
    "\"RuleEvaluatorImage\":\"rules\"}],\"ProfilerRuleConfigurations\":[{"                         \
    "\"RuleConfigurationName\":"                                                                   \
    "\"Idle\",\"RuleEvaluatorImage\":\"rules\"}],"

/* More than fit, of which the last one has found something. */
static char *many_rules(void)
{
    AUTO_BUF struct buf b = BUF_INIT(20000);
    for (int i = 0; i < 40; i++) {
        buf_addf(&b, "%s{\"RuleConfigurationName\":\"%0200d%s\",\"RuleEvaluatorImage\":\"r\"}",
                 i == 0    ? "\"DebugRuleConfigurations\":["
                 : i == 20 ? "],\"ProfilerRuleConfigurations\":["
                           : ",",
                 i, i == 39 ? "IssuesFound" : "");
    }
    return xasprintf("%s],", buf_cstr(&b));
}

static void create(const char *name, int keep_s, bool spot, struct got *g)
{
    AUTO_FREE char *many = many_rules();
    AUTO_FREE char *body = xasprintf(
        "{\"TrainingJobName\":\"%s\",\"RoleArn\":\"arn:aws:iam::123456789012:role/worker\","
        "\"AlgorithmSpecification\":{\"TrainingImage\":\"sh\",\"TrainingInputMode\":\"File\","
        "\"ContainerArguments\":[\"%s\"]},\"ResourceConfig\":{\"InstanceType\":\"ml.m5.large\","
        "\"InstanceCount\":2,\"VolumeSizeInGB\":%d,\"KeepAlivePeriodInSeconds\":%d},"
        "\"OutputDataConfig\":{\"S3OutputPath\":\"s3://bkt/out\"},"
        "\"EnableManagedSpotTraining\":%s,%s"
        "\"StoppingCondition\":{\"MaxRuntimeInSeconds\":60%s}}",
        name, strcmp(name, "runs") == 0 ? "exec sleep 60" : "true", name[0] == 'p' ? 1 : 2, keep_s,
        spot ? "true" : "false",
        strcmp(name, "rules") == 0  ? RULES
        : strcmp(name, "many") == 0 ? many
                                    : "",
        spot ? ",\"MaxWaitTimeInSeconds\":60" : "");
    *g = (struct got){.n = 0};
    (void)sagemaker_create(c, open_gate, str_of(body), on_create, g);
    run_until_answered(g);
    assert_false(g->failed);
}

static void describe(const char *name, struct got *g)
{
    *g = (struct got){.n = 0};
    (void)sagemaker_describe(c, open_gate, name, on_describe, g);
    run_until_answered(g);
    assert_false(g->failed);
}

/* One that asks without a pause takes the core that the job needs. */
static void describe_later(const char *name, struct got *g, int64_t deadline_us)
{
    assert_true(clock_mono_us() < deadline_us);
    (void)poll(NULL, 0, 10);
    describe(name, g);
}

static void describe_ended(const char *name, struct got *g)
{
    int64_t deadline_us = clock_mono_us() + WAIT_US;
    do {
        describe_later(name, g, deadline_us);
    } while (strcmp(g->job.status, "InProgress") == 0);
}

/* Until the reply tells of a pool, whatever the job's status is said to be. */
static void wait_pool(const char *name, struct got *g)
{
    int64_t deadline_us = clock_mono_us() + WAIT_US;
    do {
        describe_later(name, g, deadline_us);
    } while (g->job.pool.status == WARM_POOL_NONE);
}

static void update(const char *name, int64_t keep_s, struct got *g)
{
    *g = (struct got){.n = 0};
    (void)sagemaker_update_keep_alive(c, open_gate, name, keep_s, on_update, g);
    run_until_answered(g);
}

static void test_pool__is_followed_from_available_to_its_end(void **state)
{
    (void)state;
    struct got g;
    create("pool-1", 600, false, &g);
    describe_ended("pool-1", &g);
    assert_string_equal(g.job.status, "Completed");
    assert_int_equal(g.job.pool.status, WARM_POOL_AVAILABLE);
    assert_string_equal(g.job.pool.reused_by, "");
    assert_int_equal(g.job.keep_alive_s, 600);
    assert_false(g.job.spot);
    assert_true(g.job.billable_s >= 1 && g.job.training_s == g.job.billable_s);

    create("pool-2", 600, false, &g);
    describe("pool-2", &g);
    if (strcmp(g.job.status, "InProgress") == 0) {
        assert_int_equal(g.job.pool.status, WARM_POOL_IN_USE);
        assert_int_equal(g.job.pool.retained_s, -1);
    }
    describe("pool-1", &g);
    assert_int_equal(g.job.pool.status, WARM_POOL_REUSED);
    assert_true(g.job.pool.retained_s >= 0);
    assert_string_equal(g.job.pool.reused_by, "pool-2");
    describe_ended("pool-2", &g);
    assert_int_equal(g.job.pool.status, WARM_POOL_AVAILABLE);

    update("pool-2", 3600, &g);
    assert_true(!g.failed && !g.no_pool && !g.not_found);
    describe("pool-2", &g);
    assert_int_equal(g.job.keep_alive_s, 3600);
    update("pool-2", 0, &g);
    assert_true(!g.failed && !g.no_pool && !g.not_found);
    describe("pool-2", &g);
    assert_int_equal(g.job.pool.status, WARM_POOL_TERMINATED);
    assert_true(g.job.pool.retained_s >= 0);
}

static void test_describe__has_the_phases_of_a_job(void **state)
{
    (void)state;
    struct got g;
    create("spans", 0, false, &g);
    describe_ended("spans", &g);
    const struct job_transition *t = g.job.transitions;
    int n = g.job.transitions_n;
    assert_true(n >= 4);
    assert_string_equal(t[0].status, "Starting");
    assert_string_equal(t[n - 1].status, "Completed");
    assert_true(t[0].start == g.job.created && t[n - 1].start == g.job.ended);
    for (int i = 1; i < n; i++) {
        assert_true(t[i].start == t[i - 1].end && t[i].start >= t[i - 1].start);
        assert_false(t[i].no_capacity);
    }
}

static void test_describe__has_what_the_rules_have_found(void **state)
{
    (void)state;
    struct got g;
    create("rules", 0, false, &g);
    describe_ended("rules", &g);
    assert_string_equal(
        g.job.rules,
        "[{\"of\":\"debugger\",\"name\":\"LossIssuesFound\",\"status\":\"IssuesFound\","
        "\"details\":\"RuleEvaluationConditionMet: Evaluation of the rule LossIssuesFound at step "
        "10 "
        "resulted in the condition being met\"},{\"of\":\"debugger\",\"name\":\"Weights\","
        "\"status\":\"NoIssuesFound\",\"details\":\"\"},{\"of\":\"profiler\",\"name\":\"Idle\","
        "\"status\":\"NoIssuesFound\",\"details\":\"\"}]");
}

static void test_describe__leaves_out_rules_that_found_nothing_and_says_how_many(void **state)
{
    (void)state;
    struct got g;
    int told = 0, more = 0;
    create("many", 0, false, &g);
    describe_ended("many", &g);
    for (const char *at = g.job.rules; (at = strstr(at, "\"of\":\"")) != NULL; at++) {
        told++;
    }
    assert_non_null(strstr(g.job.rules, "39IssuesFound\",\"status\":\"IssuesFound\""));
    const char *last = strstr(g.job.rules, "{\"of\":\"\",\"name\":\"");
    assert_non_null(last);
    assert_int_equal(sscanf(last, "{\"of\":\"\",\"name\":\"%d more\"", &more), 1);
    assert_int_equal(told - 1 + more, 40);
    assert_non_null(strstr(last, "\"status\":\"NoIssuesFound\""));
}

static void test_update__without_a_pool_is_told_apart(void **state)
{
    (void)state;
    struct got g;
    create("none", 0, false, &g);
    describe_ended("none", &g);
    assert_int_equal(g.job.pool.status, WARM_POOL_NONE);
    assert_int_equal(g.job.pool.retained_s, -1);
    update("none", 0, &g);
    assert_true(g.no_pool && !g.failed && !g.not_found);
    update("nobody", 0, &g);
    assert_true(g.not_found && !g.failed && !g.no_pool);
    update("throttled", 0, &g);
    assert_true(g.failed && !g.no_pool && !g.not_found);
    assert_int_equal(g.failure.outcome, AWS_THROTTLED);
    update("none", 999999, &g); /* wrong in itself: not a matter of the pool */
    assert_true(g.failed && !g.no_pool && !g.not_found);
    assert_string_equal(g.failure.code, "ValidationException");
}

static void test_list__carries_the_pools(void **state)
{
    (void)state;
    struct got g;
    create("list-1", 600, false, &g);
    describe_ended("list-1", &g);
    create("list-2", 0, false, &g);
    describe_ended("list-2", &g);
    assert_int_equal(g.job.pool.status, WARM_POOL_TERMINATED); /* it took one and kept none */
    create("list-3", 0, false, &g);
    describe_ended("list-3", &g);
    g = (struct got){.n = 0};
    struct job_list_query q = {.contains = "list-", .status = "", .pool = ""};
    (void)sagemaker_list(c, open_gate, &q, on_list, &g);
    run_until_answered(&g);
    assert_int_equal(g.jobs_n, 3);
    assert_string_equal(g.jobs[2].name, "list-1");
    assert_int_equal(g.jobs[2].pool.status, WARM_POOL_REUSED);
    assert_string_equal(g.jobs[2].pool.reused_by, "list-2");
    assert_true(g.jobs[2].pool.retained_s >= 0);
    assert_int_equal(g.jobs[1].pool.status, WARM_POOL_TERMINATED);
    assert_int_equal(g.jobs[0].pool.status, WARM_POOL_NONE);
    assert_string_equal(g.jobs[0].pool.reused_by, "");
    q.status = "InProgress";
    g = (struct got){.n = 0};
    (void)sagemaker_list(c, open_gate, &q, on_list, &g);
    run_until_answered(&g);
    assert_int_equal(g.jobs_n, 0);
    q.status = "Completed";
    q.pool = "Terminated";
    g = (struct got){.n = 0};
    (void)sagemaker_list(c, open_gate, &q, on_list, &g);
    run_until_answered(&g);
    assert_int_equal(g.jobs_n, 1);
    assert_string_equal(g.jobs[0].name, "list-2");
}

static void test_describe__a_status_we_do_not_know_is_kept_apart(void **state)
{
    (void)state;
    struct got g;
    create("odd", 600, false, &g);
    wait_pool("odd", &g);
    assert_string_equal(g.job.status, "Hibernating");
    assert_int_equal(g.job.pool.status, WARM_POOL_UNKNOWN);
    assert_true(g.job.pool.retained_s >= 0);
    update("odd", 0, &g);
    assert_false(g.failed);
}

static void test_names__of_pool_statuses_are_those_of_aws(void **state)
{
    (void)state;
    assert_string_equal(warm_pool_status_name(WARM_POOL_NONE), "");
    assert_string_equal(warm_pool_status_name(WARM_POOL_AVAILABLE), "Available");
    assert_string_equal(warm_pool_status_name(WARM_POOL_IN_USE), "InUse");
    assert_string_equal(warm_pool_status_name(WARM_POOL_REUSED), "Reused");
    assert_string_equal(warm_pool_status_name(WARM_POOL_TERMINATED), "Terminated");
}

static void test_spot__is_said_and_has_no_pool(void **state)
{
    (void)state;
    struct got g;
    create("spot", 0, true, &g);
    describe_ended("spot", &g);
    assert_true(g.job.spot);
    assert_int_equal(g.job.pool.status, WARM_POOL_NONE);
}

static void on_stop(void *ctx, bool ended_already, bool not_found, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->no_pool = ended_already;
    g->not_found = not_found;
}

static void on_tag(void *ctx, const char *value, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    (void)snprintf(g->text, sizeof g->text, "%s", value != NULL ? value : "(failed)");
}

static void test_stop_and_tags__of_a_job(void **state)
{
    (void)state;
    struct got g;
    create("tagged", 0, false, &g);
    describe_ended("tagged", &g);
    g = (struct got){.n = 0};
    (void)sagemaker_stop(c, open_gate, "tagged", on_stop, &g);
    run_until_answered(&g);
    assert_true(g.no_pool && !g.not_found && !g.failed); /* it has ended already */
    create("runs", 0, false, &g);
    g = (struct got){.n = 0};
    (void)sagemaker_stop(c, open_gate, "runs", on_stop, &g);
    run_until_answered(&g);
    assert_true(!g.no_pool && !g.not_found && !g.failed);
    g = (struct got){.n = 0};
    (void)sagemaker_stop(c, open_gate, "nobody", on_stop, &g);
    run_until_answered(&g);
    assert_true(g.not_found && !g.failed);
    g = (struct got){.n = 0};
    (void)sagemaker_tag(c, open_gate,
                        "arn:aws:sagemaker:us-east-1:123456789012:training-job/tagged",
                        "drover-install", on_tag, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    assert_string_equal(g.text, "");
}

static void on_tail(void *ctx, struct str json, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    (void)snprintf(g->text, sizeof g->text, STR_FMT, STR_ARG(json));
}

static void on_lines(void *ctx, const struct log_line *lines, size_t n, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    (void)lines;
    g->jobs_n = n;
}

static void on_stream(void *ctx, const char *name, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    (void)snprintf(g->text, sizeof g->text, "%s", name != NULL ? name : "");
}

static void on_log_page(void *ctx, const struct log_line *lines, size_t n, const char *next,
                        const struct aws_failure *f)
{
    (void)next;
    on_lines(ctx, lines, n, f);
}

static void test_logs__of_a_job_in_every_way(void **state)
{
    (void)state;
    struct got g;
    char stream[sizeof g.text];
    create("logged", 0, false, &g);
    describe_ended("logged", &g);
    g = (struct got){.n = 0};
    logs_tail(c, "logged", 100, "", on_tail, &g);
    run_until_answered(&g);
    assert_true(!g.failed && strncmp(g.text, "{\"lines\":[", 10) == 0);
    g = (struct got){.n = 0};
    (void)job_log_read(c, open_gate, "logged", on_lines, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    g = (struct got){.n = 0};
    (void)log_stream_after(c, open_gate, "logged", "", on_stream, &g);
    run_until_answered(&g);
    assert_true(!g.failed && strncmp(g.text, "logged/algo-1-", 14) == 0);
    (void)snprintf(stream, sizeof stream, "%s", g.text);
    g = (struct got){.n = 0};
    (void)log_page_get(c, open_gate, stream, "", on_log_page, &g);
    run_until_answered(&g);
    assert_false(g.failed);
}

static int64_t limit_of(const struct quota_value *v, size_t n, const char *type)
{
    int64_t limit = -1;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(v[i].instance_type, type) == 0) {
            assert_int_equal(limit, -1); /* once */
            limit = v[i].limit;
        }
    }
    return limit;
}

static void test_quotas__are_read_by_name_over_several_pages(void **state)
{
    (void)state;
    struct got g = {.n = 0};
    (void)quotas_read(c, open_gate, on_quotas, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    const struct quota_reading *q = &g.quotas;
    assert_int_equal(q->training_n, 51);
    assert_int_equal(limit_of(q->training, q->training_n, "ml.m5.large"), 8);
    assert_int_equal(limit_of(q->warm, q->warm_n, "ml.m5.large"), 5);
    assert_int_equal(limit_of(q->spot, q->spot_n, "ml.m5.large"), 3);
    for (int i = 0; i < 50; i++) {
        char type[32];
        (void)snprintf(type, sizeof type, "ml.t%d.large", i);
        assert_int_equal(limit_of(q->training, q->training_n, type), i);
        assert_int_equal(limit_of(q->warm, q->warm_n, type), 0);
        assert_int_equal(limit_of(q->spot, q->spot_n, type), 0);
    }
    assert_int_equal(q->total, 77);
    assert_int_equal(q->spot_total, -1); /* not listed */
    assert_int_equal(q->instances_max, 20);
    assert_int_equal(q->runtime_max_s, 7200);
    assert_int_equal(q->keep_alive_s, 3600); /* a default: what is applied does not name it */
    assert_int_equal(q->volume_max_gib, 1024);
    assert_true(q->create_rate < 0);
    free(q->training);
    free(q->warm);
    free(q->spot);
}

static void on_never(void *ctx, bool no_pool, bool not_found, const struct aws_failure *f)
{
    (void)no_pool;
    (void)not_found;
    (void)f;
    *(bool *)ctx = true;
}

static void test_cancel__of_an_update_is_silent(void **state)
{
    (void)state;
    bool called = false;
    struct got g;
    sagemaker_cancel(sagemaker_update_keep_alive(c, open_gate, "nobody", 0, on_never, &called));
    describe("nobody", &g);
    assert_true(g.not_found);
    assert_false(called);
}

static char *config(void)
{
    AUTO_BUF struct buf b = BUF_INIT(16384);
    buf_add_cstr(&b, "{\"quotas\":{");
    for (int i = 0; i < 50; i++) {
        buf_addf(&b, "\"ml.t%d.large\":%d,", i, i);
    }
    buf_add_cstr(
        &b,
        "\"ml.m5.large\":8},\"warm_quotas\":{\"ml.m5.large\":5},\"spot_quotas\":{"
        "\"ml.m5.large\":3},\"account_quotas\":{\"Longest run time for a training job\":7200,"
        "\"Number of instances across all training jobs\":77},"
        "\"cold_start_seconds\":0.02,\"stop_seconds\":0.02,\"images\":{\"sh\":[\"/bin/sh\","
        "\"-c\"]},\"faults\":[{\"operation\":\"UpdateTrainingJob\",\"name_contains\":"
        "\"throttled\",\"kind\":\"throttle\"},{\"operation\":\"DescribeTrainingJob\","
        "\"name_contains\":\"odd\",\"kind\":\"unknown_status\",\"times\":100000},{\"operation\":"
        "\"ListServiceQuotas\",\"kind\":\"list_omits\",\"times\":1000,\"name_contains\":\"Keep "
        "alive\"}]}");
    return xstrdup(buf_cstr(&b));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    AUTO_FREE char *text = config();
    local_start(&local, text);
    local_bucket(&local, "bkt");
    struct aws_config cfg = {.user_agent = "drover-test/1"};
    if (!loop_new(&l, NULL) || !aws_client_new(l, &cfg, &c, NULL)) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__is_followed_from_available_to_its_end),
        cmocka_unit_test(test_update__without_a_pool_is_told_apart),
        cmocka_unit_test(test_list__carries_the_pools),
        cmocka_unit_test(test_describe__has_the_phases_of_a_job),
        cmocka_unit_test(test_describe__has_what_the_rules_have_found),
        cmocka_unit_test(test_describe__leaves_out_rules_that_found_nothing_and_says_how_many),
        cmocka_unit_test(test_describe__a_status_we_do_not_know_is_kept_apart),
        cmocka_unit_test(test_names__of_pool_statuses_are_those_of_aws),
        cmocka_unit_test(test_spot__is_said_and_has_no_pool),
        cmocka_unit_test(test_stop_and_tags__of_a_job),
        cmocka_unit_test(test_logs__of_a_job_in_every_way),
        cmocka_unit_test(test_quotas__are_read_by_name_over_several_pages),
        cmocka_unit_test(test_cancel__of_an_update_is_silent),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    aws_client_free(c);
    loop_free(l);
    local_stop(&local);
    return failed;
}
