/* Aim: a record that the database refuses blocks nobody, and one that a lock holds up is not lost.
 * Method: one attempt by hand, whose transaction fails in either way. */
#include "core/leader/parking.h"
#include "core/leader/record_queue.h"
#include "leader_world.h"

/* The end of attempt 1 is queued, and its transaction fails. */
static struct pending_record *queued(struct leader_world *w)
{
    leader_world_init(w);
    struct live_attempt *a = leader_world_attempt(w, 1, 1);
    const struct pending_record p = {
        .r = {.attempt_id = 1, .campaign_id = 7, .task_moves = true, .task_to = TASK_DONE}};
    a->manifest = xstrdup("{}");
    leader_push_record(&w->s, a, &p);
    assert_null(a->manifest); /* it goes with the record */
    return &w->s.records[0];
}

static void test_record_queue__a_record_that_is_refused_is_read_again(void **state)
{
    (void)state;
    struct leader_world w;
    const struct parking_subject who = PARKING_ATTEMPT(7, 1);
    struct pending_record *p = queued(&w);
    struct live_attempt *a = leader_state_attempt(&w.s, 1);
    assert_true(leader_record_due(&w.s, p, BOOT));
    (void)parking_failed(&w.s, &who, TX_REFUSED, BOOT);
    assert_false(leader_record_due(&w.s, p, BOOT));
    leader_record_not_taken(&w.s, p);
    assert_true(p->over && a->reread && !a->recording);
    leader_forget_records(&w.s);
    assert_int_equal(w.s.records_n, 0);
    leader_world_done(&w);
}

static void test_record_queue__a_record_of_a_locked_campaign_stays(void **state)
{
    (void)state;
    struct leader_world w;
    const struct parking_subject who = PARKING_ATTEMPT(7, 1);
    struct pending_record *p = queued(&w);
    struct live_attempt *a = leader_state_attempt(&w.s, 1);
    (void)parking_failed(&w.s, &who, TX_BUSY, BOOT);
    assert_false(leader_record_due(&w.s, p, BOOT));
    leader_record_not_taken(&w.s, p);
    assert_true(!p->over && !a->reread && a->recording);
    assert_true(leader_record_due(&w.s, p, parking_next_us(&w.s, &who)));
    leader_world_done(&w);
}

/* What the log said and what its rules have found are one evidence. */
static void test_record_queue__evidence_is_of_the_log_and_of_the_rules(void **state)
{
    (void)state;
    static const char *const rows[][3] = {{"{\"host\":\"algo-1\"}", "[{\"name\":\"a\"}]",
                                           "{\"host\":\"algo-1\",\"rules\":[{\"name\":\"a\"}]}"},
                                          {NULL, "[]", "{\"rules\":[]}"},
                                          {"{\"host\":\"b\"}", NULL, "{\"host\":\"b\"}"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        leader_world_init(&w);
        struct live_attempt *a = leader_world_attempt(&w, 1, 1);
        const struct pending_record p = {
            .r = {.attempt_id = 1, .campaign_id = 7, .task_moves = true, .task_to = TASK_DONE}};
        a->evidence = rows[i][0] != NULL ? xstrdup(rows[i][0]) : NULL;
        a->rules = rows[i][1] != NULL ? xstrdup(rows[i][1]) : NULL;
        leader_push_record(&w.s, a, &p);
        assert_string_equal(w.s.records[0].evidence, rows[i][2]);
        leader_world_done(&w);
    }
}

/* Its job has ended and its output is still looked at: another leader knows no rules. */
static void test_record_queue__the_end_of_a_job_takes_what_its_rules_have_found(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    struct pending_record p = {.r = {.attempt_id = 1, .campaign_id = 7}};
    a->rules = xstrdup("[]");
    leader_push_record(&w.s, a, &p);
    assert_null(w.s.records[0].evidence); /* it runs, and they may still find more */
    a->recording = false;
    p.r.release = true;
    leader_push_record(&w.s, a, &p);
    assert_non_null(w.s.records[1].evidence);
    assert_string_equal(w.s.records[1].evidence, "{\"rules\":[]}");
    leader_world_done(&w);
}

/* A database that refuses one attempt's record, alone or among others. */
static enum tx_meaning written(const struct leader_state *s, size_t from, size_t n, int64_t refused)
{
    for (size_t i = from; i < from + n; i++) {
        if (s->records[i].r.attempt_id == refused) {
            return TX_REFUSED;
        }
    }
    return TX_DONE;
}

/* Three records in one transaction, of which the second will never be taken. */
static void test_record_queue__one_refused_record_keeps_back_no_other(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    for (int64_t id = 1; id <= 3; id++) {
        struct live_attempt *a = leader_world_attempt(&w, id, (int)id);
        const struct pending_record p = {.r = {.attempt_id = id, .campaign_id = 7}};
        leader_push_record(&w.s, a, &p);
    }
    assert_int_equal(tx_batch_after(written(&w.s, 0, 3, 2)), TX_BATCH_EACH);
    for (size_t i = 0; i < 3; i++) {
        struct pending_record *p = &w.s.records[i];
        const struct parking_subject who = PARKING_ATTEMPT(7, p->r.attempt_id);
        assert_true(leader_record_due(&w.s, p, BOOT)); /* the one before did not park it */
        enum tx_meaning meaning = written(&w.s, i, 1, 2);
        if (meaning == TX_DONE) {
            p->over = true;
        } else {
            (void)parking_failed(&w.s, &who, meaning, BOOT);
            leader_record_not_taken(&w.s, p);
        }
    }
    assert_true(leader_state_attempt(&w.s, 2)->reread);
    assert_false(leader_state_attempt(&w.s, 1)->reread || leader_state_attempt(&w.s, 3)->reread);
    leader_forget_records(&w.s);
    assert_int_equal(w.s.records_n, 0);
    assert_int_equal(parking_n(&w.s), 1);
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_queue__a_record_that_is_refused_is_read_again),
        cmocka_unit_test(test_record_queue__a_record_of_a_locked_campaign_stays),
        cmocka_unit_test(test_record_queue__evidence_is_of_the_log_and_of_the_rules),
        cmocka_unit_test(test_record_queue__the_end_of_a_job_takes_what_its_rules_have_found),
        cmocka_unit_test(test_record_queue__one_refused_record_keeps_back_no_other),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("record queue", tests, NULL, NULL);
}
