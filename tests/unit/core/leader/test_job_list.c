/* Aim: one List shows what moved, and no job of another installation is taken for ours. Method:
 * attempts and pools by hand. */
#include "core/leader/job_list.h"
#include "leader_world.h"

static void test_job_list__lists_from_the_oldest_on(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_int_equal(leader_list_since(&w.s, BOOT), USEC_NEVER);
    leader_world_attempt(&w, 1, 1)->row.intended_us = WALL - 500 * SEC;
    leader_world_attempt(&w, 2, 1)->row.intended_us = WALL - 900 * SEC;
    assert_int_equal(leader_list_since(&w.s, BOOT), WALL - 1800 * SEC);
    leader_world_pool(&w, 5, POOL_AVAILABLE, NULL)->row.intended_us = WALL - 1000 * SEC;
    assert_int_equal(leader_list_since(&w.s, BOOT), WALL - 1900 * SEC);
    w.s.pools[0]->row.intended_us = 5; /* not known: never before the epoch */
    assert_int_equal(leader_list_since(&w.s, BOOT), 0);
    leader_world_done(&w);
}

static void test_job_list__a_clock_ahead_lists_from_earlier(void **state)
{
    (void)state;
    assert_int_equal(leader_list_from(WALL, 0), WALL);
    assert_int_equal(leader_list_from(WALL, -2400 * SEC), WALL - 2400 * SEC);
    assert_int_equal(leader_list_from(WALL, 600 * SEC), WALL); /* older rows may be right */
    assert_int_equal(leader_list_from(5, -6), 0);
    assert_int_equal(leader_list_from(5, INT64_MIN), 0);
    assert_int_equal(leader_list_from(USEC_NEVER, -600 * SEC), USEC_NEVER);
}

static void test_job_list__what_was_given_up_is_watched_for_a_while(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    leader_list_watch(&w.s, WALL, BOOT + 10 * SEC, BOOT);
    leader_list_watch(&w.s, WALL + SEC, BOOT + 5 * SEC, BOOT); /* neither later nor shorter */
    assert_int_equal(leader_list_since(&w.s, BOOT + 10 * SEC - 1), WALL - 900 * SEC);
    assert_int_equal(leader_list_since(&w.s, BOOT + 10 * SEC), USEC_NEVER);
    leader_list_watch(&w.s, WALL + 99 * SEC, BOOT + 40 * SEC, BOOT + 30 * SEC);
    assert_int_equal(leader_list_since(&w.s, BOOT + 30 * SEC), WALL - 801 * SEC);
    leader_world_done(&w);
}

static void test_job_list__a_hint_for_an_attempt_or_a_pool(void **state)
{
    (void)state;
    struct leader_world w;
    struct live_attempt *a;
    struct fact f;
    leader_world_init(&w);
    struct live_attempt *own = leader_world_attempt(&w, 1, 1);
    struct live_pool *p = leader_world_pool(&w, 5, POOL_AVAILABLE, NULL);
    struct job_summary job = {.status = "InProgress", .secondary = "Training", .modified = 9};
    (void)snprintf(job.name, sizeof job.name, "%s", own->row.name.s);
    assert_true(leader_listed(&w.s, &job, BOOT, &a, &f));
    assert_ptr_equal(a, own);
    assert_int_equal(f.kind, FACT_LISTED);
    assert_int_equal(f.at_us, BOOT);
    assert_int_equal(f.job.phase, PHASE_RUNNING);
    assert_int_equal(f.job.modified, 9);
    p->look_now = false;
    p->seen = true;
    (void)snprintf(job.name, sizeof job.name, "%s", p->row.job.s);
    job.pool.status = WARM_POOL_REUSED;
    assert_false(leader_listed(&w.s, &job, BOOT, &a, &f));
    assert_true(p->look_now);
    leader_world_done(&w);
}

static void test_job_list__unknown_names_are_looked_up_once(void **state)
{
    (void)state;
    struct leader_world w;
    const char *names[9];
    struct name_set seen = {.n = 0};
    leader_world_init(&w);
    struct live_attempt *own = leader_world_attempt(&w, 1, 1);
    struct job_summary jobs[] = {
        {.name = "d-7-shards-42-a1-0a1b2c3d"},
        {.name = ""},
        {.name = "d-x-1"}, /* ours begin with a number and end with one of an attempt */
        {.name = "other-7-shards-42-a1-0a1b2c3d"},
        {.name = "e-7-shards-42-a1-0a1b2c3d"},
        {.name = "d-9-s-0-a12-ffffffff"}};
    size_t n = ARRAY_LEN(jobs);
    (void)snprintf(jobs[1].name, sizeof jobs[1].name, "%s", own->row.name.s);
    assert_int_equal(leader_unknown_names(&w.s, "d", &seen, jobs, n, names, 9), 2);
    assert_string_equal(names[0], jobs[0].name);
    assert_string_equal(names[1], jobs[5].name);
    assert_int_equal(leader_unknown_names(&w.s, "d", &seen, jobs, n, names, 1), 1);
    name_set_add(&seen, jobs[0].name);
    assert_int_equal(leader_unknown_names(&w.s, "d", &seen, jobs, n, names, 9), 1);
    assert_string_equal(names[0], jobs[5].name);
    assert_int_equal(leader_unknown_names(&w.s, "other", &seen, jobs, n, names, 9), 1);
    name_set_clear(&seen);
    leader_world_done(&w);
}

static void test_job_list__a_set_of_many_names(void **state)
{
    (void)state;
    struct name_set set = {.n = 0};
    char name[64];
    assert_false(name_set_has(&set, "d-1"));
    for (int pass = 0; pass < 2; pass++) { /* a name is in it once */
        for (int i = 0; i < 5000; i++) {
            (void)snprintf(name, sizeof name, "d-7-shards-%d-a1-0a1b2c3d", i);
            assert_int_equal(name_set_has(&set, name), pass == 1);
            name_set_add(&set, name);
        }
        assert_int_equal(set.n, 5000);
    }
    name_set_clear(&set);
    assert_false(name_set_has(&set, name));
}

static void test_job_list__a_list_asks_for_the_prefix_that_jobs_carry(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *listed;
    } cases[] = {{"drover", "drover-"},
                 {"team_a", "team-a-"},
                 {"prod-", "prod-"},
                 {"", "d-"},
                 {"abcdefghijklmnopqrstuvwxy", "abcdefghijklmnopqrstuvwx-"}};
    static const uint8_t id[32];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[JOB_PREFIX_MAX + 2];
        struct job_name name;
        leader_list_prefix(cases[i].prefix, got);
        assert_string_equal(got, cases[i].listed);
        protocol_job_name(cases[i].prefix, 7, "shards", 3, 1, id, &name);
        assert_memory_equal(name.s, got, strlen(got));
    }
}

static void test_job_list__a_refused_name_is_watched(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct protocol_effect e = {.changed = true, .from = ATTEMPT_INTENDED};
    a->p.state = ATTEMPT_SUBMITTED;
    leader_list_moved(&w.s, a, &e, BOOT, 900 * SEC);
    assert_int_equal(w.s.watch_until_us, 0);
    a->p.state = ATTEMPT_VOID;
    e.changed = false;
    leader_list_moved(&w.s, a, &e, BOOT, 900 * SEC);
    assert_int_equal(w.s.watch_until_us, 0);
    e.changed = true;
    leader_list_moved(&w.s, a, &e, BOOT, 900 * SEC);
    assert_int_equal(w.s.watch_until_us, BOOT + 900 * SEC);
    assert_int_equal(w.s.watch_from_us, a->row.intended_us);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_list__lists_from_the_oldest_on),
        cmocka_unit_test(test_job_list__a_clock_ahead_lists_from_earlier),
        cmocka_unit_test(test_job_list__what_was_given_up_is_watched_for_a_while),
        cmocka_unit_test(test_job_list__a_hint_for_an_attempt_or_a_pool),
        cmocka_unit_test(test_job_list__unknown_names_are_looked_up_once),
        cmocka_unit_test(test_job_list__a_set_of_many_names),
        cmocka_unit_test(test_job_list__a_list_asks_for_the_prefix_that_jobs_carry),
        cmocka_unit_test(test_job_list__a_refused_name_is_watched),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
