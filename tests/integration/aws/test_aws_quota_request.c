/* Aim: a higher quota is asked for once, by the code of its name wherever that is listed, and what
 * AWS says of it is told; a name that AWS does not know is an answer. Method:
 * build/bin/drover-local. */
#include "aws/quota_request.h"
#include "common/clock.h"
#include "tests/kit/local.h"
#include "tests/unit/unit.h"

static struct local local;
static struct loop *l;
static struct aws_client *c;

struct got {
    int n;
    bool none;
    struct aws_failure failure;
    char status[33];
};

static void on_asked(void *ctx, const char *id, const char *status, const struct aws_failure *f)
{
    struct got *g = ctx;
    g->n++;
    g->none = id == NULL && f == NULL;
    if (f != NULL) {
        g->failure = *f;
    } else if (id != NULL) {
        assert_true(id[0] != '\0');
        (void)snprintf(g->status, sizeof g->status, "%s", status);
    }
}

static struct got ask(const char *name, int64_t value)
{
    struct got g = {.n = 0};
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    quota_request(c, name, value, on_asked, &g);
    while (g.n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
    assert_int_equal(g.n, 1);
    return g;
}

static void test_quota_request__is_taken_once(void **state)
{
    (void)state;
    assert_string_equal(ask("ml.m5.large for training warm pool usage", 8).status, "PENDING");
    assert_string_equal(ask("ml.m5.large for training job usage", 8).status, "PENDING");
    struct got again = ask("ml.m5.large for training job usage", 9);
    assert_int_equal(again.failure.outcome, AWS_REFUSED);
    assert_string_equal(again.failure.code, "ResourceAlreadyExistsException");
}

static void test_quota_request__less_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ask("ml.m5.large for spot training job usage", 0).failure.outcome,
                     AWS_REFUSED);
}

static void test_quota_request__a_name_that_there_is_not(void **state)
{
    (void)state;
    assert_true(ask("ml.m5.huge for training job usage", 8).none);
}

static int setup(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    local_start(&local, "{\"quotas\":{\"ml.m5.large\":4}}");
    bool ok =
        loop_new(&l, &err) && aws_client_new(l, &(struct aws_config){.region = NULL}, &c, &err);
    return ok ? 0 : 1;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_request__is_taken_once),
        cmocka_unit_test(test_quota_request__less_is_refused),
        cmocka_unit_test(test_quota_request__a_name_that_there_is_not),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("aws quota request", tests, setup, teardown);
}
