/* Aim: few Lists show every end soon, whatever else the account has, whether filters work or not,
 * and whatever is refused. Method: a service of one page at a time; attempts and pools by hand. */
#include "core/leader/list_round.h"
#include "core/leader/strays.h"
#include "leader_world.h"

#define INTERVAL (10 * SEC)

struct list_world {
    struct leader_world w;
    struct list_round r;
    struct job_list_query q;
    int64_t us; /* boot */
};

static void setup(struct list_world *t, int live)
{
    leader_world_init(&t->w);
    t->w.ls->row.counts[TASK_WAITING] = 1000;
    t->us = BOOT;
    list_round_init(&t->r, INTERVAL, t->us);
    for (int i = 1; i <= live; i++) {
        struct live_attempt *a = leader_world_attempt(&t->w, i, 1);
        a->p.state = ATTEMPT_RUNNING;
        a->p.described_us = BOOT - SEC;
    }
}

static struct live_attempt *nth(struct list_world *t, int i)
{
    return t->w.s.attempts[i - 1];
}

/* The next page that is asked for; the clock goes on to it. */
static void ask(struct list_world *t)
{
    for (int i = 0; i < 100; i++) {
        int64_t wait_us = list_round_wait_us(&t->r, &t->w.s, WALL + t->us - BOOT, 0, t->us);
        if (wait_us == 0) {
            list_round_query(&t->r, &t->w.s, "d", 0, t->us, &t->q);
            return;
        }
        t->us += wait_us;
    }
    fail_msg("no page is asked for");
}

/* A page shows attempts from..to, and so many jobs of others. */
static void give(struct list_world *t, int from, int to, int others, const char *next)
{
    static struct job_summary jobs[JOB_LIST_PAGE];
    size_t n = 0;
    memset(jobs, 0, sizeof jobs);
    for (int i = from; i <= to; i++) {
        (void)snprintf(jobs[n].name, sizeof jobs[n].name, "%s", nth(t, i)->row.name.s);
        jobs[n++].created = WALL - i * SEC;
    }
    for (int i = 0; i < others; i++) {
        (void)snprintf(jobs[n].name, sizeof jobs[n].name, "other-%d", i);
        jobs[n++].created = WALL - 100 * SEC;
    }
    list_round_page(&t->r, &t->w.s, jobs, n, next, t->us);
}

static int absent(struct list_world *t)
{
    int n = 0;
    struct live_attempt *a;
    while ((a = list_round_absent(&t->r, &t->w.s, t->us)) != NULL) {
        a->p.look_now = true;
        n++;
    }
    return n;
}

static void described(struct list_world *t, struct live_attempt *a)
{
    a->p.look_now = false;
    a->p.described_us = t->us;
}

static void refuse(struct list_world *t, enum aws_outcome outcome)
{
    const struct aws_failure f = {.outcome = outcome};
    list_round_refused(&t->r, &f, t->us);
}

/* A stray that runs, as far as is known. */
static struct live_stray *stray(struct list_world *t, const char *name, int64_t described_us)
{
    struct stray_row row = {.status = "InProgress", .instance_type = "ml.a.large", .instances = 1};
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    leader_apply_stray(&t->w.s, &row);
    struct live_stray *st = leader_stray_named(&t->w.s, name);
    st->look_now = false;
    st->described_us = described_us;
    return st;
}

static void test_list_round__what_a_whole_list_does_not_show_is_described(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 3);
    ask(&t);
    assert_string_equal(t.q.status, "InProgress");
    assert_string_equal(t.q.contains, "d-");
    assert_int_equal(t.q.created_after, leader_list_since(&t.w.s, t.us));
    give(&t, 2, 3, 4, "");
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 1)->p.look_now);
    t.us += INTERVAL / 10;
    described(&t, nth(&t, 1)); /* it runs: the List was behind. It is left alone for a while */
    for (int rounds = 0; rounds < 2; rounds++) {
        ask(&t);
        give(&t, 2, 3, 0, "");
        assert_int_equal(absent(&t), rounds);
    }
    leader_world_done(&t.w);
}

static void test_list_round__a_list_that_is_behind_costs_ever_less(void **state)
{
    (void)state;
    struct list_world t;
    int asked = 0;
    setup(&t, 1);
    for (int rounds = 0; rounds < 64; rounds++) {
        ask(&t);
        give(&t, 1, 0, 0, "");
        asked += absent(&t);
        described(&t, nth(&t, 1));
    }
    assert_in_range(asked, 5, 9);
    ask(&t);
    give(&t, 1, 1, 0, ""); /* seen again: an absence means something again */
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 1);
    leader_world_done(&t.w);
}

static void test_list_round__a_job_confirmed_since_it_began_is_not_absent(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    ask(&t);
    described(&t, nth(&t, 1)); /* made while the List was under way */
    give(&t, 2, 2, 0, "");
    assert_int_equal(absent(&t), 0);
    leader_world_done(&t.w);
}

static void test_list_round__many_ends_at_once_are_described_in_rounds(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 100);
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 40);
    ask(&t);
    give(&t, 1, 0, 0, "");
    assert_int_equal(absent(&t), 40); /* look_now still tells of the others */
    leader_world_done(&t.w);
}

static void test_list_round__stops_when_all_live_names_were_seen(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    int64_t began_us = t.us;
    give(&t, 1, 100, 0, "p2");
    ask(&t);
    assert_int_equal(t.us, began_us + INTERVAL / 10); /* never two at once */
    assert_string_equal(t.q.token, "p2");
    give(&t, 101, 120, 80, "p3"); /* 20 foreign ones follow, or 20,000 */
    assert_int_equal(absent(&t), 0);
    ask(&t);
    assert_string_equal(t.q.token, "");
    assert_int_equal(t.us, began_us + INTERVAL);
    leader_world_done(&t.w);
}

static void test_list_round__a_refused_page_is_asked_for_again_alone(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    give(&t, 1, 100, 0, "p2");
    int64_t before_us = t.us;
    for (int i = 0; i < 4; i++) {
        ask(&t);
        assert_string_equal(t.q.token, "p2");
        refuse(&t, i % 2 == 0 ? AWS_THROTTLED : AWS_UNKNOWN);
    }
    assert_true(t.us - before_us >= (1 + 1 + 2 + 4) * SEC); /* ever later */
    ask(&t);
    assert_string_equal(t.q.token, "p2");
    give(&t, 101, 119, 0, "");
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 120)->p.look_now);
    leader_world_done(&t.w);
}

static void test_list_round__a_token_that_is_refused_begins_anew(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 120);
    ask(&t);
    give(&t, 1, 100, 0, "p2");
    ask(&t);
    refuse(&t, AWS_REFUSED);
    assert_int_equal(absent(&t), 0); /* nothing follows from a List that was not told */
    ask(&t);
    assert_string_equal(t.q.token, "");
    for (int i = 0; i < 5; i++) { /* nor is a List of which nothing comes asked for ever */
        ask(&t);
        refuse(&t, AWS_REFUSED);
    }
    assert_false(t.r.under_way);
    leader_world_done(&t.w);
}

static void test_list_round__a_list_that_never_comes_is_made_up_for_by_describes(void **state)
{
    (void)state;
    struct list_world t;
    int described_n = 0;
    setup(&t, 60);
    for (int64_t end_us = t.us + 600 * SEC; t.us < end_us;) {
        ask(&t);
        refuse(&t, AWS_THROTTLED);
        described_n += absent(&t);
        for (int i = 1; i <= 60; i++) {
            if (nth(&t, i)->p.look_now) {
                described(&t, nth(&t, i));
            }
        }
    }
    assert_in_range(described_n, 160, 260); /* 0.4 a second and the first ones */
    for (int i = 1; i <= 60; i++) {         /* in rotation: none is forgotten */
        assert_true(t.us - nth(&t, i)->p.described_us < 240 * SEC);
    }
    leader_world_done(&t.w);
}

static void test_list_round__pages_are_paced(void **state)
{
    (void)state;
    struct list_world t;
    char token[16];
    int pages = 0;
    int64_t last_us = 0;
    setup(&t, 1);
    t.w.s.attempts[0]->row.intended_us = WALL;
    for (int64_t end_us = t.us + 3000 * SEC; t.us < end_us; pages++) {
        ask(&t);
        assert_true(t.us - last_us >= INTERVAL / 10);
        last_us = t.us;
        (void)snprintf(token, sizeof token, "p%d", pages);
        give(&t, 1, 0, JOB_LIST_PAGE, token); /* a List without an end */
    }
    assert_in_range(pages, 790, 806);
    leader_world_done(&t.w);
}

static void test_list_round__filters_that_come_late_are_noticed(void **state)
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

static void test_list_round__what_is_too_deep_is_described_in_rotation(void **state)
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

static void test_list_round__stopping_and_pools_are_asked_for_when_there_are_some(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    nth(&t, 2)->p.state = ATTEMPT_STOPPING;
    struct live_pool *p = leader_world_pool(&t.w, 5, POOL_AVAILABLE, NULL);
    p->seen = true;
    p->look_now = false;
    p->described_us = BOOT - SEC;
    ask(&t);
    give(&t, 1, 1, 0, "");
    assert_int_equal(absent(&t), 0); /* not all is told yet */
    ask(&t);
    assert_string_equal(t.q.status, "Stopping");
    give(&t, 1, 0, 0, "");
    ask(&t);
    assert_string_equal(t.q.pool, "Available");
    assert_string_equal(t.q.status, "");
    assert_false(p->look_now);
    give(&t, 1, 0, 0, "");
    assert_true(p->look_now);
    assert_int_equal(absent(&t), 1);
    assert_true(nth(&t, 2)->p.look_now);
    leader_world_done(&t.w);
}

static void test_list_round__strays_that_a_whole_list_does_not_show_are_looked_at(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 1);
    (void)stray(&t, "b", BOOT - 2 * SEC);
    (void)stray(&t, "a", BOOT - SEC);
    (void)stray(&t, "other-0", BOOT - 9 * SEC);
    const struct live_stray *st = t.w.s.strays;
    ask(&t);
    give(&t, 1, 1, JOB_LIST_PAGE - 1, "more"); /* not all is told yet */
    assert_false(st[0].look_now || st[1].look_now || st[2].look_now);
    ask(&t);
    give(&t, 1, 1, 0, "");
    assert_true(st[0].look_now);
    assert_false(st[1].look_now || st[2].look_now); /* one a round; the third one was shown */
    t.w.s.strays[0].ended_us = t.us;
    t.w.s.strays[0].look_now = false;
    ask(&t);
    give(&t, 1, 1, 1, "");
    assert_true(st[1].look_now);
    assert_false(st[0].look_now || st[2].look_now);
    leader_world_done(&t.w);
}

static void test_list_round__what_may_land_unnoticed_is_looked_for(void **state)
{
    (void)state;
    struct list_world t;
    int news = 0;
    setup(&t, 1);
    leader_list_watch(&t.w.s, WALL - 7200 * SEC, t.us + 200 * SEC, t.us);
    for (int64_t end_us = t.us + 600 * SEC; t.us < end_us;) {
        ask(&t);
        if (t.q.status[0] == '\0') { /* once a minute, until once after the watch */
            /* What is older was the sweep's, and what was seen is not listed again. */
            int64_t back_us = (news++ == 0 ? 910 : 70) * SEC;
            assert_true(t.q.created_after >= WALL + (t.us - BOOT) - back_us - 121 * SEC);
            give(&t, 1, 1, 0, "");
        } else {
            assert_string_equal(t.q.status, "InProgress");
            give(&t, 1, 1, 0, "");
        }
    }
    assert_int_equal(news, 5);
    leader_world_done(&t.w);
}

static void test_list_round__what_is_new_does_not_hold_up_the_rounds(void **state)
{
    (void)state;
    struct list_world t;
    int rounds = 0, news = 0;
    char token[16];
    setup(&t, 1);
    leader_list_watch(&t.w.s, WALL, t.us + 1000 * SEC, t.us);
    for (int64_t end_us = t.us + 300 * SEC; t.us < end_us;) {
        ask(&t);
        if (t.q.status[0] != '\0') {
            rounds++;
            give(&t, 1, 1, 0, "");
        } else { /* tens of thousands are new */
            (void)snprintf(token, sizeof token, "n%d", news++);
            give(&t, 1, 0, JOB_LIST_PAGE, token);
        }
    }
    assert_in_range(rounds, 27, 31);
    assert_in_range(news, 30, 60);
    leader_world_done(&t.w);
}

static void test_list_round__a_list_of_the_stopping_that_fails_says_nothing(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 2);
    nth(&t, 2)->p.state = ATTEMPT_STOPPING;
    ask(&t);
    give(&t, 1, 1, 0, "");
    for (int i = 0; i < 5; i++) {
        ask(&t);
        assert_string_equal(t.q.status, "Stopping");
        refuse(&t, AWS_UNKNOWN);
    }
    assert_int_equal(absent(&t), 0);
    leader_world_done(&t.w);
}

static void test_list_round__nothing_of_ours_is_not_asked_about(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 0);
    for (int i = 0; i < 10; i++) {
        int64_t wait_us = list_round_wait_us(&t.r, &t.w.s, WALL, 0, t.us);
        assert_int_equal(wait_us, INTERVAL);
        t.us += wait_us;
    }
    assert_int_equal(t.r.n, 0);
    leader_world_done(&t.w);
}

static void test_list_round__a_new_leader_learns_anew_and_keeps_the_pace(void **state)
{
    (void)state;
    struct list_world t;
    setup(&t, 1);
    t.r.late = true;
    ask(&t);
    list_round_clear(&t.r);
    assert_false(t.r.late);
    assert_false(t.r.under_way);
    assert_int_equal(list_round_urgent_wait_us(&t.r, t.us), INTERVAL / 10);
    assert_int_equal(list_round_wait_us(&t.r, &t.w.s, WALL, 0, t.us), INTERVAL / 10);
    leader_world_done(&t.w);
}

static void test_list_round__rounds_are_rare_while_events_tell(void **state)
{
    (void)state;
    struct list_world t;
    const struct aws_failure f = {.outcome = AWS_REFUSED};
    setup(&t, 2);
    list_round_every(&t.r, 60 * INTERVAL, t.us);
    ask(&t);
    int64_t began_us = t.us;
    give(&t, 1, 1, 0, "");
    assert_int_equal(absent(&t), 1); /* what a rare round does not show is described, too */
    described(&t, nth(&t, 2));
    ask(&t);
    assert_int_equal(t.us, began_us + 60 * INTERVAL);
    list_round_refused(&t.r, &f, t.us); /* one that is cut comes again as always */
    for (int i = 1; i < 5; i++) {
        ask(&t);
        list_round_refused(&t.r, &f, t.us);
    }
    int64_t cut_us = t.us;
    ask(&t);
    assert_true(t.us <= cut_us + 3 * INTERVAL);
    give(&t, 1, 2, 0, "");
    int64_t over_us = t.us;
    t.us += INTERVAL / 2;
    list_round_every(&t.r, INTERVAL, t.us); /* no event is trusted any more: at once */
    ask(&t);
    assert_true(t.us <= over_us + 2 * INTERVAL);
    list_round_every(&t.r, 0, t.us);
    assert_int_equal(t.r.every_us, INTERVAL);
    leader_world_done(&t.w);
}

static void test_list_round__while_events_tell_rotation_is_rare_too(void **state)
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

static void test_list_round__a_refused_page_is_no_first_try(void **state)
{
    (void)state;
    struct list_round r = {.interval_us = SEC};
    assert_true(list_round_is_first_try(&r));
    r.walk.failures = 1;
    assert_false(list_round_is_first_try(&r));
    r.asks_new = true; /* another List, whose page was not refused */
    assert_true(list_round_is_first_try(&r));
    r.news.failures = 1;
    r.walk.failures = 0;
    assert_false(list_round_is_first_try(&r));
}

static void test_list_round__the_sweep_lists_first(void **state)
{
    (void)state;
    assert_int_equal(list_round_yields_us(0, true), 0);
    assert_int_equal(list_round_yields_us(0, false), SEC / 20);
    assert_int_equal(list_round_yields_us(SEC, false), SEC);
    assert_int_equal(list_round_yields_us(SEC, true), SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_round__what_a_whole_list_does_not_show_is_described),
        cmocka_unit_test(test_list_round__a_list_that_is_behind_costs_ever_less),
        cmocka_unit_test(test_list_round__a_job_confirmed_since_it_began_is_not_absent),
        cmocka_unit_test(test_list_round__many_ends_at_once_are_described_in_rounds),
        cmocka_unit_test(test_list_round__stops_when_all_live_names_were_seen),
        cmocka_unit_test(test_list_round__a_refused_page_is_asked_for_again_alone),
        cmocka_unit_test(test_list_round__a_token_that_is_refused_begins_anew),
        cmocka_unit_test(test_list_round__a_list_that_never_comes_is_made_up_for_by_describes),
        cmocka_unit_test(test_list_round__pages_are_paced),
        cmocka_unit_test(test_list_round__filters_that_come_late_are_noticed),
        cmocka_unit_test(test_list_round__what_is_too_deep_is_described_in_rotation),
        cmocka_unit_test(test_list_round__stopping_and_pools_are_asked_for_when_there_are_some),
        cmocka_unit_test(test_list_round__strays_that_a_whole_list_does_not_show_are_looked_at),
        cmocka_unit_test(test_list_round__what_may_land_unnoticed_is_looked_for),
        cmocka_unit_test(test_list_round__what_is_new_does_not_hold_up_the_rounds),
        cmocka_unit_test(test_list_round__a_list_of_the_stopping_that_fails_says_nothing),
        cmocka_unit_test(test_list_round__nothing_of_ours_is_not_asked_about),
        cmocka_unit_test(test_list_round__a_new_leader_learns_anew_and_keeps_the_pace),
        cmocka_unit_test(test_list_round__rounds_are_rare_while_events_tell),
        cmocka_unit_test(test_list_round__while_events_tell_rotation_is_rare_too),
        cmocka_unit_test(test_list_round__a_refused_page_is_no_first_try),
        cmocka_unit_test(test_list_round__the_sweep_lists_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
