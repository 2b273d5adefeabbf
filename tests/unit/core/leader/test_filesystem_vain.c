/* Aim: a file system whose exports are in vain goes soon after its end is wanted, and none goes
 * without its export while that may succeed. Method: as test_filesystem_life.c. */
#include "core/leader/filesystem_time.h"
#include "filesystem_world.h"

#define FAILS   ON(X, YES, "PENDING"), ON(T, YES, "FAILED")
#define REFUSED ON(X, NO, "BadRequest"), ON(T, YES, "")

/* It is EXPORTING since now; an hour later nothing has been tried yet. */
static void exports(struct life *l)
{
    life_init(l);
    l->f->row.ttl_s = 30 * TTL;
    PLAY(l, MADE, FILLED);
    l->f->row.delete_asked = true;
    assert_true(ends(l));
    assert_int_equal(l->f->row.state, FILESYSTEM_EXPORTING);
    PLAY(l, ON(T, YES, ""));
}

static void an_hour_later(struct life *l)
{
    pass(l, FILESYSTEM_EXPORT_MAX_US);
    assert_false(ends(l)); /* the last listing is old: a person may have begun a task since */
}

static void test_filesystem_vain__a_person_waits_for_three_tries_and_an_hour(void **state UNUSED)
{
    struct life l;
    exports(&l);
    PLAY(&l, FAILS, ON(X, YES, "PENDING"), ON(T, YES, "CANCELED"));
    assert_false(l.last.tell);
    an_hour_later(&l);
    PLAY(&l, ON(X, YES, "PENDING"), ON(T, YES, "EXECUTING"));
    assert_false(ends(&l)); /* twice is not enough, and one is under way */
    PLAY(&l, ON(T, YES, "FAILED"));
    assert_true(l.last.tell && l.last.news == FILESYSTEM_MOVED);
    l.w.s.clock.unsure = true;
    assert_false(ends(&l));
    l.w.s.clock.unsure = false;
    assert_true(ends(&l));
    assert_int_equal(l.f->row.state, FILESYSTEM_DELETING);
    assert_true(l.f->row.failed);
    assert_string_equal(l.f->row.reason,
                        "a person asked for its end, and its export did not succeed: export 3 "
                        "failed: 1 of 2 files failed; no room");
    leader_world_done(&l.w);
}

static void test_filesystem_vain__no_task_that_runs_is_cut_off(void **state UNUSED)
{
    static const struct step last[] = {
        ON(T, YES, "EXECUTING"), ON(T, YES, "PENDING"), ON(T, NO, "AccessDenied"),
        ON(T, NOTHING, ""), /* nobody knows */
    };
    for (size_t i = 0; i < ARRAY_LEN(last); i++) {
        struct life l;
        exports(&l);
        PLAY(&l, FAILS, FAILS, FAILS);
        assert_false(ends(&l)); /* before the hour */
        an_hour_later(&l);
        PLAY(&l, ON(X, YES, "PENDING"));
        assert_false(ends(&l));
        play(&l, &last[i], 1);
        assert_false(ends(&l));
        l.now_us = leader_filesystem_deadline(&l.f->row); /* within its deadline */
        assert_true(ends(&l));
        leader_world_done(&l.w);
    }
    struct life l;
    exports(&l);
    PLAY(&l, FAILS, FAILS, FAILS);
    an_hour_later(&l);
    PLAY(&l, ON(X, NOTHING, ""), ON(T, YES, "others EXECUTING"));
    assert_false(ends(&l));
    PLAY(&l, TO(T, YES, "", EXPORTING), REFUSED);
    assert_true(ends(&l));
    leader_world_done(&l.w);
}

static void test_filesystem_vain__a_create_that_is_refused_for_good_counts(void **state UNUSED)
{
    struct life l;
    exports(&l);
    PLAY(&l, REFUSED, REFUSED, ON(X, NO, "BadRequest"));
    assert_true(l.last.tell);
    assert_string_equal(l.f->row.reason, "its export was refused 3 times: BadRequest: ");
    usec_t since = l.now_us;
    PLAY(&l, ON(T, YES, ""), REFUSED, REFUSED, ON(X, NO, "BadRequest"));
    assert_false(l.last.tell); /* once */
    PLAY(&l, ON(T, YES, ""));
    assert_in_range(l.now_us - since, 20 * SEC, 120 * SEC); /* not one after the other */
    an_hour_later(&l);
    PLAY(&l, ON(X, NO, "ThrottlingException"), ON(T, YES, ""));
    assert_false(ends(&l)); /* that passes */
    PLAY(&l, REFUSED);
    assert_true(ends(&l));
    leader_world_done(&l.w);
    exports(&l); /* one that was taken ends the row of refusals */
    PLAY(&l, REFUSED, REFUSED, ON(X, YES, "PENDING"), ON(T, YES, "FAILED"));
    an_hour_later(&l);
    PLAY(&l, REFUSED);
    assert_false(ends(&l));
    leader_world_done(&l.w);
}

/* Whose end is wanted: it hears that while it is exported, too. */
static void test_filesystem_vain__a_cancel_is_heard_and_an_end_has_a_day(void **state UNUSED)
{
    enum { NOBODY, ASKED, CANCELLED, ENDED };
    for (int who = NOBODY; who <= ENDED; who++) {
        struct life l;
        life_init(&l);
        l.f->row.ttl_s = 30 * TTL;
        PLAY(&l, MADE, FILLED, ON(L, YES, "FAILED")); /* of one that failed, too */
        assert_int_equal(l.f->row.state, FILESYSTEM_EXPORTING);
        PLAY(&l, ON(T, YES, ""), FAILS, FAILS, FAILS);
        l.f->row.delete_asked = who == ASKED;
        l.w.lc->row.wanted = who == CANCELLED ? WANTED_CANCEL : WANTED_RUN;
        l.w.lc->row.state = who == ENDED ? CAMPAIGN_SUCCEEDED : CAMPAIGN_RUNNING;
        an_hour_later(&l);
        PLAY(&l, FAILS);
        assert_int_equal(ends(&l), who == ASKED || who == CANCELLED);
        pass(&l, USEC_PER_DAY);
        if (l.f->row.state == FILESYSTEM_EXPORTING) {
            PLAY(&l, FAILS);
            assert_int_equal(ends(&l), who == ENDED);
        }
        leader_world_done(&l.w);
    }
}

/* A new leader learns of the exports again before it gives one up. */
static void test_filesystem_vain__a_takeover_gives_up_nothing_unheard(void **state UNUSED)
{
    struct life l;
    exports(&l);
    PLAY(&l, FAILS, FAILS, FAILS);
    pass(&l, FILESYSTEM_EXPORT_MAX_US);
    take_over(&l);
    PLAY(&l, ON(T, YES, ""), ON(X, YES, "FAILED"), ON(X, YES, "FAILED"));
    assert_false(ends(&l));
    PLAY(&l, ON(X, YES, "FAILED"));
    assert_false(ends(&l)); /* the next may have succeeded, or was never tried */
    PLAY(&l, ON(X, YES, "SUCCEEDED"), TO(T, YES, "SUCCEEDED", DELETING));
    assert_false(l.f->row.failed);
    leader_world_done(&l.w);
    exports(&l);
    PLAY(&l, FAILS, FAILS, FAILS);
    pass(&l, FILESYSTEM_EXPORT_MAX_US);
    take_over(&l);
    PLAY(&l, ON(T, YES, ""), ON(X, YES, "FAILED"), ON(X, YES, "FAILED"), ON(X, YES, "FAILED"));
    assert_false(ends(&l));
    PLAY(&l, FAILS); /* its own */
    assert_true(ends(&l));
    leader_world_done(&l.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_vain__a_person_waits_for_three_tries_and_an_hour),
        cmocka_unit_test(test_filesystem_vain__no_task_that_runs_is_cut_off),
        cmocka_unit_test(test_filesystem_vain__a_create_that_is_refused_for_good_counts),
        cmocka_unit_test(test_filesystem_vain__a_cancel_is_heard_and_an_end_has_a_day),
        cmocka_unit_test(test_filesystem_vain__a_takeover_gives_up_nothing_unheard),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
