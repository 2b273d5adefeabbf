/* Aim: of Service Quotas' answers only numbers count as limits, and what could not be read is not
 * said to be unlimited. Method: pages as texts; calls are made by test_aws_sagemaker. */
#include "orchestrator/aws/quotas.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct got {
    int n;
    int64_t training, volume;
    bool whole;
};

static void on_reading(void *ctx, const struct quota_reading *r, const struct aws_failure *f)
{
    struct got *g = ctx;
    assert_null(f);
    *g = (struct got){.n = g->n + 1,
                      .training = r->training_n > 0 ? r->training[0].limit : -1,
                      .volume = r->volume_max_gib,
                      .whole = r->whole};
}

/* The last page of the defaults is answered with this; NULL: it is refused. */
static struct got ends_with(const char *page)
{
    struct got g = {.n = 0};
    const struct aws_failure refused = {.outcome = AWS_REFUSED};
    struct quotas_call *call = xcalloc(1, sizeof *call);
    AUTO_JSON json_t *o = page != NULL ? json_loads(page, 0, NULL) : NULL;
    assert_true(page == NULL || o != NULL);
    call->from = AWS_OP_ListAWSDefaultServiceQuotas;
    call->cb = on_reading;
    call->ctx = &g;
    call->reading.volume_max_gib = -1;
    on_page(call, o, page != NULL ? NULL : &refused);
    assert_int_equal(g.n, 1);
    return g;
}

#define ROW(name, rest) "{\"QuotaName\":\"" name "\"" rest "}"
#define TRAINING        "ml.m5.large for training job usage"
#define VOLUME          "Size of EBS volume for a training job instance"

static void test_quotas__a_row_without_a_number_is_none(void **state)
{
    (void)state;
    static const char *const rests[] = {"", ",\"Value\":null", ",\"Value\":\"8\"",
                                        ",\"ErrorReason\":{\"ErrorCode\":\"DEPENDENCY\"}"};
    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        AUTO_BUF struct buf page = BUF_INIT(4096);
        buf_addf(&page,
                 "{\"Quotas\":[{\"QuotaName\":\"" TRAINING "\"%s},{\"QuotaName\":\"" VOLUME
                 "\"%s}]}",
                 rests[i], rests[i]);
        struct got g = ends_with(buf_cstr(&page));
        assert_true(g.training == -1 && g.volume == -1 && g.whole);
    }
    struct got g = ends_with(
        "{\"Quotas\":[" ROW(TRAINING, ",\"Value\":0") "," ROW(VOLUME, ",\"Value\":512.0") "]}");
    assert_true(g.training == 0 && g.volume == 512);
}

static void test_quotas__refused_defaults_are_not_all_there_is(void **state)
{
    (void)state;
    assert_true(ends_with("{\"Quotas\":[]}").whole);
    assert_false(ends_with(NULL).whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotas__a_row_without_a_number_is_none),
        cmocka_unit_test(test_quotas__refused_defaults_are_not_all_there_is),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("quotas", tests, NULL, NULL);
}
