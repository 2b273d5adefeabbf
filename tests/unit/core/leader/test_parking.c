/* Aim: who waits for the database's sake, for how long, and who does not. Method: a state made by
 * hand, failures one after the other, the clock as a parameter. */
#include "core/leader/endpoint_life.h"
#include "core/leader/parking.h"
#include "leader_world.h"

static const struct parking_subject campaign = PARKING_CAMPAIGN(7);
static const struct parking_subject part = PARKING_PART(7, 1001);
static const struct parking_subject attempt = PARKING_ATTEMPT(7, 1);
static const struct parking_subject other = PARKING_PART(8, 2001);

static void test_parking__a_lock_stops_its_campaign_alone(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_may(&w.s, &part, BOOT));
    assert_true(parking_failed(&w.s, &part, TX_BUSY, BOOT));
    assert_false(parking_may(&w.s, &part, BOOT));
    assert_false(parking_may(&w.s, &attempt, BOOT));
    assert_false(parking_may(&w.s, &campaign, BOOT));
    assert_true(parking_may(&w.s, &other, BOOT));
    assert_false(parking_parked(&w.s, &part));
    assert_int_equal(parking_n(&w.s), 0);
    assert_int_equal(w.lc->set_aside, WAIT_LOCKED);
    assert_true(w.lc->locked);
    int64_t next_us = parking_next_us(&w.s, &part);
    assert_true(next_us > BOOT && next_us <= BOOT + SEC);
    assert_true(parking_may(&w.s, &part, next_us));
    leader_world_done(&w);
}

static void test_parking__a_lock_met_again_waits_twice_as_long_up_to_a_bound(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    int64_t now_us = BOOT;
    int64_t last_us = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(parking_failed(&w.s, &campaign, TX_BUSY, now_us), i == 0);
        int64_t pause_us = parking_next_us(&w.s, &campaign) - now_us;
        assert_true(pause_us == MIN(2 * last_us, 5 * SEC) || i == 0);
        last_us = pause_us;
        now_us += pause_us;
        parking_mark(&w.s, now_us);
        assert_true(w.lc->locked);
        assert_int_equal(w.lc->set_aside, WAIT_NONE); /* it is tried now */
    }
    assert_int_equal(last_us, 5 * SEC);
    parking_mark(&w.s, now_us + 5 * SEC - 1);
    assert_true(w.lc->locked); /* its last pause has not gone by without a lock */
    parking_mark(&w.s, now_us + 5 * SEC);
    parking_mark(&w.s, now_us + 5 * SEC);
    assert_false(w.lc->locked);
    assert_true(parking_failed(&w.s, &campaign, TX_BUSY, now_us));
    leader_world_done(&w);
}

/* Nothing else knows of an ended campaign with an attempt that is not settled: forgotten, its slot
 * and its money are held for ever (deep simulation, seed 2789). */
static void test_parking__the_lock_of_a_campaign_that_was_not_read_is_kept(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_failed(&w.s, &other, TX_BUSY, BOOT));
    assert_true(parking_failed(&w.s, &part, TX_BUSY, BOOT));
    for (int i = 1; i < 100; i++) {
        parking_mark(&w.s, BOOT + i * SEC);
    }
    assert_int_equal(parking_next_us(&w.s, &part), 0);
    assert_int_equal(w.s.parked_n, 1);
    assert_int_equal(w.s.parked[0].row.ref_id, 8);
    assert_true(parking_may(&w.s, &other, BOOT + 100 * SEC)); /* it is tried, not waited for */
    parking_drop(&w.s, 8);
    assert_int_equal(w.s.parked_n, 0);
    leader_world_done(&w);
}

/* Its attempts are not in memory, so the log of a live job looks like that of one which has ended
 * (deep simulation, seed 3): a gate went by half of it. */
static void test_parking__a_campaign_that_was_not_read_is_known(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_false(parking_unread(&w.s, 7));
    assert_false(parking_unread(&w.s, 8)); /* over, or nobody's */
    assert_true(parking_failed(&w.s, &part, TX_BUSY, BOOT));
    assert_true(parking_failed(&w.s, &other, TX_BUSY, BOOT));
    assert_false(parking_unread(&w.s, 7));
    assert_true(parking_unread(&w.s, 8));
    assert_true(parking_stage_open(&w.s, 8, 80)); /* nor is it known to have ended */
    assert_false(parking_stage_open(&w.s, 9, 90));
    parking_mark(&w.s, BOOT + 100 * SEC);
    assert_true(parking_unread(&w.s, 8));
    parking_drop(&w.s, 8);
    const struct parking_subject refused = PARKING_CAMPAIGN(8);
    assert_true(parking_failed(&w.s, &refused, TX_REFUSED, BOOT));
    assert_true(parking_unread(&w.s, 8));
    leader_world_done(&w);
}

static void test_parking__what_is_refused_waits_alone(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_failed(&w.s, &attempt, TX_REFUSED, BOOT));
    assert_false(parking_may(&w.s, &attempt, BOOT));
    assert_true(parking_parked(&w.s, &attempt));
    assert_true(parking_may(&w.s, &part, BOOT));
    assert_true(parking_may(&w.s, &campaign, BOOT));
    assert_int_equal(w.lc->set_aside, WAIT_NONE);
    assert_int_equal(parking_next_us(&w.s, &attempt), BOOT + 60 * SEC);
    assert_false(parking_failed(&w.s, &attempt, TX_REFUSED, BOOT));
    assert_int_equal(parking_next_us(&w.s, &attempt), BOOT + 120 * SEC);
    for (int i = 0; i < 40; i++) {
        assert_false(parking_failed(&w.s, &attempt, TX_REFUSED, BOOT));
    }
    assert_int_equal(parking_next_us(&w.s, &attempt), BOOT + 3600 * SEC);
    assert_int_equal(parking_n(&w.s), 1);
    assert_true(parking_over(&w.s, &attempt, BOOT));
    assert_false(parking_over(&w.s, &attempt, BOOT));
    assert_true(parking_may(&w.s, &attempt, BOOT));
    assert_int_equal(parking_n(&w.s), 0);
    leader_world_done(&w);
}

static void test_parking__a_row_that_cannot_go_parks_nobody_again(void **state)
{
    (void)state;
    static const struct parked_row row = {PARKED_CAMPAIGN, 7, 7};
    struct parking_subject due;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    parking_kept(&w.s, &campaign);
    assert_false(parking_row_due(&w.s, BOOT + 7200 * SEC, &due));
    assert_true(parking_over(&w.s, &campaign, BOOT));
    assert_false(parking_take(&w.s, &row, 1)); /* the table has it still */
    parking_mark(&w.s, BOOT);
    assert_int_equal(w.lc->set_aside, WAIT_NONE);
    assert_false(parking_parked(&w.s, &campaign));
    assert_int_equal(parking_n(&w.s), 0);
    assert_false(parking_row_due(&w.s, BOOT, &due));
    assert_true(parking_row_due(&w.s, BOOT + 5 * SEC, &due));
    assert_true(due.kind == PARKED_CAMPAIGN && due.ref_id == 7 && due.campaign_id == 7);
    assert_false(parking_row_due(&w.s, BOOT + 5 * SEC, &due)); /* once in 5 s */
    parking_drop(&w.s, 7);                                     /* the campaign is forgotten */
    assert_true(parking_row_due(&w.s, BOOT + 10 * SEC, &due));
    parking_gone(&w.s, &due);
    assert_false(parking_row_due(&w.s, BOOT + 7200 * SEC, &due));

    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    parking_gone(&w.s, &campaign); /* it waits: its row stays */
    assert_true(parking_parked(&w.s, &campaign));
    parking_kept(&w.s, &campaign);
    assert_true(parking_over(&w.s, &campaign, BOOT));
    assert_false(parking_take(&w.s, NULL, 0)); /* a person was faster, and nobody waits for it */
    assert_false(parking_row_due(&w.s, BOOT + 7200 * SEC, &due));
    leader_world_done(&w);
}

static void test_parking__refused_again_before_its_row_went(void **state)
{
    (void)state;
    struct parking_subject due;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    assert_false(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    assert_true(parking_over(&w.s, &campaign, BOOT));
    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    assert_int_equal(parking_next_us(&w.s, &campaign), BOOT + 60 * SEC); /* anew */
    assert_int_equal(w.lc->set_aside, WAIT_PARKED);
    assert_int_equal(parking_n(&w.s), 1);
    assert_false(parking_row_due(&w.s, BOOT + 7200 * SEC, &due));
    leader_world_done(&w);
}

static void test_parking__a_parked_campaign_starts_nothing_and_its_attempts_go_on(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    campaign_rest(w.lc);
    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    assert_int_equal(w.lc->set_aside, WAIT_PARKED);
    assert_false(w.lc->rests); /* a plan tells it */
    assert_true(parking_may(&w.s, &attempt, BOOT));
    parking_mark(&w.s, BOOT + 7200 * SEC);
    assert_int_equal(w.lc->set_aside, WAIT_PARKED); /* till its transaction is taken */
    w.lc->spec_unreadable = true;
    assert_false(parking_over(&w.s, &campaign, BOOT)); /* a state that moves reads no spec */
    w.lc->spec_unreadable = false;
    assert_true(parking_over(&w.s, &campaign, BOOT));
    campaign_rest(w.lc);
    parking_mark(&w.s, BOOT);
    assert_int_equal(w.lc->set_aside, WAIT_NONE);
    assert_false(w.lc->rests);
    leader_world_done(&w);
}

static void test_parking__the_table_says_what_a_person_unparked(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    const struct parked_row rows[] = {{PARKED_PART, 1001, 7}, {PARKED_ATTEMPT, 1, 7}};
    const struct ready_queue_task t = {.task_id = 1001, .not_before_us = WALL + 3600 * SEC};
    struct ready_queue_task got;
    ready_queue_push(w.ls->ready, &t);
    assert_false(parking_take(&w.s, rows, 2)); /* found at a takeover: tried at once */
    assert_true(parking_parked(&w.s, &part) && parking_parked(&w.s, &attempt));
    assert_true(parking_may(&w.s, &part, BOOT));
    assert_false(parking_failed(&w.s, &part, TX_REFUSED, BOOT)); /* and people know of it */
    assert_false(parking_take(&w.s, rows, 2));
    assert_false(parking_may(&w.s, &part, BOOT));
    assert_false(ready_queue_peek(w.ls->ready, WALL, &got));
    assert_true(parking_take(&w.s, rows + 1, 1));
    assert_true(parking_may(&w.s, &part, BOOT));
    assert_true(ready_queue_peek(w.ls->ready, WALL, &got));
    assert_true(parking_parked(&w.s, &attempt));
    assert_true(parking_failed(&w.s, &part, TX_REFUSED, BOOT));
    assert_false(parking_take(&w.s, rows + 1, 1)); /* its row is not written yet */
    assert_true(parking_parked(&w.s, &part));
    parking_kept(&w.s, &part);
    assert_true(parking_take(&w.s, rows + 1, 1));
    leader_world_done(&w);
}

static void test_parking__a_wish_is_tried_at_once(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_failed(&w.s, &campaign, TX_REFUSED, BOOT));
    assert_false(parking_may(&w.s, &campaign, BOOT));
    parking_hurry(&w.s, &campaign);
    assert_true(parking_may(&w.s, &campaign, BOOT));
    assert_true(parking_parked(&w.s, &campaign));
    assert_true(parking_failed(&w.s, &other, TX_REFUSED, BOOT));
    parking_drop(&w.s, 7);
    assert_false(parking_parked(&w.s, &campaign));
    assert_true(parking_parked(&w.s, &other));
    leader_world_done(&w);
}

static void test_parking__waiting_parts_say_that_they_are_locked(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_int_equal(parking_pause_us(&w.s, &part, BOOT), 0);
    (void)parking_failed(&w.s, &part, TX_REFUSED, BOOT);
    assert_int_equal(parking_pause_us(&w.s, &part, BOOT), 60 * SEC);
    assert_int_equal(parking_pause_us(&w.s, &part, BOOT + 50 * SEC), 10 * SEC);
    assert_int_equal(parking_pause_us(&w.s, &part, BOOT + 70 * SEC), 0);
    w.ls->reason = WAIT_NEW;
    assert_true(parking_tells_stage(w.ls));
    parking_told_stages(w.lc);
    assert_int_equal(w.ls->reason, WAIT_LOCKED);
    assert_false(parking_tells_stage(w.ls)); /* once */
    w.ls->reason = WAIT_NEW;
    w.ls->row.counts[TASK_WAITING] = 0; /* nobody waits */
    assert_false(parking_tells_stage(w.ls));
    parking_told_stages(w.lc);
    assert_int_equal(w.ls->reason, WAIT_NEW);
    leader_world_done(&w);
}

static void test_parking__who_is_told(void **state)
{
    (void)state;
    static const struct {
        enum tx_meaning why;
        bool news;
        enum parking_tell tell;
    } rows[] = {
        {TX_BUSY, true, PARKING_TELL_LOCKED},
        {TX_BUSY, false, PARKING_TELL_NOBODY},
        {TX_REFUSED, true, PARKING_TELL_PARKED},
        {TX_REFUSED, false, PARKING_TELL_PARKED}, /* the reason may be another */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(parking_tells(rows[i].why, rows[i].news), rows[i].tell);
    }
}

static void test_parking__reports_wait_with_a_locked_campaign(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_true(parking_reports(w.lc));
    assert_true(parking_by_report(TX_BUSY));
    assert_false(parking_by_report(TX_REFUSED)); /* no part needs it: only logged */
    assert_false(parking_by_report(TX_DONE));
    (void)parking_failed(&w.s, &campaign, TX_BUSY, BOOT);
    assert_false(parking_reports(w.lc));
    leader_world_done(&w);
}

/* Else its stage, once it can be read, would deploy a try of the same number again. */
static void test_parking__an_ended_endpoint_is_known_while_its_campaign_is_not_read(void **state)
{
    (void)state;
    struct leader_world w;
    const struct parking_subject who = PARKING_CAMPAIGN(4711); /* not in memory */
    const struct endpoint_row row = {.id = 5, .campaign_id = 4711, .state = ENDPOINT_DELETED};
    leader_world_init(&w);
    (void)leader_take_endpoints(&w.s, &row, 1, BOOT);
    (void)parking_failed(&w.s, &who, TX_REFUSED, BOOT);
    leader_endpoints_forget(&w.s);
    assert_int_equal(w.s.endpoints_n, 1);
    parking_drop(&w.s, 4711);
    leader_endpoints_forget(&w.s);
    assert_int_equal(w.s.endpoints_n, 0);
    leader_world_done(&w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parking__a_lock_stops_its_campaign_alone),
        cmocka_unit_test(test_parking__a_lock_met_again_waits_twice_as_long_up_to_a_bound),
        cmocka_unit_test(test_parking__the_lock_of_a_campaign_that_was_not_read_is_kept),
        cmocka_unit_test(test_parking__a_campaign_that_was_not_read_is_known),
        cmocka_unit_test(test_parking__what_is_refused_waits_alone),
        cmocka_unit_test(test_parking__a_row_that_cannot_go_parks_nobody_again),
        cmocka_unit_test(test_parking__refused_again_before_its_row_went),
        cmocka_unit_test(test_parking__a_parked_campaign_starts_nothing_and_its_attempts_go_on),
        cmocka_unit_test(test_parking__the_table_says_what_a_person_unparked),
        cmocka_unit_test(test_parking__a_wish_is_tried_at_once),
        cmocka_unit_test(test_parking__waiting_parts_say_that_they_are_locked),
        cmocka_unit_test(test_parking__who_is_told),
        cmocka_unit_test(test_parking__an_ended_endpoint_is_known_while_its_campaign_is_not_read),
        cmocka_unit_test(test_parking__reports_wait_with_a_locked_campaign),
    };
    return cmocka_run_group_tests_name("parking", tests, NULL, NULL);
}
