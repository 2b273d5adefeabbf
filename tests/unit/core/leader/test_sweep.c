/* Aim: every job that reads like ours is decided on once, before the first intent, and what is ours
 * is never let go. Method: tables of answers; lists and descriptions by hand. */
#include "core/leader/sweep.h"
#include "leader_world.h"

static struct sweep_job job_of(bool is_void, int64_t task_id)
{
    struct sweep_job u = {.job = {.name = "d-7-s-1-a2-0a1b2c3d", .is_void = is_void},
                          .arn = "arn:1",
                          .task_id = task_id,
                          .place = {.campaign_id = 7, .stage_id = 70, .seq = 1, .n = 2}};
    return u;
}

static struct job_description says(bool proof, bool enough)
{
    struct job_description job = {.name = "d-7-s-1-a2-0a1b2c3d",
                                  .instances = enough ? 2 : 0,
                                  .instance_type = "ml.a.large",
                                  .attempt_id = 55,
                                  .max_runtime_s = 600};
    (void)snprintf(job.request_hash, sizeof job.request_hash, "%s", proof ? "proof" : "");
    job.untold = !proof;
    return job;
}

static void test_sweep__what_is_asked_about_a_name(void **state)
{
    (void)state;
    struct sweep_job lost = job_of(false, 0), ours = job_of(false, 9), given_up = job_of(true, 0);
    assert_true(sweep_wants_task(&lost));
    assert_false(sweep_wants_task(&ours) || sweep_wants_task(&given_up));
    assert_int_equal(sweep_question(&lost), SWEEP_ASK_TAG);
    assert_int_equal(sweep_question(&ours), SWEEP_ASK_DESCRIBE);
    assert_int_equal(sweep_question(&given_up), SWEEP_ASK_DESCRIBE);
    lost.arn[0] = '\0';
    assert_int_equal(sweep_question(&lost), SWEEP_ASK_NOTHING);
}

static void test_sweep__what_a_tag_means(void **state)
{
    (void)state;
    const struct aws_failure refused = {.outcome = AWS_REFUSED},
                             unknown = {.outcome = AWS_REFUSED,
                                        .code = "ResourceNotFoundException"},
                             slow = {.outcome = AWS_THROTTLED}, down = {.outcome = AWS_UNKNOWN};
    assert_int_equal(sweep_tag_answered("here", "here", NULL), SWEEP_LOOK);
    assert_int_equal(sweep_tag_answered("there", "here", NULL), SWEEP_DECIDED);
    assert_int_equal(sweep_tag_answered("", "here", NULL), SWEEP_DECIDED);
    assert_int_equal(sweep_tag_answered("", "here", &refused), SWEEP_ASIDE); /* it may be allowed */
    assert_int_equal(sweep_tag_answered("", "here", &unknown), SWEEP_REPEAT);
    assert_int_equal(sweep_tag_answered("", "here", &slow), SWEEP_LATER);
    assert_int_equal(sweep_tag_answered("here", "here", &down), SWEEP_LATER);
}

static void test_sweep__whose_a_described_job_is(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    static const struct row {
        bool is_void;
        int64_t task_id;
        bool proof, enough;
        enum sweep_then then;
        const char *why; /* NULL: not held */
    } rows[] = {
        {false, 9, true, true, SWEEP_ADOPT, "unplaced"},
        {false, 9, false, true, SWEEP_ADOPT, "unplaced"}, /* adoption_of wants the proof */
        {false, 0, true, true, SWEEP_HOLD, "lost"},
        {false, 0, false, true, SWEEP_HOLD, "lost"}, /* its tag is ours */
        {false, 0, true, false, SWEEP_UNTOLD, NULL},
        {true, 0, true, true, SWEEP_REVIVE, "void"},
        {true, 0, false, true, SWEEP_REVIVE, "void"}, /* nobody else can have made its name */
        {true, 0, true, false, SWEEP_UNTOLD, NULL},
        {true, 0, false, false, SWEEP_UNTOLD, NULL},
    };
    struct stray_row row;
    const struct aws_failure down = {.outcome = AWS_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sweep_job u = job_of(rows[i].is_void, rows[i].task_id);
        struct job_description job = says(rows[i].proof, rows[i].enough);
        bool by_name = !rows[i].proof && (rows[i].is_void || rows[i].task_id != 0);
        for (int k = 1; by_name && k < 5; k++) { /* its Environment may come yet */
            assert_int_equal(sweep_described(&w.s, &u, &job, NULL, &row), SWEEP_LATER);
        }
        assert_int_equal(sweep_described(&w.s, &u, &job, NULL, &row), rows[i].then);
        assert_string_equal(row.why, rows[i].why != NULL ? rows[i].why : "");
        assert_int_equal(row.task_id, rows[i].task_id);
        assert_int_equal(row.campaign_id, rows[i].task_id != 0 ? 7 : 0);
        assert_int_equal(row.n, rows[i].task_id != 0 ? 2 : 0);
        assert_int_equal(row.attempt_id, rows[i].task_id != 0 ? 55 : 0);
        assert_int_equal(sweep_described(&w.s, &u, &job, &down, &row), SWEEP_LATER);
        assert_int_equal(sweep_described(&w.s, &u, NULL, NULL, &row), SWEEP_REPEAT);
    }
    leader_world_done(&w);
}

static void test_sweep__an_environment_that_came_late_counts(void **state)
{
    (void)state;
    struct leader_world w;
    struct stray_row row;
    leader_world_init(&w);
    struct sweep_job u = job_of(true, 0);
    struct job_description silent = says(false, true), ours = says(true, true), others = silent;
    others.untold = false; /* an Environment, and none of ours */
    for (int k = 1; k < 5; k++) {
        assert_int_equal(sweep_described(&w.s, &u, &silent, NULL, &row), SWEEP_LATER);
    }
    assert_int_equal(sweep_described(&w.s, &u, &ours, NULL, &row), SWEEP_REVIVE);
    assert_int_equal(sweep_described(&w.s, &u, &silent, NULL, &row), SWEEP_LATER);
    assert_int_equal(sweep_described(&w.s, &u, &others, NULL, &row), SWEEP_DECIDED);
    leader_world_done(&w);
}

static void test_sweep__what_is_ours_and_not_taken_is_held(void **state)
{
    (void)state;
    const struct stray_row row = {.name = "d"}, none = {.name = ""};
    assert_int_equal(sweep_taken(TX_DONE, true, &row), SWEEP_ADOPTED);
    assert_int_equal(sweep_taken(TX_DONE, false, &row), SWEEP_HOLD);
    assert_int_equal(sweep_taken(TX_DONE, false, &none), SWEEP_UNTOLD);
    assert_int_equal(sweep_taken(TX_REFUSED, false, &row), SWEEP_HOLD);
    assert_int_equal(sweep_taken(TX_REFUSED, false, &none), SWEEP_UNTOLD);
    assert_int_equal(sweep_taken(TX_BUSY, false, &row), SWEEP_LATER);
    assert_int_equal(sweep_taken(TX_LOST, false, &row), SWEEP_STOP);
    assert_int_equal(sweep_held(TX_DONE), SWEEP_DECIDED);
    assert_int_equal(sweep_held(TX_REFUSED), SWEEP_REPEAT);
    assert_int_equal(sweep_held(TX_BUSY), SWEEP_LATER);
    assert_int_equal(sweep_held(TX_LOST), SWEEP_STOP);
}

/* Names "a" .. "c" were looked up, of which the rows do not know two. */
static void fill(struct sweep *w)
{
    static const char *const names[] = {"a", "b", "c"};
    static const struct unknown_name unknown[] = {{.name = "a"}, {.name = "c", .is_void = true}};
    static const struct job_summary jobs[] = {{.name = "c", .arn = "arn:c"},
                                              {.name = "a", .arn = "arn:a"}};
    sweep_add(w, names, 3, unknown, 2, jobs, 2);
}

static void test_sweep__intents_wait_for_all_of_the_first_list(void **state)
{
    (void)state;
    struct leader_world l;
    struct sweep w = {.n = 0};
    leader_world_init(&l);
    l.s.decide = true;
    assert_false(sweep_lets_intend(&w, &l.s));
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON); /* nothing was listed */
    assert_true(sweep_list_due(&w, BOOT));
    sweep_list_answered(&w, false, BOOT);
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    assert_false(sweep_list_due(&w, BOOT));
    assert_true(sweep_list_due(&w, BOOT + SEC));
    fill(&w);
    sweep_list_answered(&w, true, BOOT + SEC);
    assert_false(sweep_list_due(&w, BOOT + 9 * SEC));
    assert_true(name_set_has(&w.seen, "b"));
    assert_string_equal(w.jobs[0].arn, "arn:a");
    assert_string_equal(w.jobs[1].arn, "arn:c");
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    sweep_apply(&w, 0, SWEEP_DECIDED, BOOT);
    assert_int_equal(w.n, 1);
    assert_string_equal(w.jobs[0].job.name, "c");
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    assert_false(sweep_lets_intend(&w, &l.s));
    sweep_apply(&w, 0, SWEEP_UNTOLD, BOOT); /* it may say more */
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    sweep_apply(&w, 0, SWEEP_DECIDED, BOOT);
    assert_int_equal(sweep_end(&w), SWEEP_COMPLETE);
    assert_true(sweep_lets_intend(&w, &l.s));
    fill(&w); /* a later List: intents go on */
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    assert_true(sweep_lets_intend(&w, &l.s));
    l.s.decide = false;
    assert_false(sweep_lets_intend(&w, &l.s));
    sweep_clear(&w);
    leader_world_done(&l);
}

static void test_sweep__an_adopted_job_has_all_read_again(void **state)
{
    (void)state;
    struct sweep w = {.listed = true};
    fill(&w);
    sweep_apply(&w, 1, SWEEP_ADOPTED, BOOT);
    assert_int_equal(w.n, 1);
    assert_int_equal(sweep_end(&w), SWEEP_READ_AGAIN);
    sweep_apply(&w, 0, SWEEP_DECIDED, BOOT);
    assert_int_equal(sweep_end(&w), SWEEP_READ_AGAIN);
    sweep_clear(&w);
}

static void test_sweep__what_cannot_be_told_is_asked_again_and_seldom(void **state)
{
    (void)state;
    struct sweep w = {.listed = true};
    int64_t now = BOOT;
    fill(&w);
    assert_int_equal(sweep_due(&w, 0, now), 0);
    for (int i = 0; i < 12; i++) {
        int64_t want = MIN(60 * SEC, SEC << MIN(i, 6));
        sweep_apply(&w, 0, SWEEP_LATER, now);
        assert_int_equal(w.jobs[0].next_us - now, want);
        assert_int_equal(sweep_due(&w, 0, now), 1); /* the other does not wait for it */
        assert_int_equal(sweep_due(&w, 0, now + want), 0);
        now += want;
    }
    sweep_apply(&w, 1, SWEEP_LATER, now);
    sweep_apply(&w, 0, SWEEP_LATER, now);
    assert_int_equal(sweep_due(&w, 0, now), 2);
    assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
    sweep_clear(&w);
}

/* A List may show a young job before Describe knows it. */
static void test_sweep__what_is_missing_is_believed_after_minutes(void **state)
{
    (void)state;
    struct sweep w = {.listed = true};
    int64_t now = BOOT;
    fill(&w);
    const size_t n = w.n;
    for (int i = 0; i < 7; i++) {
        sweep_apply(&w, 0, SWEEP_REPEAT, now);
    }
    sweep_apply(&w, 0, SWEEP_LATER, now); /* an answer that says nothing begins anew */
    while (w.n == n && now < BOOT + 3600 * SEC) {
        now = w.jobs[0].next_us;
        sweep_apply(&w, 0, SWEEP_REPEAT, now);
    }
    assert_int_equal(w.n, n - 1);
    assert_in_range(now - BOOT, 120 * SEC, 600 * SEC);
    sweep_clear(&w);
}

/* After minutes nobody else waits for it. It is asked about on and on, one of them a minute, and
 * while it lives its part does not start. */
static void test_sweep__what_cannot_be_decided_is_set_aside_and_never_given_up(void **state)
{
    (void)state;
    static const enum sweep_then kinds[] = {SWEEP_REPEAT, SWEEP_UNTOLD};
    struct leader_world l;
    struct stray_row row;
    leader_world_init(&l);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct sweep w = {.listed = true};
        struct job_description job = says(true, true);
        int64_t now = BOOT;
        fill(&w);
        sweep_apply(&w, 1, SWEEP_ASIDE, now); /* the other one */
        w.jobs[0].task_id = 9;
        w.jobs[0].place.campaign_id = 7;
        (void)sweep_described(&l.s, &w.jobs[0], &job, NULL, &row);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(w.n, 1);
            assert_int_equal(sweep_end(&w), SWEEP_GOES_ON);
            now = MAX(now, w.jobs[0].next_us);
            sweep_apply(&w, 0, kinds[k], now);
        }
        assert_true(w.n == 0 && w.aside_n == 2);
        assert_int_equal(sweep_due(&w, 0, now + 3600 * SEC), 0); /* the first ones go before */
        assert_int_equal(sweep_end(&w), SWEEP_COMPLETE);
        assert_true(sweep_keeps_part(&w, 7, 9));
        assert_false(sweep_keeps_part(&w, 7, 8) || sweep_keeps_part(&w, 8, 9));
        assert_int_equal(sweep_due(&w, 0, BOOT + 59 * SEC), 0);
        assert_int_equal(w.n, 0); /* a minute after the first was set aside */
        for (int i = 0; i < 100; i++) {
            now += 60 * SEC;
            assert_int_equal(sweep_due(&w, 0, now), 0);
            assert_true(w.n == 1 && w.aside_n == 1);
            assert_string_equal(w.jobs[0].job.name, i % 2 == 0 ? "c" : "a"); /* in turn */
            assert_int_equal(sweep_due(&w, 0, now + 59 * SEC), 0);
            assert_true(w.n == 1 && sweep_lets_intend(&w, &(struct leader_state){.decide = true}));
            assert_true(sweep_keeps_part(&w, 7, 9)); /* also while it is asked about */
            sweep_apply(&w, 0, i % 3 == 0 ? SWEEP_ASIDE : kinds[k], now);
        }
        now += 60 * SEC;
        (void)sweep_due(&w, 0, now);
        sweep_apply(&w, 0, SWEEP_DECIDED, now);
        assert_true(w.n == 0 && w.aside_n == 1);
        (void)sweep_due(&w, 0, now + 60 * SEC);
        (void)snprintf(job.status, sizeof job.status, "Completed");
        (void)sweep_described(&l.s, &w.jobs[0], &job, NULL, &row);
        assert_false(sweep_keeps_part(&w, 7, 9)); /* it has ended */
        sweep_clear(&w);
    }
    leader_world_done(&l);
}

static void test_sweep__later_lists_show_what_an_older_leader_signed(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    usec_t since = sweep_list_begins(&w.s, WALL, 0, 6 * SEC, 900 * SEC, BOOT);
    assert_int_equal(since, adoption_since(WALL, 0));
    assert_int_equal(w.s.watch_from_us, since);
    assert_int_equal(w.s.watch_until_us, BOOT + 906 * SEC);
    leader_world_done(&w);
}

static void test_sweep__the_first_list_has_an_end(void **state)
{
    (void)state;
    char token[16];
    struct list_walk walk = {.pages = 0};
    for (int i = 1; i < 1000; i++) {
        (void)snprintf(token, sizeof token, "t%d", i);
        assert_int_equal(sweep_list_page(&walk, token), LIST_WALK_ON);
    }
    assert_int_equal(sweep_list_page(&walk, "t1000"), LIST_WALK_CUT);
    assert_int_equal(sweep_list_page(&(struct list_walk){.pages = 3}, ""), LIST_WALK_OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep__what_is_asked_about_a_name),
        cmocka_unit_test(test_sweep__what_a_tag_means),
        cmocka_unit_test(test_sweep__the_first_list_has_an_end),
        cmocka_unit_test(test_sweep__whose_a_described_job_is),
        cmocka_unit_test(test_sweep__an_environment_that_came_late_counts),
        cmocka_unit_test(test_sweep__what_is_ours_and_not_taken_is_held),
        cmocka_unit_test(test_sweep__intents_wait_for_all_of_the_first_list),
        cmocka_unit_test(test_sweep__an_adopted_job_has_all_read_again),
        cmocka_unit_test(test_sweep__what_cannot_be_told_is_asked_again_and_seldom),
        cmocka_unit_test(test_sweep__what_is_missing_is_believed_after_minutes),
        cmocka_unit_test(test_sweep__what_cannot_be_decided_is_set_aside_and_never_given_up),
        cmocka_unit_test(test_sweep__later_lists_show_what_an_older_leader_signed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
