/* Aim: the hosting client says what the service told: names taken, missing and busy are answers of
 * their own, a model's error is not a failure of the call, listings go over all pages, and whatever
 * cannot be read may have taken effect. Method: build/bin/drover-local with a model server in
 * Python. */
#include "aws/hosting.h"
#include "aws/invocations.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/kit/local.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct local local;
static struct loop *l;
static struct aws_client *c;
static const struct aws_gate open_gate;

struct got {
    int n;
    bool exists, not_found, busy, failed;
    char arn[257];
    struct aws_failure failure;
    struct endpoint_description e;
    struct hosting_summary rows[8];
    size_t rows_n;
    struct endpoint_answer answer;
    int64_t invocations;
    char body[256];
};

static void run_until_answered(const struct got *g)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
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

static void on_create(void *ctx, const char *arn, bool exists, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->exists = exists;
    (void)snprintf(g->arn, sizeof g->arn, "%s", arn != NULL ? arn : "");
}

static void on_change(void *ctx, bool not_found, bool busy, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->not_found = not_found;
    g->busy = busy;
}

static void on_describe(void *ctx, const struct endpoint_description *e, bool not_found,
                        const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->not_found = not_found;
    if (e != NULL) {
        g->e = *e;
    }
}

static void on_list(void *ctx, const struct hosting_summary *rows, size_t n,
                    const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    g->rows_n = n;
    memcpy(g->rows, rows, MIN(n, ARRAY_LEN(g->rows)) * sizeof *rows);
}

static void on_never_report(void *ctx, const struct invocation_report *report,
                            const struct aws_failure *f)
{
    (void)report;
    (void)f;
    *(bool *)ctx = true;
}

static void on_invoke(void *ctx, const struct endpoint_answer *a, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    if (a != NULL) {
        g->answer = *a;
        (void)snprintf(g->body, sizeof g->body, STR_FMT, STR_ARG(a->body));
    }
}

static struct got create(enum hosting_kind kind, const char *body)
{
    struct got g = {.n = 0};
    (void)hosting_create(c, open_gate, kind, str_of(body), on_create, &g);
    run_until_answered(&g);
    return g;
}

static struct got create_model(const char *name)
{
    AUTO_FREE char *body = xasprintf(
        "{\"ModelName\":\"%s\",\"PrimaryContainer\":{\"Image\":\"py\"},\"ExecutionRoleArn\":"
        "\"arn:aws:iam::123456789012:role/worker\"}",
        name);
    return create(HOSTING_MODEL, body);
}

static struct got create_config(const char *name, const char *model)
{
    AUTO_FREE char *body = xasprintf(
        "{\"EndpointConfigName\":\"%s\",\"ProductionVariants\":[{\"VariantName\":\"AllTraffic\","
        "\"ModelName\":\"%s\",\"InstanceType\":\"ml.m5.large\",\"InitialInstanceCount\":1}]}",
        name, model);
    return create(HOSTING_CONFIG, body);
}

static struct got create_endpoint(const char *name, const char *config)
{
    AUTO_FREE char *body =
        xasprintf("{\"EndpointName\":\"%s\",\"EndpointConfigName\":\"%s\"}", name, config);
    return create(HOSTING_ENDPOINT, body);
}

static struct got describe(enum hosting_kind kind, const char *name)
{
    struct got g = {.n = 0};
    (void)hosting_describe(c, open_gate, kind, name, on_describe, &g);
    run_until_answered(&g);
    return g;
}

static struct got wait_status(const char *name, const char *status)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    for (;;) {
        struct got g = describe(HOSTING_ENDPOINT, name);
        assert_false(g.failed);
        if (strcmp(g.not_found ? "" : g.e.status, status) == 0) {
            return g;
        }
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 20 * USEC_PER_MSEC);
    }
}

static struct got delete (enum hosting_kind kind, const char *name)
{
    struct got g = {.n = 0};
    (void)hosting_delete(c, open_gate, kind, name, on_change, &g);
    run_until_answered(&g);
    return g;
}

static struct got invoke(const char *name, const char *body)
{
    struct got g = {.n = 0};
    (void)endpoint_invoke(c, open_gate, name, "text/plain", str_of(body), on_invoke, &g);
    run_until_answered(&g);
    return g;
}

static void test_life__of_an_endpoint(void **state)
{
    (void)state;
    struct got g = create_model("m");
    assert_false(g.failed || g.exists);
    assert_string_equal(g.arn, "arn:aws:sagemaker:us-east-1:123456789012:model/m");
    g = create_config("c", "m");
    assert_false(g.failed);
    g = create_endpoint("e", "c");
    assert_false(g.failed);
    g = delete (HOSTING_ENDPOINT, "e");
    assert_true(g.busy && !g.failed && !g.not_found);
    g = wait_status("e", "InService");
    assert_string_equal(g.e.config, "c");
    assert_true(g.e.instances == 1 && g.e.instances_wanted == 1);
    assert_true(g.e.created > 0 && g.e.modified > g.e.created);
    assert_string_equal(g.e.failure_reason, "");
    g = invoke("e", "hello");
    assert_false(g.failed);
    assert_int_equal(g.answer.status, 200);
    assert_string_equal(g.body, "hello");
    assert_string_equal(g.answer.content_type, "text/x");
    assert_string_equal(g.answer.variant, "AllTraffic");
    assert_true(g.answer.took_us > 0);
    g = invoke("e", "no");
    assert_false(g.failed);
    assert_int_equal(g.answer.status, 418);
    assert_string_equal(g.body, "a teapot");
    for (int kind = HOSTING_ENDPOINT; kind >= HOSTING_MODEL; kind--) {
        const char *name = kind == HOSTING_ENDPOINT ? "e" : kind == HOSTING_CONFIG ? "c" : "m";
        g = delete ((enum hosting_kind)kind, name);
        assert_false(g.failed || g.not_found || g.busy);
        if (kind == HOSTING_ENDPOINT) {
            (void)wait_status("e", "");
        }
        g = describe((enum hosting_kind)kind, name);
        assert_true(g.not_found && !g.failed);
        g = delete ((enum hosting_kind)kind, name);
        assert_true(g.not_found && !g.failed);
    }
}

static void on_invocations(void *ctx, const struct invocation_report *report,
                           const struct aws_failure *f)
{
    struct got *g = ctx;
    keep_failure(g, f);
    for (size_t i = 0; report != NULL && i < report->n; i++) {
        assert_int_equal(report->counts[i].from % (60 * USEC_PER_SEC), 0);
        g->invocations += report->counts[i].n;
    }
}

static struct got invocations(const char *name)
{
    struct got g = {.n = 0};
    usec_t now = clock_wall_us();
    const struct invocation_question q = {
        .from = now - now % (60 * USEC_PER_SEC) - 600 * USEC_PER_SEC, .to = now, .period_s = 60};
    (void)invocations_read(c, open_gate, name, "AllTraffic", &q, on_invocations, &g);
    run_until_answered(&g);
    return g;
}

static void test_invocations__are_counted_or_not_known(void **state)
{
    (void)state;
    assert_false(create_model("asked").failed);
    assert_false(create_config("asked", "asked").failed);
    assert_false(create_endpoint("asked", "asked").failed);
    (void)wait_status("asked", "InService");
    assert_false(invoke("asked", "hello").failed);
    assert_false(invoke("asked", "no").failed);
    struct got g = invocations("asked");
    assert_int_equal(g.failure.outcome, AWS_UNKNOWN); /* the answer is not JSON */
    g = invocations("asked");
    assert_int_equal(g.failure.outcome, AWS_THROTTLED);
    g = invocations("asked");
    assert_false(g.failed);
    assert_int_equal(g.invocations, 2);
    g = invocations("never");
    assert_true(!g.failed && g.invocations == 0);
    const struct invocation_question q = {.from = 0, .to = 60 * USEC_PER_SEC, .period_s = 60};
    bool called = false;
    invocations_cancel(invocations_read(c, open_gate, "asked", "v", &q, on_never_report, &called));
    (void)invocations("asked");
    assert_false(called);
    invocations_cancel(NULL);
}

static void test_names__taken_and_missing_are_answers(void **state)
{
    (void)state;
    struct got g = create_model("taken");
    assert_false(g.failed);
    g = create_model("taken");
    assert_true(g.exists && !g.failed);
    g = create_config("x", "none");
    assert_true(g.failed && !g.exists); /* what it names is missing: its own fault */
    assert_int_equal(g.failure.outcome, AWS_REFUSED);
    assert_string_equal(g.failure.code, "ValidationException");
    g = create_model("a_b");
    assert_true(g.failed && !g.exists);
    g = invoke("none", "x");
    assert_true(g.failed);
    assert_string_equal(g.failure.code, "ValidationError");
}

static void test_failures__are_told_apart(void **state)
{
    (void)state;
    struct got g = create_model("throttled");
    assert_true(g.failed);
    assert_int_equal(g.failure.outcome, AWS_THROTTLED);
    g = create_model("broken"); /* the answer is not JSON: it may have taken effect, and has */
    assert_true(g.failed);
    assert_int_equal(g.failure.outcome, AWS_UNKNOWN);
    g = create_model("broken");
    assert_true(g.exists && !g.failed);
    g = create_config("over", "broken");
    assert_false(g.failed);
    g = create_endpoint("over", "over");
    assert_true(g.failed && !g.exists);
    assert_string_equal(g.failure.code, "ResourceLimitExceeded");
    g = create_endpoint("fails", "over");
    assert_false(g.failed);
    g = wait_status("fails", "Failed");
    assert_string_equal(g.e.failure_reason, "no luck");
}

static void test_list__over_all_pages_newest_first(void **state)
{
    (void)state;
    struct got g;
    char name[16];
    for (int i = 0; i < 103; i++) {
        (void)snprintf(name, sizeof name, "list-%03d", i);
        g = create_model(name);
        assert_false(g.failed);
    }
    g = (struct got){.n = 0};
    (void)hosting_list(c, open_gate, HOSTING_MODEL, "list-", on_list, &g);
    run_until_answered(&g);
    assert_int_equal(g.rows_n, 103);
    assert_string_equal(g.rows[0].name, "list-102");
    assert_true(g.rows[0].created >= g.rows[1].created && g.rows[1].created > 0);
    assert_string_equal(g.rows[0].status, "");
}

static void test_list__of_every_kind(void **state)
{
    (void)state;
    assert_false(create_model("kinds-m").failed);
    assert_false(create_config("kinds-c", "kinds-m").failed);
    assert_false(create_endpoint("kinds-e", "kinds-c").failed);
    static const char *const names[HOSTING_KIND_COUNT] = {"kinds-m", "kinds-c", "kinds-e"};
    for (int kind = 0; kind < HOSTING_KIND_COUNT; kind++) {
        struct got g = {.n = 0};
        (void)hosting_list(c, open_gate, (enum hosting_kind)kind, "kinds-", on_list, &g);
        run_until_answered(&g);
        assert_int_equal(g.rows_n, 1);
        assert_string_equal(g.rows[0].name, names[kind]);
        assert_int_equal(g.rows[0].status[0] != '\0', kind == HOSTING_ENDPOINT);
        g = describe((enum hosting_kind)kind, names[kind]);
        assert_true(!g.failed && !g.not_found);
        assert_string_equal(g.e.name, names[kind]);
    }
    struct got g = wait_status("kinds-e", "InService");
    assert_string_equal(g.e.config, "kinds-c");
}

static void on_never(void *ctx, bool not_found, bool busy, const struct aws_failure *f)
{
    (void)not_found;
    (void)busy;
    (void)f;
    *(bool *)ctx = true;
}

static void test_cancel__is_silent(void **state)
{
    (void)state;
    bool called = false;
    hosting_cancel(hosting_delete(c, open_gate, HOSTING_MODEL, "none", on_never, &called));
    struct got g = describe(HOSTING_MODEL, "none");
    assert_true(g.not_found);
    assert_false(called);
    hosting_cancel(NULL);
}

static void test_table__every_create_is_named_and_paced(void **state)
{
    (void)state;
    for (int op = 0; op < AWS_OPERATION_COUNT; op++) {
        const struct aws_operation_info *i = aws_operation_info((enum aws_operation)op);
        bool makes = strncmp(i->name, "Create", 6) == 0 || strcmp(i->name, "UpdateEndpoint") == 0;
        assert_true(makes == (i->repeat == REPEAT_NAMED || i->repeat == REPEAT_TOKEN));
        assert_true(i->rate_per_minute > 0);
        assert_true(i->target == NULL || str_ends(str_of(i->target), i->name));
    }
}

static const char config[] =
    "{\"images\":{\"py\":[\"/usr/bin/python3\",\"-S\",\"-c\",\""
    "import http.server, os\\nclass H(http.server.BaseHTTPRequestHandler):\\n"
    " def log_message(self, *a): pass\\n"
    " def say(self, s, b):\\n  self.send_response(s); self.send_header('Content-Type', 'text/x');"
    " self.send_header('Content-Length', str(len(b))); self.end_headers(); self.wfile.write(b)\\n"
    " def do_GET(self): self.say(200, b'')\\n"
    " def do_POST(self):\\n  b = self.rfile.read(int(self.headers['Content-Length']))\\n"
    "  self.say(418, b'a teapot') if b == b'no' else self.say(200, b)\\n"
    "http.server.HTTPServer((os.environ['DROVER_HOST_ADDRESS'],"
    " int(os.environ['SAGEMAKER_BIND_TO_PORT'])), H).serve_forever()\"]},"
    "\"endpoint_quotas\":{\"ml.m5.large\":4},\"endpoint_start_seconds\":0.3,"
    "\"endpoint_stop_seconds\":0.05,\"kill_jobs_on_exit\":true,\"faults\":["
    "{\"kind\":\"throttle\",\"operation\":\"CreateModel\",\"name_contains\":\"throttled\"},"
    "{\"kind\":\"html_error\",\"operation\":\"CreateModel\",\"name_contains\":\"broken\"},"
    "{\"kind\":\"html_error\",\"operation\":\"GetMetricStatistics\",\"times\":1},"
    "{\"kind\":\"throttle\",\"operation\":\"GetMetricStatistics\",\"after\":1},"
    "{\"kind\":\"quota_refuse\",\"operation\":\"CreateEndpoint\",\"name_contains\":\"over\"},"
    "{\"kind\":\"job_failure\",\"operation\":\"CreateEndpoint\",\"name_contains\":\"fails\","
    "\"reason\":\"no luck\"}]}";

static int setup(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    local_start(&local, config);
    const struct aws_config cfg = {.user_agent = "test/1"};
    ASSERT(loop_new(&l, &err) && aws_client_new(l, &cfg, &c, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aws_client_free(c);
    loop_free(l);
    local_stop(&local);
    return 0;
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life__of_an_endpoint),
        cmocka_unit_test(test_invocations__are_counted_or_not_known),
        cmocka_unit_test(test_names__taken_and_missing_are_answers),
        cmocka_unit_test(test_failures__are_told_apart),
        cmocka_unit_test(test_list__over_all_pages_newest_first),
        cmocka_unit_test(test_list__of_every_kind),
        cmocka_unit_test(test_cancel__is_silent),
        cmocka_unit_test(test_table__every_create_is_named_and_paced),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
