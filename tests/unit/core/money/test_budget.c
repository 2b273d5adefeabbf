/* Aim: no sequence of reservations, settlements and edits passes a cap, loses or doubles an amount,
 * or overflows; thresholds are told once. Method: rows by hand at the ends of int64, then random
 * lives of attempts under five levels beside a recount in 128 bits. */
#include "common/rng.h"
#include "core/money/budget.h"
#include "tests/unit/unit.h"

__extension__ typedef __int128 wide;

static void test_budget__left_is_never_below_nothing(void **state)
{
    (void)state;
    static const struct {
        struct budget b;
        musd_t left;
    } rows[] = {
        {{.cap_musd = -1}, INT64_MAX},
        {{.cap_musd = -1, .reserved_musd = INT64_MAX, .spent_musd = INT64_MAX}, INT64_MAX},
        {{.cap_musd = 0}, 0},
        {{.cap_musd = 10, .reserved_musd = 3, .spent_musd = 4}, 3},
        {{.cap_musd = 10, .reserved_musd = 6, .spent_musd = 4}, 0},
        {{.cap_musd = 5, .reserved_musd = 6, .spent_musd = 4}, 0}, /* lowered below use */
        {{.cap_musd = 0, .reserved_musd = INT64_MAX, .spent_musd = INT64_MAX}, 0},
        {{.cap_musd = INT64_MAX}, INT64_MAX},
        {{.cap_musd = INT64_MAX, .reserved_musd = INT64_MAX, .spent_musd = 1}, 0},
        {{.cap_musd = INT64_MIN, .reserved_musd = 1}, INT64_MAX}, /* below 0: no cap */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(budget_left(&rows[i].b) == rows[i].left);
    }
}

static void test_budget__reserves_at_every_level_or_at_none(void **state)
{
    (void)state;
    struct budget campaign = {.cap_musd = 100};
    struct budget project = {.cap_musd = 50, .spent_musd = 1};
    struct budget *const b[BUDGET_LEVELS] = {NULL, NULL, &campaign, &project, NULL};
    struct err err = ERR_INIT;
    assert_true(budget_reserve(b, 49, &err));
    assert_false(budget_reserve(b, 1, &err));
    assert_int_equal(err.code, ERR_BUDGET);
    assert_string_equal(err.message, "the project's cap leaves 0 micro-USD, and 1 are asked");
    assert_int_equal(campaign.reserved_musd, 49);
    assert_int_equal(project.reserved_musd, 49);
    assert_true(budget_reserve(b, 0, &err));
    assert_false(budget_reserve(b, -1, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(campaign.reserved_musd, 49);
}

static void test_budget__amounts_beyond_int64_are_refused(void **state)
{
    (void)state;
    struct budget inner = {.cap_musd = -1};
    struct budget outer = {.cap_musd = -1, .reserved_musd = 1};
    struct budget *const b[BUDGET_LEVELS] = {&inner, NULL, NULL, NULL, &outer};
    struct err err = ERR_INIT;
    assert_false(budget_reserve(b, INT64_MAX, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
    assert_int_equal(inner.reserved_musd, 0);
    assert_true(budget_reserve(b, INT64_MAX - 1, &err));
    outer.spent_musd = 2;
    bool overrun = true;
    assert_false(budget_settle(b, 0, INT64_MAX - 1, &overrun, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
    assert_int_equal(inner.spent_musd, 0);
    assert_true(overrun); /* untouched */
    assert_false(budget_settle(b, -1, 0, &overrun, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(budget_settle(b, 0, INT64_MIN, &overrun, &err));
    assert_true(budget_settle(b, INT64_MAX - 1, INT64_MAX - 2, &overrun, &err));
    assert_false(overrun);
    assert_int_equal(inner.reserved_musd, 0);
    assert_int_equal(outer.reserved_musd, 1);
}

static void test_budget__gives_back_once_and_no_more_than_is_reserved(void **state)
{
    (void)state;
    struct budget stage = {.cap_musd = 100};
    struct budget campaign = {.cap_musd = 100, .reserved_musd = 30};
    struct budget *const b[BUDGET_LEVELS] = {NULL, &stage, &campaign, NULL, NULL};
    struct err err = ERR_INIT;
    bool overrun = false;
    assert_true(budget_reserve(b, 60, &err));
    assert_true(budget_settle(b, 60, 70, &overrun, &err));
    assert_true(overrun);
    assert_int_equal(stage.spent_musd, 70);
    assert_int_equal(campaign.reserved_musd, 30);
    assert_false(budget_settle(b, 60, 70, &overrun, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_int_equal(campaign.reserved_musd, 30);
    assert_int_equal(campaign.spent_musd, 70);
}

static void test_budget__a_cap_lowered_below_use_stops_starts_till_use_falls(void **state)
{
    (void)state;
    struct budget campaign = {.cap_musd = 100};
    struct budget *const b[BUDGET_LEVELS] = {NULL, NULL, &campaign, NULL, NULL};
    struct err err = ERR_INIT;
    bool overrun;
    assert_true(budget_reserve(b, 40, &err));
    assert_true(budget_reserve(b, 40, &err));
    campaign.cap_musd = 50;
    assert_int_equal(budget_left(&campaign), 0);
    assert_false(budget_reserve(b, 1, &err));
    assert_false(budget_reserve(b, 0, &err)); /* what costs nothing is started no more either */
    assert_true(budget_settle(b, 40, 5, &overrun, &err));
    assert_int_equal(budget_left(&campaign), 5);
    assert_false(budget_reserve(b, 6, &err));
    assert_true(budget_reserve(b, 5, &err));
    campaign.cap_musd = -1; /* taken away */
    assert_true(budget_reserve(b, 1000000, &err));
    campaign.cap_musd = 0;
    assert_true(budget_settle(b, 1000000, 7, &overrun, &err)); /* settling is never refused */
    assert_int_equal(campaign.spent_musd, 12);
}

static void test_budget__thresholds_are_told_once(void **state)
{
    (void)state;
    static const int64_t at[] = {500000, 800000, 1000000};
    struct budget before = {.cap_musd = 100, .spent_musd = 49};
    struct budget after = before;
    after.spent_musd = 50;
    assert_int_equal(budget_warns(&before, &after, at, 3), 0);
    assert_int_equal(budget_warns(&after, &after, at, 3), -1);
    after.spent_musd = 79;
    assert_int_equal(budget_warns(&before, &after, at, 3), 0);
    after.spent_musd = 100;
    assert_int_equal(budget_warns(&before, &after, at, 3), 2); /* the highest one's is enough */
    after.spent_musd = 101;
    assert_int_equal(budget_warns(&before, &after, at, 2), 1);
    /* What is reserved is not spent: it comes back. */
    after = before;
    after.reserved_musd = 51;
    assert_int_equal(budget_warns(&before, &after, at, 3), -1);
    /* A cap lowered, and one set where there was none. */
    after.cap_musd = 60;
    assert_int_equal(budget_warns(&before, &after, at, 3), 1);
    before.cap_musd = -1;
    assert_int_equal(budget_warns(&before, &after, at, 3), 1);
    assert_int_equal(budget_warns(&after, &before, at, 3), -1);
    assert_int_equal(budget_warns(&before, &after, at, 0), -1);
    const struct budget top = {.cap_musd = INT64_MAX, .spent_musd = INT64_MAX};
    const struct budget below = {.cap_musd = INT64_MAX, .spent_musd = INT64_MAX - 1};
    assert_int_equal(budget_warns(&below, &top, at, 3), 2);
}

static void test_budget__at_limit_says_what_becomes_of_what_runs(void **state)
{
    (void)state;
    for (int a = AT_LIMIT_DRAIN; a <= AT_LIMIT_HOLD; a++) {
        assert_int_equal(budget_at_limit((enum at_limit)a, false, 0), BUDGET_GO_ON);
        assert_int_equal(budget_at_limit((enum at_limit)a, false, 9), BUDGET_GO_ON);
    }
    assert_int_equal(budget_at_limit(AT_LIMIT_DRAIN, true, 1), BUDGET_GO_ON);
    assert_int_equal(budget_at_limit(AT_LIMIT_DRAIN, true, 0), BUDGET_HOLD);
    assert_int_equal(budget_at_limit(AT_LIMIT_HOLD, true, 1), BUDGET_HOLD);
    assert_int_equal(budget_at_limit(AT_LIMIT_STOP, true, 1), BUDGET_STOP_AND_HOLD);
}

#define LIVES 64

struct life { /* an attempt under one of two stages of one campaign */
    bool live;
    int stage;
    musd_t reserved;
};

/* Amounts from small change to the end of int64. */
static musd_t any_amount(struct rng *rng, bool small)
{
    if (small || rng_chance(rng, 0.97)) {
        return (musd_t)rng_below(rng, 1000);
    }
    return INT64_MAX - (musd_t)rng_below(rng, 3);
}

struct books {
    struct rng rng;
    struct budget stage[2], campaign, project, global;
    struct life life[LIVES];
    wide spent[2]; /* the recount */
    bool small;
};

static wide recount_reserved(const struct books *k, int stage)
{
    wide sum = 0;
    for (int i = 0; i < LIVES; i++) {
        sum +=
            k->life[i].live && (stage < 0 || k->life[i].stage == stage) ? k->life[i].reserved : 0;
    }
    return sum;
}

static void check(const struct books *k)
{
    for (int s = 0; s < 2; s++) {
        assert_true(k->stage[s].reserved_musd == recount_reserved(k, s));
        assert_true(k->stage[s].spent_musd == k->spent[s]);
    }
    const struct budget *const all[] = {&k->campaign, &k->project, &k->global};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_true(all[i]->reserved_musd == recount_reserved(k, -1));
        assert_true(all[i]->spent_musd == k->spent[0] + k->spent[1]);
    }
}

static bool fits(const struct budget *b, musd_t musd)
{
    return b->cap_musd < 0 || (wide)b->reserved_musd + b->spent_musd + musd <= b->cap_musd;
}

static void try_reserve(struct books *k, struct life *l, int stage)
{
    struct budget *const b[BUDGET_LEVELS] = {NULL, &k->stage[stage], &k->campaign, &k->project,
                                             &k->global};
    musd_t musd = any_amount(&k->rng, k->small);
    bool should = true;
    bool overflow = false;
    for (int i = 1; i < BUDGET_LEVELS; i++) {
        should = should && fits(b[i], musd);
        overflow = overflow || (wide)b[i]->reserved_musd + musd > INT64_MAX;
    }
    struct err err = ERR_INIT;
    bool did = budget_reserve(b, musd, &err);
    assert_int_equal(did, should && !overflow);
    if (did) {
        *l = (struct life){true, stage, musd};
    }
}

static void try_settle(struct books *k, struct life *l)
{
    struct budget *const b[BUDGET_LEVELS] = {NULL, &k->stage[l->stage], &k->campaign, &k->project,
                                             &k->global};
    /* A void, less than reserved, or an overrun now and then. */
    musd_t cost = rng_chance(&k->rng, 0.2)   ? 0
                  : rng_chance(&k->rng, 0.9) ? (musd_t)rng_below(&k->rng, (uint64_t)l->reserved + 1)
                                             : any_amount(&k->rng, k->small);
    bool overflow = k->spent[0] + k->spent[1] + cost > INT64_MAX;
    struct err err = ERR_INIT;
    bool overrun;
    assert_int_equal(budget_settle(b, l->reserved, cost, &overrun, &err), !overflow);
    if (!overflow) {
        assert_int_equal(overrun, cost > l->reserved);
        k->spent[l->stage] += cost;
        l->live = false;
    }
}

static void edit_cap(struct books *k)
{
    struct budget *const all[] = {&k->stage[0], &k->stage[1], &k->campaign, &k->project,
                                  &k->global};
    struct budget *b = all[rng_below(&k->rng, ARRAY_LEN(all))];
    b->cap_musd = rng_chance(&k->rng, 0.2)   ? -1
                  : rng_chance(&k->rng, 0.1) ? 0
                  : k->small                 ? (musd_t)rng_below(&k->rng, 20000)
                                             : any_amount(&k->rng, false);
    assert_true(budget_left(b) >= 0);
}

static void test_budget__random_lives_keep_every_level_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct books k = {.small = seed % 2 == 0};
        rng_seed(&k.rng, seed);
        k.stage[0].cap_musd = k.stage[1].cap_musd = -1;
        k.campaign.cap_musd = k.project.cap_musd = k.global.cap_musd = k.small ? 5000 : -1;
        for (int step = 0; step < 1000; step++) {
            struct life *l = &k.life[rng_below(&k.rng, LIVES)];
            if (rng_chance(&k.rng, 0.03)) {
                edit_cap(&k);
            } else if (l->live) {
                try_settle(&k, l);
            } else {
                try_reserve(&k, l, (int)rng_below(&k.rng, 2));
            }
            check(&k);
        }
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget__left_is_never_below_nothing),
        cmocka_unit_test(test_budget__reserves_at_every_level_or_at_none),
        cmocka_unit_test(test_budget__amounts_beyond_int64_are_refused),
        cmocka_unit_test(test_budget__gives_back_once_and_no_more_than_is_reserved),
        cmocka_unit_test(test_budget__a_cap_lowered_below_use_stops_starts_till_use_falls),
        cmocka_unit_test(test_budget__thresholds_are_told_once),
        cmocka_unit_test(test_budget__at_limit_says_what_becomes_of_what_runs),
        cmocka_unit_test(test_budget__random_lives_keep_every_level_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
