/* Aim: the forecast says what the scheduler will do. Method: stages of equal parts whose end is
 * arithmetic; needs, shares, caps, quotas and rates that bind; every bound of the input. */
#include "forecast_help.h"
#include <math.h>
#include <time.h>

static void test_forecast__equal_parts_are_arithmetic(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    w->campaigns[0].spent_musd = 5;
    struct forecast f = run(w);
    assert_true(f.known && f.price_known);
    assert_min(f.end_us.p50, 40);
    assert_min(f.end_us.p10, 40);
    assert_int_equal(f.cost_musd.p50, 5 + 16 * 600000);
    assert_int_equal(f.stages_n, 1);
    assert_min(f.stage[0].end_us.p50, 40);
    assert_int_equal(f.stage[0].start_us.p50, 0);
    assert_true(fabs(f.stage[0].parts_per_h - 24) < 0.5);
    assert_true(f.fits_budget > 0.999);
    assert_int_equal(f.binding, FORECAST_BINDS_SLOTS);
    assert_int_equal(f.binding_slots_i, 0);
    s->cold_start_s = 120; /* four waves */
    assert_min(run(w).end_us.p50, 48);
    s->parts_n = 17;
    w->parts[0][16] = (struct forecast_part){.task_id = 99};
    assert_min(run(w).end_us.p50, 60);
    s->cold_start_s = 0;
    s->parts_n = 16;
    set_running(w, 0, 4, 7 * MIN_US); /* three minutes to go, then three waves */
    assert_min(run(w).end_us.p50, 33);
    s->parts_n = 0;
    assert_min(run(w).end_us.p50, 3);
    s->jobs_n = 0;
    f = run(w); /* nothing left */
    assert_true(f.known);
    assert_int_equal(f.end_us.p90, 0);
    assert_int_equal(f.cost_musd.p90, 5);
    free(w);
}

static void test_forecast__starts_take_as_long_as_was_seen(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    s->cold_start_s = 9999; /* not asked once starts were seen */
    duration_init(&s->start, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&s->start, 0, 5 * MIN_US);
    }
    assert_min(run(w).end_us.p50, 60);
    set_running(w, 0, 4, 4 * MIN_US);
    for (int i = 0; i < 4; i++) {
        w->jobs[0][i].started_us = 0; /* intended four minutes ago, run from the fifth on */
    }
    assert_min(run(w).end_us.p50, 56);
    free(w);
}

static void test_forecast__running_jobs_tell_how_long_they_waited(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    s->cold_start_s = 9999;
    duration_init(&s->start, 0);
    w->slots[0].quota = 8;
    set_running(w, 0, 8, MIN_US);
    for (int i = 0; i < 8; i++) {
        w->jobs[0][i].intended_us = NOW - 6 * MIN_US;
    }
    assert_min(run(w).end_us.p50, 9 + 15); /* five minutes to start, ten to run */
    s->jobs_n = 4;                         /* too few to go by */
    assert_true(run(w).end_us.p50 > 9999 * USEC_PER_SEC);
    free(w);
}

/* A new stage starts as others on the same type have. */
static void test_forecast__starts_of_another_stage_tell(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *seen = add_stage(w, 0, 0);
    struct forecast_stage *s = add_stage(w, 0, 16);
    s->cold_start_s = 9999;
    duration_init(&s->start, 0);
    duration_init(&seen->start, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&seen->start, 0, 5 * MIN_US);
    }
    assert_min(run(w).end_us.p50, 60);
    w->stage[0].spot = true; /* another market */
    assert_true(run(w).end_us.p50 > 9999 * USEC_PER_SEC);
    w->stage[0].spot = false;
    w->stage[0].instance_type[0] = "ml.b.large";
    assert_true(run(w).end_us.p50 > 9999 * USEC_PER_SEC);
    w->stage[0].instance_type[0] = "ml.a.large";
    duration_init(&seen->start, 0);
    duration_learn(&seen->start, 0, 5 * MIN_US); /* too few to go by */
    assert_true(run(w).end_us.p50 > 9999 * USEC_PER_SEC);
    free(w);
}

static void test_forecast__says_how_many_parts_it_needs(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    duration_init(&s->duration, 0);
    struct forecast f = run(w);
    assert_false(f.known);
    assert_int_equal(f.needs_parts, 5);
    assert_string_equal(f.needs_stage, "first");
    assert_int_equal(f.end_us.p50, 0);
    duration_learn(&s->duration, 0, MIN_US);
    assert_int_equal(run(w).needs_parts, 4);
    duration_init(&s->duration, 10 * MIN_US); /* expect: */
    f = run(w);
    assert_true(f.known);
    assert_true(f.end_us.p50 > 34 * MIN_US && f.end_us.p50 < 46 * MIN_US);
    struct forecast_stage *later = add_stage(w, 0, 3);
    duration_init(&later->duration, 0);
    later->needs[0] = 0;
    later->needs_n = 1;
    f = run(w); /* the first stage is known all the same */
    assert_false(f.known);
    assert_string_equal(f.needs_stage, "second");
    assert_int_equal(f.end_us.p50, 0);
    assert_true(f.stage[0].known && !f.stage[1].known);
    assert_true(f.stage[0].end_us.p50 > 34 * MIN_US);
    assert_int_equal(f.stage[1].end_us.p50, 0);
    free(w);
}

static void test_forecast__stages_wait_for_those_they_need(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 8);
    struct forecast_stage *b = add_stage(w, 0, 4);
    w->stage[1].instance_type[0] = "ml.b.large";
    assert_min(run(w).end_us.p50, 20); /* side by side */
    b->needs[0] = 0;
    b->needs_n = 1;
    struct forecast f = run(w);
    assert_min(f.end_us.p50, 30);
    assert_min(f.stage[1].start_us.p50, 20);
    assert_min(f.stage[1].end_us.p50, 30);
    struct forecast_stage *c = add_stage(w, 0, 0); /* empty: ends as soon as it may */
    c->needs[0] = 1;
    c->needs_n = 1;
    f = run(w);
    assert_min(f.stage[2].end_us.p50, 30);
    c->needs[0] = 2; /* itself */
    assert_int_equal(run(w).end_us.p50, USEC_NEVER);
    free(w);
}

static void test_forecast__others_take_their_share(void **state)
{
    (void)state;
    struct world *w = world_new();
    w->in.campaigns_n = 2;
    add_stage(w, 0, 16);
    struct forecast_stage *other = add_stage(w, 1, 16);
    assert_min(run(w).end_us.p50, 80); /* two slots each */
    w->campaigns[0].priority = 60;
    assert_min(run(w).end_us.p50, 40);
    w->campaigns[1].priority = 70;
    assert_min(run(w).end_us.p50, 80);
    other->may_start = false; /* paused: what it runs, it runs on */
    assert_min(run(w).end_us.p50, 40);
    set_running(w, 1, 2, 0);
    assert_min(run(w).end_us.p50, 50); /* 2 slots for the first wave, then 4: 2 + 4 + 4 + 4 + 2 */
    w->campaigns[0].priority = 50;
    w->campaigns[1].priority = 50;
    other->jobs_n = 0;
    w->slots[0].held = 0;
    other->may_start = true;
    w->campaigns[1].weight = 300; /* three slots to one */
    struct forecast f = run(w);
    assert_true(f.end_us.p50 >= 80 * MIN_US);
    duration_init(&other->duration, 0); /* theirs is not known: ours is told all the same */
    assert_true(run(w).known);
    free(w);
}

static void test_forecast__limits_bind(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    w->campaigns[0].parts_limit = 2;
    struct forecast f = run(w);
    assert_min(f.end_us.p50, 80);
    assert_int_equal(f.binding, FORECAST_BINDS_CONCURRENCY);
    assert_int_equal(f.binding_slots_i, -1);
    w->campaigns[0].parts_limit = -1;
    s->parts_limit = 1;
    assert_min(run(w).end_us.p50, 160);
    s->parts_limit = -1;
    w->in.parts_limit = 2;
    assert_min(run(w).end_us.p50, 80);
    w->in.parts_limit = -1;
    w->projects[0].parts_limit = 2;
    assert_min(run(w).end_us.p50, 80);
    w->projects[0].parts_limit = -1;
    w->spec[0].instances[0] = (struct spec_limit){"ml.a.large", 2};
    w->spec[0].instances_n = 1;
    f = run(w);
    assert_min(f.end_us.p50, 80);
    assert_int_equal(f.binding, FORECAST_BINDS_CONCURRENCY);
    w->spec[0].instances_n = 0;
    w->slots[0].quota = 100;
    w->in.creates_per_s = 1.0 / 120; /* sixteen starts, two minutes apart */
    f = run(w);
    assert_min(f.end_us.p50, 40);
    assert_int_equal(f.binding, FORECAST_BINDS_RATE);
    free(w);
}

static void test_forecast__money_and_quotas_that_never_come(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    /* The worst case of one part is 8.22 USD, its cost 0.60. */
    w->campaigns[0].left_musd = 20 * MUSD_PER_USD;
    struct forecast f = run(w);
    /* Two at once while 16.44 USD are left, that is for six parts, then one by one. */
    assert_min(f.end_us.p50, 30 + 100);
    assert_true(f.fits_budget > 0.99);
    assert_int_equal(f.binding, FORECAST_BINDS_MONEY);
    w->campaigns[0].left_musd = 10 * MUSD_PER_USD; /* one by one, and the fourth does not fit */
    f = run(w);
    assert_int_equal(f.end_us.p50, USEC_NEVER);
    assert_true(f.fits_budget < 0.01);
    assert_int_equal(f.cost_musd.p50, 3 * 600000);
    w->campaigns[0].left_musd = INT64_MAX;
    s->left_musd = 30 * MUSD_PER_USD;
    assert_true(run(w).fits_budget > 0.99);
    s->left_musd = 5 * MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    s->left_musd = INT64_MAX;
    w->in.left_musd = MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    w->in.left_musd = INT64_MAX;
    w->projects[0].left_musd = MUSD_PER_USD;
    assert_true(run(w).fits_budget < 0.01);
    w->projects[0].left_musd = INT64_MAX;
    w->slots[0].price_musd_per_hour = -1;
    f = run(w);
    assert_false(f.price_known);
    assert_min(f.end_us.p50, 40);
    assert_int_equal(f.cost_musd.p50, 0);
    w->slots[0].price_musd_per_hour = 3600000;
    w->slots[0].quota = -1;
    assert_int_equal(run(w).end_us.p10, USEC_NEVER);
    w->slots[0].quota = 0;
    assert_int_equal(run(w).end_us.p10, USEC_NEVER);
    w->slots[0].quota = 4;
    s->held_n = 2; /* the others go on, for the same money; it does not end without these */
    f = run(w);
    assert_true(f.known && f.end_us.p10 == USEC_NEVER && f.end_us.p90 == USEC_NEVER);
    assert_true(f.stage[0].end_us.p50 == USEC_NEVER && f.stage[0].parts_per_h > 0);
    assert_int_equal(f.cost_musd.p50, 16 * 600000);
    s->held_n = 0;
    w->slots[0].foreign = 4; /* others' use fades: 2 slots after ten minutes, 3 after twenty */
    w->slots[0].foreign_us = NOW;
    f = run(w);
    assert_true(f.end_us.p50 > 40 * MIN_US && f.end_us.p50 < 70 * MIN_US);
    free(w);
}

static void test_forecast__failures_take_time_and_money(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 60);
    w->in.runs = 200;
    struct forecast sound = run(w);
    s->failed_tries = 200000; /* of a million: one in five, half way on average */
    struct forecast f = run(w);
    double dearer = (double)f.cost_musd.p50 / (double)sound.cost_musd.p50;
    assert_true(dearer > 1.10 && dearer < 1.15); /* 1 + 0.25 * 0.5 */
    assert_true(f.end_us.p50 > sound.end_us.p50);
    s->retry_wait_s = 3600;
    assert_true(run(w).end_us.p50 > f.end_us.p50);
    s->failed_tries = 0;
    w->in.spot_loss = 0.2;
    f = run(w);
    dearer = (double)f.cost_musd.p50 / (double)sound.cost_musd.p50;
    assert_true(dearer > 1.10 && dearer < 1.15);
    w->in.spot_loss = 0.99; /* hardly one comes through: bounded all the same */
    assert_true(run(w).known);
    w->in.spot_loss = 0;
    w->stage[0].max_runtime_s = 60; /* shorter than any part */
    f = run(w);
    assert_int_equal(f.cost_musd.p50, 60 * FORECAST_TRIES_MAX * 60000);
    free(w);
}

static void test_forecast__place_and_start_of_one_part(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 24); /* more than the look-ahead lays out */
    struct forecast f = run(w);
    assert_int_equal(f.place, 0);
    w->in.why_task_id = 10;
    f = run(w);
    assert_int_equal(f.place, 10);
    assert_int_equal(f.place_of, 24);
    assert_min(f.start_us.p50, 20);
    w->parts[0][9].size_mb = 5; /* longest first */
    f = run(w);
    assert_int_equal(f.place, 1);
    assert_int_equal(f.start_us.p50, 0);
    w->in.fifo = true;
    f = run(w);
    assert_int_equal(f.place, 10);
    assert_min(f.start_us.p50, 20);
    w->in.fifo = false;
    w->parts[0][9].not_before_us = NOW + 35 * MIN_US; /* backs off, keeps its place */
    f = run(w);
    assert_int_equal(f.place, 1);
    assert_true(f.start_us.p50 >= 35 * MIN_US);
    w->in.why_task_id = 12345;
    f = run(w);
    assert_int_equal(f.place, 0);
    assert_int_equal(f.start_us.p50, 0);
    free(w);
}

static void test_forecast__same_seed_same_answer(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 40);
    duration_init(&s->duration, 0);
    for (int i = 0; i < 20; i++) {
        duration_learn(&s->duration, (uint32_t)(100 + 20 * i), (300 + 31 * i % 170) * USEC_PER_SEC);
    }
    struct forecast a = run(w);
    struct forecast b = run(w);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.end_us.p10 < a.end_us.p50 && a.end_us.p50 < a.end_us.p90);
    w->in.seed = 2;
    b = run(w);
    assert_true(a.end_us.p50 != b.end_us.p50);
    for (size_t i = 0; i < 20; i++) { /* the order parts come in does not matter */
        struct forecast_part p = w->parts[0][i];
        w->parts[0][i] = w->parts[0][39 - i];
        w->parts[0][39 - i] = p;
    }
    struct forecast c = run(w);
    assert_memory_equal(&b, &c, sizeof b);
    free(w);
}

#define assert_refused(w)                                                                          \
    do {                                                                                           \
        struct err err_ = ERR_INIT;                                                                \
        struct forecast f_;                                                                        \
        assert_false(forecast_run(&(w)->in, &f_, &err_));                                          \
        assert_int_equal(err_.code, ERR_INVALID);                                                  \
    } while (0)

/* Set a field to a value out of bounds, see it refused, set it back. */
#define refuse(w, field, value)                                                                    \
    do {                                                                                           \
        __typeof__(field) was_ = (field);                                                          \
        (field) = (value);                                                                         \
        assert_refused(w);                                                                         \
        (field) = was_;                                                                            \
    } while (0)

static void test_forecast__input_out_of_bounds_is_an_error(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 4);
    set_running(w, 0, 1, MIN_US);
    assert_true(run(w).known);
    refuse(w, w->in.runs, -1);
    refuse(w, w->in.runs, FORECAST_RUNS_MAX + 1);
    refuse(w, w->in.creates_per_s, 0);
    refuse(w, w->in.creates_per_s, -1);
    refuse(w, w->in.creates_per_s, NAN);
    refuse(w, w->in.spot_loss, 1);
    refuse(w, w->in.spot_loss, -0.1);
    refuse(w, w->in.spot_loss, NAN);
    refuse(w, w->in.target_i, 1);
    refuse(w, w->in.target_i, -1);
    refuse(w, w->in.stages_n, -1);
    refuse(w, w->in.campaigns_n, 0);
    refuse(w, w->in.projects_n, 0);
    refuse(w, w->in.slots_n, -1);
    refuse(w, w->in.now_us, -1);
    refuse(w, w->in.account, NULL);
    refuse(w, w->campaigns[0].project_i, 1);
    refuse(w, w->campaigns[0].weight, 0);
    refuse(w, w->campaigns[0].spent_musd, -1);
    refuse(w, w->projects[0].weight, 0);
    refuse(w, s->campaign_i, 1);
    refuse(w, s->needs_n, -1);
    refuse(w, s->needs_n, SPEC_STAGES_MAX + 1);
    refuse(w, s->tries, -1);
    refuse(w, s->failed_tries, -1);
    refuse(w, s->cold_start_s, -1);
    refuse(w, s->retry_wait_s, -1);
    refuse(w, w->stage[0].instance_count, 0);
    refuse(w, w->jobs[0][0].instances, 0);
    refuse(w, w->jobs[0][0].slots_i, 2);
    s->needs_n = 1;
    s->needs[0] = 1;
    assert_refused(w);
    s->needs_n = 0;
    w->jobs[0][0].slots_i = -1; /* of a type nobody knows any more: it ends all the same */
    w->jobs[0][0].started_us = NOW + 5 * MIN_US;
    assert_true(run(w).known);
    w->in.stages_n = 0;
    struct forecast f = run(w);
    assert_true(f.known);
    assert_int_equal(f.end_us.p50, 0);
    free(w);
}

static void test_forecast__what_is_out_of_reach_is_said_and_no_error(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 4);
    w->in.stages_n = FORECAST_STAGES_MAX + 1;
    struct forecast f = run(w);
    assert_true(f.too_large && !f.known);
    w->in.stages_n = 1;
    int *const counts[] = {&w->in.campaigns_n, &w->in.projects_n};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        int n = *counts[i];
        *counts[i] = FORECAST_CAMPAIGNS_MAX + 1;
        f = run(w);
        assert_true(f.too_large && !f.known);
        *counts[i] = n;
    }
    s->parts_n = FORECAST_PARTS_MAX + 1;
    f = run(w);
    assert_true(f.too_large && !f.known);
    s->parts_n = 4;
    w->in.too_large = true;
    assert_true(run(w).too_large);
    w->in.too_large = false;
    f = run(w);
    assert_true(f.known && !f.too_large);
    free(w);
}

static double cpu_s(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Every stage needs all before it: 2^31 ways from the last to the first. */
static void test_forecast__stages_are_looked_at_once(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 0; i < SPEC_STAGES_MAX; i++) {
        struct forecast_stage *s = add_stage(w, 0, 1);
        for (int k = 0; k < i; k++) {
            s->needs[s->needs_n++] = k;
        }
    }
    w->in.runs = 8;
    double began_s = cpu_s();
    struct forecast f = run(w);
    assert_true(f.known);
    assert_int_equal(f.stages_n, SPEC_STAGES_MAX);
    assert_true(f.stage[SPEC_STAGES_MAX - 1].known);
    assert_true(cpu_s() - began_s < 1);
    duration_init(&w->stages[0].duration, 0);
    f = run(w);
    assert_false(f.known || f.stage[SPEC_STAGES_MAX - 1].known);
    free(w);
}

struct looks {
    int left, n;
};

static bool used_up(void *ctx)
{
    struct looks *l = ctx;
    l->n++;
    return l->left-- <= 0;
}

static void test_forecast__time_is_up(void **state)
{
    (void)state;
    struct world *w = world_new();
    (void)add_stage(w, 0, PARTS);
    struct forecast whole = run(w);
    assert_int_equal(whole.runs, 60);
    struct looks l = {.left = 1000000};
    w->in.expired = used_up;
    w->in.expired_ctx = &l;
    struct forecast f = run(w);
    assert_memory_equal(&f, &whole, sizeof f); /* enough of it changes nothing */
    assert_true(l.n >= 60);
    l = (struct looks){.left = l.n / 3};
    f = run(w);
    assert_true(f.known && f.runs >= 8 && f.runs <= 20);
    assert_in_range(f.end_us.p50, whole.end_us.p50 / 10 * 9, whole.end_us.p50 / 10 * 11);
    l = (struct looks){0};
    f = run(w);
    assert_true(f.too_large && !f.known);
    assert_int_equal(l.n, 1);
    struct forecast_advice advice[4];
    struct err err = ERR_INIT;
    int n = 1;
    assert_true(forecast_advise(&w->in, &whole, advice, 4, &n, &err));
    assert_int_equal(n, 0);
    free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast__equal_parts_are_arithmetic),
        cmocka_unit_test(test_forecast__what_is_out_of_reach_is_said_and_no_error),
        cmocka_unit_test(test_forecast__stages_are_looked_at_once),
        cmocka_unit_test(test_forecast__time_is_up),
        cmocka_unit_test(test_forecast__starts_take_as_long_as_was_seen),
        cmocka_unit_test(test_forecast__running_jobs_tell_how_long_they_waited),
        cmocka_unit_test(test_forecast__starts_of_another_stage_tell),
        cmocka_unit_test(test_forecast__says_how_many_parts_it_needs),
        cmocka_unit_test(test_forecast__stages_wait_for_those_they_need),
        cmocka_unit_test(test_forecast__others_take_their_share),
        cmocka_unit_test(test_forecast__limits_bind),
        cmocka_unit_test(test_forecast__money_and_quotas_that_never_come),
        cmocka_unit_test(test_forecast__failures_take_time_and_money),
        cmocka_unit_test(test_forecast__place_and_start_of_one_part),
        cmocka_unit_test(test_forecast__same_seed_same_answer),
        cmocka_unit_test(test_forecast__input_out_of_bounds_is_an_error),
    };
    return cmocka_run_group_tests_name("forecast", tests, NULL, NULL);
}
