/* Aim: a stage of kind endpoint deploys when it runs, one try at a time and under a name of its
 * own, with its whole time reserved; what its tries have come to ends the stage, and a cancelled
 * campaign waits for its endpoint. Method: a running stage of kind endpoint in a state made by
 * hand. */
#include "core/leader/campaign_life.h"
#include "core/leader/endpoint_intent.h"
#include "core/leader/resource_pace.h"
#include "leader_world.h"

static const struct spec spec = {.name = "laion"};

struct deploy {
    struct leader_world w;
    struct spec_endpoint endpoint;
};

static void deploy_init(struct deploy *d)
{
    leader_world_init(&d->w);
    d->endpoint =
        (struct spec_endpoint){.model_data = "s3://b/model.tar.gz", .ttl_s = 7200, .idle_s = 600};
    d->w.spec.kind = SPEC_KIND_ENDPOINT;
    d->w.spec.name = "deploy";
    d->w.spec.endpoint = &d->endpoint;
    d->w.spec.image = "r/x:1";
    d->w.spec.role = "arn:aws:iam::111122223333:role/r";
    d->w.spec.instance_type_n = 1;
    d->w.spec.instance_count = 2;
    (void)memset(d->w.ls->row.counts, 0, sizeof d->w.ls->row.counts);
    d->w.ls->row.tasks = 0;
    d->w.ls->row.closed = true;
    d->w.lc->spec = (struct spec *)(uintptr_t)&spec;
}

static void plan(struct deploy *d, int n, struct endpoint_row *row, struct endpoint_requests *r)
{
    enum wait_reason why;
    struct err err = ERR_INIT;
    const struct endpoint_intent_facts f = {
        .endpoint_id = 5, .n = n, .job_prefix = "d", .region = "us-east-1", .now_us = WALL};
    assert_true(leader_plan_endpoint_intent(&d->w.s, d->w.lc, d->w.ls, &f, row, r, &why, &err));
    assert_int_equal(why, row->price_musd_per_hour < 0 ? WAIT_PRICE_UNKNOWN : WAIT_NONE);
}

static struct live_endpoint *intended(struct deploy *d, int n)
{
    struct endpoint_row row;
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    endpoint_requests_init(&r);
    plan(d, n, &row, &r);
    row.id = n;
    return leader_apply_endpoint_intent(&d->w.s, &row);
}

static void test_endpoint_intent__reserves_its_whole_time_under_a_name_of_the_try(void **state)
{
    (void)state;
    struct deploy d;
    struct endpoint_row row[3];
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    endpoint_requests_init(&r);
    deploy_init(&d);
    plan(&d, 1, &row[0], &r);
    assert_int_equal(row[0].reserved_musd, 2 * (7200 + 120 + 900) * 1000);
    assert_int_equal(row[0].ttl_s, 7200);
    assert_int_equal(row[0].idle_s, 600);
    assert_non_null(strstr(buf_cstr(&r.endpoint), row[0].name.s));
    assert_non_null(strstr(buf_cstr(&r.model), "s3://b/model.tar.gz"));
    plan(&d, 1, &row[1], &r);
    assert_string_equal(row[0].name.s, row[1].name.s);
    plan(&d, 2, &row[2], &r);
    assert_string_not_equal(strrchr(row[0].name.s, '-'), strrchr(row[2].name.s, '-'));
    (void)snprintf(d.w.lc->row.nonce, sizeof d.w.lc->row.nonce, "restored");
    plan(&d, 1, &row[2], &r);
    assert_string_not_equal(row[0].name.s, row[2].name.s);
    leader_world_done(&d.w);
}

static void test_endpoint_intent__an_hour_of_hosting_has_a_price_of_its_own(void **state)
{
    (void)state;
    struct deploy d;
    struct endpoint_row row;
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    endpoint_requests_init(&r);
    deploy_init(&d);
    assert_int_equal(leader_hosting_price(&d.w.s, "ml.a.large"), 3600000);
    leader_state_slots(&d.w.s, "hosting:ml.a.large", MARKET_ON_DEMAND)->s.price_musd_per_hour = 7;
    assert_int_equal(leader_hosting_price(&d.w.s, "ml.a.large"), 7);
    d.w.spec.instance_type[0] = "ml.unknown";
    plan(&d, 1, &row, &r);
    assert_int_equal(row.price_musd_per_hour, -1);
    leader_world_done(&d.w);
}

static bool due(struct deploy *d, usec_t now_us, int *ret_n)
{
    *ret_n = 0;
    return leader_endpoint_due(&d->w.s, d->w.lc, d->w.ls, now_us, ret_n);
}

static void test_endpoint_intent__is_due_while_its_stage_and_campaign_run(void **state)
{
    (void)state;
    struct deploy d;
    int n;
    deploy_init(&d);
    d.w.s.tries_unread = true; /* an earlier one may have its name */
    assert_false(due(&d, WALL, &n));
    d.w.s.tries_unread = false;
    assert_true(due(&d, WALL, &n));
    assert_int_equal(n, 1);
    d.w.ls->row.state = STAGE_BLOCKED;
    assert_false(due(&d, WALL, &n));
    d.w.ls->row.state = STAGE_RUNNING;
    d.w.lc->row.wanted = WANTED_PAUSE;
    assert_false(due(&d, WALL, &n));
    d.w.lc->row.wanted = WANTED_RUN;
    d.w.lc->row.state = CAMPAIGN_HELD;
    assert_false(due(&d, WALL, &n));
    d.w.lc->row.state = CAMPAIGN_RUNNING;
    d.w.lc->set_aside = WAIT_PARKED;
    assert_false(due(&d, WALL, &n));
    d.w.lc->set_aside = WAIT_NONE;
    d.w.spec.kind = SPEC_KIND_JOBS;
    assert_false(due(&d, WALL, &n));
    leader_world_done(&d.w);
}

static enum endpoint_verdict verdict(struct deploy *d)
{
    leader_endpoints_mark(&d->w.s);
    return d->w.ls->endpoint;
}

static void
test_endpoint_intent__the_next_try_waits_for_the_proof_that_the_last_is_gone(void **state)
{
    (void)state;
    struct deploy d;
    int n;
    deploy_init(&d);
    struct live_endpoint *e = intended(&d, 1);
    assert_false(due(&d, WALL, &n));
    e->row.state = ENDPOINT_DELETING;
    e->row.failed = true;
    e->row.cause = CAUSE_CAPACITY;
    assert_false(due(&d, WALL, &n));
    assert_int_equal(verdict(&d), ENDPOINT_NOT_YET);
    assert_true(d.w.ls->endpoint_there);
    e->row.state = ENDPOINT_FAILED;
    e->row.ended_us = WALL;
    assert_int_equal(verdict(&d), ENDPOINT_NOT_YET);
    assert_false(d.w.ls->endpoint_there);
    assert_false(due(&d, WALL, &n)); /* the wait of its cause */
    assert_true(due(&d, WALL + 1800 * SEC, &n));
    assert_int_equal(n, 2);
    e->row.cause = CAUSE_INTERNAL; /* five more tries */
    e->row.n = 5;
    assert_int_equal(verdict(&d), ENDPOINT_NOT_YET);
    e->row.n = 6;
    assert_int_equal(verdict(&d), ENDPOINT_GAVE_UP);
    assert_false(due(&d, WALL + 18000 * SEC, &n));
    leader_world_done(&d.w);
}

static void moves_to(struct deploy *d, int stage, int campaign)
{
    struct campaign_life_writes w;
    leader_endpoints_mark(&d->w.s);
    campaign_life_plan(d->w.lc, &w);
    assert_int_equal(w.n, (stage >= 0) + (campaign >= 0));
    if (w.n > 0) {
        assert_int_equal(w.moves[0].to, stage >= 0 ? stage : campaign);
        assert_int_equal(w.moves[0].stage_id != 0, stage >= 0);
    }
}

static void test_endpoint_intent__its_stage_ends_when_it_serves_or_gives_up(void **state)
{
    (void)state;
    struct deploy d;
    deploy_init(&d);
    moves_to(&d, -1, -1); /* no parts, and yet it has not ended */
    struct live_endpoint *e = intended(&d, 1);
    e->row.state = ENDPOINT_IN_SERVICE;
    moves_to(&d, -1, -1); /* its test is still to come */
    e->row.passed = true;
    moves_to(&d, STAGE_SUCCEEDED, -1);
    e->row.passed = false;
    e->row.failed = true;
    e->row.state = ENDPOINT_FAILED;
    e->row.cause = CAUSE_USER_CODE;
    (void)snprintf(e->row.reason, sizeof e->row.reason, "smoke test: p95");
    moves_to(&d, STAGE_FAILED, -1);
    assert_string_equal(d.w.ls->endpoint_why, "smoke test: p95");
    e->row.failed = false; /* a person deleted it before it served */
    e->row.state = ENDPOINT_DELETED;
    moves_to(&d, STAGE_FAILED, -1);
    leader_world_done(&d.w);
}

static void test_endpoint_intent__a_cancelled_campaign_waits_until_it_is_gone(void **state)
{
    (void)state;
    struct deploy d;
    deploy_init(&d);
    struct live_endpoint *e = intended(&d, 1);
    e->row.state = ENDPOINT_CREATING;
    d.w.lc->row.wanted = WANTED_CANCEL;
    moves_to(&d, -1, -1);
    e->row.state = ENDPOINT_DELETED;
    moves_to(&d, STAGE_CANCELLED, -1);

    d.w.ls->row.state = STAGE_SUCCEEDED; /* it serves, another stage is cancelled */
    e->row.state = ENDPOINT_IN_SERVICE;
    e->row.passed = true;
    moves_to(&d, -1, -1);
    d.w.lc->row.wanted = WANTED_RUN; /* without a cancel its time goes on after the campaign */
    moves_to(&d, -1, CAMPAIGN_SUCCEEDED);
    leader_world_done(&d.w);
}

static void test_endpoint_intent__without_a_model_its_stage_fails(void **state)
{
    (void)state;
    struct deploy d;
    int n;
    deploy_init(&d);
    d.endpoint.model_stage = "train";
    moves_to(&d, -1, -1);
    leader_endpoint_no_model(d.w.ls);
    assert_false(leader_endpoint_due(&d.w.s, d.w.lc, d.w.ls, WALL, &n));
    moves_to(&d, STAGE_FAILED, -1);
    assert_string_equal(d.w.ls->endpoint_why,
                        "no job of stage train has ended well: there is no model to serve");

    struct live_endpoint *e = intended(&d, 1); /* nor with a try that failed */
    e->row.failed = true;
    e->row.cause = CAUSE_CAPACITY;
    moves_to(&d, -1, -1);
    e->row.state = ENDPOINT_FAILED;
    moves_to(&d, STAGE_FAILED, -1);

    d.w.ls->row.state = STAGE_BLOCKED; /* the training is retried */
    leader_endpoints_mark(&d.w.s);
    d.w.ls->row.state = STAGE_RUNNING;
    moves_to(&d, -1, -1);
    assert_true(leader_endpoint_due(&d.w.s, d.w.lc, d.w.ls, WALL + 86400 * USEC_PER_SEC, &n));
    leader_world_done(&d.w);
}

/* As one of a campaign that was stored before its file would have been refused. */
static void test_endpoint_intent__of_which_no_request_can_be_made_its_stage_fails(void **state)
{
    (void)state;
    struct deploy d;
    struct err err = ERR_INIT;
    int n;
    deploy_init(&d);
    (void)err_set(&err, ERR_INVALID, "the place of the model is 1100 bytes long");
    resource_pace_not_built(d.w.ls, &err, BOOT);
    assert_false(due(&d, WALL, &n));
    moves_to(&d, STAGE_FAILED, -1);
    assert_string_equal(d.w.ls->endpoint_why, "no request can be made of it: the place of the "
                                              "model is 1100 bytes long");
    struct live_endpoint *e = intended(&d, 1);
    moves_to(&d, -1, -1); /* not before the try that is there has ended */
    e->row.failed = true;
    e->row.cause = CAUSE_CAPACITY;
    e->row.state = ENDPOINT_FAILED;
    moves_to(&d, STAGE_FAILED, -1);
    d.w.ls->row.state = STAGE_BLOCKED; /* what is before it is retried: perhaps with less */
    leader_endpoints_mark(&d.w.s);
    d.w.ls->row.state = STAGE_RUNNING;
    moves_to(&d, -1, -1);
    assert_true(due(&d, WALL + 1800 * SEC, &n));
    leader_world_done(&d.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_intent__reserves_its_whole_time_under_a_name_of_the_try),
        cmocka_unit_test(test_endpoint_intent__an_hour_of_hosting_has_a_price_of_its_own),
        cmocka_unit_test(test_endpoint_intent__is_due_while_its_stage_and_campaign_run),
        cmocka_unit_test(
            test_endpoint_intent__the_next_try_waits_for_the_proof_that_the_last_is_gone),
        cmocka_unit_test(test_endpoint_intent__its_stage_ends_when_it_serves_or_gives_up),
        cmocka_unit_test(test_endpoint_intent__a_cancelled_campaign_waits_until_it_is_gone),
        cmocka_unit_test(test_endpoint_intent__without_a_model_its_stage_fails),
        cmocka_unit_test(test_endpoint_intent__of_which_no_request_can_be_made_its_stage_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
