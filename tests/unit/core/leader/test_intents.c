/* Aim: a launch of a plan becomes an intent with the right name, limits and money, and memory after
 * the commit. Method: a state and a launch by hand, one rule a test. */
#include "core/leader/intents.h"
#include "core/leader/stage_history.h"
#include "core/money/cost.h"
#include "outcome_world.h"
#include "store/leader/lease.h"

struct one { /* one launch with what it refers to */
    struct leader_world w;
    struct sched_launch launch;
    struct sched_stage stage;
    struct quota_ledger slots;
    struct quota_ledger_account account;
    struct task_input task;
    struct launch_facts f;
};

static void one_init(struct one *o)
{
    memset(o, 0, sizeof *o);
    leader_world_init(&o->w);
    (void)snprintf(o->w.s.install_id, sizeof o->w.s.install_id, "home");
    o->w.s.epoch = 4;
    o->w.spec.name = "shards";
    o->launch = (struct sched_launch){.task = {.task_id = 1001, .seq = 3, .size_mb = 300},
                                      .subnet_i = -1,
                                      .pool_i = -1,
                                      .volume_gb = 60,
                                      .max_runtime_s = 1800,
                                      .keep_alive_s = 900,
                                      .reserve_musd = 2 * USD};
    o->stage = (struct sched_stage){
        .campaign_id = 7, .stage_id = 70, .stage = &o->w.spec, .ready = o->w.ls->ready};
    o->slots = (struct quota_ledger){.instance_type = "ml.a.large",
                                     .quota = 10,
                                     .warm_quota = -1,
                                     .operator_limit = -1,
                                     .refused_limit = -1,
                                     .held = 2,
                                     .warm_idle = 1,
                                     .price_musd_per_hour = 3600000};
    o->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    o->task = (struct task_input){
        .id = 1001, .stage_id = 70, .seq = 3, .attempts = 1, .names = 4, .size = 99};
    o->task.uri = xstrdup("s3://bucket/part");
    o->f = (struct launch_facts){.launch = &o->launch,
                                 .stage = &o->stage,
                                 .campaign = o->w.lc,
                                 .slots = &o->slots,
                                 .account = &o->account,
                                 .task = &o->task};
}

static void one_done(struct one *o)
{
    free(o->task.uri);
    free(o->task.vars_json);
    leader_world_done(&o->w);
}

static const struct spec no_tags;

static struct intent intended(struct one *o)
{
    struct intent in;
    leader_plan_intent(&o->w.s, &o->f, 55, "d", WALL, &in);
    return in;
}

static void test_intents__what_a_launch_stands_for(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    struct live_pool *pools[2] = {leader_world_pool(&o.w, 6, POOL_AVAILABLE, NULL),
                                  leader_world_pool(&o.w, 8, POOL_AVAILABLE, NULL)};
    struct live_campaign *campaigns[2] = {NULL, o.w.lc};
    struct sched_stage stages[2] = {{.stage_id = 69}, o.stage};
    struct quota_ledger slots[2] = {{.held = 1}, o.slots};
    struct sched_plan *plan = xcalloc(1, sizeof *plan);
    struct leader_view v = {
        .stages = stages, .live_campaigns = campaigns, .slots = slots, .live_pools = pools};
    o.launch.stage_i = o.launch.slots_i = o.launch.pool_i = 1;
    plan->launches[1] = o.launch;
    struct launch_facts f = leader_launch_facts(&v, plan, 1, &o.task);
    assert_ptr_equal(f.launch, &plan->launches[1]);
    assert_ptr_equal(f.stage, &stages[1]);
    assert_ptr_equal(f.campaign, o.w.lc);
    assert_ptr_equal(f.slots, &slots[1]);
    assert_ptr_equal(f.account, &v.account);
    assert_ptr_equal(f.task, &o.task);
    assert_int_equal(f.pool_id, 8);
    plan->launches[1].pool_i = -1; /* on instances of its own */
    assert_int_equal(leader_launch_facts(&v, plan, 1, &o.task).pool_id, 0);
    free(plan);
    one_done(&o);
}

static void test_intents__what_the_launch_asks_for(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    o.w.spec.instance_count = 2;
    struct intent in = intended(&o);
    assert_int_equal(in.attempt_id, 55);
    assert_int_equal(in.campaign_id, 7);
    assert_int_equal(in.project_id, 3);
    assert_int_equal(in.stage_id, 70);
    assert_int_equal(in.task_id, 1001);
    assert_int_equal(in.n, 5); /* one more than names were given out, not than attempts counted */
    assert_int_equal(in.instances, 2);
    assert_int_equal(in.volume_gb, 60);
    assert_int_equal(in.max_runtime_s, 1800);
    assert_int_equal(in.price_musd_per_hour, 3600000);
    assert_int_equal(in.reserve_musd, 2 * USD);
    assert_string_equal(in.instance_type, "ml.a.large");
    assert_int_equal(in.fingerprint, warm_pool_fingerprint_of(&o.w.spec, 0, 60, -1));
    assert_int_equal(in.pool_id, 0);
    one_done(&o);
}

static void test_intents__the_name_is_of_the_identity(void **state)
{
    (void)state;
    struct one o;
    uint8_t id[32], other[32];
    one_init(&o);
    (void)snprintf(o.w.lc->row.nonce, sizeof o.w.lc->row.nonce, "nonce");
    struct intent in = intended(&o);
    assert_memory_equal(in.name.s, "d-7-shards-3-a5-", 16);
    leader_intent_identity(&o.w.s, "nonce", &in, id);
    char hash8[9];
    (void)snprintf(hash8, sizeof hash8, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
    assert_string_equal(in.name.s + 16, hash8);
    for (int i = 0; i < 7; i++) { /* each part of the identity makes another one */
        struct intent x = in;
        struct leader_state s = o.w.s;
        x.campaign_id += i == 0;
        x.stage_id += i == 1;
        x.task_id += i == 2;
        x.n += i == 3;
        s.install_id[0] = i == 4 ? 'H' : 'h';
        leader_intent_identity(&s, i == 5 ? "other" : i == 6 ? "" : "nonce", &x, other);
        assert_memory_not_equal(id, other, sizeof id);
    }
    in.volume_gb++; /* but not what is asked for: a name is the same whatever the body says */
    leader_intent_identity(&o.w.s, "nonce", &in, other);
    assert_memory_equal(id, other, sizeof id);
    one_done(&o);
}

static void test_intents__keep_alive_within_the_quota(void **state)
{
    (void)state;
    static const struct {
        int64_t max_s, want_s;
    } cases[] = {{-1, 900}, {600, 600}, {900, 900}, {3600, 900}, {0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct one o;
        one_init(&o);
        o.w.s.keep_alive_max_s = cases[i].max_s;
        assert_int_equal(intended(&o).keep_alive_s, cases[i].want_s);
        one_done(&o);
    }
}

static void test_intents__how_many_slots_may_be_ours(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    assert_int_equal(intended(&o).slot_limit, 10);
    o.slots.foreign = 3;
    o.slots.foreign_us = WALL;
    assert_int_equal(intended(&o).slot_limit, 7);
    o.slots.foreign = 0;
    o.slots.operator_limit = 5;
    assert_int_equal(intended(&o).slot_limit, 5);
    o.slots.quota = -1; /* unreadable */
    assert_int_equal(intended(&o).slot_limit, -1);
    one_done(&o);
}

static void test_intents__memory_after_the_commit(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    struct live_slots *slots = leader_state_slots(&o.w.s, "ml.a.large", MARKET_ON_DEMAND);
    struct intent in = intended(&o);
    in.taken = true;
    in.own_pool_id = 9;
    in.request = str_of("{bytes}");
    struct live_attempt *a = leader_apply_intent(&o.w.s, &o.f, &in, WALL);
    assert_int_equal(a->row.id, 55);
    assert_int_equal(a->row.state, ATTEMPT_INTENDED);
    assert_int_equal(a->p.state, ATTEMPT_INTENDED);
    assert_int_equal(a->row.epoch, 4);
    assert_int_equal(a->row.task_attempts, 1);
    assert_int_equal(a->row.size, 99);
    assert_string_equal(a->row.uri, "s3://bucket/part");
    assert_null(o.task.uri); /* the attempt's now */
    assert_true(a->row.holds);
    assert_string_equal(a->row.name.s, in.name.s);
    assert_str_view(buf_str(&a->request), "{bytes}");
    assert_int_equal(a->account.reserved_musd, 2 * USD);
    assert_int_equal(slots->s.held, 1);
    assert_int_equal(o.w.lc->row.reserved_musd, 2 * USD);
    assert_int_equal(o.w.lc->last_start_us, WALL);
    assert_int_equal(o.w.lc->live, 1);
    assert_int_equal(o.w.ls->row.counts[TASK_ACTIVE], 1);
    assert_true(o.w.s.act);
    assert_non_null(a->pool);
    assert_int_equal(a->pool->row.id, 9);
    assert_int_equal(a->pool->row.state, POOL_EXPECTED);
    assert_int_equal(a->pool->row.fingerprint, in.fingerprint);
    assert_string_equal(a->pool->row.job.s, in.name.s);
    assert_ptr_equal(a->pool->attempt, a);
    one_done(&o);
}

static void test_intents__on_a_pools_instances(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    struct live_pool *p = leader_world_pool(&o.w, 6, POOL_AVAILABLE, NULL);
    struct live_slots *slots = leader_state_slots(&o.w.s, "ml.a.large", MARKET_ON_DEMAND);
    o.f.pool_id = 6;
    struct intent in = intended(&o);
    assert_int_equal(in.pool_id, 6);
    in.taken = true;
    struct live_attempt *a = leader_apply_intent(&o.w.s, &o.f, &in, WALL);
    assert_ptr_equal(a->taken, p);
    assert_int_equal(p->row.taken_by, 55);
    assert_int_equal(slots->s.held, 1);
    assert_int_equal(slots->s.warm_idle, 0); /* moved, not added */
    assert_null(a->pool);
    one_done(&o);
}

static void test_intents__what_was_refused_is_proposed_again(void **state)
{
    (void)state;
    struct one o;
    struct ready_queue_task t;
    one_init(&o);
    assert_true(leader_put_back(&o.w.s, o.w.ls, &o.launch.task, &o.task, LAUNCH_REFUSED, 0, WALL));
    assert_true(o.w.s.look_at_db);
    assert_false(ready_queue_peek(o.w.ls->ready, WALL + 2 * SEC - 1, &t));
    assert_true(ready_queue_pop(o.w.ls->ready, WALL + 2 * SEC, &t));
    assert_int_equal(t.task_id, 1001);
    assert_true(
        leader_put_back(&o.w.s, o.w.ls, &o.launch.task, &o.task, LAUNCH_NO_REQUEST, 0, WALL));
    assert_false(ready_queue_peek(o.w.ls->ready, WALL + 300 * SEC - 1, &t));
    assert_true(ready_queue_pop(o.w.ls->ready, WALL + 300 * SEC, &t));
    assert_true(leader_put_back(&o.w.s, o.w.ls, &o.launch.task, &o.task, LAUNCH_NOT_WRITTEN,
                                60 * SEC, WALL));
    assert_false(ready_queue_peek(o.w.ls->ready, WALL + 60 * SEC - 1, &t)); /* parked */
    assert_true(ready_queue_pop(o.w.ls->ready, WALL + 60 * SEC, &t));
    o.task.state = TASK_DONE; /* somebody changed its row */
    assert_false(leader_put_back(&o.w.s, o.w.ls, &o.launch.task, &o.task, LAUNCH_REFUSED, 0, WALL));
    assert_int_equal(ready_queue_n(o.w.ls->ready), 0);
    o.task.id = 0; /* its row was not read */
    assert_true(leader_put_back(&o.w.s, o.w.ls, &o.launch.task, &o.task, LAUNCH_REFUSED, 0, WALL));
    one_done(&o);
}

/* When the first part of its stage is proposed again. */
static usec_t proposed_at(struct one *o, enum launch_fault fault, usec_t now_us)
{
    struct ready_queue_task t;
    assert_true(leader_put_back(&o->w.s, o->w.ls, &o->launch.task, &o->task, fault, 0, now_us));
    assert_true(ready_queue_pop(o->w.ls->ready, USEC_NEVER, &t));
    return t.not_before_us;
}

static void test_intents__what_is_refused_again_and_again_is_proposed_ever_less_often(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    const int64_t pauses_s[] = {2, 2, 4, 8, 16, 32, 64, 120, 120, 120};
    usec_t now_us = WALL;
    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
        usec_t at_us = proposed_at(&o, LAUNCH_REFUSED, now_us);
        assert_int_equal((at_us - now_us) / SEC, pauses_s[i]);
        /* One batch: the pause of its others is no longer. */
        assert_int_equal(proposed_at(&o, LAUNCH_REFUSED, now_us), at_us);
        assert_false(leader_no_start(o.w.ls, now_us)); /* their rows alone say no */
        now_us = at_us;
    }
    /* What is locked has its own pause, and says nothing of what its rows say. */
    assert_int_equal(proposed_at(&o, LAUNCH_NOT_WRITTEN, now_us), now_us + 2 * SEC);
    assert_int_equal(proposed_at(&o, LAUNCH_REFUSED, now_us + 121 * SEC), now_us + 123 * SEC);
    now_us += 200 * SEC;
    assert_int_equal(proposed_at(&o, LAUNCH_REFUSED, now_us), now_us + 79 * SEC);
    struct intent in = intended(&o);
    in.taken = true;
    (void)leader_apply_intent(&o.w.s, &o.f, &in, now_us);
    assert_int_equal(proposed_at(&o, LAUNCH_REFUSED, now_us), now_us + 2 * SEC);
    one_done(&o);
}

static void test_intents__refused_for_money_no_part_of_the_stage_is_proposed(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    const usec_t until_us = WALL + 2 * SEC;
    assert_int_equal(proposed_at(&o, LAUNCH_NO_MONEY, WALL), until_us);
    assert_true(leader_no_start(o.w.ls, until_us - 1));
    assert_false(leader_no_start(o.w.ls, until_us));
    assert_int_equal(proposed_at(&o, LAUNCH_NO_MONEY, until_us + 90 * SEC), until_us + 182 * SEC);
    assert_true(leader_no_start(o.w.ls, until_us + 181 * SEC));
    assert_false(leader_no_start(o.w.ls, WALL)); /* the clock was set back */
    leader_propose_again(o.w.ls);
    assert_false(leader_no_start(o.w.ls, until_us + 181 * SEC));
    assert_int_equal(proposed_at(&o, LAUNCH_NO_MONEY, until_us + 182 * SEC), until_us + 184 * SEC);
    struct intent in = intended(&o);
    in.taken = true;
    (void)leader_apply_intent(&o.w.s, &o.f, &in, until_us + 183 * SEC);
    assert_false(leader_no_start(o.w.ls, until_us + 183 * SEC));
    one_done(&o);
}

static void test_intents__refused_for_its_parts_cap_the_plan_knows_what_it_has_cost(void **state)
{
    (void)state;
    struct one o;
    one_init(&o);
    struct intent in = intended(&o);
    in.part_spent_musd = 25 * USD;
    leader_part_spent(&o.w.s, &in);
    assert_int_equal(leader_state_change(&o.w.s, 1001, false)->spent_musd, 25 * USD);
    leader_state_change(&o.w.s, 1001, false)->volume_gb = 90; /* what it was changed by stays */
    in.part_spent_musd = 26 * USD;
    leader_part_spent(&o.w.s, &in);
    assert_int_equal(leader_state_change(&o.w.s, 1001, false)->spent_musd, 26 * USD);
    assert_int_equal(leader_state_change(&o.w.s, 1001, false)->volume_gb, 90);
    for (int i = 0; i < 9; i++) { /* it is no refusal of the others: theirs grow no longer */
        assert_int_equal(proposed_at(&o, LAUNCH_PART_MONEY, WALL + i * 60 * SEC),
                         WALL + (i * 60 + 2) * SEC);
    }
    assert_false(leader_no_start(o.w.ls, WALL + 480 * SEC));
    one_done(&o);
}

static void test_intents__when_the_next_plan_is_made(void **state)
{
    (void)state;
    static const struct {
        usec_t wake_us;
        int64_t tick_us, in_us;
    } rows[] = {
        {USEC_NEVER, 60 * SEC, -1},
        {WALL + 5 * SEC, 60 * SEC, 5 * SEC},
        {WALL + 5 * SEC, 5 * SEC, -1}, /* a tick comes anyway */
        {WALL + 90 * SEC, 60 * SEC, -1},
        {WALL + 1, SEC, SEC / 10}, /* not in one turn of the loop after the other */
        {WALL, 60 * SEC, SEC},     /* more is left than one plan may try */
        {WALL - 900 * SEC, 60 * SEC, SEC},
        {WALL, SEC, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct sched_plan plan = {.wake_us = rows[i].wake_us};
        assert_int_equal(leader_next_plan_in_us(&plan, WALL, rows[i].tick_us), rows[i].in_us);
    }
}

static void test_intents__a_reason_is_written_once_and_not_while_locked(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    w.ls->reason = WAIT_NEW;
    assert_true(leader_reason_moves(w.lc, w.ls, WAIT_CAPACITY));
    assert_false(leader_reason_moves(w.lc, w.ls, WAIT_NEW));
    w.lc->locked = true;
    assert_false(leader_reason_moves(w.lc, w.ls, WAIT_CAPACITY));
    leader_world_done(&w);
}

static void test_intents__why_a_launch_was_not_taken(void **state)
{
    (void)state;
    static const struct {
        bool lowered;
        const char *refused;
        enum launch_fault fault;
    } rows[] = {
        {false, "", LAUNCH_NO_REQUEST},          {false, "money", LAUNCH_NO_REQUEST},
        {true, "", LAUNCH_NOT_WRITTEN},          {true, "money", LAUNCH_NO_MONEY},
        {true, "part_money", LAUNCH_PART_MONEY}, {true, "state", LAUNCH_REFUSED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct intent in = {.n = 1};
        (void)snprintf(in.refused, sizeof in.refused, "%s", rows[i].refused);
        assert_int_equal(leader_launch_fault(&in, rows[i].lowered), rows[i].fault);
    }
}

/* A stage of which requests are made; {lr} is a variable of its parts. */
static void one_of_requests(struct one *o)
{
    one_init(o);
    o->w.spec.image = "account.dkr.ecr.us-east-1.amazonaws.com/image:1";
    o->w.spec.role = "arn:aws:iam::123456789012:role/job";
    o->w.spec.output = "s3://bucket/out/{part}/";
    o->w.spec.hyperparameters[0] = (struct spec_pair){"rate", "{lr}"};
    o->w.spec.hyperparameters_n = 1;
    o->stage.spec = &no_tags;
}

/* A part of which no request can be made ends; ret: what is written of it. */
static void ends_without_request(struct one *o, int64_t attempt_id, struct pending_record *ret)
{
    struct err err = ERR_INIT;
    struct protocol_effect e;
    struct protocol_config cfg;
    AUTO_BUF struct buf bytes = BUF_INIT(INTENT_REQUEST_BYTES_MAX);
    struct intent in = intended(o);
    in.attempt_id = attempt_id;
    assert_true(leader_plan_request(&o->w.s, &o->f, "us-east-1", &in, &bytes, &err));
    assert_str_view(in.request, ATTEMPT_NO_REQUEST);
    assert_non_null(
        strstr(in.no_request, "no request can be made of it: rate: '{lr}' is no known"));
    assert_int_equal(strlen(in.identity_hash), HASH_HEX_N - 1);
    assert_int_equal(leader_launch_fault(&in, true), LAUNCH_NOT_WRITTEN); /* it is to be written */
    in.taken = true;
    struct live_attempt *a = leader_apply_intent(&o->w.s, &o->f, &in, WALL);
    breaker_started(&o->w.ls->breaker, a->row.id);
    struct fact f = leader_create_fact(buf_str(&a->request), true, true, BOOT);
    leader_protocol_config(SEC, &cfg);
    leader_attempt_fact(&o->w.s, a, &f, &cfg, &e);
    *ret = plan(&o->w, a, &e, NULL);
    commit(&o->w, a, ret);
}

static void test_intents__a_part_of_which_no_request_can_be_made_fails_once(void **state)
{
    (void)state;
    struct one o;
    struct live_stage later = {0}; /* of the next leader */
    one_of_requests(&o);
    o.w.ls->rules = later.rules = (struct breaker_rules){.canary = 3, .k = 3, .n = 10};
    for (int64_t id = 55; id < 58; id++) {
        struct pending_record p;
        ends_without_request(&o, id, &p);
        assert_int_equal(p.r.to, ATTEMPT_VOID);
        assert_int_equal(p.r.cause, CAUSE_BAD_REQUEST);
        assert_int_equal(p.r.task_to, TASK_FAILED); /* not tried again */
        assert_non_null(strstr(p.reason, "'{lr}' is no known"));
        assert_false(p.alert);
        struct breaker_row row = {.attempt_id = id, .state = p.r.to, .cause = p.r.cause};
        (void)snprintf(row.reason, sizeof row.reason, "%s", p.reason);
        stage_history_saw_breaker_row(&later, &row);
    }
    assert_int_equal(o.w.ls->row.counts[TASK_FAILED], 3);
    assert_false(o.w.ls->breaker.tripped || later.breaker.tripped); /* the others may be well */
    assert_int_equal(breaker_may_start(&o.w.ls->breaker, &o.w.ls->rules), 3);
    assert_int_equal(breaker_may_start(&later.breaker, &later.rules), 3);
    assert_int_equal(leader_state_slots(&o.w.s, "ml.a.large", MARKET_ON_DEMAND)->s.held, 0);
    assert_int_equal(o.w.lc->row.reserved_musd, 0);
    one_done(&o);
}

static void test_intents__a_request_is_made_of_what_is_there(void **state)
{
    (void)state;
    struct one o;
    struct err err = ERR_INIT;
    struct spec_training t = {.channels = {{.name = "train", .lustre_stage = "disk"}},
                              .channels_n = 1};
    AUTO_BUF struct buf bytes = BUF_INIT(INTENT_REQUEST_BYTES_MAX);
    AUTO_JSON json_t *vars = json_pack("{s:s}", "lr", "0.1");
    one_of_requests(&o);
    o.f.vars = vars;
    struct intent in = intended(&o);
    assert_true(leader_plan_request(&o.w.s, &o.f, "us-east-1", &in, &bytes, &err));
    assert_null(in.no_request);
    assert_non_null(strstr(buf_cstr(&bytes), "{\"rate\":\"0.1\"}"));
    o.w.spec.training = &t; /* a file system that is not there yet: the part waits */
    in = intended(&o);
    assert_false(leader_plan_request(&o.w.s, &o.f, "us-east-1", &in, &bytes, &err));
    assert_int_equal(leader_launch_fault(&in, false), LAUNCH_NO_REQUEST);
    one_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intents__what_a_launch_stands_for),
        cmocka_unit_test(test_intents__what_the_launch_asks_for),
        cmocka_unit_test(test_intents__the_name_is_of_the_identity),
        cmocka_unit_test(test_intents__keep_alive_within_the_quota),
        cmocka_unit_test(test_intents__how_many_slots_may_be_ours),
        cmocka_unit_test(test_intents__memory_after_the_commit),
        cmocka_unit_test(test_intents__on_a_pools_instances),
        cmocka_unit_test(test_intents__what_was_refused_is_proposed_again),
        cmocka_unit_test(test_intents__what_is_refused_again_and_again_is_proposed_ever_less_often),
        cmocka_unit_test(test_intents__refused_for_money_no_part_of_the_stage_is_proposed),
        cmocka_unit_test(test_intents__refused_for_its_parts_cap_the_plan_knows_what_it_has_cost),
        cmocka_unit_test(test_intents__when_the_next_plan_is_made),
        cmocka_unit_test(test_intents__a_reason_is_written_once_and_not_while_locked),
        cmocka_unit_test(test_intents__why_a_launch_was_not_taken),
        cmocka_unit_test(test_intents__a_part_of_which_no_request_can_be_made_fails_once),
        cmocka_unit_test(test_intents__a_request_is_made_of_what_is_there),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
