/* Aim: a job without a row is adopted exactly when it has the name that one of our parts would have
 * had and says what it may cost. Method: names made by the product for parts of campaigns by hand,
 * then broken. */
#include "common/json.h"
#include "core/leader/adoption.h"
#include "core/leader/intents.h"
#include "core/money/cost.h"
#include "leader_world.h"
#include "store/leader/lease.h"

#define PREFIX "d"

/* The job of part seq of the world's stage, attempt n, task id `task`. */
static struct job_description job_of(const struct leader_world *w, int64_t seq, int n, int64_t task)
{
    struct job_description job = {.instances = 2,
                                  .instance_type = "ml.a.large",
                                  .volume_gb = 30,
                                  .max_runtime_s = 3600,
                                  .keep_alive_s = 600,
                                  .request_hash = "proof",
                                  .attempt_id = 55,
                                  .created = WALL};
    const struct intent in = {
        .campaign_id = 7, .stage_id = 70, .task_id = task, .seq = (int32_t)seq, .n = n};
    uint8_t id[32];
    struct job_name name;
    leader_intent_identity(&w->s, w->lc->row.nonce, &in, id);
    protocol_job_name(PREFIX, 7, w->ls->row.name, seq, n, id, &name);
    (void)snprintf(job.name, sizeof job.name, "%s", name.s);
    return job;
}

static void world_init(struct leader_world *w)
{
    leader_world_init(w);
    (void)snprintf(w->s.install_id, sizeof w->s.install_id, "here");
    w->ls->row.taken = 100;
}

static void test_adoption__a_part_of_ours_is_found(void **state)
{
    (void)state;
    struct leader_world w;
    struct adoption_place place;
    struct adoption a;
    int cursor = 0;
    world_init(&w);
    struct job_description job = job_of(&w, 42, 3, 1042);
    assert_true(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_int_equal(place.campaign_id, 7);
    assert_int_equal(place.stage_id, 70);
    assert_int_equal(place.seq, 42);
    assert_int_equal(place.n, 3);
    assert_true(adoption_of(&w.s, PREFIX, &job, &place, 1042, &a));
    assert_string_equal(a.intent.name.s, job.name);
    assert_string_equal(a.intent.identity_hash, "proof");
    assert_string_equal(a.intent.instance_type, "ml.a.large");
    assert_int_equal(a.intent.task_id, 1042);
    assert_int_equal(a.intent.attempt_id, 55);
    assert_int_equal(a.intent.instances, 2);
    assert_int_equal(a.intent.keep_alive_s, 600);
    assert_int_equal(a.intent.market, MARKET_ON_DEMAND);
    assert_int_equal(a.created_us, WALL);
    assert_true(a.intent.reserve_musd >= 2 * 3600000); /* two instances for an hour, at least */
    assert_false(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_false(adoption_of(&w.s, PREFIX, &job, &place, 1043, &a)); /* another task's id */
    job = job_of(&w, 42, 3, 0);
    assert_false(adoption_of(&w.s, PREFIX, &job, &place, 0, &a)); /* no such part */
    leader_world_done(&w);
}

static void test_adoption__another_installations_job_is_not_ours(void **state)
{
    (void)state;
    struct leader_world w;
    struct adoption_place place;
    struct adoption a;
    int cursor = 0;
    world_init(&w);
    struct job_description job = job_of(&w, 42, 3, 1042);
    (void)snprintf(w.s.install_id, sizeof w.s.install_id, "elsewhere");
    assert_true(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_false(adoption_of(&w.s, PREFIX, &job, &place, 1042, &a));
    leader_world_done(&w);
}

static void test_adoption__names_that_no_part_would_have(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "d",
        "d-7-shards-42-a1",                   /* no hash */
        "d-7-shards-42-a0-00000000",          /* attempts begin with 1 */
        "d-7-shards-42-a32001-00000000",      /* no such attempt number */
        "d-7-shards-42-b1-00000000",          /* no attempt */
        "d-7-shards--a1-00000000",            /* no part */
        "d-7-shards-99999999999-a1-00000000", /* no such part number */
        "d-7-shards-100-a1-00000000",         /* a part that was never taken in */
        "e-7-shards-42-a1-00000000",          /* another prefix */
        "d-8-shards-42-a1-00000000",          /* another campaign */
        "d-7-other-42-a1-00000000",           /* another stage */
        "d-7-shards-42-a1-000000000",         /* too long */
        "42-a1-00000000",
    };
    struct leader_world w;
    struct adoption_place place;
    world_init(&w);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int cursor = 0;
        if (adoption_next_place(&w.s, PREFIX, names[i], &cursor, &place)) {
            fail_msg("'%s' has a place", names[i]);
        }
    }
    int cursor = 0;
    assert_true(
        adoption_next_place(&w.s, PREFIX, "d-7-shards-99-a32000-ffffffff", &cursor, &place));
    cursor = 0;
    w.ls->spec = NULL; /* a kind that this version does not run has no jobs of ours */
    assert_false(adoption_next_place(&w.s, PREFIX, "d-7-shards-42-a1-00000000", &cursor, &place));
    leader_world_done(&w);
}

static void test_adoption__a_job_must_say_what_it_costs(void **state)
{
    (void)state;
    struct leader_world w;
    struct adoption_place place;
    struct adoption a;
    int cursor = 0;
    world_init(&w);
    const struct job_description whole = job_of(&w, 42, 3, 1042);
    struct job_description jobs[9];
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = whole;
    }
    jobs[0].instances = 0;
    jobs[1].instances = (int64_t)INT32_MAX + 1;
    jobs[2].instance_type[0] = '\0';
    jobs[3].volume_gb = -1;
    jobs[4].volume_gb = (int64_t)INT32_MAX + 1;
    jobs[5].max_runtime_s = 0;
    jobs[6].keep_alive_s = -1;
    jobs[7].request_hash[0] = '\0';
    jobs[8].attempt_id = 0;
    assert_true(adoption_next_place(&w.s, PREFIX, whole.name, &cursor, &place));
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        assert_false(adoption_of(&w.s, PREFIX, &jobs[i], &place, 1042, &a));
    }
    jobs[0] = whole;
    jobs[0].spot = true; /* leaves no pool, and counts in its own market */
    assert_true(adoption_of(&w.s, PREFIX, &jobs[0], &place, 1042, &a));
    assert_int_equal(a.intent.keep_alive_s, 0);
    assert_int_equal(a.intent.market, MARKET_SPOT);
    leader_state_slots(&w.s, "ml.c.large", MARKET_ON_DEMAND);
    (void)snprintf(jobs[0].instance_type, sizeof jobs[0].instance_type, "ml.c.large");
    jobs[0].spot = false; /* no price is known */
    assert_true(adoption_of(&w.s, PREFIX, &jobs[0], &place, 1042, &a));
    assert_int_equal(a.intent.reserve_musd, 0);
    leader_world_done(&w);
}

/* Made of its job before its type had a price: it reserves what it may cost at worst as soon as it
 * has one. */
static void test_adoption__a_price_that_comes_late_reserves(void **state)
{
    (void)state;
    struct leader_world w;
    struct late_price p;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 2);
    musd_t *price =
        &leader_state_slots(&w.s, a->row.instance_type, a->row.market)->s.price_musd_per_hour;
    const musd_t known = *price, all = w.s.projects[0].reserved_musd;
    struct err err = ERR_INIT;
    musd_t worst;
    a->row.keep_alive_s = 60;
    assert_true(cost_worst_case(known, a->row.instances, a->row.max_runtime_s, 60, &worst, &err));
    assert_false(adoption_plan_price(&w.s, a, &p)); /* it has one */
    a->row.price_musd_per_hour = 0;
    a->account.reserved_musd = 70; /* of the row it was recast from */
    *price = -1;
    assert_false(adoption_plan_price(&w.s, a, &p));
    *price = known;
    a->recording = true; /* what is planned has its account */
    assert_false(adoption_plan_price(&w.s, a, &p));
    a->recording = a->row.holds = false;
    assert_false(adoption_plan_price(&w.s, a, &p));
    a->row.holds = true;
    assert_true(adoption_plan_price(&w.s, a, &p));
    assert_true(p.attempt_id == 1 && p.price_musd_per_hour == known);
    assert_int_equal(p.more_musd, worst - 70);
    adoption_apply_price(&w.s, a, &p);
    assert_int_equal(a->row.price_musd_per_hour, known);
    assert_int_equal(a->account.reserved_musd, worst);
    assert_int_equal(w.s.projects[0].reserved_musd, all + worst - 70);
    assert_int_equal(a->stage->row.reserved_musd, w.lc->row.reserved_musd);
    assert_false(adoption_plan_price(&w.s, a, &p)); /* once */
    a->row.price_musd_per_hour = 0;
    a->account.reserved_musd = worst + 1; /* a dearer row: what is reserved stays */
    assert_true(adoption_plan_price(&w.s, a, &p));
    assert_int_equal(p.more_musd, 0);
    *price = INT64_MAX / 2; /* more than fits */
    assert_true(adoption_plan_price(&w.s, a, &p));
    assert_int_equal(p.more_musd, 0);
    leader_world_done(&w);
}

static void test_adoption__every_stage_whose_name_agrees_is_tried(void **state)
{
    (void)state;
    struct leader_world w;
    struct adoption_place place;
    int cursor = 0;
    world_init(&w);
    struct job_description job = job_of(&w, 42, 3, 1042);
    struct live_campaign *twin = leader_world_campaign(&w, 8, 4);
    twin->stages[0].row.campaign_id = 7; /* cut names may agree: only the hash tells them apart */
    twin->stages[0].row.taken = 100;
    assert_true(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_int_equal(place.stage_id, 70);
    assert_true(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_int_equal(place.stage_id, 80);
    assert_false(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    leader_world_done(&w);
}

static void test_adoption__reads_like_ours(void **state)
{
    (void)state;
    assert_true(adoption_like_ours("d", "d-7-shards-42-a1-0a1b2c3d"));
    assert_true(adoption_like_ours("team_a", "team-a-7-42-a1-0a1b2c3d"));
    assert_false(adoption_like_ours("d", "e-7-shards-42-a1-0a1b2c3d"));
    assert_false(adoption_like_ours("d", "d-shards-42-a1-0a1b2c3d"));
    assert_false(adoption_like_ours("d", "d-7-shards-42"));
}

static void test_adoption__is_ours_by_its_very_name(void **state)
{
    (void)state;
    struct leader_world w;
    struct adoption_place place;
    int cursor = 0;
    world_init(&w);
    struct job_description job = job_of(&w, 42, 3, 1042);
    assert_true(adoption_next_place(&w.s, PREFIX, job.name, &cursor, &place));
    assert_true(adoption_is_ours(&w.s, PREFIX, job.name, &place, 1042));
    assert_false(adoption_is_ours(&w.s, PREFIX, job.name, &place, 1043));
    assert_false(adoption_is_ours(&w.s, PREFIX, job.name, &place, 0));
    (void)snprintf(w.lc->row.nonce, sizeof w.lc->row.nonce, "another campaign's");
    assert_false(adoption_is_ours(&w.s, PREFIX, job.name, &place, 1042));
    place.campaign_id = 8;
    assert_false(adoption_is_ours(&w.s, PREFIX, job.name, &place, 1042));
    leader_world_done(&w);
}

static void test_adoption__an_attempt_becomes_the_forgotten_one_of_its_name(void **state)
{
    (void)state;
    struct leader_world w;
    struct intent in;
    world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct job_description job = job_of(&w, 42, 3, 1042);
    (void)snprintf(job.name, sizeof job.name, "%s", a->row.name.s);
    (void)snprintf(job.request_hash, sizeof job.request_hash, "%064d", 7);
    (void)snprintf(a->row.identity_hash, sizeof a->row.identity_hash, "%064d", 8);
    assert_false(adoption_recast(&w.s, a, &job, &in)); /* it has not been sent in doubt */
    a->p.state = ATTEMPT_UNKNOWN;
    assert_true(adoption_recast(&w.s, a, &job, &in));
    assert_string_equal(in.identity_hash, job.request_hash);
    assert_string_equal(in.instance_type, "ml.a.large");
    assert_int_equal(in.instances, 2);
    assert_int_equal(in.keep_alive_s, 600);
    assert_int_equal(in.price_musd_per_hour, 3600000);
    bool recast = false;
    struct fact f = adoption_described(&w.s, a, &job, false, false, WALL, BOOT, &recast, &in);
    assert_true(recast && f.kind == FACT_DESCRIBE_FAILED); /* nothing else is concluded */
    f = adoption_described(&w.s, a, &job, true, false, WALL, BOOT, &recast, &in);
    assert_true(!recast && f.kind == FACT_NOT_FOUND);
    f = adoption_described(&w.s, a, &job, false, true, WALL, BOOT, &recast, &in);
    assert_true(!recast && f.kind == FACT_DESCRIBE_FAILED);
    job.attempt_id = 0;
    f = adoption_described(&w.s, a, &job, false, false, WALL, BOOT, &recast, &in);
    assert_true(!recast && f.kind == FACT_DESCRIBED);
    assert_false(adoption_recast(&w.s, a, &job, &in));
    job.attempt_id = 55;
    (void)snprintf(job.request_hash, sizeof job.request_hash, "a stranger's: a conflict");
    assert_false(adoption_recast(&w.s, a, &job, &in));
    (void)snprintf(job.request_hash, sizeof job.request_hash, "%064d", 8);
    assert_false(adoption_recast(&w.s, a, &job, &in)); /* its own */
    leader_world_done(&w);
}

/* Its Describe never says whose it is: the name is believed, and what it uses is what is held. */
static void test_adoption__a_believed_job_that_uses_other_is_held_as_it_is(void **state)
{
    (void)state;
    struct leader_world w;
    struct intent in;
    bool recast = false;
    world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct job_description job = job_of(&w, 42, 3, 1042);
    (void)snprintf(job.name, sizeof job.name, "%s", a->row.name.s);
    (void)snprintf(a->row.identity_hash, sizeof a->row.identity_hash, "%064d", 8);
    job.request_hash[0] = '\0';
    job.attempt_id = 0;
    job.untold = true;
    a->p.state = ATTEMPT_UNKNOWN;
    for (int i = 1; i < 6; i++) {
        struct fact f = adoption_described(&w.s, a, &job, false, false, WALL, BOOT, &recast, &in);
        assert_true(!recast && f.kind == FACT_DESCRIBE_FAILED && f.seen);
    }
    const struct {
        int64_t *is, as;
    } rows[] = {
        {&job.instances, a->row.instances},
        {&job.max_runtime_s, a->row.max_runtime_s},
        {&job.keep_alive_s, a->row.keep_alive_s},
    };
    (void)snprintf(a->row.instance_type, sizeof a->row.instance_type, "%s", job.instance_type);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        *rows[i].is = rows[i].as;
    }
    assert_false(adoption_recast(&w.s, a, &job, &in)); /* as its own intent */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        *rows[i].is += 1;
        assert_true(adoption_recast(&w.s, a, &job, &in));
        *rows[i].is -= 1;
    }
    job.spot = true;
    assert_true(adoption_recast(&w.s, a, &job, &in));
    job.spot = false;
    (void)snprintf(job.instance_type, sizeof job.instance_type, "ml.b.large");
    assert_true(adoption_recast(&w.s, a, &job, &in));
    assert_string_equal(in.instance_type, "ml.b.large");
    assert_string_equal(in.identity_hash, a->row.identity_hash);
    a->p.state = ATTEMPT_RUNNING; /* once believed it is what its row says */
    assert_false(adoption_recast(&w.s, a, &job, &in));
    (void)snprintf(job.request_hash, sizeof job.request_hash, "%064d", 7); /* told at last */
    job.attempt_id = 55;
    assert_true(adoption_recast(&w.s, a, &job, &in));
    a->p.state = ATTEMPT_VERIFYING;
    assert_false(adoption_recast(&w.s, a, &job, &in));
    leader_world_done(&w);
}

static void test_adoption__looks_back_past_the_newest_intent(void **state)
{
    (void)state;
    assert_int_equal(adoption_since(WALL, 0), WALL - 900 * SEC);
    assert_int_equal(adoption_since(WALL, WALL - 60 * SEC), WALL - 960 * SEC);
    assert_int_equal(adoption_since(WALL, WALL + SEC), WALL - 900 * SEC);
    assert_int_equal(adoption_since(0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adoption__a_part_of_ours_is_found),
        cmocka_unit_test(test_adoption__another_installations_job_is_not_ours),
        cmocka_unit_test(test_adoption__names_that_no_part_would_have),
        cmocka_unit_test(test_adoption__a_job_must_say_what_it_costs),
        cmocka_unit_test(test_adoption__a_price_that_comes_late_reserves),
        cmocka_unit_test(test_adoption__every_stage_whose_name_agrees_is_tried),
        cmocka_unit_test(test_adoption__reads_like_ours),
        cmocka_unit_test(test_adoption__is_ours_by_its_very_name),
        cmocka_unit_test(test_adoption__an_attempt_becomes_the_forgotten_one_of_its_name),
        cmocka_unit_test(test_adoption__a_believed_job_that_uses_other_is_held_as_it_is),
        cmocka_unit_test(test_adoption__looks_back_past_the_newest_intent),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
