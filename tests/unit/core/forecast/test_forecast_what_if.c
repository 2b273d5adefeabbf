/* Aim: what-if changes what it says and nothing else, and advice is worth its price. Method: equal
 * parts, so that every gain is arithmetic. */
#include "forecast_help.h"

static struct what_if no_change(void)
{
    return (struct what_if)WHAT_IF_NOTHING;
}

static struct forecast whole(const struct world *w, const struct what_if *what)
{
    struct err err = ERR_INIT;
    struct forecast f;
    if (!forecast_run_what_if(&w->in, what, &f, &err)) {
        fail_msg("%s", err.message);
    }
    return f;
}

static int64_t what_if(const struct world *w, const struct what_if *what)
{
    return whole(w, what).end_us.p50;
}

static void test_forecast_what_if__changes_one_thing(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    struct what_if x = no_change();
    assert_min(what_if(w, &x), 40);
    x.slots = 8;
    assert_min(what_if(w, &x), 20);
    w->campaigns[0].parts_limit = 4; /* lifted with the slots */
    w->slots[0].operator_limit = 4;
    w->slots[0].refused_limit = 3;
    w->spec[0].instances[0] = (struct spec_limit){"ml.a.large", 4};
    w->spec[0].instances_n = 1;
    assert_min(what_if(w, &x), 20);
    x.parts = 2; /* unless it is said */
    assert_min(what_if(w, &x), 80);
    assert_int_equal(w->campaigns[0].parts_limit, 4); /* the input stays */
    assert_int_equal(w->slots[0].operator_limit, 4);
    w->campaigns[0].parts_limit = -1;
    w->spec[0].instances_n = 0;
    w->slots[0].operator_limit = w->slots[0].refused_limit = -1;
    x = no_change();
    w->slots[1].quota = 16;
    (void)snprintf(x.instance_type, sizeof x.instance_type, "ml.b.large");
    assert_min(what_if(w, &x), 10);
    (void)snprintf(x.instance_type, sizeof x.instance_type, "ml.z.large");
    struct err err = ERR_INIT;
    struct forecast f;
    assert_false(forecast_run_what_if(&w->in, &x, &f, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "ml.z.large"));
    x = no_change();
    x.spot_loss = 0.5;
    assert_true(what_if(w, &x) > 45 * MIN_US);
    /* One part takes four times as long: last in the list it ends the campaign late. */
    duration_init(&s->duration, 0);
    for (int i = 0; i < 40; i++) {
        duration_learn(&s->duration, 10 + (uint32_t)(i % 2) * 30, (10 + i % 2 * 30) * MIN_US);
    }
    for (int i = 0; i < 16; i++) {
        w->parts[0][i].size_mb = i == 15 ? 40 : 10;
    }
    x = no_change();
    assert_min(what_if(w, &x), 50);
    x.fifo = true;
    assert_min(what_if(w, &x), 70);
    w->in.fifo = true;
    x.fifo = false;
    assert_min(what_if(w, &x), 70);
    x.longest_first = true;
    assert_min(what_if(w, &x), 50);
    free(w);
}

/* The limits that a person may change, each as PATCH of it would. */
static void test_forecast_what_if__changes_a_limit_as_patch_does(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct forecast_stage *s = add_stage(w, 0, 16);
    struct what_if x = no_change();
    s->parts_limit = 2;
    w->campaigns[0].parts_limit = 1;
    assert_min(what_if(w, &x), 160);
    x.parts = 4; /* the stage's own limit stays */
    assert_min(what_if(w, &x), 80);
    x.parts = WHAT_IF_NO_LIMIT;
    assert_min(what_if(w, &x), 80);
    (void)snprintf(x.stage, sizeof x.stage, "first");
    assert_min(what_if(w, &x), 160); /* now the campaign's stays */
    w->campaigns[0].parts_limit = -1;
    assert_min(what_if(w, &x), 40);
    x.parts = 1;
    assert_min(what_if(w, &x), 160);
    x.parts = 0;
    assert_true(what_if(w, &x) == USEC_NEVER);
    assert_int_equal(whole(w, &x).binding, FORECAST_BINDS_CONCURRENCY);
    (void)snprintf(x.stage, sizeof x.stage, "third");
    struct err err = ERR_INIT;
    struct forecast f;
    assert_false(forecast_run_what_if(&w->in, &x, &f, &err));
    assert_int_equal(err.code, ERR_INVALID);
    s->parts_limit = -1;
    /* What is spent and reserved is no longer there. A part reserves 7.20 and costs 0.60. */
    x = no_change();
    w->campaigns[0].spent_musd = 100000000;
    w->campaigns[0].reserved_musd = 50000000;
    x.budget_musd = 150000000;
    assert_true(what_if(w, &x) == USEC_NEVER);
    x.budget_musd += 100000000;
    assert_min(what_if(w, &x), 40);
    x.parts = 1; /* the last part waits for money for ever, for others first */
    x.budget_musd = 150000000 + 9 * 1000000;
    assert_true(what_if(w, &x) == USEC_NEVER);
    assert_int_equal(whole(w, &x).binding, FORECAST_BINDS_MONEY);
    w->campaigns[0].left_musd = 0;
    x = no_change();
    assert_true(what_if(w, &x) == USEC_NEVER);
    x.budget_musd = WHAT_IF_NO_LIMIT;
    assert_min(what_if(w, &x), 40);
    /* The same of a stage, whose budget is beside that of its campaign. */
    w->campaigns[0].left_musd = INT64_MAX;
    s->committed_musd = 100000000;
    s->left_musd = 0;
    x = no_change();
    x.budget_musd = 250000000;
    assert_true(what_if(w, &x) == USEC_NEVER); /* the campaign's is not what binds */
    (void)snprintf(x.stage, sizeof x.stage, "first");
    assert_min(what_if(w, &x), 40);
    x.budget_musd = 100000000;
    assert_true(what_if(w, &x) == USEC_NEVER);
    x.budget_musd = WHAT_IF_NO_LIMIT;
    assert_min(what_if(w, &x), 40);
    free(w);
    /* Before or behind another one of 16 parts. */
    w = world_new();
    w->in.campaigns_n = 2;
    add_stage(w, 0, 16);
    add_stage(w, 1, 16);
    x = no_change();
    x.priority = 80;
    assert_min(what_if(w, &x), 40);
    x.priority = 20;
    assert_min(what_if(w, &x), 80);
    free(w);
}

static int advise(const struct world *w, struct forecast_advice *a, int n_max)
{
    struct err err = ERR_INIT;
    struct forecast f;
    int n = -1;
    assert_true(forecast_run(&w->in, &f, &err));
    assert_true(forecast_advise(&w->in, &f, a, n_max, &n, &err));
    return n;
}

static void test_forecast_what_if__advice_is_worth_it(void **state)
{
    (void)state;
    struct world *w = world_new();
    add_stage(w, 0, 48); /* two hours on four slots */
    struct forecast_advice a[8];
    assert_int_equal(advise(w, a, 8), 3);
    assert_int_equal(a[0].slots_i, 0);
    assert_int_equal(a[0].more, 4);
    assert_min(a[0].sooner_us, 60);
    assert_int_equal(a[0].dearer_musd, 0);
    assert_int_equal(a[1].more, 2);
    assert_min(a[1].sooner_us, 40);
    assert_int_equal(a[2].more, 1);
    assert_min(a[2].sooner_us, 20);
    assert_int_equal(advise(w, a, 1), 1);
    assert_int_equal(a[0].more, 4);
    w->campaigns[0].parts_limit = 3; /* its own limit binds; one more fits the quota */
    assert_int_equal(advise(w, a, 8), 1);
    assert_int_equal(a[0].slots_i, -1);
    assert_int_equal(a[0].more, 1);
    assert_min(a[0].sooner_us, 40);
    w->slots[0].quota = 3;
    assert_int_equal(advise(w, a, 8), 0);
    w->campaigns[0].parts_limit = -1;
    w->in.creates_per_s = 1.0 / 600; /* slots would not help */
    assert_int_equal(advise(w, a, 8), 0);
    w->in.creates_per_s = 1000;
    duration_init(&w->stages[0].duration, 0);
    assert_int_equal(advise(w, a, 8), 0); /* nothing known, nothing advised */
    free(w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_what_if__changes_one_thing),
        cmocka_unit_test(test_forecast_what_if__changes_a_limit_as_patch_does),
        cmocka_unit_test(test_forecast_what_if__advice_is_worth_it),
    };
    return cmocka_run_group_tests_name("forecast_what_if", tests, NULL, NULL);
}
