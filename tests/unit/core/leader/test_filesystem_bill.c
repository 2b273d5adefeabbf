/* Aim: a file system costs its begun hours once it was available, and what it reserved is free.
 * Method: an account made by hand, booked once. */
#include "core/leader/budget_state.h"
#include "core/leader/filesystem_bill.h"
#include "core/money/cost.h"
#include "filesystem_world.h"

static void test_filesystem_bill__storage_is_billed_by_begun_hours(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    musd_t musd;
    assert_int_equal(cost_storage_hours(WALL, WALL), 1);
    assert_int_equal(cost_storage_hours(WALL, WALL - SEC), 1);
    assert_int_equal(cost_storage_hours(WALL, WALL + 3600 * SEC), 1);
    assert_int_equal(cost_storage_hours(WALL, WALL + 3600 * SEC + 1), 2);
    assert_true(cost_of_storage(140000, 12000, 1, &musd, &err)); /* 12 TB at 0.14 USD */
    assert_int_equal(musd, 2301370);
    assert_true(cost_storage_worst_case(PRICE, 1200, TTL, &musd, &err));
    assert_int_equal(musd, 4 * 240000);
    assert_false(cost_of_storage(PRICE, INT64_MAX / 2, 3, &musd, &err));
    assert_int_equal(err.code, ERR_OVERFLOW);
}

static void test_filesystem_bill__what_never_was_available_costs_nothing(void **state UNUSED)
{
    for (int available = 0; available < 2; available++) {
        struct live_filesystem f = {.row = intent()};
        struct filesystem_end end;
        struct err err = ERR_INIT;
        f.account = (struct ledger_account_of_attempt){.reserved_musd = f.row.reserved_musd,
                                                       .reserved = true};
        f.row.created_us = WALL;
        f.row.available_us = available ? WALL + 60 * SEC : 0;
        f.row.ended_us = WALL + 3700 * SEC;
        assert_true(leader_filesystem_book(&f, &f.row, &end, &err));
        assert_int_equal(end.hours, available ? 2 : 0);
        assert_int_equal(end.cost_musd, available ? 2 * 240000 : 0);
        assert_int_equal(end.estimated, available); /* its deletion was not seen */
        assert_int_equal(budget_state_reserved_by(end.entries, end.entries_n), -4 * 240000);
        assert_int_equal(budget_state_spent_by(end.entries, end.entries_n), end.cost_musd);
    }
}

/* It is over and has left memory, another of its project waits for what the file system held. */
static void test_filesystem_bill__of_a_campaign_that_is_gone_frees_its_project(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    pass(&l, WALL + TTL * SEC - l.now_us);
    assert_true(ends(&l));
    l.w.lc->row.id = 8; /* that other one */
    l.w.lc->budget_short = true;
    l.w.s.projects[1].cap_musd = USD;
    PLAY(&l, EXPORTED, GOES);
    assert_true(l.w.lc->budget_short);
    PLAY(&l, TO(L, ABSENT, "", DELETED));
    assert_false(l.w.lc->budget_short);
    leader_world_done(&l.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_bill__storage_is_billed_by_begun_hours),
        cmocka_unit_test(test_filesystem_bill__what_never_was_available_costs_nothing),
        cmocka_unit_test(test_filesystem_bill__of_a_campaign_that_is_gone_frees_its_project),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("filesystem bill", tests, NULL, NULL);
}
