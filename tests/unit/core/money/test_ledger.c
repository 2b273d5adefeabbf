/* Aim: an attempt's money is reserved, settled and closed once each, in entries that always balance
 * and never overflow; whatever is asked out of turn changes nothing. Method: the lives there are by
 * hand, then random calls in random order beside a recount in 128 bits from the entries alone. */
#include "common/rng.h"
#include "core/money/ledger.h"
#include "tests/kit/ledger_model.h"
#include "tests/unit/unit.h"

__extension__ typedef __int128 wide;

static void assert_entry(const struct ledger_entry *e, enum ledger_kind kind,
                         enum ledger_account from, enum ledger_account to, musd_t musd)
{
    assert_int_equal(e->attempt_id, 7);
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->from, from);
    assert_int_equal(e->to, to);
    assert_true(e->amount_musd == musd);
}

static void test_ledger__a_job_without_a_pool(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, 1000, e));
    assert_entry(&e[0], LEDGER_RESERVE, LEDGER_BUDGET, LEDGER_RESERVED, 1000);
    assert_true(ledger_settle_job(&a, 7, 600, 360, true, 0, e, &n, &err));
    assert_int_equal(n, 2);
    assert_entry(&e[0], LEDGER_SETTLE, LEDGER_RESERVED, LEDGER_SPENT, 600);
    assert_int_equal(e[0].seconds, 360);
    assert_true(e[0].estimated);
    assert_entry(&e[1], LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 400);
    assert_int_equal(e[1].seconds, 0);
    assert_true(ledger_close(&a, 7, 0, 0, e, &n, &err));
    assert_int_equal(n, 0);
    assert_true(a.closed);
    assert_int_equal(a.reserved_musd, 0);
    assert_int_equal(a.spent_musd, 600);
}

static void test_ledger__a_job_with_a_pool_keeps_what_idling_may_cost(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, 1000, e));
    assert_true(ledger_settle_job(&a, 7, 600, 360, false, 100, e, &n, &err));
    assert_entry(&e[1], LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 300);
    assert_int_equal(a.reserved_musd, 100);
    assert_true(ledger_close(&a, 7, 30, 18, e, &n, &err));
    assert_int_equal(n, 2);
    assert_entry(&e[0], LEDGER_WARM, LEDGER_RESERVED, LEDGER_SPENT, 30);
    assert_int_equal(e[0].seconds, 18);
    assert_entry(&e[1], LEDGER_WARM_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 70);
    assert_int_equal(a.spent_musd, 630);
    assert_int_equal(a.reserved_musd, 0);
}

static void test_ledger__a_void_gives_everything_back(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, 1000, e));
    assert_false(ledger_close(&a, 7, 1, 0, e, &n, &err)); /* no job, no pool */
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_true(ledger_close(&a, 7, 0, 0, e, &n, &err));
    assert_int_equal(n, 1);
    assert_entry(&e[0], LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 1000);
    assert_int_equal(a.spent_musd, 0);
}

static void test_ledger__an_overrun_is_booked_before_it_is_spent(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, 1000, e));
    assert_true(ledger_settle_job(&a, 7, 1250, 750, false, 100, e, &n, &err));
    assert_int_equal(n, 3);
    assert_entry(&e[0], LEDGER_OVERRUN, LEDGER_BUDGET, LEDGER_RESERVED, 250);
    assert_entry(&e[1], LEDGER_SETTLE, LEDGER_RESERVED, LEDGER_SPENT, 1250);
    assert_entry(&e[2], LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 0);
    assert_true(ledger_close(&a, 7, 40, 24, e, &n, &err));
    assert_int_equal(n, 3);
    assert_entry(&e[0], LEDGER_WARM_OVERRUN, LEDGER_BUDGET, LEDGER_RESERVED, 40);
    assert_entry(&e[1], LEDGER_WARM, LEDGER_RESERVED, LEDGER_SPENT, 40);
    assert_int_equal(a.spent_musd, 1290);
}

static void test_ledger__keeps_no_more_than_is_over(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, 1000, e));
    assert_true(ledger_settle_job(&a, 7, 950, 1, false, INT64_MAX, e, &n, &err));
    assert_int_equal(a.reserved_musd, 50);
    assert_entry(&e[1], LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, 0);
}

static void test_ledger__out_of_turn_changes_nothing(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n = -5;
    struct err err = ERR_INIT;
    assert_false(ledger_settle_job(&a, 7, 1, 1, false, 0, e, &n, &err));
    assert_false(ledger_close(&a, 7, 0, 0, e, &n, &err));
    assert_false(ledger_model_reserve(&a, 7, -1, e));
    assert_int_equal(n, -5);
    assert_true(ledger_model_reserve(&a, 7, 0, e)); /* a reservation of nothing is one, too */
    struct ledger_account_of_attempt before = a;
    n = -5;
    assert_false(ledger_model_reserve(&a, 7, 0, e));
    assert_false(ledger_settle_job(&a, 7, -1, 1, false, 0, e, &n, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(ledger_settle_job(&a, 7, 1, -1, false, 0, e, &n, &err));
    assert_false(ledger_settle_job(&a, 7, 1, 1, false, -1, e, &n, &err));
    assert_false(ledger_close(&a, 7, -1, 0, e, &n, &err));
    assert_false(ledger_close(&a, 7, 0, -1, e, &n, &err));
    assert_memory_equal(&a, &before, sizeof a);
    assert_true(ledger_settle_job(&a, 7, 5, 1, false, 0, e, &n, &err));
    assert_false(ledger_settle_job(&a, 7, 5, 1, false, 0, e, &n, &err));
    assert_true(ledger_close(&a, 7, 0, 0, e, &n, &err));
    assert_false(ledger_close(&a, 7, 0, 0, e, &n, &err));
    assert_false(ledger_settle_job(&a, 7, 5, 1, false, 0, e, &n, &err));
    assert_false(ledger_model_reserve(&a, 7, 5, e));
}

static void test_ledger__the_ends_of_int64(void **state)
{
    (void)state;
    struct ledger_account_of_attempt a = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n;
    struct err err = ERR_INIT;
    assert_true(ledger_model_reserve(&a, 7, INT64_MAX, e));
    assert_true(ledger_settle_job(&a, 7, INT64_MAX, INT64_MAX, false, INT64_MAX, e, &n, &err));
    struct ledger_account_of_attempt before = a;
    assert_false(ledger_close(&a, 7, 1, 1, e, &n, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
    assert_memory_equal(&a, &before, sizeof a);
    assert_true(ledger_close(&a, 7, 0, INT64_MAX, e, &n, &err));
    /* Balances: too much on the way is no overflow, too much in the end is. */
    const struct ledger_entry there = {7, LEDGER_RESERVE, LEDGER_BUDGET, LEDGER_RESERVED, INT64_MAX,
                                       0, false};
    const struct ledger_entry back = {7, LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, INT64_MAX,
                                      0, false};
    const struct ledger_entry both[] = {there, there, back};
    int64_t sum[LEDGER_ACCOUNTS] = {-9, -9, -9};
    assert_false(ledger_model_sum(both, 2, sum));
    assert_int_equal(sum[0], -9);
    assert_true(ledger_model_sum(both, 3, sum));
    assert_true(sum[LEDGER_BUDGET] == -INT64_MAX && sum[LEDGER_RESERVED] == INT64_MAX);
    assert_true(ledger_model_sum(NULL, 0, sum));
    assert_int_equal(sum[LEDGER_RESERVED], 0);
}

static void test_ledger__a_correction_moves_the_difference(void **state)
{
    (void)state;
    static const struct row {
        musd_t booked;
        int64_t booked_s;
        musd_t cost;
        int64_t seconds;
        bool less;
        musd_t amount;
        int64_t s;
    } rows[] = {
        {100, 10, 40, 4, true, 60, 6},   {40, 4, 100, 10, false, 60, 6},
        {100, 10, 100, 10, false, 0, 0}, /* as estimated */
        {0, 10, 0, 4, true, 0, 6},       /* free of charge, or too little to tell */
        {100, 10, 0, 0, true, 100, 10},  {INT64_MAX, INT64_MAX, 0, 0, true, INT64_MAX, INT64_MAX},
    };
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct ledger_entry e;
        assert_true(ledger_correct(7, r->booked, r->booked_s, r->cost, r->seconds, &e, &err));
        assert_entry(&e, LEDGER_CORRECT, r->less ? LEDGER_SPENT : LEDGER_BUDGET,
                     r->less ? LEDGER_BUDGET : LEDGER_SPENT, r->amount);
        assert_int_equal(e.seconds, r->s);
        assert_false(e.estimated);
        assert_int_equal(e.attempt_id, 7);
    }
    struct ledger_entry e = {.attempt_id = -1};
    assert_false(ledger_correct(7, 100, 10, 90, 11, &e, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_false(ledger_correct(7, 100, 10, 110, 9, &e, &err));
    assert_false(ledger_correct(7, 100, 10, -1, 9, &e, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_false(ledger_correct(7, 100, -10, 1, 9, &e, &err));
    assert_int_equal(e.attempt_id, -1); /* nothing is written */
}

static void test_ledger__every_name_is_one_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < LEDGER_KINDS; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(ledger_kind_name((enum ledger_kind)i),
                                    ledger_kind_name((enum ledger_kind)j));
        }
    }
    assert_string_equal(ledger_kind_name(LEDGER_WARM_RELEASE), "warm_release");
    assert_string_equal(ledger_account_name(LEDGER_SPENT), "spent");
}

#define ATTEMPTS 24
#define ENTRIES  (ATTEMPTS * LEDGER_KINDS)

struct books {
    struct rng rng;
    bool small;
    struct ledger_account_of_attempt a[ATTEMPTS];
    struct ledger_entry e[ENTRIES]; /* ever appended to */
    size_t n;
};

static musd_t any_amount(struct books *k)
{
    if (k->small || rng_chance(&k->rng, 0.8)) {
        return (musd_t)rng_below(&k->rng, 1000) - (rng_chance(&k->rng, 0.02) ? 1000 : 0);
    }
    return rng_chance(&k->rng, 0.9) ? INT64_MAX - (musd_t)rng_below(&k->rng, 3) : INT64_MIN;
}

/* One call of any of the three on any attempt, in or out of turn. */
static void call(struct books *k)
{
    int i = (int)rng_below(&k->rng, ATTEMPTS);
    struct ledger_account_of_attempt before = k->a[i];
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n = -1;
    bool done = false;
    struct err err = ERR_INIT;
    switch (rng_below(&k->rng, 3)) {
    case 0:
        done = ledger_model_reserve(&k->a[i], i, any_amount(k), e);
        n = done ? 1 : n;
        break;
    case 1:
        done = ledger_settle_job(&k->a[i], i, any_amount(k), (int64_t)rng_below(&k->rng, 9), false,
                                 any_amount(k), e, &n, &err);
        break;
    default:
        done = ledger_close(&k->a[i], i, rng_chance(&k->rng, 0.5) ? 0 : any_amount(k),
                            (int64_t)rng_below(&k->rng, 9), e, &n, &err);
        break;
    }
    if (!done) {
        assert_int_equal(n, -1);
        assert_memory_equal(&before, &k->a[i], sizeof before);
        return;
    }
    assert_in_range(n, 0, LEDGER_ENTRIES_MAX);
    for (int j = 0; j < n; j++) {
        assert_true(e[j].amount_musd >= 0);
        assert_true(e[j].from != e[j].to);
        assert_true(k->n < ENTRIES); /* each kind once an attempt */
        k->e[k->n++] = e[j];
    }
}

/* What the entries alone say of an attempt against what its account says. */
static void check(const struct books *k)
{
    wide total[LEDGER_ACCOUNTS] = {0};
    for (int i = 0; i < ATTEMPTS; i++) {
        wide sum[LEDGER_ACCOUNTS] = {0};
        int seen[LEDGER_KINDS] = {0};
        for (size_t j = 0; j < k->n; j++) {
            if (k->e[j].attempt_id == i) {
                sum[k->e[j].from] -= k->e[j].amount_musd;
                sum[k->e[j].to] += k->e[j].amount_musd;
                assert_int_equal(seen[k->e[j].kind]++, 0);
                assert_true(sum[LEDGER_RESERVED] >= 0); /* nothing is spent before it is reserved */
            }
        }
        assert_true(sum[LEDGER_RESERVED] == k->a[i].reserved_musd);
        assert_true(sum[LEDGER_SPENT] == k->a[i].spent_musd);
        assert_true(sum[LEDGER_BUDGET] + sum[LEDGER_RESERVED] + sum[LEDGER_SPENT] == 0);
        assert_true(!k->a[i].closed || sum[LEDGER_RESERVED] == 0);
        for (int c = 0; c < LEDGER_ACCOUNTS; c++) {
            total[c] += sum[c];
        }
    }
    int64_t balance[LEDGER_ACCOUNTS];
    bool fits = true;
    for (int c = 0; c < LEDGER_ACCOUNTS; c++) {
        fits = fits && total[c] >= INT64_MIN && total[c] <= INT64_MAX;
    }
    assert_int_equal(ledger_model_sum(k->e, k->n, balance), fits);
    for (int c = 0; fits && c < LEDGER_ACCOUNTS; c++) {
        assert_true(balance[c] == total[c]);
    }
}

static void test_ledger__random_calls_balance_and_happen_once(void **state)
{
    (void)state;
    int closed = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct books k = {.small = seed % 2 == 0};
        rng_seed(&k.rng, seed);
        for (int step = 0; step < 200; step++) {
            call(&k);
            check(&k);
        }
        for (int i = 0; i < ATTEMPTS; i++) {
            closed += k.a[i].closed;
        }
    }
    assert_true(closed > 1000);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ledger__a_job_without_a_pool),
        cmocka_unit_test(test_ledger__a_job_with_a_pool_keeps_what_idling_may_cost),
        cmocka_unit_test(test_ledger__a_void_gives_everything_back),
        cmocka_unit_test(test_ledger__an_overrun_is_booked_before_it_is_spent),
        cmocka_unit_test(test_ledger__keeps_no_more_than_is_over),
        cmocka_unit_test(test_ledger__out_of_turn_changes_nothing),
        cmocka_unit_test(test_ledger__the_ends_of_int64),
        cmocka_unit_test(test_ledger__a_correction_moves_the_difference),
        cmocka_unit_test(test_ledger__every_name_is_one_of_its_own),
        cmocka_unit_test(test_ledger__random_calls_balance_and_happen_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
