/* Aim: order and fairness over time, not of one plan: nobody of the same kind overtakes, a task
 * that backs off keeps its place, weights are shares, everybody gets a turn. Method: seeded mixed
 * campaigns worked off by sched_decide on a virtual clock; jobs fail, back off and come again;
 * after each plan its launches are held against all that wait, by rules written without the
 * scheduler. */
#include "common/rng.h"
#include "core/sched/sched.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NOW       INT64_C(1700000000000000)
#define CAMPAIGNS 6
#define PROJECTS  3
#define STAGES    (CAMPAIGNS * 2)
#define TASKS     600
#define LIVE      64
#define SEEDS     200

struct task {
    int stage_i; /* -1: not there */
    bool waits, done;
    struct ready_queue_task ready;
    int64_t run_us;
    int fails_left;
    usec_t due_us; /* since then it could start */
};
struct live {
    int64_t task_id;
    usec_t ends_us;
    bool fails;
};
struct mix {
    struct rng rng;
    struct sched_view view;
    struct spec spec;
    struct spec_stage spec_stage[STAGES];
    struct sched_stage stages[STAGES];
    struct duration duration[STAGES];
    struct sched_campaign campaigns[CAMPAIGNS];
    struct sched_project projects[PROJECTS];
    struct quota_ledger slots[2];
    struct quota_ledger_account account;
    struct sched_job jobs[LIVE];
    struct live live[LIVE];
    struct task tasks[TASKS + 1]; /* by id */
    int64_t tasks_n;
    struct sched_plan plan;
};

static struct mix *mix_new(uint64_t seed, int slots)
{
    struct mix *m = xcalloc(1, sizeof *m);
    rng_seed(&m->rng, seed);
    m->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    for (int i = 0; i < 2; i++) {
        m->slots[i] = (struct quota_ledger){.quota = slots,
                                            .operator_limit = -1,
                                            .refused_limit = -1,
                                            .price_musd_per_hour = 3600000};
        (void)snprintf(m->slots[i].instance_type, sizeof m->slots[i].instance_type, "ml.%c.large",
                       'a' + i);
    }
    for (int i = 0; i < PROJECTS; i++) {
        m->projects[i] = (struct sched_project){
            .project_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    }
    m->view = (struct sched_view){.now_us = NOW,
                                  .parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .stages = m->stages,
                                  .campaigns = m->campaigns,
                                  .projects = m->projects,
                                  .projects_n = PROJECTS,
                                  .slots = m->slots,
                                  .slots_n = 2,
                                  .account = &m->account,
                                  .jobs = m->jobs};
    return m;
}

static void mix_free(struct mix *m)
{
    for (int i = 0; i < m->view.stages_n; i++) {
        ready_queue_free(m->stages[i].ready);
    }
    sched_plan_done(&m->plan);
    free(m);
}

static int add_campaign(struct mix *m, int project_i, int64_t weight)
{
    int c = m->view.campaigns_n++;
    m->campaigns[c] = (struct sched_campaign){.campaign_id = c + 1,
                                              .project_i = project_i,
                                              .weight = weight,
                                              .parts_limit = -1,
                                              .left_musd = INT64_MAX};
    return c;
}

static int add_stage(struct mix *m, int c, int type, int instances, int priority)
{
    int s = m->view.stages_n++;
    m->spec_stage[s] = (struct spec_stage){.instance_type = {m->slots[type].instance_type},
                                           .instance_type_n = 1,
                                           .instance_count = instances,
                                           .volume_gb = 30,
                                           .max_runtime_s = 86400,
                                           .min_runtime_s = 86400,
                                           .budget_musd = -1,
                                           .per_task_musd = -1};
    duration_init(&m->duration[s], 0);
    m->stages[s] = (struct sched_stage){.campaign_id = c + 1,
                                        .stage_id = s + 1,
                                        .spec = &m->spec,
                                        .stage = &m->spec_stage[s],
                                        .ready = ready_queue_new(),
                                        .may_start = true,
                                        .priority = priority,
                                        .campaign_i = c,
                                        .parts_limit = -1,
                                        .stage_left_musd = INT64_MAX,
                                        .part_cap_musd = INT64_MAX,
                                        .duration = &m->duration[s]};
    return s;
}

static void add_task(struct mix *m, int s, uint32_t size_mb, int64_t run_us, int fails)
{
    int64_t id = ++m->tasks_n;
    assert_true(id <= TASKS);
    struct task *t = &m->tasks[id];
    *t = (struct task){.stage_i = s, .waits = true, .run_us = run_us, .fails_left = fails};
    t->ready = (struct ready_queue_task){.task_id = id, .seq = (uint32_t)id, .size_mb = size_mb};
    t->due_us = m->view.now_us;
    ready_queue_push(m->stages[s].ready, &t->ready);
}

static void count(struct mix *m, const struct task *t, int slots_i, int by)
{
    struct sched_stage *s = &m->stages[t->stage_i];
    struct sched_campaign *c = &m->campaigns[s->campaign_i];
    struct sched_project *p = &m->projects[c->project_i];
    int n = by * s->stage->instance_count;
    m->slots[slots_i].held += n;
    m->account.total[MARKET_ON_DEMAND].held += n;
    s->live += by;
    c->live += by;
    p->live += by;
    m->view.live += by;
    c->held += n;
    p->held += n;
}

static void start(struct mix *m)
{
    for (int i = 0; i < m->plan.launches_n; i++) {
        const struct sched_launch *l = &m->plan.launches[i];
        struct task *t = &m->tasks[l->task.task_id];
        assert_true(t->waits);
        t->waits = false;
        int k = m->view.jobs_n++;
        assert_true(k < LIVE);
        bool fails = t->fails_left > 0;
        int64_t run_us = fails ? 1 + t->run_us / 3 : t->run_us;
        m->live[k] = (struct live){l->task.task_id, m->view.now_us + run_us, fails};
        m->jobs[k] = (struct sched_job){.attempt_id = l->task.task_id,
                                        .task_id = l->task.task_id,
                                        .stage_id = m->stages[l->stage_i].stage_id,
                                        .campaign_i = m->stages[l->stage_i].campaign_i,
                                        .slots_i = l->slots_i,
                                        .instances = m->spec_stage[l->stage_i].instance_count,
                                        .end_p50_us = m->view.now_us + t->run_us,
                                        .end_p90_us = m->view.now_us + t->run_us};
        count(m, t, l->slots_i, 1);
        struct sched_campaign *c = &m->campaigns[m->stages[l->stage_i].campaign_i];
        c->last_start_us = m->view.now_us;
        m->projects[c->project_i].last_start_us = m->view.now_us;
    }
    assert_true(m->slots[0].held <= m->slots[0].quota);
    assert_true(m->slots[1].held <= m->slots[1].quota);
}

/* The clock moves on to the next end of a job or of a back-off; false: nothing is to come. */
static bool go_on(struct mix *m)
{
    int first = -1;
    for (int i = 0; i < m->view.jobs_n; i++) {
        first = first < 0 || m->live[i].ends_us < m->live[first].ends_us ? i : first;
    }
    usec_t wake_us = m->plan.wake_us;
    if (first < 0 && wake_us == USEC_NEVER) {
        return false;
    }
    if (first < 0 || m->live[first].ends_us > wake_us) {
        m->view.now_us = MAX(m->view.now_us, wake_us);
        return true;
    }
    struct live l = m->live[first];
    struct task *t = &m->tasks[l.task_id];
    m->view.now_us = l.ends_us;
    count(m, t, m->jobs[first].slots_i, -1);
    m->live[first] = m->live[--m->view.jobs_n];
    m->jobs[first] = m->jobs[m->view.jobs_n];
    if (l.fails) {
        t->fails_left--;
        t->waits = true;
        t->due_us = l.ends_us + (usec_t)(1 + rng_below(&m->rng, 120)) * USEC_PER_SEC;
        t->ready.not_before_us = t->due_us;
        ready_queue_push(m->stages[t->stage_i].ready, &t->ready);
    } else {
        t->done = true;
        duration_learn(&m->duration[t->stage_i], t->ready.size_mb, t->run_us);
        duration_fit(&m->duration[t->stage_i]);
    }
    return true;
}

static void decide(struct mix *m)
{
    m->view.tokens = SCHED_LAUNCHES_MAX;
    sched_decide(&m->view, &m->plan);
}

/* No launch of lower priority beside an older task of the same type and size of job that could have
 * had its slots. */
static int check_nobody_overtakes(const struct mix *m)
{
    int compared = 0;
    for (int i = 0; i < m->plan.launches_n; i++) {
        const struct sched_stage *ls = &m->stages[m->plan.launches[i].stage_i];
        int64_t launched_id = m->plan.launches[i].task.task_id;
        for (int64_t id = 1; id < launched_id; id++) {
            const struct task *t = &m->tasks[id];
            const struct sched_stage *ts = &m->stages[t->stage_i];
            if (t->done || !t->waits || t->due_us > m->view.now_us || launched_id == id ||
                ts->stage->instance_count != ls->stage->instance_count ||
                ts->stage->instance_type[0] != ls->stage->instance_type[0] || !ts->may_start) {
                continue;
            }
            bool starts = false;
            for (int k = 0; k < m->plan.launches_n; k++) {
                starts = starts || m->plan.launches[k].task.task_id == id;
            }
            if (!starts) {
                assert_true(ls->priority >= ts->priority);
                compared++;
            }
        }
    }
    return compared;
}

static void fill_mix(struct mix *m)
{
    int campaigns = 2 + (int)rng_below(&m->rng, CAMPAIGNS - 1);
    for (int c = 0; c < campaigns; c++) {
        (void)add_campaign(m, (int)rng_below(&m->rng, PROJECTS),
                           50 + (int64_t)rng_below(&m->rng, 200));
        int priority = rng_chance(&m->rng, 0.6) ? 50 : 49 + (int)rng_below(&m->rng, 3);
        int stages = 1 + (int)rng_below(&m->rng, 2);
        for (int k = 0; k < stages; k++) {
            int instances = rng_chance(&m->rng, 0.25) ? 2 + (int)rng_below(&m->rng, 4) : 1;
            int s = add_stage(m, c, (int)rng_below(&m->rng, 2), instances, priority);
            int n = (int)rng_below(&m->rng, instances == 1 ? 48 : 6);
            for (int i = 0; i < n; i++) {
                uint32_t mb = 1 + (uint32_t)(300 * exp(0.5 * rng_normal(&m->rng)));
                int64_t run_us = (int64_t)(mb * 1e6 * (0.9 + 0.2 * rng_unit(&m->rng)));
                add_task(m, s, mb, run_us, rng_chance(&m->rng, 0.05) ? 2 : 0);
            }
        }
    }
}

/* Also that nothing is starved: whatever the mix, all is done in the time that the work takes if
 * a sixth of the slots is never used, and the longest task twice. */
static void test_sched_properties__nobody_overtakes_and_nobody_starves(void **state)
{
    (void)state;
    int compared = 0;
    double slowest = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct mix *m = mix_new(seed, 6 + (int)(seed % 7));
        fill_mix(m);
        double work_us[2] = {0};
        double longest_us = 0;
        for (int64_t id = 1; id <= m->tasks_n; id++) {
            const struct task *t = &m->tasks[id];
            const struct spec_stage *st = m->stages[t->stage_i].stage;
            int type = st->instance_type[0] == m->slots[0].instance_type ? 0 : 1;
            double tries = 1 + t->fails_left / 3.0;
            work_us[type] += (double)t->run_us * st->instance_count * tries;
            longest_us = MAX(longest_us, (double)t->run_us);
        }
        int plans = 0;
        do {
            decide(m);
            compared += check_nobody_overtakes(m);
            start(m);
            assert_true(++plans < 5000);
        } while (go_on(m));
        for (int64_t id = 1; id <= m->tasks_n; id++) {
            assert_true(m->tasks[id].done);
        }
        double took_us = (double)(m->view.now_us - NOW);
        double bound_us =
            1.2 * MAX(work_us[0], work_us[1]) / (double)m->slots[0].quota + 2 * longest_us;
        slowest = MAX(slowest, took_us / bound_us);
        assert_true(took_us <= bound_us);
        mix_free(m);
    }
    (void)printf("# %d waiting tasks beside a later one's start; slowest mix %.2f of its bound\n",
                 compared, slowest);
    assert_true(compared > 10000);
}

/* Between its starts no campaign of equal weight waits longer than all others take for one job
 * each: 6 campaigns, 200 seeds. */
static void test_sched_properties__equals_take_turns(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct mix *m = mix_new(seed, 4);
        usec_t last_us[CAMPAIGNS];
        int64_t longest_us = 0;
        for (int c = 0; c < CAMPAIGNS; c++) {
            int s = add_stage(m, add_campaign(m, 0, 100), 0, 1, 50);
            int n = c == 0 ? 90 : 4 + (int)rng_below(&m->rng, 90); /* the first alone is no queue */
            last_us[c] = NOW;
            for (int i = 0; i < n; i++) {
                uint32_t mb = 100 + (uint32_t)rng_below(&m->rng, 500);
                longest_us = MAX(longest_us, (int64_t)mb * USEC_PER_SEC);
                add_task(m, s, mb, (int64_t)mb * USEC_PER_SEC, 0);
            }
        }
        do {
            decide(m);
            for (int i = 0; i < m->plan.launches_n; i++) {
                last_us[m->stages[m->plan.launches[i].stage_i].campaign_i] = m->view.now_us;
            }
            start(m);
            for (int c = 0; c < CAMPAIGNS; c++) {
                bool waits = m->plan.reason[c] != WAIT_NONE;
                assert_true(!waits || m->view.now_us - last_us[c] <= 2 * longest_us + 1);
                last_us[c] = waits ? last_us[c] : m->view.now_us;
            }
        } while (go_on(m));
        mix_free(m);
    }
}

/* The share of slot time that what is counted in held[0] has, of both, while both wait. */
static double share_of_first(struct mix *m, const int64_t *first, const int64_t *second)
{
    double time_first = 0;
    double time_both = 0;
    for (int plans = 0; plans < 300; plans++) {
        decide(m);
        start(m);
        usec_t before_us = m->view.now_us;
        int64_t a = *first;
        int64_t b = *second;
        assert_true(go_on(m));
        double us = plans < 50 ? 0 : (double)(m->view.now_us - before_us); /* once it is even */
        time_first += us * (double)a;
        time_both += us * (double)(a + b);
    }
    return time_first / time_both;
}

static void test_sched_properties__weights_are_shares(void **state)
{
    (void)state;
    for (int level = 0; level < 2; level++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct mix *m = mix_new(seed, 16);
            bool projects = level == 1;
            m->projects[0].weight = projects ? 100 : 7;
            m->projects[1].weight = 300;
            /* of projects: the campaigns' own weights point the other way and do not count */
            int a = add_stage(m, add_campaign(m, 0, projects ? 900 : 100), 0, 1, 50);
            int b = add_stage(m, add_campaign(m, projects ? 1 : 0, projects ? 1 : 300), 0, 1, 50);
            for (int i = 0; i < 500; i++) {
                uint32_t mb = 100 + (uint32_t)rng_below(&m->rng, 500);
                add_task(m, i % 4 == 0 ? a : b, mb, (int64_t)mb * USEC_PER_SEC, 0);
            }
            double share = projects
                               ? share_of_first(m, &m->projects[0].held, &m->projects[1].held)
                               : share_of_first(m, &m->campaigns[0].held, &m->campaigns[1].held);
            assert_true(share > 0.24);
            assert_true(share < 0.26);
            mix_free(m);
        }
    }
}

/* Many slots at once: every launch counts for the next. Three projects, the first with two
 * campaigns of its own, weights 1:2:3 and 1:2 inside. */
static void test_sched_properties__one_plan_shares_what_is_free(void **state)
{
    (void)state;
    struct mix *m = mix_new(1, 18);
    for (int p = 0; p < PROJECTS; p++) {
        m->projects[p].weight = p + 1;
    }
    int stage[4] = {add_stage(m, add_campaign(m, 0, 100), 0, 1, 50),
                    add_stage(m, add_campaign(m, 0, 200), 0, 1, 50),
                    add_stage(m, add_campaign(m, 1, 1), 0, 1, 50),
                    add_stage(m, add_campaign(m, 2, 1), 0, 1, 50)};
    for (int i = 0; i < 80; i++) {
        add_task(m, stage[i % 4], 100, USEC_PER_SEC, 0);
    }
    decide(m);
    int started[4] = {0};
    for (int i = 0; i < m->plan.launches_n; i++) {
        started[m->plan.launches[i].stage_i]++;
    }
    assert_int_equal(started[0], 1);
    assert_int_equal(started[1], 2);
    assert_int_equal(started[2], 6);
    assert_int_equal(started[3], 9);
    mix_free(m);
}

/* What an idle one leaves, the other takes: a weight is a share, not a cap. */
static void test_sched_properties__a_share_not_used_is_not_lost(void **state)
{
    (void)state;
    struct mix *m = mix_new(1, 8);
    int a = add_stage(m, add_campaign(m, 0, 1), 0, 1, 50);
    int b = add_stage(m, add_campaign(m, 0, 1000), 0, 1, 50);
    add_task(m, b, 100, USEC_PER_SEC, 0);
    for (int i = 0; i < 20; i++) {
        add_task(m, a, 100, USEC_PER_SEC, 0);
    }
    decide(m);
    assert_int_equal(m->plan.launches_n, 8);
    assert_int_equal(m->plan.launches[0].stage_i, b); /* both hold nothing: the larger weight */
    assert_int_equal(m->plan.launches[1].stage_i, a);
    assert_int_equal(m->plan.launches[7].stage_i, a);
    mix_free(m);
}

static void test_sched_properties__who_backs_off_keeps_its_place(void **state)
{
    (void)state;
    struct mix *m = mix_new(1, 1);
    int s = add_stage(m, add_campaign(m, 0, 100), 0, 1, 50);
    m->stages[s].duration = NULL;
    add_task(m, s, 500, 100 * USEC_PER_SEC, 1); /* fails once */
    for (int i = 0; i < 10; i++) {
        add_task(m, s, 500, 200 * USEC_PER_SEC, 0);
    }
    int64_t order[12];
    int n = 0;
    do {
        decide(m);
        for (int i = 0; i < m->plan.launches_n; i++) {
            order[n++] = m->plan.launches[i].task.task_id;
        }
        start(m);
    } while (n < 12 && go_on(m));
    assert_int_equal(n, 12);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 2); /* 1 backs off for at most 120 s, less than 2 runs */
    assert_int_equal(order[2], 1); /* before 3 .. 11, which have waited all the time */
    for (int i = 3; i < 12; i++) {
        assert_int_equal(order[i], i);
    }
    mix_free(m);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_properties__nobody_overtakes_and_nobody_starves),
        cmocka_unit_test(test_sched_properties__equals_take_turns),
        cmocka_unit_test(test_sched_properties__weights_are_shares),
        cmocka_unit_test(test_sched_properties__one_plan_shares_what_is_free),
        cmocka_unit_test(test_sched_properties__a_share_not_used_is_not_lost),
        cmocka_unit_test(test_sched_properties__who_backs_off_keeps_its_place),
    };
    return cmocka_run_group_tests_name("sched_properties", tests, NULL, NULL);
}
