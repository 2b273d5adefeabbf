/* Aim: an endpoint that serves another stage's model asks for it until it is known, ever less
 * often, and learns when none will ever come. Method: a campaign of two stages made by hand. */
#include "core/leader/endpoint_model.h"
#include "leader_world.h"

struct model_world {
    struct leader_world w;
    struct spec_stage spec;
    struct spec_endpoint endpoint;
    struct live_stage *ls;
    struct model_ask m;
};

/* Stage 70 has made the model, stage 71 serves it. */
static void serve_init(struct model_world *t, const char *maker)
{
    leader_world_init(&t->w);
    struct live_campaign *lc = t->w.lc;
    lc->stages = xrealloc(lc->stages, 2 * sizeof *lc->stages);
    lc->stages_n = 2;
    memset(&lc->stages[1], 0, sizeof lc->stages[1]);
    t->ls = &lc->stages[1];
    t->endpoint = (struct spec_endpoint){.model_stage = maker, .ttl_s = 7200};
    t->spec = t->w.spec;
    t->spec.kind = SPEC_KIND_ENDPOINT;
    t->spec.endpoint = &t->endpoint;
    t->ls->spec = &t->spec;
    t->ls->row = (struct stage_row){.id = 71, .campaign_id = 7, .state = STAGE_RUNNING};
    (void)snprintf(t->ls->row.name, sizeof t->ls->row.name, "deploy");
    t->ls->ready = ready_queue_new();
    leader_model_begin(&t->m, lc, t->ls);
}

static const char *described(struct model_world *t, const char *artifacts, int64_t boot_us)
{
    struct job_description job = {.billable_s = 1};
    (void)snprintf(job.artifacts, sizeof job.artifacts, "%s", artifacts);
    return leader_model_described(&t->m, &job, false, NULL, boot_us);
}

static void test_endpoint_model__the_stage_that_is_named_makes_it(void **state)
{
    (void)state;
    struct model_world t;
    serve_init(&t, "shards");
    assert_int_equal(t.m.campaign_id, 7);
    assert_int_equal(t.m.stage_id, 71);
    assert_int_equal(t.m.made_by, 70);
    leader_world_done(&t.w);
    serve_init(&t, "another");
    assert_int_equal(t.m.made_by, 0);
    leader_world_done(&t.w);
}

static void test_endpoint_model__asked_for_while_its_stage_is_to_deploy(void **state)
{
    (void)state;
    struct model_world t;
    serve_init(&t, "shards");
    assert_true(leader_model_wanted(&t.w.s, &t.m, WALL));
    t.ls->row.state = STAGE_CANCELLED;
    assert_false(leader_model_wanted(&t.w.s, &t.m, WALL));
    t.ls->row.state = STAGE_RUNNING;
    t.m.campaign_id = 8;
    assert_false(leader_model_wanted(&t.w.s, &t.m, WALL));
    leader_world_done(&t.w);
}

static void test_endpoint_model__what_a_describe_tells(void **state)
{
    (void)state;
    struct model_world t;
    const struct aws_failure f = {.outcome = AWS_UNKNOWN, .message = "slow down"};
    serve_init(&t, "shards");
    assert_true(leader_model_due(&t.m, BOOT));
    assert_string_equal(leader_model_described(&t.m, NULL, false, &f, BOOT), "slow down");
    assert_false(leader_model_due(&t.m, BOOT + 2 * SEC - 1));
    assert_true(leader_model_due(&t.m, BOOT + 2 * SEC));
    assert_string_equal(leader_model_described(&t.m, NULL, true, NULL, BOOT), "no such job");
    assert_false(leader_model_due(&t.m, BOOT + 4 * SEC - 1));
    assert_string_equal(described(&t, "", BOOT), "no artifacts");
    for (int i = 0; i < 40; i++) {
        leader_model_again(&t.m, BOOT);
    }
    assert_false(leader_model_due(&t.m, BOOT + 60 * SEC - 1));
    assert_true(leader_model_due(&t.m, BOOT + 60 * SEC));
    assert_string_equal(t.m.place, "");
    assert_null(described(&t, "s3://b/model.tar.gz", BOOT));
    assert_string_equal(t.m.place, "s3://b/model.tar.gz");
    leader_world_done(&t.w);
}

static void test_endpoint_model__no_job_that_ended_well_is_told(void **state)
{
    (void)state;
    struct model_world t;
    serve_init(&t, "shards");
    (void)snprintf(t.m.job.s, sizeof t.m.job.s, "d-7-shards-0-a1-00000000");
    assert_true(leader_model_job_read(&t.m, t.ls));
    assert_false(t.ls->endpoint_no_model);
    t.m.job.s[0] = '\0';
    assert_false(leader_model_job_read(&t.m, t.ls));
    assert_true(t.ls->endpoint_no_model);
    leader_world_done(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_model__the_stage_that_is_named_makes_it),
        cmocka_unit_test(test_endpoint_model__asked_for_while_its_stage_is_to_deploy),
        cmocka_unit_test(test_endpoint_model__what_a_describe_tells),
        cmocka_unit_test(test_endpoint_model__no_job_that_ended_well_is_told),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
