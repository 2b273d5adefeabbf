/* Aim: limits that Service Quotas names reach the rows that differ and memory, each its own.
 * Method: readings by hand. */
#include "core/leader/quota_limits.h"
#include "leader_world.h"

static void test_quota_limits__only_what_moved_is_written(void **state)
{
    (void)state;
    struct leader_world w;
    struct quota_limit_write got[8];
    leader_world_init(&w);
    struct quota_value training[] = {{"ml.a.large", 4}, {"ml.b.large", 2}};
    struct quota_value spot[] = {{"ml.a.large", 9}};
    struct quota_value warm[] = {{"ml.a.large", 3}};
    const struct quota_reading r = {.training = training,
                                    .training_n = 2,
                                    .spot = spot,
                                    .spot_n = 1,
                                    .warm = warm,
                                    .warm_n = 1,
                                    .total = 20,
                                    .spot_total = 30,
                                    .instances_max = 5,
                                    .runtime_max_s = 86400,
                                    .keep_alive_s = 3600,
                                    .volume_max_gib = 1000};
    leader_state_slots(&w.s, "ml.b.large", MARKET_ON_DEMAND)->s.quota = 2;
    assert_false(w.s.slots[0].s.quota >= 0);
    assert_true(leader_quotas_known(&w.s)); /* one type's */
    assert_int_equal(leader_plan_quotas(&w.s, &r, got), 3);
    assert_string_equal(got[0].instance_type, "ml.a.large");
    assert_true(got[0].limit == 4 && got[0].market == MARKET_ON_DEMAND && !got[0].warm);
    assert_true(got[1].limit == 9 && got[1].market == MARKET_SPOT && !got[1].warm);
    assert_true(got[2].limit == 3 && got[2].market == MARKET_ON_DEMAND && got[2].warm);
    w.s.decide = false;
    leader_apply_quotas(&w.s, &r);
    assert_true(w.s.decide);
    assert_int_equal(leader_plan_quotas(&w.s, &r, got), 0);
    const struct live_slots *a = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
    assert_true(a->s.quota == 4 && a->s.warm_quota == 3);
    assert_int_equal(leader_state_slots(&w.s, "ml.a.large", MARKET_SPOT)->s.quota, 9);
    assert_int_equal(w.s.account.total[MARKET_ON_DEMAND].limit, 20);
    assert_int_equal(w.s.account.total[MARKET_SPOT].limit, 30);
    assert_int_equal(w.s.account.per_job, 5);
    assert_int_equal(w.s.account.longest_run_s, 86400);
    assert_int_equal(w.s.account.volume_gb, 1000);
    assert_int_equal(w.s.keep_alive_max_s, 3600);
    leader_world_done(&w);
}

static void test_quota_limits__a_read_limit_replaces_a_refusals(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_slots *a = leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND);
    a->s.refused_limit = 1;
    struct quota_value training[] = {{"ml.a.large", 4}};
    const struct quota_reading r = {.training = training, .training_n = 1};
    leader_apply_quotas(&w.s, &r);
    assert_int_equal(a->s.refused_limit, -1);
    leader_world_done(&w);
}

static void test_quota_limits__values_over_all_types(void **state)
{
    (void)state;
    struct account_quota_write got[ACCOUNT_QUOTA_COUNT];
    int64_t kept[ACCOUNT_QUOTA_COUNT] = {0};
    const struct quota_reading r = {.total = 1,
                                    .spot_total = 2,
                                    .instances_max = 3,
                                    .runtime_max_s = 4,
                                    .volume_max_gib = 5,
                                    .keep_alive_s = 6};
    assert_int_equal(leader_plan_account_quotas(&r, kept, got), ACCOUNT_QUOTA_COUNT);
    for (int k = 0; k < ACCOUNT_QUOTA_COUNT; k++) {
        kept[got[k].quota] = got[k].limit;
    }
    assert_true(kept[ACCOUNT_INSTANCES] == 1 && kept[ACCOUNT_SPOT_INSTANCES] == 2);
    assert_true(kept[ACCOUNT_PER_JOB] == 3 && kept[ACCOUNT_RUN_S] == 4);
    assert_true(kept[ACCOUNT_VOLUME_GB] == 5 && kept[ACCOUNT_KEEP_ALIVE_S] == 6);
    assert_int_equal(leader_plan_account_quotas(&r, kept, got), 0);
    struct leader_world w; /* a new leader goes by the rows until it has read them */
    leader_world_init(&w);
    assert_true(w.s.account.volume_gb == -1 && w.s.account.longest_run_s == -1);
    leader_kept_account_quotas(&w.s, kept);
    assert_int_equal(w.s.account.total[MARKET_ON_DEMAND].limit, 1);
    assert_int_equal(w.s.account.total[MARKET_SPOT].limit, 2);
    assert_true(w.s.account.per_job == 3 && w.s.account.longest_run_s == 4);
    assert_true(w.s.account.volume_gb == 5 && w.s.keep_alive_max_s == 6);
    assert_false(leader_quotas_known(&w.s)); /* nothing starts by them alone */
    leader_world_done(&w);
    kept[ACCOUNT_RUN_S] = 99; /* a row that differs is written alone */
    assert_int_equal(leader_plan_account_quotas(&r, kept, got), 1);
    assert_true(got[0].quota == ACCOUNT_RUN_S && got[0].limit == 4);
}

/* Defaults that were not read take nothing away; what is missing in all that there is does. */
static void test_quota_limits__what_could_not_be_read_stays(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct leader_world w;
        struct account_quota_write got[ACCOUNT_QUOTA_COUNT];
        const int64_t kept[ACCOUNT_QUOTA_COUNT] = {1, 2, 3, 4, 5, 6};
        const struct quota_reading r = {.total = 9,
                                        .spot_total = -1,
                                        .instances_max = -1,
                                        .runtime_max_s = -1,
                                        .volume_max_gib = -1,
                                        .keep_alive_s = -1,
                                        .whole = whole != 0};
        leader_world_init(&w);
        leader_kept_account_quotas(&w.s, kept);
        leader_apply_quotas(&w.s, &r);
        assert_int_equal(w.s.account.total[MARKET_ON_DEMAND].limit, 9);
        assert_int_equal(w.s.account.total[MARKET_SPOT].limit,
                         whole ? -1 : kept[ACCOUNT_SPOT_INSTANCES]);
        assert_int_equal(w.s.account.per_job, whole ? -1 : kept[ACCOUNT_PER_JOB]);
        assert_int_equal(w.s.account.longest_run_s, whole ? -1 : kept[ACCOUNT_RUN_S]);
        assert_int_equal(w.s.account.volume_gb, whole ? -1 : kept[ACCOUNT_VOLUME_GB]);
        assert_int_equal(w.s.keep_alive_max_s, whole ? -1 : kept[ACCOUNT_KEEP_ALIVE_S]);
        assert_int_equal(leader_plan_account_quotas(&r, kept, got),
                         whole ? ACCOUNT_QUOTA_COUNT : 1);
        assert_int_equal(got[0].limit, 9);
        leader_world_done(&w);
    }
}

static void test_quota_limits__none_is_known(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(leader_quotas_known(&w.s));
    assert_int_equal(leader_quotas_again_us(&w.s, 3600 * SEC), SEC);
    assert_int_equal(leader_quotas_again_us(&w.s, SEC / 2), SEC / 2);
    leader_state_slots(&w.s, "ml.a.large", MARKET_ON_DEMAND)->s.quota = 0;
    assert_int_equal(leader_quotas_again_us(&w.s, 3600 * SEC), -1);
    leader_world_done(&w);
}

/* Not at once, for whoever holds the lock would stop every pass; and not at the next reading. */
static void test_quota_limits__what_was_not_written_is_written_again_soon(void **state)
{
    (void)state;
    int64_t again_us = leader_quotas_write_us(7 * SEC);
    assert_true(again_us >= 7 * SEC + SEC / 5 && again_us <= 12 * SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_limits__only_what_moved_is_written),
        cmocka_unit_test(test_quota_limits__a_read_limit_replaces_a_refusals),
        cmocka_unit_test(test_quota_limits__values_over_all_types),
        cmocka_unit_test(test_quota_limits__what_could_not_be_read_stays),
        cmocka_unit_test(test_quota_limits__none_is_known),
        cmocka_unit_test(test_quota_limits__what_was_not_written_is_written_again_soon),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
