/* Aim: one List shows what moved, and no job of another installation is taken for ours. Method:
 * attempts and pools by hand. */
#include "core/leader/job_list.h"
#include "leader_world.h"

static void test_job_list__lists_from_the_oldest_on(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    assert_int_equal(leader_list_since(&w.s), USEC_NEVER);
    leader_world_attempt(&w, 1, 1)->row.intended_us = WALL - 500 * SEC;
    leader_world_attempt(&w, 2, 1)->row.intended_us = WALL - 900 * SEC;
    assert_int_equal(leader_list_since(&w.s), WALL - 960 * SEC);
    leader_world_pool(&w, 5, POOL_AVAILABLE, NULL)->row.intended_us = WALL - 1000 * SEC;
    assert_int_equal(leader_list_since(&w.s), WALL - 1060 * SEC);
    w.s.pools[0]->row.intended_us = 5; /* not known: never before the epoch */
    assert_int_equal(leader_list_since(&w.s), 0);
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

static void test_job_list__strays_once_a_minute(void **state)
{
    (void)state;
    struct leader_world w;
    const char *names[2];
    int64_t looked_us = 0;
    leader_world_init(&w);
    struct live_attempt *own = leader_world_attempt(&w, 1, 1);
    struct job_summary jobs[4] = {
        {.name = "d-x-1"}, {.name = ""}, {.name = "d-x-2"}, {.name = "d-x-3"}};
    (void)snprintf(jobs[1].name, sizeof jobs[1].name, "%s", own->row.name.s);
    assert_int_equal(leader_strays(&w.s, &jobs[1], 1, BOOT, &looked_us, names, 2), 0);
    assert_int_equal(looked_us, 0); /* nothing was looked up */
    assert_int_equal(leader_strays(&w.s, jobs, 4, BOOT, &looked_us, names, 2), 2);
    assert_string_equal(names[0], "d-x-1");
    assert_string_equal(names[1], "d-x-2");
    assert_int_equal(looked_us, BOOT);
    assert_int_equal(leader_strays(&w.s, jobs, 4, BOOT + 59 * SEC, &looked_us, names, 2), 0);
    assert_int_equal(leader_strays(&w.s, jobs, 4, BOOT + 60 * SEC, &looked_us, names, 2), 2);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_list__lists_from_the_oldest_on),
        cmocka_unit_test(test_job_list__a_hint_for_an_attempt_or_a_pool),
        cmocka_unit_test(test_job_list__strays_once_a_minute),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
