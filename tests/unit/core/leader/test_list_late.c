/* Aim: the same where AWS cuts a page before it filters it: what is far behind in the List is found
 * by its time of creation, or else described in rotation. Method: as in test_list_round.c. */
#include "list_world.h"

static void test_list_late__filters_that_come_late_are_noticed(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 60);
    (void)stray(&t, "older than all", BOOT - SEC);
    ask(&t);
    assert_false(t.r.late);
    give(&t, 1, 2, 0, "p2"); /* of a hundred jobs of the account two were ours */
    assert_true(t.r.late);
    ask(&t);
    assert_string_equal(t.q.status, "");
    assert_string_equal(t.q.token, "");
    give(&t, 1, 40, 10, "p2");
    ask(&t);
    assert_string_equal(t.q.token, "p2");
    give(&t, 41, 60, 3, "p3"); /* all are seen: whatever is older does not matter */
    assert_false(t.r.under_way);
    assert_int_equal(absent(&t), 0);
    leader_world_done(&t.w);
}

static void test_list_late__what_is_too_deep_is_described_in_rotation(void **state)
{
    (void)state;
    struct list_world t;
    char token[16];
    int pages = 0, described_n = 0;
    int64_t worst_us = 0;
    setup(&t, 60);
    t.r.late = true;
    for (int64_t end_us = t.us + 1800 * SEC; t.us < end_us; pages++) {
        ask(&t);
        int page = t.q.token[0] == 'p' ? (int)strtol(t.q.token + 1, NULL, 10) : 0;
        (void)snprintf(token, sizeof token, "p%d", page + 1);
        give(&t, page < 4 ? 10 * page + 1 : 2, page < 4 ? 10 * page + 10 : 1, 50, token);
        described_n += absent(&t);
        for (int i = 1; i <= 60; i++) { /* 20 of 60 stand deeper than is listed */
            struct live_attempt *a = nth(&t, i);
            if (a->p.look_now) {
                assert_true(i > 40 || t.r.n < 3); /* others are seen every round */
                described(&t, a);
            }
            if (t.us > BOOT + 120 * SEC) {
                worst_us = MAX(worst_us, t.us - MAX(a->p.described_us, a->listed_us));
            }
        }
    }
    assert_in_range(worst_us, 1, 65 * SEC);
    assert_true(described_n <= 1800 / 2); /* 0.5 a second */
    assert_true(pages <= 1800 * 3 / 10);  /* 0.3 a second */
    leader_world_done(&t.w);
}

/* 40 are new, 20 were made an hour ago, thousands of others' jobs between; filters are late. */
static void setup_deep(struct list_world *t)
{
    setup(t, 60);
    t->r.late = true;
    for (int i = 1; i <= 60; i++) {
        nth(t, i)->created_us = WALL - i * SEC - (i > 40 ? 3600 * SEC : 0);
    }
}

static void test_list_late__others_jobs_are_skipped(void **state)
{
    (void)state;
    struct list_world t;
    setup_deep(&t);
    for (int rounds = 1; rounds <= 3; rounds++) {
        ask(&t);
        assert_int_equal(t.q.created_before, 0);
        give(&t, 1, 40, 0, "p1");
        ask(&t);
        assert_string_equal(t.q.token, "p1"); /* none of ours may be on the next page, or some */
        assert_int_equal(t.q.created_before, 0);
        give(&t, 1, 0, 0, "p2");
        for (int tries = 0; tries < 2; tries++) {
            ask(&t);
            assert_string_equal(t.q.token, "");
            assert_int_equal(t.q.created_before, WALL - (3600 + 40) * SEC);
            if (tries == 0) {
                refuse(&t, AWS_THROTTLED);
            }
        }
        give(&t, 41, 50, 0, "q1");
        ask(&t);
        assert_string_equal(t.q.token, "q1");
        give(&t, 51, 60, 0, "q2"); /* all are seen */
        assert_int_equal(t.r.n, rounds);
        assert_false(t.r.under_way);
        assert_int_equal(absent(&t), 0);
    }
    leader_world_done(&t.w);
}

static void test_list_late__a_skip_in_vain_is_not_made_again_soon(void **state)
{
    (void)state;
    struct list_world t;
    int skips = 0, pages = 0;
    setup_deep(&t);
    for (int64_t end_us = t.us + 7200 * SEC; t.us < end_us; pages++) {
        char token[16];
        ask(&t);
        skips += t.q.created_before > 0;
        (void)snprintf(token, sizeof token, "p%d", pages);
        give(&t, 1, t.q.token[0] == '\0' && t.q.created_before == 0 ? 40 : 0, 0, token);
        if (t.q.created_before > 0) { /* the service does not heed it: others are described */
            assert_false(t.r.under_way);
        }
    }
    assert_in_range(skips, 3, 12);
    assert_in_range(pages, 1800, 7200 * 3 / 10);
    leader_world_done(&t.w);
}

static void test_list_late__what_is_new_is_listed_before_others_are_skipped(void **state)
{
    (void)state;
    struct list_world t;
    char token[16] = "";
    setup_deep(&t);
    leader_list_watch(&t.w.s, WALL - 1800 * SEC, t.us + 1000 * SEC, t.us);
    for (int page = 0; page < 8; page++) { /* a Create that nobody saw may have landed there */
        ask(&t);
        assert_string_equal(t.q.token, token);
        assert_int_equal(t.q.created_before, 0);
        (void)snprintf(token, sizeof token, "p%d", page);
        give(&t, 1, page == 0 ? 40 : 0, 0, token);
    }
    ask(&t); /* so many are new that they are not waited for */
    assert_string_equal(t.q.token, "");
    assert_int_equal(t.q.created_before, WALL - (3600 + 40) * SEC);
    give(&t, 41, 60, 0, "q1");
    assert_false(t.r.under_way);                         /* all of ours are seen */
    assert_int_equal(t.r.new_from_us, WALL - 900 * SEC); /* and not all that is new */
    leader_world_done(&t.w);
}

static void test_list_late__what_is_new_is_shown_once(void **state)
{
    (void)state;
    struct list_world t;
    setup_deep(&t);
    leader_list_watch(&t.w.s, WALL - 1800 * SEC, t.us + 1000 * SEC, t.us);
    ask(&t);
    give(&t, 1, 40, 0, "p1");
    ask(&t);
    assert_string_equal(t.q.token, "p1");
    nth(&t, 1)->created_us = WALL - 901 * SEC; /* older than what is new */
    give(&t, 1, 1, 0, "p2");
    nth(&t, 1)->created_us = WALL - SEC;
    ask(&t);
    assert_string_equal(t.q.token, "p2");
    give(&t, 1, 0, 0, "p3");
    ask(&t);
    assert_int_equal(t.q.created_before, WALL - (3600 + 40) * SEC);
    give(&t, 41, 60, 0, "q1");
    assert_false(t.r.under_way);
    assert_int_equal(t.r.new_from_us, WALL); /* when this look began */
    ask(&t);
    give(&t, 1, 0, 0, "r1");
    ask(&t);
    assert_string_equal(t.q.token, "r1"); /* what came since is new */
    assert_int_equal(t.q.created_before, 0);
    leader_world_done(&t.w);
}

static void test_list_late__a_skip_goes_to_what_is_older(void **state)
{
    (void)state;
    struct list_world t;
    setup_deep(&t);
    nth(&t, 1)->created_us = WALL + 5 * SEC; /* the List is behind and does not show it */
    nth(&t, 60)->created_us = 0;             /* no Describe of it came yet */
    for (int i = 41; i < 60; i++) {
        nth(&t, i)->created_us = WALL - 7200 * SEC + (i % 2) * (SEC / 4);
    }
    ask(&t);
    give(&t, 2, 40, 0, "p1");
    ask(&t);
    give(&t, 1, 0, 0, "p2");
    ask(&t);
    assert_int_equal(t.q.created_before, WALL - 7199 * SEC);
    give(&t, 41, 41, 0, "q1"); /* others of that second are not in it */
    ask(&t);
    assert_string_equal(t.q.token, "q1");
    give(&t, 1, 0, 0, "q2");
    ask(&t);
    assert_string_equal(t.q.token, "q2"); /* not to the same second again */
    leader_world_done(&t.w);
}

static void test_list_late__while_events_tell_rotation_is_rare_too(void **state)
{
    (void)state;
    struct list_world t;
    int asked = 0;
    setup(&t, 200);
    list_round_every(&t.r, 60 * INTERVAL, t.us);
    ask(&t);
    give(&t, 1, 1, 0, "more"); /* filters are late, and all but one are too deep */
    for (int64_t end_us = t.us + 86400 * SEC; t.us < end_us;) {
        ask(&t);
        give(&t, 1, 1, JOB_LIST_PAGE - 1, "more");
        struct live_attempt *a;
        while ((a = list_round_absent(&t.r, &t.w.s, t.us)) != NULL) {
            a->p.described_us = t.us;
            asked++;
        }
    }
    print_message("# 200 jobs too deep for Lists: %.3f Describes a second\n", asked / 86400.0);
    assert_in_range(asked, 199, 86400 / 30);
    leader_world_done(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_late__filters_that_come_late_are_noticed),
        cmocka_unit_test(test_list_late__what_is_too_deep_is_described_in_rotation),
        cmocka_unit_test(test_list_late__others_jobs_are_skipped),
        cmocka_unit_test(test_list_late__a_skip_in_vain_is_not_made_again_soon),
        cmocka_unit_test(test_list_late__what_is_new_is_listed_before_others_are_skipped),
        cmocka_unit_test(test_list_late__what_is_new_is_shown_once),
        cmocka_unit_test(test_list_late__a_skip_goes_to_what_is_older),
        cmocka_unit_test(test_list_late__while_events_tell_rotation_is_rare_too),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
