/* Aim: an endpoint is made once under one name whatever becomes of an answer, serves until its time
 * is over, and ends only when all three of its things are proven absent; then it is booked once.
 * Method: scripts of the call that is expected next and how it is answered, with the state that
 * follows, from an intent or from a row as a new leader reads it. */
#include "endpoint_world.h"

static void test_endpoint_life__is_made_serves_and_is_gone_when_its_ttl_is_over(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    assert_int_equal(l.w.lc->row.reserved_musd, 2 * (TTL + 1020) * 1000);
    PLAY(&l, CREATES, TO(L, E, YES, "Creating", ENDPOINT_CREATING), SERVES);
    assert_true(l.e->row.passed);
    usec_t since = l.e->row.in_service_us;
    l.now_us = since + TTL * SEC - 1;
    assert_false(ends(&l));
    l.now_us = since + TTL * SEC;
    assert_true(ends(&l));
    assert_int_equal(l.e->row.state, ENDPOINT_DELETING);
    assert_string_equal(l.e->row.reason, "its ttl is over");
    PLAY(&l, GOES);
    assert_int_equal(l.e->row.state, ENDPOINT_DELETING);
    assert_int_equal(l.w.lc->row.spent_musd, 0);
    usec_t off = l.e->row.off_us;
    PLAY(&l, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    int64_t billed = 2 * ((off - since + SEC - 1) / SEC);
    assert_int_equal(l.last.news, ENDPOINT_OVER);
    assert_int_equal(l.last.end.billable_s, billed);
    assert_false(l.last.end.estimated);
    assert_int_equal(l.w.lc->row.spent_musd, billed * 1000);
    assert_int_equal(l.w.lc->row.reserved_musd, 0);
    assert_int_equal(l.w.s.projects[0].spent_musd, billed * 1000);
    assert_int_equal(l.w.s.projects[1].reserved_musd, 0);
    assert_int_equal(next(&l).act, ENDPOINT_ACT_NONE);
    leader_world_done(&l.w);
}

/* It is over and has left memory, another of its project waits for what the endpoint held. */
static void test_endpoint_life__of_a_campaign_that_is_gone_frees_its_project(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, TO(L, E, YES, "Creating", ENDPOINT_CREATING), SERVES);
    l.now_us = l.e->row.in_service_us + TTL * SEC;
    assert_true(ends(&l));
    l.w.lc->row.id = 8; /* that other one */
    l.w.lc->budget_short = true;
    l.w.s.projects[1].cap_musd = USD;
    PLAY(&l, GOES);
    assert_true(l.w.lc->budget_short);
    PLAY(&l, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_false(l.w.lc->budget_short);
    leader_world_done(&l.w);
}

/* Whatever becomes of an answer, the next Create is of the same thing, and only if it is absent. */
static void test_endpoint_life__a_lost_answer_is_resolved_by_describe(void **state UNUSED)
{
    for (int lost = M; lost <= E; lost++) {
        struct life l;
        life_init(&l);
        for (int k = M; k < lost; k++) {
            PLAY(&l, ON(C, k, YES));
        }
        PLAY(&l, ON(C, lost, UNSENT), ON(C, lost, NOTHING), ON(L, lost, NOTHING),
             ON(L, lost, ABSENT), ON(C, lost, NOTHING), ON(L, lost, YES));
        assert_int_equal(l.e->row.made, lost + 1);
        assert_int_equal(l.e->row.state, lost == E ? ENDPOINT_CREATING : ENDPOINT_INTENDED);
        leader_world_done(&l.w);
    }
}

static void test_endpoint_life__a_new_leader_looks_before_it_makes(void **state UNUSED)
{
    for (int made = 0; made <= 3; made++) {
        struct life l;
        life_init(&l);
        const struct step steps[] = {CREATES};
        play(&l, steps, (size_t)made);
        take_over(&l);
        struct endpoint_call call = next(&l);
        assert_int_equal(call.act, ENDPOINT_ACT_DESCRIBE);
        assert_int_equal(call.kind, MIN(made, E));
        leader_world_done(&l.w);
    }
}

/* Its clock may be days ahead; and it does not spin. */
static void test_endpoint_life__no_ttl_is_over_before_aws_tells_the_time(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    int64_t wake_us = INT64_MAX;
    PLAY(&l, CREATES, SERVES);
    l.w.s.clock.unsure = true;
    (void)leader_endpoint_next(&l.w.s, l.e, l.now_us + 86400 * SEC, l.boot_us, POLL, &wake_us);
    assert_int_equal(wake_us, l.boot_us + SEC);
    l.now_us += 86400 * SEC;
    assert_false(ends(&l));
    leader_world_done(&l.w);
}

static void test_endpoint_life__ttl_over_while_nobody_led_is_deleted_first(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    pass(&l, 3 * TTL * SEC);
    take_over(&l);
    assert_true(ends(&l));
    PLAY(&l, GOES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    anew(&l); /* it came into service while nobody looked */
    PLAY(&l, CREATES);
    usec_t since = l.now_us;
    pass(&l, 3 * TTL * SEC);
    take_over(&l);
    assert_false(ends(&l));
    struct endpoint_description seen = {.created = WALL, .modified = since, .status = "InService"};
    struct endpoint_fact f = {.call = next(&l), .said = ENDPOINT_SAID_YES, .seen = &seen};
    leader_plan_endpoint_fact(l.e, &f, l.now_us, l.boot_us, &l.last);
    leader_apply_endpoint(&l.w.s, l.e, &l.last);
    assert_int_equal(l.e->row.in_service_us, since);
    assert_true(ends(&l));
    leader_world_done(&l.w);
}

/* A Create of unknown outcome may still take effect: until then nothing proves its absence. */
static void test_endpoint_life__absence_is_proven_after_the_signature_window(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), ON(C, E, NOTHING));
    int64_t signed_us = l.boot_us;
    l.w.lc->row.wanted = WANTED_CANCEL;
    assert_true(ends(&l));
    for (int i = 0; i < 200 && l.e->gone == 0; i++) {
        PLAY(&l, ON(L, E, ABSENT));
    }
    assert_int_equal(l.e->gone, 1);
    assert_true(l.boot_us >= signed_us + WINDOW);
    PLAY(&l, ON(L, G, ABSENT), TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l.last.end.billable_s, 0); /* never in service */
    assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
    anew(&l); /* so for what was answered and is not written */
    PLAY(&l, ON(C, M, YES));
    leader_endpoint_not_written(l.e, l.boot_us);
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT), ON(L, E, ABSENT));
    anew(&l); /* what was just made may not be readable everywhere */
    PLAY(&l, CREATES);
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT), SAW(L, E, YES, "InService"), ON(D, E, YES), ON(L, E, ABSENT),
         VANISHES);
    anew(&l); /* so for what an earlier leader may have sent */
    PLAY(&l, ON(C, M, YES));
    take_over(&l);
    begins_to_go(&l);
    for (int i = 0; i < 4; i++, pass(&l, 2 * WINDOW / 3), take_over(&l)) {
        PLAY(&l, ON(L, E, ABSENT)); /* which changes of leaders do not put off for ever */
        assert_int_equal(l.e->gone, i == 3);
    }
    anew(&l); /* what was made by a create that came late is deleted again */
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), ON(C, E, NOTHING), ON(L, E, YES));
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT));
    l.lay_us = 2 * WINDOW; /* an answer that comes late says what was when it was asked for */
    PLAY(&l, ON(L, E, ABSENT), SAW(L, E, YES, "InService"), ON(D, E, YES));
    anew(&l); /* what has been known for long to have been made is gone at once */
    PLAY(&l, CREATES);
    pass(&l, 2 * WINDOW);
    take_over(&l);
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT));
    assert_int_equal(l.e->gone, 1);
    leader_world_done(&l.w);
}

/* A model or a config that was made a moment ago may be unreadable, too: it is not left behind. */
static void test_endpoint_life__absence_of_a_model_just_made_is_no_proof(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, M, YES), SAW(C, G, NO, "ThrottlingException"));
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT), ON(L, G, ABSENT), ON(L, M, ABSENT), ON(L, M, YES), ON(D, M, YES),
         TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    anew(&l); /* and what a person deletes at the same time is looked at until it can be believed */
    PLAY(&l, ON(C, M, YES), SAW(C, G, NO, "ThrottlingException"));
    begins_to_go(&l);
    PLAY(&l, ON(L, E, ABSENT), ON(L, G, ABSENT), ON(L, M, YES), ON(D, M, ABSENT));
    usec_t since = l.now_us;
    for (int i = 0; i < 200 && l.e->row.state != ENDPOINT_DELETED; i++) {
        PLAY(&l, ON(L, M, ABSENT));
    }
    assert_int_equal(l.e->row.state, ENDPOINT_DELETED);
    assert_in_range(l.now_us - since, 55 * SEC, 70 * SEC);
    leader_world_done(&l.w);
}

static void test_endpoint_life__what_is_being_created_is_deleted_when_it_can_be(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES);
    begins_to_go(&l);
    assert_false(ends(&l)); /* once */
    PLAY(&l, SAW(L, E, YES, "Creating"), SAW(L, E, YES, "Creating"), SAW(L, E, YES, "Updating"),
         ON(D, E, BUSY), ON(L, E, NOTHING), SAW(L, E, YES, "InService"), ON(D, E, YES),
         SAW(L, E, YES, "Deleting"), SAW(L, E, YES, "Deleting"), ON(L, E, ABSENT), VANISHES,
         TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_true(l.last.end.billable_s > 0); /* it was in service for a moment */
    leader_world_done(&l.w);
}

static void test_endpoint_life__a_delete_that_was_not_taken_is_sent_again(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    begins_to_go(&l);
    PLAY(&l, SAW(L, E, YES, "InService"), ON(D, E, NOTHING), SAW(L, E, YES, "InService"),
         ON(D, E, YES), SAW(L, E, YES, "InService"), ON(D, E, YES), ON(L, E, ABSENT), ON(L, G, YES),
         SAW(D, G, NO, "Oh"), ON(L, G, YES), ON(D, G, YES), ON(L, G, YES), ON(D, G, YES),
         ON(L, G, ABSENT), ON(L, M, YES), ON(D, M, YES), ON(L, M, ABSENT));
    assert_int_equal(l.e->row.state, ENDPOINT_DELETED);
    assert_true(l.last.end.estimated); /* its Deleting was not seen */
    assert_true(l.last.end.billable_s > 0);
    leader_world_done(&l.w);
}

/* A clock that was set back takes nothing off what is billed; what cannot be is an estimate. */
static void test_endpoint_life__a_clock_set_back_bills_no_less(void **state UNUSED)
{
    struct life l;
    for (int told = 0; told < 2; told++) {
        life_init(&l);
        PLAY(&l, CREATES, SERVES);
        usec_t since = l.e->row.in_service_us;
        begins_to_go(&l);
        pass(&l, 600 * SEC);
        PLAY(&l, SAW(L, E, YES, "InService"), ON(D, E, YES));
        usec_t served = l.e->row.served_us;
        l.aws_ahead_us = told ? 7200 * SEC : 0;
        l.now_us -= 7200 * SEC;
        PLAY(&l, SAW(L, E, YES, "Deleting"));
        usec_t off = told ? l.e->row.off_us : served;
        PLAY(&l, ON(L, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
        assert_int_equal(l.last.end.billable_s, 2 * ((off - since + SEC - 1) / SEC));
        assert_int_equal(l.last.end.estimated, !told);
        leader_world_done(&l.w);
    }
}

/* It is billed for as long as it was seen to serve, however long ago it should have gone. */
static void
test_endpoint_life__one_whose_deletes_are_refused_is_billed_while_it_serves(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    usec_t since = l.e->row.in_service_us;
    begins_to_go(&l);
    for (int i = 0; i < 3; i++) {
        PLAY(&l, SAW(L, E, YES, "InService"), SAW(D, E, NO, "AccessDeniedException"));
        pass(&l, 24 * 3600 * SEC);
    }
    PLAY(&l, TO(L, E, YES, "InService", ENDPOINT_DELETING));
    assert_true(l.last.news == ENDPOINT_MOVED && strstr(l.e->row.reason, "to delete it: Access"));
    usec_t last = l.now_us;
    take_over(&l);
    PLAY(&l, ON(L, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l.last.end.billable_s, 2 * ((last - since + SEC - 1) / SEC));
    assert_true(l.last.end.estimated);
    anew(&l); /* so until a Delete that was taken */
    PLAY(&l, CREATES, SERVES);
    since = l.e->row.in_service_us;
    begins_to_go(&l);
    PLAY(&l, SAW(L, E, YES, "InService"));
    l.lay_us = 5000 * SEC;
    PLAY(&l, ON(D, E, YES));
    last = l.now_us;
    l.lay_us = 0;
    PLAY(&l, ON(L, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l.last.end.billable_s, 2 * ((last - since + SEC - 1) / SEC));
    assert_true(l.last.end.estimated);
    anew(&l); /* what has failed to come into service costs nothing */
    PLAY(&l, CREATES);
    begins_to_go(&l);
    PLAY(&l, SAW(L, E, YES, "Failed"), ON(D, E, YES), ON(L, E, ABSENT), VANISHES,
         TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    assert_int_equal(l.last.end.billable_s, 0);
    leader_world_done(&l.w);
}

static void test_endpoint_life__refusals_wait_or_fail(void **state UNUSED)
{
    static const struct {
        const char *code;
        bool fails;
        enum cause cause;
    } rows[] = {{"ResourceLimitExceeded", false, CAUSE_QUOTA},
                {"ThrottlingException", false, CAUSE_THROTTLED},
                {"AccessDeniedException", true, CAUSE_ACCESS_DENIED},
                {"ValidationException", true, CAUSE_BAD_REQUEST}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life l;
        life_init(&l);
        PLAY(&l, ON(C, M, YES), ON(C, G, YES), SAW(C, E, NO, rows[i].code));
        assert_int_equal(l.last.news, ENDPOINT_MOVED); /* people see why */
        assert_non_null(strstr(l.e->row.reason, rows[i].code));
        assert_int_equal(l.e->row.failed, rows[i].fails);
        if (rows[i].fails) {
            assert_int_equal(l.e->row.cause, rows[i].cause);
            PLAY(&l, ON(L, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_FAILED));
            assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
        } else {
            PLAY(&l, TO(C, E, YES, NULL, ENDPOINT_CREATING));
            assert_string_equal(l.e->row.reason, "");
        }
        leader_world_done(&l.w);
    }
}

static void test_endpoint_life__a_failed_one_is_deleted_with_its_reason(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES);
    struct endpoint_description seen = {.status = "Failed",
                                        .failure_reason = "Unable to provision requested ML "
                                                          "compute capacity due to "
                                                          "InsufficientInstanceCapacity error."};
    struct endpoint_fact f = {.call = next(&l), .said = ENDPOINT_SAID_YES, .seen = &seen};
    leader_plan_endpoint_fact(l.e, &f, l.now_us, l.boot_us, &l.last);
    leader_apply_endpoint(&l.w.s, l.e, &l.last);
    assert_int_equal(l.e->row.cause, CAUSE_CAPACITY);
    PLAY(&l, SAW(L, E, YES, "Failed"), ON(D, E, YES), ON(L, E, ABSENT), VANISHES,
         TO(L, M, ABSENT, NULL, ENDPOINT_FAILED));
    assert_non_null(strstr(l.e->row.reason, "InsufficientInstanceCapacity"));
    assert_int_equal(l.w.lc->row.spent_musd, 0);
    anew(&l);
    PLAY(&l, CREATES, SAW(L, E, YES, "Creating"));
    l.now_us = l.e->row.created_us + ENDPOINT_CREATE_MAX_US;
    PLAY(&l, TO(L, E, YES, "Creating", ENDPOINT_DELETING));
    assert_true(l.e->row.failed);
    leader_world_done(&l.w);
}

static void test_endpoint_life__deleted_by_others_it_is_cleaned_up_and_booked(void **state UNUSED)
{
    static const struct step seen[] = {TO(L, E, YES, "Deleting", ENDPOINT_DELETING),
                                       TO(L, E, ABSENT, NULL, ENDPOINT_DELETING)};
    for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
        struct life l;
        life_init(&l);
        PLAY(&l, CREATES, SERVES);
        pass(&l, 100 * SEC);
        play(&l, &seen[i], 1);
        PLAY(&l, ON(L, E, ABSENT), VANISHES, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
        assert_true(l.last.end.billable_s >= 200);
        assert_int_equal(l.last.end.estimated, i == 1);
        leader_world_done(&l.w);
    }
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, TO(L, E, ABSENT, NULL, ENDPOINT_CREATING)); /* not readable yet, perhaps */
    pass(&l, 61 * SEC);
    PLAY(&l, TO(L, E, ABSENT, NULL, ENDPOINT_DELETING));
    leader_world_done(&l.w);
}

static void smoke(struct life *l, int status, int64_t took_us, int p95_ms)
{
    struct endpoint_fact f = {.call = next(l),
                              .said = ENDPOINT_SAID_YES,
                              .status = status,
                              .took_us = took_us,
                              .text = "no such key",
                              .p95_ms = p95_ms};
    assert_int_equal(f.call.act, ENDPOINT_ACT_INVOKE);
    leader_plan_endpoint_fact(l->e, &f, l->now_us, l->boot_us, &l->last);
    if (l->last.news != ENDPOINT_AS_BEFORE) {
        leader_apply_endpoint(&l->w.s, l->e, &l->last);
    }
}

static void serves_with_payloads(struct life *l, int n)
{
    life_init(l);
    PLAY(l, CREATES, TO(L, E, YES, "InService", ENDPOINT_IN_SERVICE));
    struct endpoint_fact f = {.call = next(l), .said = ENDPOINT_SAID_YES, .payloads_n = n};
    assert_int_equal(f.call.act, ENDPOINT_ACT_PAYLOADS);
    leader_plan_endpoint_fact(l->e, &f, l->now_us, l->boot_us, &l->last);
    assert_int_equal(l->last.news, ENDPOINT_AS_BEFORE);
}

static void test_endpoint_life__the_smoke_test_asks_each_payload_and_judges_p95(void **state UNUSED)
{
    struct life l;
    serves_with_payloads(&l, 20);
    for (int i = 0; i < 20; i++) { /* one slow answer in twenty is not the 95th percentile */
        assert_false(l.e->row.passed);
        smoke(&l, 200, i == 3 ? 900000 : 84000, 100);
    }
    assert_true(l.e->row.passed);
    assert_int_equal(l.e->row.p95_us, 84000);
    assert_int_equal(l.e->row.tested_us, l.now_us);
    assert_int_equal(l.e->row.tested_n, 20);
    assert_int_equal(l.last.news, ENDPOINT_MOVED);
    leader_world_done(&l.w);

    serves_with_payloads(&l, 2);
    smoke(&l, 200, 84000, 100);
    smoke(&l, 200, 101000, 100);
    assert_true(l.e->row.failed && !l.e->row.passed);
    assert_string_equal(l.e->row.reason, "smoke test: p95 is 101 ms, more than 100 ms");
    leader_world_done(&l.w);

    serves_with_payloads(&l, 2);
    smoke(&l, 200, 1000, 0);
    smoke(&l, 400, 1000, 0);
    assert_int_equal(l.e->row.state, ENDPOINT_DELETING);
    assert_string_equal(l.e->row.reason,
                        "smoke test: payload 2 was answered with 400: no such key");
    leader_world_done(&l.w);
    serves_with_payloads(&l, 1);
    for (int i = 0; i < 5; i++) { /* what was not sent says nothing of the model */
        assert_false(l.e->row.failed);
        PLAY(&l, ON(I, E, UNSENT), ON(I, E, NOTHING));
    }
    assert_true(l.e->row.failed);
    anew(&l);
    PLAY(&l, CREATES, SAW(L, E, YES, "InService"), ON(P, E, NOTHING), ON(P, E, NO));
    assert_true(l.e->row.failed);
    assert_string_equal(l.e->row.reason, "not read");
    leader_world_done(&l.w);
}

/* What was not committed is found again. */
static void test_endpoint_life__an_answer_that_was_not_written_is_met_again(void **state UNUSED)
{
    struct life l;
    serves_with_payloads(&l, 1);
    struct endpoint_fact f = {
        .call = next(&l), .said = ENDPOINT_SAID_YES, .status = 200, .took_us = 5};
    leader_plan_endpoint_fact(l.e, &f, l.now_us, l.boot_us, &l.last);
    leader_endpoint_not_written(l.e, l.boot_us);
    PLAY(&l, TO(P, E, YES, NULL, ENDPOINT_IN_SERVICE));
    assert_true(l.e->row.passed);
    begins_to_go(&l);
    PLAY(&l, GOES);
    f = (struct endpoint_fact){.call = next(&l), .said = ENDPOINT_SAID_ABSENT};
    leader_plan_endpoint_fact(l.e, &f, l.now_us, f.asked_us, &l.last);
    assert_int_equal(l.last.news, ENDPOINT_OVER);
    leader_endpoint_not_written(l.e, l.boot_us);
    assert_int_equal(l.e->row.state, ENDPOINT_DELETING);
    pass(&l, 60 * SEC); /* by now what was made is readable */
    PLAY(&l, TO(L, M, ABSENT, NULL, ENDPOINT_DELETED));
    leader_world_done(&l.w);
}

static void test_endpoint_life__people_delete_one(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    struct endpoint_row row = l.e->row;
    assert_false(leader_take_endpoints(&l.w.s, &row, 1, l.boot_us));
    assert_false(ends(&l));
    row.extend_us = WALL; /* or want a later end: endpoint_extend.h */
    assert_true(leader_take_endpoints(&l.w.s, &row, 1, l.boot_us));
    assert_int_equal(l.e->row.extend_us, WALL);
    row.delete_asked = true;
    assert_true(leader_take_endpoints(&l.w.s, &row, 1, l.boot_us));
    assert_int_equal(l.w.s.endpoints_n, 1);
    assert_true(ends(&l));
    leader_world_done(&l.w);
}

static void test_endpoint_life__is_forgotten_when_it_and_its_stage_have_ended(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    l.w.ls->row.state = STAGE_SUCCEEDED;
    leader_endpoints_forget(&l.w.s);
    assert_int_equal(l.w.s.endpoints_n, 1);
    begins_to_go(&l);
    PLAY(&l, GOES, ON(L, M, ABSENT));
    l.w.ls->row.state = STAGE_RUNNING;
    leader_endpoints_forget(&l.w.s);
    assert_int_equal(l.w.s.endpoints_n, 1);
    l.w.ls->row.state = STAGE_SUCCEEDED;
    leader_endpoints_forget(&l.w.s);
    assert_int_equal(l.w.s.endpoints_n, 0);
    leader_world_done(&l.w);
}

static void test_endpoint_life__is_looked_at_at_a_bearable_rate(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, CREATES, SERVES);
    int looks = 0;
    usec_t until = l.now_us + 3600 * SEC;
    while (l.now_us < until) {
        PLAY(&l, TO(L, E, YES, "InService", ENDPOINT_IN_SERVICE));
        looks++;
    }
    assert_in_range(looks, 55, 62);
    int64_t wake_us = INT64_MAX; /* and its time over is not slept through */
    l.now_us = leader_endpoint_until(&l.e->row) - SEC;
    (void)leader_endpoint_next(&l.w.s, l.e, l.now_us, l.boot_us, POLL, &wake_us);
    assert_true(wake_us <= l.boot_us + SEC);
    anew(&l); /* before it serves no time of it is over */
    PLAY(&l, SAW(C, M, NO, "ThrottlingException"));
    l.now_us = leader_endpoint_until(&l.e->row) + SEC;
    l.e->next_us = l.boot_us + 30 * SEC;
    wake_us = INT64_MAX;
    (void)leader_endpoint_next(&l.w.s, l.e, l.now_us, l.boot_us, POLL, &wake_us);
    assert_int_equal(wake_us, l.boot_us + 30 * SEC);
    leader_world_done(&l.w);
}

/* A paused campaign starts nothing that costs, whatever quota is raised meanwhile. */
static void test_endpoint_life__is_not_made_while_its_campaign_does_not_run(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, M, YES), ON(C, G, YES), SAW(C, E, NO, "ResourceLimitExceeded"));
    l.w.lc->row.wanted = WANTED_PAUSE;
    assert_int_equal(next(&l).act, ENDPOINT_ACT_NONE);
    assert_true(ends(&l)); /* its row says why */
    assert_int_equal(l.e->row.state, ENDPOINT_INTENDED);
    assert_string_equal(l.e->row.reason,
                        "not made while its campaign does not run: drover resume c-7");
    assert_false(ends(&l));
    pass(&l, 3 * TTL * SEC);
    assert_false(ends(&l)); /* nor is its time over */
    l.w.lc->row.wanted = WANTED_RUN;
    assert_true(ends(&l));
    assert_string_equal(l.e->row.reason, "");
    PLAY(&l, ON(C, E, NOTHING)); /* what may have been made is looked for */
    l.w.lc->row.wanted = WANTED_PAUSE;
    assert_false(ends(&l));
    PLAY(&l, TO(L, E, YES, "Creating", ENDPOINT_CREATING), SERVES);
    assert_false(ends(&l)); /* and what is made is paid for: its time runs */
    anew(&l);
    l.w.lc->row.wanted = WANTED_PAUSE;
    begins_to_go(&l);
    assert_string_equal(l.e->row.reason, "a person asked for it");
    leader_world_done(&l.w);
}

/* Its row is locked: the end of its time is not written again and again. */
static void test_endpoint_life__an_end_that_cannot_be_written_waits_a_moment(void **state UNUSED)
{
    struct life l;
    serves_with_payloads(&l, 1);
    assert_true(leader_endpoint_end_due(l.e, l.boot_us));
    l.now_us = leader_endpoint_until(&l.e->row) + SEC;
    leader_endpoint_not_written(l.e, l.boot_us);
    assert_false(leader_endpoint_end_due(l.e, l.boot_us));
    int64_t wake_us = INT64_MAX;
    (void)leader_endpoint_next(&l.w.s, l.e, l.now_us, l.boot_us, SEC, &wake_us);
    assert_true(wake_us > l.boot_us && wake_us <= l.boot_us + 60 * SEC);
    assert_true(leader_endpoint_end_due(l.e, wake_us));
    leader_world_done(&l.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_life__is_made_serves_and_is_gone_when_its_ttl_is_over),
        cmocka_unit_test(test_endpoint_life__of_a_campaign_that_is_gone_frees_its_project),
        cmocka_unit_test(test_endpoint_life__a_lost_answer_is_resolved_by_describe),
        cmocka_unit_test(test_endpoint_life__a_new_leader_looks_before_it_makes),
        cmocka_unit_test(test_endpoint_life__no_ttl_is_over_before_aws_tells_the_time),
        cmocka_unit_test(test_endpoint_life__ttl_over_while_nobody_led_is_deleted_first),
        cmocka_unit_test(test_endpoint_life__absence_is_proven_after_the_signature_window),
        cmocka_unit_test(test_endpoint_life__absence_of_a_model_just_made_is_no_proof),
        cmocka_unit_test(test_endpoint_life__what_is_being_created_is_deleted_when_it_can_be),
        cmocka_unit_test(test_endpoint_life__a_delete_that_was_not_taken_is_sent_again),
        cmocka_unit_test(test_endpoint_life__a_clock_set_back_bills_no_less),
        cmocka_unit_test(
            test_endpoint_life__one_whose_deletes_are_refused_is_billed_while_it_serves),
        cmocka_unit_test(test_endpoint_life__refusals_wait_or_fail),
        cmocka_unit_test(test_endpoint_life__a_failed_one_is_deleted_with_its_reason),
        cmocka_unit_test(test_endpoint_life__deleted_by_others_it_is_cleaned_up_and_booked),
        cmocka_unit_test(test_endpoint_life__the_smoke_test_asks_each_payload_and_judges_p95),
        cmocka_unit_test(test_endpoint_life__an_answer_that_was_not_written_is_met_again),
        cmocka_unit_test(test_endpoint_life__people_delete_one),
        cmocka_unit_test(test_endpoint_life__is_forgotten_when_it_and_its_stage_have_ended),
        cmocka_unit_test(test_endpoint_life__is_looked_at_at_a_bearable_rate),
        cmocka_unit_test(test_endpoint_life__is_not_made_while_its_campaign_does_not_run),
        cmocka_unit_test(test_endpoint_life__an_end_that_cannot_be_written_waits_a_moment),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
