/* Aim: an attempt enters memory as its row says, with its pools, and what has to be recorded of it.
 * No job is started on a file system that goes. Method: every state a takeover may find; rows by
 * hand. */
#include "core/leader/attempt.h"
#include "core/leader/attempt_answer.h"
#include "core/leader/filesystem_life.h"
#include "core/leader/outcome.h"
#include "core/leader/output_plan.h"
#include "core/leader/parking.h"
#include "life_world.h"

#define LEASE_END (BOOT + 15 * SEC)

static const struct protocol_config config = {.signature_window_us = 900 * SEC,
                                              .describe_stale_us = 600 * SEC,
                                              .resend_base_us = SEC,
                                              .resend_cap_us = 60 * SEC};

static struct attempt_row row_in(enum attempt_state state)
{
    return (struct attempt_row){.id = 1,
                                .campaign_id = 7,
                                .stage_id = 70,
                                .task_id = 1001,
                                .state = state,
                                .epoch = 4,
                                .instances = 1,
                                .created_us = WALL - 50 * SEC,
                                .open_musd = 5};
}

static struct live_attempt *take_over(struct leader_world *w, const struct attempt_row *row,
                                      struct protocol_effect *e)
{
    const struct attempt_takeover t = {
        .protocol = &config, .now_us = WALL, .lease_end_us = LEASE_END};
    w->s.epoch = 5;
    return leader_take_over_attempt(&w->s, row, w->lc, &t, e);
}

static void test_attempt__an_intent_of_an_older_epoch_is_unknown(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    leader_world_init(&w);
    struct attempt_row row = row_in(ATTEMPT_INTENDED);
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_true(e.changed);
    assert_int_equal(e.from, ATTEMPT_INTENDED);
    assert_int_equal(a->p.state, ATTEMPT_UNKNOWN);
    assert_int_equal(a->p.void_after_us, LEASE_END + config.signature_window_us);
    assert_int_equal(a->created_us, WALL - 50 * SEC);
    assert_int_equal(a->account.reserved_musd, 5);
    assert_int_equal(w.ls->breaker.live, 1); /* the breaker knows that it runs */
    leader_world_done(&w);
}

/* Asked at boot_us, AWS knows no such job: is the attempt given up? */
static bool given_up_at(struct leader_world *w, struct live_attempt *a, int64_t boot_us)
{
    struct protocol_effect e;
    int64_t wake_us = 0;
    a->describe_sent_us = boot_us;
    const struct fact f = leader_describe_answer(a, NULL, true, false, WALL, boot_us + SEC);
    leader_attempt_fact(&w->s, a, &f, &config, &e);
    return protocol_next(&a->p, boot_us + SEC, &config, &wake_us) == ACT_VOID;
}

/* What may still come of a Create is waited for by the clock that nobody sets: years to and fro,
 * before the takeover or between a Create and its answer, neither shorten nor lengthen the wait. */
static void test_attempt__a_clock_step_ends_no_unknown_early(void **state)
{
    (void)state;
    static const int64_t years[] = {0, 10, -10};
    static const struct aws_failure lost = {.outcome = AWS_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(years); i++) {
        struct leader_world w;
        struct protocol_effect e;
        struct create_notes notes;
        usec_t wall = WALL + years[i] * 365 * 86400 * SEC;
        leader_world_init(&w);
        struct attempt_row row = row_in(ATTEMPT_UNKNOWN);
        row.unwanted = true;
        const struct attempt_takeover t = {
            .protocol = &config, .now_us = wall, .lease_end_us = LEASE_END};
        w.s.epoch = 5;
        struct live_attempt *a = leader_take_over_attempt(&w.s, &row, w.lc, &t, &e);
        int64_t until = LEASE_END + config.signature_window_us;
        assert_false(given_up_at(&w, a, BOOT));
        assert_false(given_up_at(&w, a, until));
        const struct fact sent = leader_create_fact(STR("{\"a\":1}"), true, true, until);
        leader_attempt_fact(&w.s, a, &sent, &config, &e);
        const struct fact answer =
            leader_create_answer(&w.s, a, NULL, &lost, wall, until + SEC, &notes);
        leader_attempt_fact(&w.s, a, &answer, &config, &e);
        until += config.signature_window_us;
        assert_false(given_up_at(&w, a, until));
        assert_true(given_up_at(&w, a, until + 1));
        leader_world_done(&w);
    }
}

static void test_attempt__an_intent_of_this_epoch_is_fresh(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    leader_world_init(&w);
    struct attempt_row row = row_in(ATTEMPT_INTENDED);
    row.epoch = 5;
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_false(e.changed);
    assert_int_equal(a->p.state, ATTEMPT_INTENDED);
    assert_true(a->p.wanted && !a->p.signed_ever);
    leader_world_done(&w);
}

static void test_attempt__who_still_wants_it(void **state)
{
    (void)state;
    static const struct {
        enum wanted wanted;
        bool unwanted, ret_wanted;
    } cases[] = {{WANTED_RUN, false, true},    {WANTED_DRAIN, false, true},
                 {WANTED_PAUSE, false, false}, {WANTED_CANCEL, false, false},
                 {WANTED_RUN, true, false},    {WANTED_DRAIN, true, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct leader_world w;
        struct protocol_effect e;
        leader_world_init(&w);
        struct attempt_row row = row_in(ATTEMPT_STARTING);
        row.unwanted = cases[i].unwanted;
        w.lc->row.wanted = cases[i].wanted;
        struct live_attempt *a = take_over(&w, &row, &e);
        assert_false(e.changed);
        assert_int_equal(a->p.wanted, cases[i].ret_wanted);
        assert_int_equal(a->stopped_by_us, cases[i].unwanted);
        leader_world_done(&w);
    }
}

static void test_attempt__no_stop_before_its_row_says_so(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    leader_world_init(&w);
    w.lc->row.wanted = WANTED_PAUSE;
    struct attempt_row row = row_in(ATTEMPT_RUNNING);
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_false(a->p.wanted);
    assert_false(leader_attempt_stop(a) || a->stopped_by_us);
    campaign_life_apply_unwant(&w.s, w.lc); /* the row was written */
    assert_true(leader_attempt_stop(a) && a->stopped_by_us);
    leader_world_done(&w);
}

static void test_attempt__a_running_job_gets_its_patience_anew(void **state)
{
    (void)state;
    static const enum attempt_state states[] = {ATTEMPT_SUBMITTED, ATTEMPT_STARTING,
                                                ATTEMPT_RUNNING,   ATTEMPT_UPLOADING,
                                                ATTEMPT_STOPPING,  ATTEMPT_VERIFYING};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct leader_world w;
        struct protocol_effect e;
        leader_world_init(&w);
        struct attempt_row row = row_in(states[i]);
        struct live_attempt *a = take_over(&w, &row, &e);
        assert_int_equal(a->running_us, states[i] == ATTEMPT_RUNNING ? WALL : 0);
        leader_world_done(&w);
    }
}

static void test_attempt__its_pools_are_found(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    leader_world_init(&w);
    struct live_pool *own = leader_world_pool(&w, 5, POOL_EXPECTED, NULL);
    struct live_pool *taken = leader_world_pool(&w, 6, POOL_AVAILABLE, NULL);
    struct live_pool *others = leader_world_pool(&w, 8, POOL_AVAILABLE, NULL);
    own->row.attempt_id = 1;
    taken->row.taken_by = 1;
    others->row.taken_by = 2;
    struct attempt_row row = row_in(ATTEMPT_STARTING);
    row.pool_id = 6;
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_ptr_equal(a->pool, own);
    assert_ptr_equal(own->attempt, a);
    assert_ptr_equal(a->taken, taken);
    row.id = 3; /* intended on a pool that SageMaker gave to another since */
    row.pool_id = 8;
    a = take_over(&w, &row, &e);
    assert_null(a->taken);
    assert_null(a->pool);
    leader_world_done(&w);
}

static void test_attempt__a_fact_waits_for_the_record(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    struct fact f;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    const struct fact signs = {.kind = FACT_CREATE_SIGNED, .at_us = BOOT};
    const struct fact taken = {.kind = FACT_CREATE_OK, .at_us = BOOT + 1};
    const struct fact unwanted = {.kind = FACT_UNWANTED, .at_us = BOOT + 2};
    a->wake_us = BOOT + 50;
    leader_attempt_fact(&w.s, a, &signs, &config, &e);
    assert_false(leader_attempt_records(&e));
    assert_int_equal(a->wake_us, 0); /* the protocol is asked again */
    assert_true(w.s.act);
    leader_attempt_fact(&w.s, a, &taken, &config, &e);
    assert_true(e.changed && leader_attempt_records(&e));
    assert_int_equal(a->p.state, ATTEMPT_SUBMITTED);
    a->recording = true;
    leader_attempt_fact(&w.s, a, &unwanted, &config, &e);
    for (int i = 0; i < 100; i++) { /* of each kind the newest */
        struct fact listed = {.kind = FACT_LISTED, .at_us = BOOT + i};
        leader_attempt_fact(&w.s, a, &listed, &config, &e);
    }
    leader_attempt_fact(&w.s, a, &taken, &config, &e);
    assert_false(leader_attempt_records(&e));
    assert_true(a->p.wanted); /* not yet */
    assert_false(leader_attempt_kept_fact(a, &f));
    a->recording = false;
    assert_true(leader_attempt_kept_fact(a, &f));
    assert_int_equal(f.kind, FACT_UNWANTED); /* in the order they came */
    leader_attempt_fact(&w.s, a, &f, &config, &e);
    assert_false(a->p.wanted);
    assert_true(leader_attempt_kept_fact(a, &f));
    assert_int_equal(f.kind, FACT_LISTED);
    assert_int_equal(f.at_us, BOOT + 99);
    assert_true(leader_attempt_kept_fact(a, &f));
    assert_int_equal(f.at_us, BOOT + 1);
    assert_false(leader_attempt_kept_fact(a, &f));
    leader_world_done(&w);
}

static void test_attempt__what_is_recorded(void **state)
{
    (void)state;
    const struct protocol_effect none = {.settle = true};
    const struct protocol_effect some[] = {
        {.changed = true}, {.task_ends = true}, {.release_slot = true}, {.alert = true}};
    assert_false(leader_attempt_records(&none));
    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        assert_true(leader_attempt_records(&some[i]));
    }
}

/* The request of an attempt of an older epoch cannot be read: it is asked for again and again, and
 * once it is read it is sent. Before, nothing was told to the protocol, and the Create counted as
 * under way for ever. */
static void test_attempt__a_create_that_cannot_be_sent_is_asked_for_again(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool rate, lease;
        enum fact_kind kind;
    } rows[] = {
        {"", true, true, FACT_CREATE_UNSENT},
        {"{\"a\":1}", false, true, FACT_CREATE_UNSENT},
        {"{\"a\":1}", true, false, FACT_CREATE_UNSENT},
        {"{\"a\":1}", true, true, FACT_CREATE_SIGNED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leader_world w;
        struct protocol_effect e;
        int64_t wake = 0;
        int64_t now = BOOT;
        leader_world_init(&w);
        struct attempt_row row = row_in(ATTEMPT_INTENDED);
        struct live_attempt *a = take_over(&w, &row, &e);
        assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_DESCRIBE);
        leader_attempt_fact(&w.s, a, &(struct fact){.kind = FACT_NOT_FOUND, .at_us = now}, &config,
                            &e);
        for (int n = 0; n < 5; n++) {
            struct fact f =
                leader_create_fact(str_of(rows[i].bytes), rows[i].rate, rows[i].lease, now);
            assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_CREATE);
            assert_int_equal(f.kind, rows[i].kind);
            leader_attempt_fact(&w.s, a, &f, &config, &e);
            if (f.kind == FACT_CREATE_SIGNED) {
                assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_NONE);
                break;
            }
            if (protocol_next(&a->p, now, &config, &wake) != ACT_CREATE) {
                assert_in_range(wake - now, 1, 60 * SEC);
                now = wake;
            }
        }
        leader_world_done(&w);
    }
}

/* What an adopted attempt has in place of a request was sent to SageMaker when its first Describe
 * had failed. It is not sent now, and from then on it is described alone. */
static void test_attempt__no_create_of_what_was_adopted(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    int64_t wake = 0, now = BOOT;
    leader_world_init(&w);
    struct attempt_row row = row_in(ATTEMPT_UNKNOWN);
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_DESCRIBE);
    leader_attempt_fact(&w.s, a, &(struct fact){.kind = FACT_DESCRIBE_FAILED, .at_us = now},
                        &config, &e);
    now = a->p.next_us;
    assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_CREATE);
    struct fact f = leader_create_fact(STR(ATTEMPT_NO_REQUEST), true, true, now);
    assert_int_equal(f.kind, FACT_CREATE_REFUSED);
    leader_attempt_fact(&w.s, a, &f, &config, &e);
    assert_int_equal(a->p.state, ATTEMPT_UNKNOWN);
    for (int i = 0; i < 4; i++) {
        now = a->p.next_us;
        assert_int_equal(protocol_next(&a->p, now, &config, &wake), ACT_DESCRIBE);
        leader_attempt_fact(&w.s, a, &(struct fact){.kind = FACT_DESCRIBE_FAILED, .at_us = now},
                            &config, &e);
    }
    leader_world_done(&w);
}

static void test_attempt__what_is_parked_neither_acts_nor_hears(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    const struct parking_subject who = PARKING_ATTEMPT(7, 1);
    const struct fact listed = {.kind = FACT_LISTED}, taken = {.kind = FACT_CREATE_OK};
    assert_false(leader_attempt_waits(&w.s, a, BOOT));
    assert_true(leader_attempt_hears(&w.s, a, &taken, BOOT));
    (void)parking_failed(&w.s, &who, TX_BUSY, BOOT); /* only its campaign is locked */
    assert_false(leader_attempt_waits(&w.s, a, BOOT));
    assert_true(leader_attempt_hears(&w.s, a, &taken, BOOT));
    (void)parking_failed(&w.s, &who, TX_REFUSED, BOOT);
    assert_true(leader_attempt_waits(&w.s, a, BOOT));
    assert_false(leader_attempt_hears(&w.s, a, &listed, BOOT));
    assert_false(a->reread); /* a List comes again by itself */
    assert_false(leader_attempt_hears(&w.s, a, &taken, BOOT));
    assert_true(a->reread);
    assert_false(leader_attempt_reread_due(&w.s, a, BOOT)); /* it is parked */
    assert_true(leader_attempt_reread_due(&w.s, a, BOOT + 9999 * SEC));
    a->recording = true;
    assert_false(leader_attempt_reread_due(&w.s, a, BOOT + 9999 * SEC));
    a->recording = false;
    assert_false(leader_attempt_hears(&w.s, a, &taken, BOOT + 9999 * SEC)); /* its row first */
    assert_true(leader_attempt_waits(&w.s, a, BOOT + 9999 * SEC));
    a->reread = false;
    assert_false(leader_attempt_reread_due(&w.s, a, BOOT + 9999 * SEC));
    assert_false(leader_attempt_waits(&w.s, a, BOOT + 9999 * SEC));
    a->recording = true;
    assert_true(leader_attempt_waits(&w.s, a, BOOT + 9999 * SEC));
    leader_world_done(&w);
}

static void test_attempt__an_output_without_a_spec(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    a->p.wanted = false;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    w.ls->spec = NULL; /* a pause gives nothing up that is paid: its outcome is not known */
    w.lc->row.wanted = WANTED_PAUSE;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LATER);
    w.lc->row.wanted = WANTED_CANCEL;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LEAVE);
    w.lc->row.wanted = WANTED_RUN;
    a->p.wanted = true;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LATER);
    a->p.failed_as = CAUSE_USER_CODE; /* its log tells, whether its output is known or not */
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_EXAMINE);
    a->p.examine_until_us = BOOT + 1;
    assert_false(leader_examined_long_enough(a, BOOT));
    assert_true(leader_examined_long_enough(a, BOOT + 1));
    leader_world_done(&w);
}

/* A leader that takes over while S3 is away looks where the last one would have. A row that does
 * not say where is of an older droverd: SageMaker is asked, and no verdict comes before. */
static void test_attempt__the_output_of_a_job_that_another_leader_saw_end(void **state)
{
    (void)state;
    struct leader_world w;
    struct protocol_effect e;
    struct output_plan p;
    struct err err = ERR_INIT;
    leader_world_init(&w);
    w.spec.verify = VERIFY_ARTIFACTS;
    struct attempt_row row = row_in(ATTEMPT_VERIFYING);
    struct live_attempt *a = take_over(&w, &row, &e);
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_PLACE);
    w.spec.verify = VERIFY_COUNT; /* its file says where */
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    row = row_in(ATTEMPT_VERIFYING);
    row.id = 2;
    row.artifacts = xstrdup("s3://out/j/output/model.tar.gz");
    w.spec.verify = VERIFY_ARTIFACTS;
    a = take_over(&w, &row, &e);
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    output_plan_attempt(a, &p, &err);
    assert_true(p.told);
    assert_string_equal(p.place, "s3://out/j/output/model.tar.gz");
    row = row_in(ATTEMPT_VERIFYING);
    row.id = 3;
    row.failed_as = CAUSE_USER_CODE;
    row.reason = xstrdup("ExitCode 1"); /* by which failures are alike, when its log is silent */
    a = take_over(&w, &row, &e);
    assert_string_equal(a->reason, "ExitCode 1");
    leader_world_done(&w);
}

/* It is written with the end, and by nobody who does not know it. */
static void test_attempt__the_place_of_its_output_is_recorded(void **state)
{
    (void)state;
    struct leader_world w;
    struct pending_record p;
    struct outcome_notes notes;
    const struct protocol_effect e = {.alert = true, .from = ATTEMPT_VERIFYING};
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->p.state = ATTEMPT_VERIFYING;
    leader_plan_record(&w.s, a, &e, WALL, &p, &notes);
    assert_null(leader_record_row(&p).artifacts);
    a->placed = true;
    (void)snprintf(a->artifacts, sizeof a->artifacts, "s3://out/m");
    leader_plan_record(&w.s, a, &e, WALL, &p, &notes);
    assert_string_equal(leader_record_row(&p).artifacts, "s3://out/m");
    leader_world_done(&w);
}

/* S3 refuses or is away: a pause keeps what is paid, a cancel ends. */
static void test_attempt__an_output_that_cannot_be_read(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    a->p.failures = 1;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    a->p.wanted = false;
    w.lc->row.wanted = WANTED_PAUSE;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    w.lc->row.wanted = WANTED_CANCEL;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LEAVE);
    a->p.failures = 0; /* it may be whole: one look at least */
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LOOK);
    leader_world_done(&w);
}

/* The row of its part is gone: its output is looked at when people have put that back. */
static void test_attempt__a_part_that_is_lost(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    const struct parking_subject part = PARKING_PART(7, 1001);
    assert_false(leader_attempt_reread_due(&w.s, a, BOOT));
    a->row.part_lost = true;
    (void)parking_failed(&w.s, &part, TX_REFUSED, BOOT);
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LATER);
    assert_false(leader_attempt_waits(&w.s, a, BOOT)); /* its job is looked after */
    assert_false(leader_attempt_reread_due(&w.s, a, BOOT));
    assert_true(leader_attempt_reread_due(&w.s, a, BOOT + 9999 * SEC));
    a->p.wanted = false;
    w.lc->row.wanted = WANTED_PAUSE;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LATER);
    w.lc->row.wanted = WANTED_CANCEL;
    assert_int_equal(leader_verify_step(a), VERIFY_STEP_LEAVE);
    leader_world_done(&w);
}

static void test_attempt__nobody_wants_it_any_more(void **state)
{
    (void)state;
    struct leader_world w;
    struct fact f;
    leader_world_init(&w);
    struct live_attempt *a = leader_world_attempt(&w, 1, 1);
    const struct parking_subject who = PARKING_ATTEMPT(7, 1);
    (void)parking_failed(&w.s, &who, TX_REFUSED, BOOT);
    assert_true(leader_attempt_unwant(&w.s, a, BOOT, &f));
    assert_true(f.kind == FACT_UNWANTED && f.at_us == BOOT);
    assert_true(parking_may(&w.s, &who, BOOT)); /* a parked one is tried at once */
    a->p.wanted = false;
    assert_false(leader_attempt_unwant(&w.s, a, BOOT, &f));
    leader_world_done(&w);
}

static void test_attempt__times_of_the_protocol(void **state)
{
    (void)state;
    struct protocol_config c;
    leader_protocol_config(900 * SEC, &c);
    assert_int_equal(c.signature_window_us, 900 * SEC);
    assert_int_equal(c.describe_stale_us, 600 * SEC);
    assert_true(c.resend_base_us == SEC / 2 && c.resend_cap_us == 60 * SEC);
}

/* An attempt that was intended while the file system was there, and whose job nobody has seen. */
static void test_attempt__no_job_starts_on_a_file_system_that_goes(void **state)
{
    (void)state;
    struct life_world l;
    struct spec_training training = {.channels_n = 1, .channels = {{.lustre_stage = "s0"}}};
    struct filesystem_row row = {
        .id = 70, .campaign_id = 9, .stage_id = 90, .n = 1, .state = FILESYSTEM_AVAILABLE};
    static const struct {
        enum attempt_state attempt;
        enum filesystem_state filesystem;
        enum wanted wanted;
        bool unwanted, starts; /* by its row; as memory wants it */
    } cases[] = {
        {ATTEMPT_INTENDED, FILESYSTEM_AVAILABLE, WANTED_RUN, false, true},
        {ATTEMPT_INTENDED, FILESYSTEM_DELETING, WANTED_RUN, false, false},
        {ATTEMPT_INTENDED, FILESYSTEM_DELETED, WANTED_DRAIN, false, false},
        {ATTEMPT_UNKNOWN, FILESYSTEM_AVAILABLE, WANTED_DRAIN, false, true},
        {ATTEMPT_UNKNOWN, FILESYSTEM_FAILED, WANTED_RUN, false, false},
        {ATTEMPT_SUBMITTED, FILESYSTEM_DELETING, WANTED_RUN, false, true}, /* fails by itself */
        {ATTEMPT_INTENDED, FILESYSTEM_AVAILABLE, WANTED_RUN, true, false},
        {ATTEMPT_INTENDED, FILESYSTEM_AVAILABLE, WANTED_CANCEL, false, false},
    };
    life_world_init(&l, 2);
    l.spec[1].training = &training;
    l.w.lc = l.lc;
    l.w.ls = &l.st[1];
    (void)leader_take_filesystems(&l.w.s, &row, 1, 1);
    struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a->p = (struct protocol_attempt){.state = cases[i].attempt,
                                         .wanted = cases[i].wanted != WANTED_CANCEL &&
                                                   !cases[i].unwanted};
        a->row.unwanted = cases[i].unwanted;
        a->wake_us = INT64_MAX;
        l.lc->row.wanted = cases[i].wanted;
        l.w.s.filesystems[0]->row.state = cases[i].filesystem;
        bool before = a->p.wanted;
        leader_attempt_weigh(&l.w.s, a);
        assert_int_equal(a->p.wanted, cases[i].starts);
        assert_int_equal(a->wake_us, before == cases[i].starts ? INT64_MAX : 0);
        if (cases[i].starts && i > 0) { /* and wanted again once it is seen or the other is there */
            a->p.wanted = false;
            leader_attempt_weigh(&l.w.s, a);
            assert_true(a->p.wanted);
        }
    }
    life_world_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempt__an_intent_of_an_older_epoch_is_unknown),
        cmocka_unit_test(test_attempt__a_clock_step_ends_no_unknown_early),
        cmocka_unit_test(test_attempt__an_intent_of_this_epoch_is_fresh),
        cmocka_unit_test(test_attempt__who_still_wants_it),
        cmocka_unit_test(test_attempt__no_stop_before_its_row_says_so),
        cmocka_unit_test(test_attempt__a_running_job_gets_its_patience_anew),
        cmocka_unit_test(test_attempt__its_pools_are_found),
        cmocka_unit_test(test_attempt__a_fact_waits_for_the_record),
        cmocka_unit_test(test_attempt__what_is_recorded),
        cmocka_unit_test(test_attempt__a_create_that_cannot_be_sent_is_asked_for_again),
        cmocka_unit_test(test_attempt__no_create_of_what_was_adopted),
        cmocka_unit_test(test_attempt__what_is_parked_neither_acts_nor_hears),
        cmocka_unit_test(test_attempt__an_output_without_a_spec),
        cmocka_unit_test(test_attempt__the_output_of_a_job_that_another_leader_saw_end),
        cmocka_unit_test(test_attempt__the_place_of_its_output_is_recorded),
        cmocka_unit_test(test_attempt__an_output_that_cannot_be_read),
        cmocka_unit_test(test_attempt__a_part_that_is_lost),
        cmocka_unit_test(test_attempt__nobody_wants_it_any_more),
        cmocka_unit_test(test_attempt__no_job_starts_on_a_file_system_that_goes),
        cmocka_unit_test(test_attempt__times_of_the_protocol),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
