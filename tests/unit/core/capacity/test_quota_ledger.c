/* Aim: no more is ever intended than every quota leaves, a refusal teaches limit and foreign use
 * that fades, and no number, however large, overflows. Method: rows by hand, the refusal texts of
 * the corpus, random bytes as text, and random states held against sums in 128 bits. */
#include "common/rng.h"
#include "core/capacity/quota_ledger.h"
#include "tests/unit/unit.h"
#include <stdio.h>

__extension__ typedef __int128 wide;

#define NOW    INT64_C(1700000000000000)
#define MINUTE (60 * USEC_PER_SEC)

static struct quota_ledger slots_of(int64_t quota)
{
    return (struct quota_ledger){.instance_type = "ml.c5.18xlarge",
                                 .quota = quota,
                                 .warm_quota = 0,
                                 .operator_limit = -1,
                                 .refused_limit = -1,
                                 .price_musd_per_hour = 1};
}

static struct quota_ledger_refusal parsed(const char *text)
{
    struct quota_ledger_refusal r;
    assert_true(quota_ledger_refusal_parse(text, &r));
    return r;
}

static struct quota_ledger_refusal refusal(const char *quota, int64_t limit, int64_t used,
                                           int64_t wanted)
{
    struct quota_ledger_refusal r = {.limit = limit, .used = used, .wanted = wanted};
    (void)snprintf(r.quota, sizeof r.quota, "%s", quota);
    return r;
}

static void test_slots__free_is_what_every_limit_leaves(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    s.held = 10;
    s.warm_idle = 3;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 5);
    assert_int_equal(quota_ledger_limit(&s, &a), 18);
    s.operator_limit = 15;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 2);
    assert_int_equal(quota_ledger_limit(&s, &a), 15);
    s.refused_limit = 14;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1);
    a.total[MARKET_ON_DEMAND] = (struct quota_ledger_total){.limit = 40, .held = 40};
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
    assert_int_equal(quota_ledger_limit(&s, &a), 13); /* 27 of the 40 are of other types */
    a.total[MARKET_ON_DEMAND].held = 13;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1);
    a.total[MARKET_ON_DEMAND].limit = 7;
    assert_int_equal(quota_ledger_limit(&s, &a), 7);
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
    /* The other market's total is another quota. */
    a.total[MARKET_ON_DEMAND].limit = -1;
    a.total[MARKET_SPOT].limit = 0;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1);
}

static void test_slots__others_use_does_not_count_against_the_operators_limit(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(20);
    s.operator_limit = 10;
    s.foreign = 10;
    s.foreign_us = NOW;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 10);
    s.held = 9;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1);
}

static void test_slots__an_unreadable_quota_starts_nothing(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(-1);
    s.operator_limit = 5;
    s.refused_limit = 5;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
    assert_int_equal(quota_ledger_limit(&s, &a), -1);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 1, 60, 1), WAIT_QUOTA_UNREADABLE);
    assert_int_equal(quota_ledger_warm_free(&s), 0);
    s.warm_quota = -1;
    assert_int_equal(quota_ledger_warm_free(&s), 0);
}

static void test_slots__a_limit_below_use_frees_nothing_and_nothing_less(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    s.held = 18;
    s.operator_limit = 4; /* lowered while 18 run: they drain */
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
    s.held = 4;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
    s.held = 3;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1);
}

static void test_slots__what_can_never_run_is_told(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    s.held = 18; /* busy is not never */
    assert_int_equal(quota_ledger_can_ever(&s, &a, 18, 86400, 30), WAIT_NONE);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 19, 86400, 30), WAIT_QUOTA_TOO_SMALL);
    a.per_job = 8;
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 86400, 30), WAIT_NONE);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 9, 86400, 30), WAIT_QUOTA_TOO_SMALL);
    a.longest_run_s = 86399;
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 86400, 30), WAIT_QUOTA_TOO_SMALL);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 86399, 30), WAIT_NONE);
    a.volume_gb = 29;
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 1, 30), WAIT_QUOTA_TOO_SMALL);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 1, 29), WAIT_NONE);
    a.total[MARKET_ON_DEMAND].limit = 7;
    assert_int_equal(quota_ledger_can_ever(&s, &a, 8, 1, 29), WAIT_QUOTA_TOO_SMALL);
}

static void test_slots__a_refusal_teaches_limit_and_others_use(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    s.held = 9; /* one of them is the one refused */
    struct quota_ledger_refusal r =
        parsed("The account-level service limit 'ml.c5.18xlarge for training job usage' is 16 "
               "Instances, with current utilization of 14 Instances and a request delta of 4 "
               "Instances. Please contact AWS support");
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 8, 8, NOW), QUOTA_LEDGER_QUOTA_TYPE);
    assert_int_equal(s.refused_limit, 16);
    assert_int_equal(quota_ledger_foreign(&s, NOW), 6);
    s.held = 8;
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 2);
    quota_ledger_quota_read(&s, 20);
    assert_int_equal(s.refused_limit, -1);
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 6);
    quota_ledger_quota_read(&s, -1);
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 0);
}

static void test_slots__refused_means_no_room_whatever_the_numbers_say(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    struct quota_ledger_refusal r = refusal("ml.c5.18xlarge for training job usage", 18, 2, 4);
    s.held = 2;
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 2, 2, NOW), QUOTA_LEDGER_QUOTA_TYPE);
    assert_int_equal(s.refused_limit, -1);
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 3);
}

static void test_slots__ours_unseen_by_aws_are_nobody_elses(void **state)
{
    (void)state;
    struct quota_ledger s = slots_of(4);
    struct quota_ledger_refusal r = refusal("", 4, 1, 1);
    quota_ledger_refused(&s, &r, 9, NOW);
    assert_int_equal(quota_ledger_foreign(&s, NOW), 0);
}

static void test_slots__each_quota_teaches_its_own_number(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum quota_ledger_quota quota;
        const char *type;
        enum market market;
    } rows[] = {
        {"ml.c5.18xlarge for training job usage", QUOTA_LEDGER_QUOTA_TYPE, "ml.c5.18xlarge", 0},
        {"ML.c5.18xlarge for training job usage", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {"ml.p3.2xlarge for spot training job usage", QUOTA_LEDGER_QUOTA_TYPE, "ml.p3.2xlarge",
         MARKET_SPOT},
        {"ml.c5.18xlarge for training warm pool usage", QUOTA_LEDGER_QUOTA_WARM, "ml.c5.18xlarge",
         0},
        {"training-job/ml.p2.xlarge", QUOTA_LEDGER_QUOTA_TYPE, "ml.p2.xlarge", 0},
        {"Number of instances across all training jobs", QUOTA_LEDGER_QUOTA_TOTAL, "", 0},
        {"number of instances across all spot training jobs", QUOTA_LEDGER_QUOTA_TOTAL, "",
         MARKET_SPOT},
        {"Maximum number of instances per training job", QUOTA_LEDGER_QUOTA_PER_JOB, "", 0},
        {"Longest run time for a training job", QUOTA_LEDGER_QUOTA_RUN_TIME, "", 0},
        {"Size of EBS volume for a training job instance", QUOTA_LEDGER_QUOTA_VOLUME, "", 0},
        {"Number of instances across all processing jobs", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {"ml.m5.large for endpoint usage", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {"ml.m5.4xlarge for processing job usage", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {" for training job usage", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {"ml.a b for training job usage", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
        {"ml.a-type-whose-name-is-longer-than-any for training job usage", QUOTA_LEDGER_QUOTA_OTHER,
         "", 0},
        {"", QUOTA_LEDGER_QUOTA_OTHER, "", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char type[INSTANCE_TYPE_MAX + 1];
        enum market market;
        assert_int_equal(quota_ledger_quota_named(rows[i].name, type, &market), rows[i].quota);
        assert_string_equal(type, rows[i].type);
        assert_int_equal(market, rows[i].market);
    }
}

static void test_slots__a_refusal_of_another_quota_leaves_the_type_alone(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    const struct quota_ledger before = s;
    static const char *const others[] = {
        "ml.m5.large for training job usage", "ml.c5.18xlarge for spot training job usage",
        "ml.c5.18xlarge for endpoint usage", "Number of instances across all spot training jobs",
        "ml.m5.large for training warm pool usage"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct quota_ledger_refusal r = refusal(others[i], 0, 0, 1);
        assert_int_equal(quota_ledger_learn(&s, &a, &r, 0, 0, NOW), QUOTA_LEDGER_QUOTA_OTHER);
        assert_memory_equal(&s, &before, sizeof s);
        assert_int_equal(quota_ledger_free(&s, &a, NOW), 18);
    }
    struct quota_ledger_refusal r =
        refusal("Number of instances across all training jobs", 20, 19, 4);
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 2, 12, NOW), QUOTA_LEDGER_QUOTA_TOTAL);
    a.total[MARKET_ON_DEMAND].held = 12;
    assert_memory_equal(&s, &before, sizeof s);
    assert_int_equal(quota_ledger_free(&s, &a, NOW), 1); /* 20 - 12 of ours - 7 of others */
    r = refusal("ml.c5.18xlarge for training warm pool usage", 3, 3, 1);
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 0, 0, NOW), QUOTA_LEDGER_QUOTA_WARM);
    s.warm_held = 1;
    assert_int_equal(quota_ledger_warm_free(&s), 2);
    r = refusal("Maximum number of instances per training job", 20, 0, 24);
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 0, 0, NOW), QUOTA_LEDGER_QUOTA_PER_JOB);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 18, 60, 1), WAIT_NONE);
    assert_int_equal(a.per_job, 20);
    r = refusal("Longest run time for a training job", 432000, 0, 864000);
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 0, 0, NOW), QUOTA_LEDGER_QUOTA_RUN_TIME);
    r = refusal("Size of EBS volume for a training job instance", 1024, 0, 2000);
    assert_int_equal(quota_ledger_learn(&s, &a, &r, 0, 0, NOW), QUOTA_LEDGER_QUOTA_VOLUME);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 1, 432001, 1), WAIT_QUOTA_TOO_SMALL);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 1, 432000, 1025), WAIT_QUOTA_TOO_SMALL);
    assert_int_equal(quota_ledger_can_ever(&s, &a, 1, 432000, 1024), WAIT_NONE);
}

static void test_slots__others_use_halves_and_ends(void **state)
{
    (void)state;
    struct quota_ledger s = slots_of(64);
    s.foreign = 40;
    s.foreign_us = NOW;
    assert_int_equal(quota_ledger_foreign(&s, NOW), 40);
    assert_int_equal(quota_ledger_foreign(&s, NOW + 5 * MINUTE), 30);
    assert_int_equal(quota_ledger_foreign(&s, NOW + 10 * MINUTE), 20);
    assert_int_equal(quota_ledger_foreign(&s, NOW + 20 * MINUTE), 10);
    assert_int_equal(quota_ledger_foreign(&s, NOW + 40 * MINUTE), 3); /* 2.5 */
    assert_int_equal(quota_ledger_foreign(&s, NOW + 24 * 60 * MINUTE), 0);
    assert_int_equal(quota_ledger_foreign(&s, INT64_MAX), 0);
    /* A clock set back by a day does not hold the slots for a day more. */
    assert_int_equal(quota_ledger_foreign(&s, NOW - 24 * 60 * MINUTE), 0);
    for (int64_t n = 1; n < 60; n++) {
        s.foreign = n;
        int64_t last = n;
        for (usec_t at = NOW; at < NOW + 200 * MINUTE; at += 17 * USEC_PER_SEC) {
            int64_t now = quota_ledger_foreign(&s, at);
            assert_in_range(now, 0, last);
            last = now;
        }
        assert_int_equal(last, 0);
    }
}

static void test_slots__an_accepted_create_bounds_others_use(void **state)
{
    (void)state;
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    struct quota_ledger s = slots_of(18);
    s.foreign = 10;
    s.foreign_us = NOW;
    quota_ledger_accepted(&s, &a, 12, 12, NOW);
    assert_int_equal(quota_ledger_foreign(&s, NOW), 6);
    quota_ledger_accepted(&s, &a, 19, 19, NOW); /* the limit was raised meanwhile */
    assert_int_equal(quota_ledger_foreign(&s, NOW), 0);
    /* Acceptances that teach nothing do not keep an old belief young. */
    s.foreign = 1;
    for (usec_t at = NOW; at < NOW + 30 * MINUTE; at += USEC_PER_SEC) {
        quota_ledger_accepted(&s, &a, 1, 1, at);
    }
    assert_int_equal(quota_ledger_foreign(&s, NOW + 30 * MINUTE), 0);
    a.total[MARKET_ON_DEMAND] =
        (struct quota_ledger_total){.limit = 30, .held = 20, .foreign = 20, .foreign_us = NOW};
    quota_ledger_accepted(&s, &a, 1, 21, NOW);
    assert_int_equal(quota_ledger_total_foreign(&a.total[MARKET_ON_DEMAND], NOW), 9);
}

/* Any bytes: no crash, and what is read is a number that the text could hold. */
static void test_slots__any_text_is_read_or_refused(void **state)
{
    (void)state;
    static const char *const pieces[] = {"account-level service limit ",
                                         "'",
                                         "\"",
                                         " is ",
                                         "current utilization of ",
                                         "request delta of ",
                                         "18",
                                         "-1",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         " ",
                                         "\n",
                                         "Instances",
                                         "for training-job/ml.p2.xlarge",
                                         "\xff\xfe",
                                         "\x01"};
    struct rng rng;
    rng_seed(&rng, 11);
    int read = 0;
    for (int i = 0; i < 20000; i++) {
        CLEANUP(buf_done)
        struct buf text = BUF_INIT(1 << 16);
        int n = (int)rng_below(&rng, 24);
        for (int k = 0; k < n; k++) {
            /* Mostly the true order, so that a whole text comes about now and then. */
            size_t piece = rng_chance(&rng, 0.3) ? rng_below(&rng, ARRAY_LEN(pieces))
                                                 : (size_t[]){0, 9, 3, 6, 4, 6, 5, 6}[k % 8];
            buf_add_cstr(&text, pieces[piece]);
        }
        struct quota_ledger_refusal r;
        if (quota_ledger_refusal_parse(buf_cstr(&text), &r)) {
            read++;
            assert_true(r.limit >= 0 && r.used >= 0 && r.wanted >= 0);
            assert_non_null(memchr(r.quota, '\0', sizeof r.quota));
            struct quota_ledger s = slots_of(18);
            struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
            (void)quota_ledger_learn(&s, &a, &r, INT64_MAX, INT64_MAX, NOW);
            assert_in_range(quota_ledger_free(&s, &a, NOW), 0, 18);
        }
    }
    assert_true(read > 100);
}

/* Numbers at the ends as often as numbers between. */
static int64_t any_i64(struct rng *rng)
{
    static const int64_t ends[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, 0, 1, -1};
    if (rng_chance(rng, 0.5)) {
        return ends[rng_below(rng, ARRAY_LEN(ends))];
    }
    return rng_chance(rng, 0.5) ? (int64_t)rng_below(rng, 64) : (int64_t)rng_u64(rng);
}

static void test_slots__no_number_overflows(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 12);
    for (int i = 0; i < 200000; i++) {
        struct quota_ledger s = slots_of(any_i64(&rng));
        struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
        s.held = any_i64(&rng);
        s.warm_idle = any_i64(&rng);
        s.warm_held = any_i64(&rng);
        s.warm_quota = any_i64(&rng);
        s.operator_limit = any_i64(&rng);
        s.refused_limit = any_i64(&rng);
        s.foreign = any_i64(&rng);
        s.foreign_us = any_i64(&rng);
        a.total[0].limit = any_i64(&rng);
        a.total[0].held = any_i64(&rng);
        a.total[0].foreign = any_i64(&rng);
        a.total[0].foreign_us = any_i64(&rng);
        usec_t now = any_i64(&rng);
        int64_t free_n = quota_ledger_free(&s, &a, now);
        assert_true(free_n >= 0);
        assert_true(quota_ledger_warm_free(&s) >= 0);
        assert_true(quota_ledger_limit(&s, &a) >= -1);
        /* What is given fits every limit, summed in 128 bits. */
        if (free_n > 0) {
            wide ours = (wide)MAX(0, s.held) + MAX(0, s.warm_idle) + free_n;
            assert_true(ours + quota_ledger_foreign(&s, now) <= s.quota);
            assert_true(s.operator_limit < 0 || ours <= s.operator_limit);
            assert_true(s.refused_limit < 0 ||
                        ours + quota_ledger_foreign(&s, now) <= s.refused_limit);
            wide all = (wide)MAX(0, a.total[0].held) + quota_ledger_total_foreign(&a.total[0], now);
            assert_true(a.total[0].limit < 0 || all + free_n <= a.total[0].limit);
        }
        struct quota_ledger_refusal r =
            refusal(i % 2 == 0 ? "ml.c5.18xlarge for training job usage"
                               : "Number of instances across all training jobs",
                    any_i64(&rng), any_i64(&rng), any_i64(&rng));
        (void)quota_ledger_learn(&s, &a, &r, any_i64(&rng), any_i64(&rng), now);
        quota_ledger_accepted(&s, &a, any_i64(&rng), any_i64(&rng), now);
        assert_true(quota_ledger_foreign(&s, now) >= 0);
        assert_true(quota_ledger_free(&s, &a, now) >= 0);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots__free_is_what_every_limit_leaves),
        cmocka_unit_test(test_slots__others_use_does_not_count_against_the_operators_limit),
        cmocka_unit_test(test_slots__an_unreadable_quota_starts_nothing),
        cmocka_unit_test(test_slots__a_limit_below_use_frees_nothing_and_nothing_less),
        cmocka_unit_test(test_slots__what_can_never_run_is_told),
        cmocka_unit_test(test_slots__a_refusal_teaches_limit_and_others_use),
        cmocka_unit_test(test_slots__refused_means_no_room_whatever_the_numbers_say),
        cmocka_unit_test(test_slots__ours_unseen_by_aws_are_nobody_elses),
        cmocka_unit_test(test_slots__each_quota_teaches_its_own_number),
        cmocka_unit_test(test_slots__a_refusal_of_another_quota_leaves_the_type_alone),
        cmocka_unit_test(test_slots__others_use_halves_and_ends),
        cmocka_unit_test(test_slots__an_accepted_create_bounds_others_use),
        cmocka_unit_test(test_slots__any_text_is_read_or_refused),
        cmocka_unit_test(test_slots__no_number_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
