/* Aim: stages and campaigns move as people want and as their parts end, and never otherwise.
 * Method: a few stages by hand; rules as tables, asked at their limits; moves as text. */
#include "life_world.h"

static void test_life__a_planned_campaign_runs_first(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 2);
    l.lc->row.state = CAMPAIGN_PLANNED;
    life_stage_ended(&l.st[0], 0);
    assert_string_equal(plan(&l), "c planned>running");
    l.lc->row.wanted = WANTED_CANCEL;
    assert_string_equal(plan(&l), "c planned>running");
    life_world_done(&l);
}

static void test_life__a_stage_waits_for_what_it_needs(void **state)
{
    (void)state;
    static const struct {
        enum stage_state first, second;
        const char *moves; /* of a third one that needs both */
    } rows[] = {
        {STAGE_SUCCEEDED, STAGE_SUCCEEDED, "s2 blocked>running"},
        {STAGE_SUCCEEDED, STAGE_HELD, ""},
        {STAGE_HELD, STAGE_SUCCEEDED, ""},
        {STAGE_HELD, STAGE_HELD, ""},
        {STAGE_FAILED, STAGE_HELD, "s2 blocked>skipped"},
        {STAGE_HELD, STAGE_FAILED, "s2 blocked>skipped"},
        {STAGE_SUCCEEDED, STAGE_CANCELLED, "s2 blocked>skipped"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        struct campaign_life_writes w;
        life_world_init(&l, 3);
        l.spec[2].needs[0] = "s0";
        l.spec[2].needs[1] = "s1";
        l.spec[2].needs_n = 2;
        l.st[0].row.state = rows[i].first;
        l.st[1].row.state = rows[i].second;
        l.lc->live = 1; /* the campaign itself has no reason to move */
        assert_string_equal(plan(&l), rows[i].moves);
        campaign_life_plan(l.lc, &w);
        if (strstr(rows[i].moves, "skipped") != NULL) {
            assert_string_equal(w.moves[0].reason, "a stage it needs did not succeed");
        }
        life_world_done(&l);
    }
}

static void test_life__a_skipped_stage_waits_again_when_what_it_needs_is_retried(void **state)
{
    (void)state;
    static const struct {
        enum stage_state first, second;
        enum wanted wanted;
        const char *moves;
    } rows[] = {
        {STAGE_RUNNING, STAGE_SKIPPED, WANTED_RUN, "s1 skipped>blocked"},
        {STAGE_SUCCEEDED, STAGE_SKIPPED, WANTED_PAUSE, "s1 skipped>blocked"},
        {STAGE_FAILED, STAGE_SKIPPED, WANTED_RUN, "c running>failed"},
        {STAGE_RUNNING, STAGE_BLOCKED, WANTED_RUN, "s2 skipped>blocked"},
        {STAGE_RUNNING, STAGE_SKIPPED, WANTED_CANCEL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        life_world_init(&l, 3);
        l.st[0].row.state = rows[i].first;
        l.st[1].row.state = rows[i].second;
        l.st[2].row.state = STAGE_SKIPPED;
        l.lc->row.wanted = rows[i].wanted;
        assert_string_equal(plan(&l), rows[i].moves);
        l.w.s.tries_unread = false;
        (void)life_settle(&l);
        assert_int_equal(l.w.s.tries_unread, strstr(rows[i].moves, "skipped>") != NULL);
        life_world_done(&l);
    }
}

#define TOO_MANY "more failed parts than allow_failed"
static void test_life__a_stage_ends_with_its_last_part(void **state)
{
    (void)state;
    static const struct {
        int64_t waiting, active, held, failed, taken, allow_ppm;
        bool closed;
        const char *moves, *why;
    } rows[] = {
        {0, 0, 0, 0, 10, 0, true, "s0 running>succeeded", ""},
        {0, 0, 0, 1, 10, 0, true, "s0 running>failed", TOO_MANY},
        {0, 0, 0, 1, 10, 100000, true, "s0 running>succeeded",
         "1 of 10 parts failed, within allow_failed"}, /* 10 % may fail */
        {0, 0, 0, 2, 10, 100000, true, "s0 running>failed", TOO_MANY},
        {0, 0, 0, 1, 10, 99999, true, "s0 running>failed", TOO_MANY},
        {1, 0, 0, 0, 10, 0, true, "", ""},
        {0, 1, 0, 0, 10, 0, true, "", ""},
        {0, 0, 1, 0, 10, 0, true, "", ""},
        {0, 0, 0, 0, 9, 0, true, "", ""},   /* one is not taken in yet */
        {0, 0, 0, 0, 10, 0, false, "", ""}, /* more may come */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        struct campaign_life_writes w;
        life_world_init(&l, 2);
        life_stage_ended(&l.st[0], rows[i].failed);
        l.st[0].row.counts[TASK_WAITING] = rows[i].waiting;
        l.st[0].row.counts[TASK_ACTIVE] = rows[i].active;
        l.st[0].row.counts[TASK_HELD] = rows[i].held;
        l.st[0].row.taken = rows[i].taken;
        l.st[0].row.closed = rows[i].closed;
        l.spec[0].allow_failed_ppm = rows[i].allow_ppm;
        assert_string_equal(plan(&l), rows[i].moves);
        campaign_life_plan(l.lc, &w);
        assert_string_equal(w.n > 0 ? w.moves[0].reason : "", rows[i].why);
        l.st[0].row.state = STAGE_HELD; /* a held one ends as well */
        l.lc->live = 1;
        assert_true((plan(&l)[0] != '\0') == (rows[i].moves[0] != '\0'));
        life_world_done(&l);
    }
}

static void test_life__a_breaker_holds_and_a_person_lets_go_on(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    life_world_init(&l, 1);
    l.lc->live = 1;
    l.st[0].breaker.tripped = true;
    campaign_life_plan(l.lc, &w);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.moves[0].to, STAGE_HELD);
    assert_false(w.moves[0].resumes);
    assert_string_equal(w.moves[0].reason, "breaker"); /* as stage_history_trip_text says it */
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    assert_int_equal(l.st[0].row.state, STAGE_HELD);
    assert_string_equal(l.st[0].row.reason, "breaker");
    assert_string_equal(plan(&l), "");
    l.st[0].row.resumes = 1;
    campaign_life_plan(l.lc, &w);
    assert_int_equal(w.n, 1);
    assert_true(w.moves[0].resumes && w.moves[0].to == STAGE_RUNNING);
    assert_string_equal(w.moves[0].reason, "");
    w.moves[0].last_attempt_id = 31; /* as the transaction that wrote it found */
    campaign_life_apply(&l.w.s, l.lc, &w.moves[0]);
    assert_int_equal(l.st[0].row.state, STAGE_RUNNING);
    assert_int_equal(l.st[0].row.breaker_since, 31);
    assert_false(l.st[0].breaker.tripped);
    l.st[0].row.state = STAGE_HELD; /* this resume is taken */
    assert_string_equal(plan(&l), "");
    life_world_done(&l);
}

static void test_life__a_cancel_ends_what_has_nothing_left(void **state)
{
    (void)state;
    struct life_world l;
    life_world_init(&l, 4);
    l.lc->row.wanted = WANTED_CANCEL;
    l.st[0].row.state = STAGE_SUCCEEDED;
    l.st[1].row.state = STAGE_RUNNING;
    l.st[2].row.state = STAGE_HELD;
    assert_string_equal(plan(&l), "");
    for (int i = 1; i < 4; i++) {
        life_stage_ended(&l.st[i], 0);
    }
    l.st[1].row.counts[TASK_ACTIVE] = l.st[3].row.counts[TASK_HELD] = 1;
    l.lc->live = 1;
    assert_string_equal(plan(&l), "s2 held>cancelled"); /* not s3 with its held part */
    l.st[1].row.counts[TASK_ACTIVE] = l.st[3].row.counts[TASK_HELD] = l.lc->live = 0;
    assert_int_equal(life_settle(&l), 2);
    assert_int_equal(l.lc->row.state, CAMPAIGN_CANCELLED);
    assert_int_equal(l.st[0].row.state, STAGE_SUCCEEDED);
    life_world_done(&l);
}

static void test_life__a_campaign_ends_as_its_stages_did(void **state)
{
    (void)state;
    static const struct {
        enum stage_state first, second;
        int64_t live;
        const char *moves;
    } rows[] = {
        {STAGE_SUCCEEDED, STAGE_SUCCEEDED, 0, "c running>succeeded"},
        {STAGE_SUCCEEDED, STAGE_SUCCEEDED, 1, ""},
        {STAGE_FAILED, STAGE_SKIPPED, 0, "c running>failed"},
        {STAGE_SUCCEEDED, STAGE_FAILED, 0, "c running>failed"},
        {STAGE_CANCELLED, STAGE_FAILED, 0, "c running>cancelled"},
        {STAGE_CANCELLED, STAGE_RUNNING, 0, ""}, /* more parts wait than one batch cancels */
        {STAGE_FAILED, STAGE_CANCELLED, 0, "c running>cancelled"},
        {STAGE_SUCCEEDED, STAGE_RUNNING, 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        life_world_init(&l, 2);
        l.st[0].row.state = rows[i].first;
        l.st[1].row.state = rows[i].second;
        l.lc->live = rows[i].live;
        assert_string_equal(plan(&l), rows[i].moves);
        life_world_done(&l);
    }
}

static void test_life__an_ended_campaign_stays_ended(void **state)
{
    (void)state;
    static const enum campaign_state ends[] = {CAMPAIGN_SUCCEEDED, CAMPAIGN_FAILED,
                                               CAMPAIGN_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        for (int wanted = 0; wanted < WANTED_COUNT; wanted++) {
            struct life_world l;
            life_world_init(&l, 2);
            l.lc->row.state = ends[i];
            l.lc->row.wanted = (enum wanted)wanted;
            l.st[1].row.state = STAGE_SKIPPED;
            assert_string_equal(plan(&l), "");
            life_world_done(&l);
        }
    }
}

static void test_life__pause_drain_and_resume(void **state)
{
    (void)state;
    static const struct {
        enum campaign_state now;
        enum wanted wanted;
        int64_t live;
        const char *moves;
    } rows[] = {
        {CAMPAIGN_RUNNING, WANTED_RUN, 1, ""},
        {CAMPAIGN_RUNNING, WANTED_PAUSE, 1, "c running>draining"},
        {CAMPAIGN_RUNNING, WANTED_DRAIN, 1, "c running>draining"},
        {CAMPAIGN_RUNNING, WANTED_PAUSE, 0, "c running>paused"},
        {CAMPAIGN_DRAINING, WANTED_DRAIN, 1, ""},
        {CAMPAIGN_DRAINING, WANTED_DRAIN, 0, "c draining>paused"},
        {CAMPAIGN_DRAINING, WANTED_RUN, 1, "c draining>running"},
        {CAMPAIGN_PAUSED, WANTED_RUN, 0, "c paused>running"},
        {CAMPAIGN_HELD, WANTED_RUN, 0, "c held>running"},
        {CAMPAIGN_HELD, WANTED_PAUSE, 0, "c held>paused"},
        {CAMPAIGN_RUNNING, WANTED_CANCEL, 1, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        life_world_init(&l, 2);
        l.lc->row.state = rows[i].now;
        l.lc->row.wanted = rows[i].wanted;
        l.lc->live = rows[i].live;
        assert_string_equal(plan(&l), rows[i].moves);
        life_world_done(&l);
    }
}

static void test_life__a_cap_that_is_reached(void **state)
{
    (void)state;
    static const struct {
        enum at_limit at_limit;
        bool falls_short, spent, waits;
        int64_t live;
        const char *moves;
        bool then_waits, stops;
    } rows[] = {
        {AT_LIMIT_DRAIN, true, false, false, 1, "", false, false},
        {AT_LIMIT_DRAIN, true, false, false, 0, "c running>held", false, false},
        {AT_LIMIT_DRAIN, false, true, false, 0, "", false, false},
        {AT_LIMIT_HOLD, true, false, false, 0, "", false, false},
        {AT_LIMIT_HOLD, false, true, false, 1, "c running>held", true, false},
        {AT_LIMIT_HOLD, false, false, true, 0, "c running>held", true, false},
        {AT_LIMIT_STOP, false, true, false, 1, "c running>held", true, true},
        {AT_LIMIT_STOP, false, false, true, 1, "c running>held", true, true},
        {AT_LIMIT_STOP, true, false, false, 1, "", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life_world l;
        struct campaign_life_writes w;
        bool waits;
        life_world_init(&l, 1);
        l.w.lc = l.lc;
        l.w.ls = &l.st[0];
        struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
        l.lc->row.at_limit = rows[i].at_limit;
        l.lc->budget_short = rows[i].falls_short;
        l.lc->budget_spent = rows[i].spent;
        l.lc->waits_for_person = rows[i].waits;
        l.lc->live = rows[i].live;
        assert_string_equal(plan(&l), rows[i].moves);
        campaign_life_plan(l.lc, &w);
        assert_int_equal(w.waits_for_person, rows[i].then_waits);
        assert_true(w.n == 0 || strcmp(w.moves[0].reason, "budget") == 0);
        assert_int_equal(campaign_life_plan_unwant(&l.w.s, l.lc, &waits), rows[i].stops);
        assert_int_equal(waits, rows[i].then_waits);
        (void)a;
        life_world_done(&l);
    }
}

/* A stage whose own cap is reached closes alone; people are told when no other can go on. */
static void test_life__a_stage_at_its_own_cap(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    life_world_init(&l, 2);
    l.st[1].row.state = STAGE_RUNNING;
    l.lc->row.at_limit = AT_LIMIT_STOP; /* that is of the campaign's cap */
    l.st[0].cap_short = WAIT_STAGE_BUDGET;
    assert_string_equal(plan(&l), "");
    l.st[1].cap_short = WAIT_PART_BUDGET;
    l.lc->live = 1; /* its money may be enough */
    assert_string_equal(plan(&l), "");
    l.lc->live = 0;
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason, "budget per part of stage s1");
    assert_false(w.waits_for_person);
    l.st[1].row.state = STAGE_SUCCEEDED;
    campaign_life_plan(l.lc, &w);
    assert_string_equal(w.moves[0].reason, "budget of stage s0");
    l.lc->row.state = CAMPAIGN_HELD;
    assert_string_equal(plan(&l), "");
    l.st[0].cap_short = WAIT_NONE; /* raised */
    assert_string_equal(plan(&l), "c held>running");
    life_world_done(&l);
}

static void test_life__a_campaign_is_held_when_no_stage_can_go_on(void **state)
{
    (void)state;
    struct life_world l;
    struct campaign_life_writes w;
    life_world_init(&l, 3);
    l.st[0].row.state = STAGE_HELD;
    (void)snprintf(l.st[0].row.reason, sizeof l.st[0].row.reason, "breaker: oom");
    campaign_life_plan(l.lc, &w);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.moves[0].to, CAMPAIGN_HELD);
    assert_string_equal(w.moves[0].reason, "stage s0: breaker: oom");
    l.lc->live = 1;
    assert_string_equal(plan(&l), "");
    l.lc->live = 0;
    l.spec[1].needs_n = 0;
    l.st[1].row.state = STAGE_RUNNING;
    assert_string_equal(plan(&l), "");
    life_world_done(&l);
}

static void test_life__whose_jobs_are_stopped(void **state)
{
    (void)state;
    static const bool stops[WANTED_COUNT] = {[WANTED_PAUSE] = true, [WANTED_CANCEL] = true};
    for (int wanted = 0; wanted < WANTED_COUNT; wanted++) {
        struct life_world l;
        bool waits;
        life_world_init(&l, 1);
        struct live_attempt *other = leader_world_attempt(&l.w, 4, 1); /* of campaign 7 */
        l.lc->row.wanted = (enum wanted)wanted;
        assert_false(campaign_life_plan_unwant(&l.w.s, l.lc, &waits));
        l.w.lc = l.lc;
        l.w.ls = &l.st[0];
        struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
        assert_int_equal(campaign_life_plan_unwant(&l.w.s, l.lc, &waits), stops[wanted]);
        campaign_life_apply_unwant(&l.w.s, l.lc);
        assert_true(a->row.unwanted && !other->row.unwanted);
        assert_false(campaign_life_plan_unwant(&l.w.s, l.lc, &waits));
        life_world_done(&l);
    }
}

/* Read as paused by a takeover, and resumed before its first look at the campaign. */
static void test_life__a_resumed_campaign_wants_its_attempts_again(void **state)
{
    (void)state;
    static const bool goes_on[WANTED_COUNT] = {[WANTED_RUN] = true, [WANTED_DRAIN] = true};
    for (int wanted = 0; wanted < WANTED_COUNT; wanted++) {
        struct life_world l;
        life_world_init(&l, 1);
        struct live_attempt *other = leader_world_attempt(&l.w, 4, 1); /* of campaign 7 */
        l.w.lc = l.lc;
        l.w.ls = &l.st[0];
        struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
        struct live_attempt *stopped = leader_world_attempt(&l.w, 6, 1);
        other->p.wanted = a->p.wanted = stopped->p.wanted = false;
        a->wake_us = INT64_MAX;
        l.w.s.act = false;
        stopped->row.unwanted = true; /* its stop is written and stays */
        l.lc->row.wanted = (enum wanted)wanted;
        campaign_life_want_again(&l.w.s, l.lc);
        assert_int_equal(a->p.wanted, goes_on[wanted]);
        assert_int_equal(l.w.s.act, goes_on[wanted]);
        assert_int_equal(a->wake_us, goes_on[wanted] ? 0 : INT64_MAX);
        assert_false(stopped->p.wanted || other->p.wanted);
        life_world_done(&l);
    }
}

static void fill(struct live_stage *ls, int first, int n)
{
    for (int i = 0; i < n; i++) {
        ready_queue_push(i % 2 == 0 ? ls->ready : ls->unchecked,
                         &(struct ready_queue_task){.task_id = first + i, .seq = (uint32_t)i});
    }
}

static void test_life__a_cancel_takes_all_that_wait(void **state UNUSED)
{
    struct life_world l;
    struct ready_queue_task tasks[6] = {0};
    struct campaign_life_cancel w = {.tasks = tasks};
    life_world_init(&l, 2);
    fill(&l.st[0], 100, 7); /* every second one of them is still to be asked about */
    fill(&l.st[1], 200, 3);
    assert_false(campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w)); /* nobody wants it */
    l.lc->row.wanted = WANTED_CANCEL;
    assert_true(campaign_life_plan_cancel(&l.w.s, l.lc, 6, &w) && w.n == 6 && w.stage_id == 90);
    campaign_life_apply_cancel(&l.w.s, l.lc, &w, false, 0); /* not written: they wait as before */
    assert_true(ready_queue_n(l.st[0].ready) == 4 && ready_queue_n(l.st[0].unchecked) == 3);
    assert_int_equal(l.st[0].row.counts[TASK_WAITING], 10);
    int64_t sum = 0, tries = 0; /* the first one of held parts is not written: held as before */
    l.st[1].row.counts[TASK_HELD] = 1;
    ready_queue_push(l.st[1].held, &(struct ready_queue_task){.task_id = 211});
    while (campaign_life_plan_cancel(&l.w.s, l.lc, 4, &w)) {
        if (w.from == TASK_HELD && tries++ == 0) {
            campaign_life_apply_cancel(&l.w.s, l.lc, &w, false, 0);
            continue;
        }
        for (size_t i = 0; i < w.n; i++) {
            assert_true(tasks[i].task_id / 100 == (w.stage_id == 90 ? 1 : 2));
            sum += tasks[i].task_id;
        }
        campaign_life_apply_cancel(&l.w.s, l.lc, &w, true, w.n);
    }
    assert_int_equal(sum, 721 + 603 + 211);
    assert_int_equal(l.st[0].row.counts[TASK_CANCELLED], 7);
    assert_int_equal(l.st[1].row.counts[TASK_CANCELLED], 3 + 1);
    life_world_done(&l);
}

static void test_life__a_look_goes_step_by_step(void **state UNUSED)
{
    struct life_world l;
    struct ready_queue_task tasks[4] = {0};
    struct campaign_life_look look = {.cancel = {.tasks = tasks}, .cancel_max = 4};
    life_world_init(&l, 1);
    l.w.lc = l.lc;
    l.w.ls = &l.st[0];
    struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
    fill(&l.st[0], 100, 3);
    l.lc->row.wanted = WANTED_CANCEL;
    l.lc->live = 1;
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_UNWANT, &look), LIFE_UNWANT);
    assert_int_equal(ready_queue_n(l.st[0].ready) + ready_queue_n(l.st[0].unchecked), 3);
    campaign_life_apply_unwant(&l.w.s, l.lc);
    assert_true(a->row.unwanted);
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_UNWANT, &look), LIFE_CANCEL);
    assert_int_equal(look.cancel.n, 3);
    l.st[0].row.counts[TASK_WAITING] = 3;
    l.st[0].row.counts[TASK_ACTIVE] = 0;
    campaign_life_apply_cancel(&l.w.s, l.lc, &look.cancel, true, 3);
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_MOVE, &look), LIFE_MOVE);
    assert_int_equal(look.writes.n, 1);
    campaign_life_apply(&l.w.s, l.lc, &look.writes.moves[0]);
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_SEEN, &look), LIFE_SEEN);
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_UNWANT, &look), LIFE_SEEN);
    assert_true(campaign_life_went_through(l.lc, LIFE_SEEN));
    assert_false(campaign_life_went_through(l.lc, LIFE_MOVE)); /* which was refused */
    look.cancel.n = 1;
    campaign_life_apply_cancel(&l.w.s, l.lc, &look.cancel, true, 0); /* its row is gone */
    assert_false(campaign_life_went_through(l.lc, LIFE_SEEN));       /* until they are read again */
    life_world_done(&l);
}

static void test_life__a_look_notes_who_waits_for_a_person(void **state UNUSED)
{
    struct life_world l;
    struct campaign_life_look look = {.cancel_max = 0};
    life_world_init(&l, 1);
    l.lc->row.at_limit = AT_LIMIT_HOLD;
    campaign_rest(l.lc);
    l.lc->budget_spent = true;
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_MOVE, &look), LIFE_MOVE);
    assert_true(l.lc->waits_for_person && !l.lc->rests);
    l.lc->waits_for_person = false;
    l.lc->row.at_limit = AT_LIMIT_STOP;
    l.w.lc = l.lc;
    l.w.ls = &l.st[0];
    (void)leader_world_attempt(&l.w, 5, 1);
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_UNWANT, &look), LIFE_UNWANT);
    assert_true(l.lc->waits_for_person);
    life_world_done(&l);
}

/* A takeover read it as paused; it was resumed before its first look. */
static void test_life__a_look_wants_a_resumed_campaigns_attempts_again(void **state UNUSED)
{
    struct life_world l;
    struct campaign_life_look look = {.cancel_max = 0};
    life_world_init(&l, 1);
    l.w.lc = l.lc;
    l.w.ls = &l.st[0];
    struct live_attempt *a = leader_world_attempt(&l.w, 5, 1);
    l.lc->live = 1;
    a->p.wanted = false;
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_CANCEL, &look), LIFE_SEEN);
    assert_false(a->p.wanted); /* that step is over */
    assert_int_equal(campaign_life_next(&l.w.s, l.lc, LIFE_UNWANT, &look), LIFE_SEEN);
    assert_true(a->p.wanted);
    life_world_done(&l);
}

static void test_life__only_a_lock_stops_the_look_at_an_unreadable_campaign(void **state UNUSED)
{
    struct life_world l;
    life_world_init(&l, 1);
    struct parking_subject who = PARKING_CAMPAIGN(l.lc->row.id);
    (void)parking_failed(&l.w.s, &who, TX_REFUSED, BOOT);
    for (int unreadable = 0; unreadable < 2; unreadable++) {
        l.lc->spec_unreadable = unreadable == 1;
        who = campaign_life_subject(l.lc);
        assert_int_equal(parking_may(&l.w.s, &who, BOOT), unreadable == 1);
    }
    (void)parking_failed(&l.w.s, &who, TX_BUSY, BOOT);
    assert_false(parking_may(&l.w.s, &who, BOOT));
    life_world_done(&l);
}

static void test_life__what_is_over_is_forgotten(void **state UNUSED)
{
    struct life_world l;
    life_world_init(&l, 1);
    assert_false(campaign_life_over(l.lc));
    l.lc->row.state = CAMPAIGN_SUCCEEDED;
    assert_true(campaign_life_over(l.lc));
    l.lc->live = 1;
    assert_false(campaign_life_over(l.lc));
    l.lc->live = 0;
    l.w.lc = l.lc;
    l.w.ls = &l.st[0];
    (void)leader_world_pool(&l.w, 3, POOL_AVAILABLE, NULL); /* kept warm and billed */
    assert_false(campaign_life_over(l.lc));
    life_world_done(&l);
}

static void test_life__an_endpoint_ends_its_stage_and_holds_up_a_cancel(void **state UNUSED)
{
    struct life_world l;
    life_world_init(&l, 1);
    l.spec[0].kind = SPEC_KIND_ENDPOINT;
    life_stage_ended(&l.st[0], 0); /* it has no parts */
    assert_string_equal(plan(&l), "");
    l.st[0].endpoint = ENDPOINT_SERVES;
    assert_string_equal(plan(&l), "s0 running>succeeded");
    l.st[0].endpoint = ENDPOINT_GAVE_UP;
    assert_string_equal(plan(&l), "s0 running>failed");
    l.lc->row.wanted = WANTED_CANCEL;
    l.st[0].endpoint_there = true;
    assert_string_equal(plan(&l), "");
    l.st[0].row.state = STAGE_SUCCEEDED;
    assert_string_equal(plan(&l), "");
    l.st[0].endpoint_there = false;
    assert_string_equal(plan(&l), "c running>succeeded");
    l.lc->row.wanted = WANTED_RUN;
    l.st[0].endpoint_there = true;
    l.spec[0].filesystem = &(struct spec_filesystem){.keep = false};
    assert_string_equal(plan(&l), "");
    l.st[0].filesystem_kept = true; /* for a retry */
    assert_string_equal(plan(&l), "c running>succeeded");
    life_world_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life__a_planned_campaign_runs_first),
        cmocka_unit_test(test_life__a_stage_waits_for_what_it_needs),
        cmocka_unit_test(test_life__a_skipped_stage_waits_again_when_what_it_needs_is_retried),
        cmocka_unit_test(test_life__a_stage_ends_with_its_last_part),
        cmocka_unit_test(test_life__a_breaker_holds_and_a_person_lets_go_on),
        cmocka_unit_test(test_life__a_cancel_ends_what_has_nothing_left),
        cmocka_unit_test(test_life__a_campaign_ends_as_its_stages_did),
        cmocka_unit_test(test_life__an_ended_campaign_stays_ended),
        cmocka_unit_test(test_life__pause_drain_and_resume),
        cmocka_unit_test(test_life__a_cap_that_is_reached),
        cmocka_unit_test(test_life__a_stage_at_its_own_cap),
        cmocka_unit_test(test_life__a_campaign_is_held_when_no_stage_can_go_on),
        cmocka_unit_test(test_life__whose_jobs_are_stopped),
        cmocka_unit_test(test_life__a_resumed_campaign_wants_its_attempts_again),
        cmocka_unit_test(test_life__a_cancel_takes_all_that_wait),
        cmocka_unit_test(test_life__a_look_goes_step_by_step),
        cmocka_unit_test(test_life__a_look_notes_who_waits_for_a_person),
        cmocka_unit_test(test_life__a_look_wants_a_resumed_campaigns_attempts_again),
        cmocka_unit_test(test_life__only_a_lock_stops_the_look_at_an_unreadable_campaign),
        cmocka_unit_test(test_life__what_is_over_is_forgotten),
        cmocka_unit_test(test_life__an_endpoint_ends_its_stage_and_holds_up_a_cancel),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("campaign life", tests, NULL, NULL);
}
