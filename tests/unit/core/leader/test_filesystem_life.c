/* Aim: a file system is made once under one token whatever becomes of an answer, is used once it is
 * filled, exports what jobs wrote, and ends only when it is proven absent; then it is booked once.
 * Method: scripts of the call that is expected next and how it is answered, with the state that
 * follows, from an intent or from a row as a new leader reads it. */
#include "core/leader/filesystem_intent.h"
#include "core/leader/filesystem_time.h"
#include "core/leader/filesystem_use.h"
#include "core/leader/parking.h"
#include "core/leader/resource_pace.h"
#include "filesystem_world.h"

static void test_filesystem_life__is_filled_used_and_gone_when_its_ttl_is_over(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    assert_int_equal(l.w.lc->row.reserved_musd, 4 * 240000);
    PLAY(&l, MADE, FILLED);
    assert_true(l.f->row.ready);
    assert_string_equal(l.f->row.aws_id, "fs-0a");
    assert_string_equal(l.f->row.link_id, "dra-0b");
    assert_int_equal(leader_filesystem_until(&l.f->row), WALL + TTL * SEC);
    pass(&l, WALL + TTL * SEC - 1 - l.now_us);
    assert_false(ends(&l));
    pass(&l, 1);
    assert_true(ends(&l));
    assert_int_equal(l.f->row.state, FILESYSTEM_EXPORTING);
    assert_string_equal(l.f->row.reason, "its ttl is over");
    PLAY(&l, EXPORTED, GOES);
    assert_int_equal(l.w.lc->row.spent_musd, 0);
    PLAY(&l, TO(L, ABSENT, "", DELETED));
    assert_int_equal(l.last.news, FILESYSTEM_OVER);
    assert_int_equal(l.last.end.hours, 3); /* two, and what its end took */
    assert_false(l.last.end.estimated);
    assert_int_equal(l.w.lc->row.spent_musd, 3 * 240000);
    assert_int_equal(l.w.lc->row.reserved_musd, 0);
    assert_int_equal(l.w.s.projects[0].spent_musd, 3 * 240000);
    assert_int_equal(next(&l), FILESYSTEM_ACT_NONE);
    leader_world_done(&l.w);
}

/* It is gone, and looked for until no create can be on its way any more. */
static void gone_for_good(struct life *l, int64_t signed_us)
{
    PLAY(l, ON(L, ABSENT, ""));
    for (int i = 0; i < 200 && l->f->row.state == FILESYSTEM_DELETING; i++) {
        PLAY(l, ON(F, ABSENT, ""));
    }
    assert_int_equal(l->f->row.state, FILESYSTEM_DELETED);
    assert_true(l->boot_us >= signed_us + WINDOW);
}

/* Whatever becomes of an answer: a listing by the tag, then the same create if there is none. */
static void test_filesystem_life__a_lost_answer_is_resolved_by_a_listing(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, UNSENT, ""), ON(C, NOTHING, ""), ON(F, NOTHING, ""), ON(F, ABSENT, ""),
         ON(C, NOTHING, ""));
    int64_t signed_us = l.boot_us;
    PLAY(&l, TO(F, YES, "CREATING", CREATING), ON(L, YES, "AVAILABLE"), ON(FL, NOTHING, ""),
         ON(FL, ABSENT, ""), ON(CL, NOTHING, ""), ON(FL, YES, "CREATING"), ON(FL, NOTHING, ""),
         TO(FL, YES, "AVAILABLE", CREATING), ON(T, NOTHING, ""),
         TO(T, YES, "import SUCCEEDED", AVAILABLE));
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, ON(T, YES, ""), ON(X, NOTHING, ""), ON(T, YES, "EXECUTING"), ON(T, NOTHING, ""),
         TO(T, YES, "SUCCEEDED", EXPORTING), ON(X, YES, "SUCCEEDED"),
         TO(T, YES, "SUCCEEDED", DELETING), ON(L, YES, "AVAILABLE"), ON(D, NOTHING, ""),
         ON(L, YES, "AVAILABLE"), ON(D, YES, ""));
    gone_for_good(&l, signed_us);
    assert_int_equal(l.last.end.hours, 1);
    leader_world_done(&l.w);
}

/* An absence right after the create was taken proves nothing: FSx does not show it everywhere. */
static void test_filesystem_life__what_was_just_made_may_not_be_readable(void **state)
{
    (void)state;
    struct life l;
    for (int written = 1; written >= 0; written--) {
        life_init(&l);
        if (written) {
            PLAY(&l, ON(C, YES, "CREATING"));
        } else { /* its id is forgotten */
            assert_int_equal(next(&l), C);
            leader_filesystem_not_written(l.f, l.boot_us);
        }
        l.f->row.delete_asked = true;
        assert_true(ends(&l));
        PLAY(&l, TO(written ? L : F, ABSENT, "", DELETING), TO(F, ABSENT, "", DELETING),
             TO(F, YES, "CREATING", DELETING), ON(L, YES, "AVAILABLE"), ON(D, YES, ""),
             ON(L, YES, "DELETING"));
        if (written) { /* it was seen, and its deletion was taken */
            PLAY(&l, TO(L, ABSENT, "", DELETED));
        }
        leader_world_done(&l.w);
    }
}

static void test_filesystem_life__a_new_leader_looks_before_it_makes(void **state)
{
    (void)state;
    const struct step steps[] = {MADE, FILLED};
    static const int want[] = {F, L, L, FL, FL, FL, FL, FL, FL, L};
    for (size_t n = 0; n <= ARRAY_LEN(steps); n++) {
        struct life l;
        life_init(&l);
        play(&l, steps, n);
        take_over(&l);
        assert_int_equal(next(&l), want[n]);
        leader_world_done(&l.w);
    }
}

/* Its clock may be days ahead: before AWS has told its own, nothing is deleted for its age, and a
 * droverd that waits for that does not spin. */
static void test_filesystem_life__no_time_is_over_before_aws_tells_it(void **state)
{
    (void)state;
    for (int exports = 0; exports < 2; exports++) {
        struct life l;
        life_init(&l);
        PLAY(&l, MADE, FILLED);
        if (exports) {
            l.f->row.delete_asked = true;
            assert_true(ends(&l));
        }
        pass(&l, 24 * 3600 * SEC);
        l.w.s.clock.unsure = true;
        assert_false(ends(&l));
        int64_t wake_us = INT64_MAX;
        (void)leader_filesystem_next(&l.w.s, l.f, l.now_us, l.boot_us, POLL, &wake_us);
        assert_int_equal(wake_us, l.boot_us + SEC);
        l.w.s.clock.unsure = false;
        assert_true(ends(&l));
        leader_world_done(&l.w);
    }
}

static void test_filesystem_life__ttl_over_while_nobody_led_ends_first(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    pass(&l, 3 * TTL * SEC);
    take_over(&l);
    assert_true(ends(&l));
    PLAY(&l, EXPORTED, GOES, TO(L, ABSENT, "", DELETED));
    assert_int_equal(l.last.end.hours, 7); /* the overrun is billed, and booked */
    assert_int_equal(l.w.s.projects[0].spent_musd, 7 * 240000);
    leader_world_done(&l.w);
}

static void test_filesystem_life__is_due_once_its_earlier_tries_are_known(void **state)
{
    (void)state;
    struct life l;
    int n = 0;
    memset(&l, 0, sizeof l);
    world(&l);
    l.w.s.tries_unread = true; /* one may have its name */
    assert_false(leader_filesystem_due(&l.w.s, l.w.lc, l.w.ls, WALL, &n));
    l.w.s.tries_unread = false;
    assert_true(leader_filesystem_due(&l.w.s, l.w.lc, l.w.ls, WALL, &n));
    assert_int_equal(n, 1);
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_INVALID, "45 tags");
    resource_pace_not_built(l.w.ls, &err, BOOT); /* no request can be made of it: it fails */
    assert_false(leader_filesystem_due(&l.w.s, l.w.lc, l.w.ls, WALL, &n));
    leader_filesystems_mark(&l.w.s, WALL);
    assert_int_equal(l.w.ls->endpoint, ENDPOINT_GAVE_UP);
    assert_string_equal(l.w.ls->endpoint_why, "no request can be made of it: 45 tags");
    leader_world_done(&l.w);
}

/* A create of unknown outcome may still take effect: until then nothing proves its absence. */
static void test_filesystem_life__absence_is_proven_after_the_signature_window(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, NOTHING, ""));
    int64_t signed_us = l.boot_us;
    l.w.lc->row.wanted = WANTED_CANCEL;
    assert_true(ends(&l));
    for (int i = 0; i < 200 && l.f->row.state == FILESYSTEM_DELETING; i++) {
        PLAY(&l, ON(F, ABSENT, ""));
    }
    assert_int_equal(l.f->row.state, FILESYSTEM_DELETED);
    assert_true(l.boot_us >= signed_us + WINDOW);
    assert_int_equal(l.last.end.cost_musd, 0);
    assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
    leader_world_done(&l.w);

    life_init(&l); /* it was made after all */
    PLAY(&l, ON(C, NOTHING, ""));
    signed_us = l.boot_us;
    l.w.lc->row.wanted = WANTED_CANCEL;
    assert_true(ends(&l));
    PLAY(&l, ON(F, YES, "CREATING"), ON(L, YES, "CREATING"), GOES, ON(L, ABSENT, ""),
         ON(F, ABSENT, ""), ON(F, YES, "AVAILABLE"), GOES); /* and once more, by another create */
    gone_for_good(&l, signed_us);
    assert_int_equal(l.last.end.hours, 1);
    leader_world_done(&l.w);

    life_init(&l); /* an answer that lay here for long says what was when it was asked for */
    PLAY(&l, ON(C, NOTHING, ""));
    l.w.lc->row.wanted = WANTED_CANCEL;
    assert_true(ends(&l));
    struct filesystem_fact old = {.act = next(&l),
                                  .said = FILESYSTEM_SAID_ABSENT,
                                  .window_us = WINDOW,
                                  .asked_us = l.boot_us};
    pass(&l, 2 * WINDOW);
    leader_plan_filesystem_fact(l.f, &old, l.now_us, l.boot_us, &l.last);
    assert_int_equal(l.last.news, FILESYSTEM_AS_BEFORE);
    leader_world_done(&l.w);

    life_init(&l); /* so for what an earlier leader may have sent */
    take_over(&l);
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, TO(F, ABSENT, "", DELETING));
    for (int i = 0; i < 3; i++) { /* which no change of leaders puts off for ever */
        pass(&l, 2 * WINDOW / 3);
        take_over(&l);
    }
    PLAY(&l, TO(F, ABSENT, "", DELETED));
    leader_world_done(&l.w);
}

static void test_filesystem_life__failures_end_it_with_their_words(void **state)
{
    static const struct {
        struct step steps[10];
        int n;
        const char *word;
        bool costs;
    } rows[] = {
        {{TO(C, NO, "BadRequest", DELETING)}, 1, "BadRequest", false},
        {{MADE, TO(L, YES, "FAILED", DELETING)}, 3, "no room", false},
        {{MADE, TO(L, YES, "MISCONFIGURED", DELETING)}, 3, "no room", false},
        {{MADE, ON(L, YES, "AVAILABLE"), ON(FL, ABSENT, ""), TO(CL, NO, "BadRequest", DELETING)},
         5,
         "BadRequest",
         true},
        {{MADE, ON(L, YES, "AVAILABLE"), TO(FL, YES, "MISCONFIGURED", DELETING)},
         4,
         "AccessDenied",
         true},
        {{MADE, ON(L, YES, "AVAILABLE"), ON(FL, YES, "AVAILABLE"),
          TO(T, YES, "import FAILED", DELETING)},
         5,
         "1 of 2 files failed; no room",
         true},
        {{MADE, ON(L, YES, "AVAILABLE"), ON(FL, YES, "AVAILABLE"), TO(T, ABSENT, "", DELETING)},
         5,
         "deleted at AWS",
         true},
        {{MADE, FILLED, TO(L, YES, "DELETING", DELETING)}, 10, "deleted at AWS", true},
        {{MADE, FILLED, TO(L, ABSENT, "", DELETING)}, 10, "deleted at AWS", true},
        {{MADE, ON(L, YES, "AVAILABLE"), ON(FL, ABSENT, ""), TO(CL, ABSENT, "", DELETING)},
         5,
         "deleted at AWS",
         true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life l;
        life_init(&l);
        play(&l, rows[i].steps, (size_t)rows[i].n);
        assert_true(l.f->row.failed);
        assert_non_null(strstr(l.f->row.reason, rows[i].word));
        bool made = l.f->row.aws_id[0] != '\0';
        pass(&l, 60 * SEC); /* then what was made can be read everywhere */
        PLAY(&l, TO(made ? L : F, ABSENT, "", FAILED));
        assert_int_equal(l.last.end.cost_musd > 0, rows[i].costs);
        assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
        leader_world_done(&l.w);
    }
}

/* FSx imports after the association is there: no job starts on what is half filled. */
static void test_filesystem_life__is_filled_when_its_import_has_ended(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, ON(L, YES, "AVAILABLE"), TO(FL, YES, "AVAILABLE", CREATING),
         TO(T, YES, "", CREATING), TO(T, YES, "import PENDING", CREATING),
         TO(T, YES, "import EXECUTING", CREATING));
    assert_false(l.f->row.ready);
    pass(&l, 3600 * SEC); /* however long it takes */
    PLAY(&l, TO(T, YES, "import EXECUTING", CREATING), TO(T, YES, "import SUCCEEDED", AVAILABLE));
    leader_world_done(&l.w);

    life_init(&l); /* no list shows one */
    PLAY(&l, MADE, ON(L, YES, "AVAILABLE"), ON(FL, YES, "AVAILABLE"));
    int64_t linked_us = l.boot_us;
    for (int i = 0; i < 100 && l.f->row.state == FILESYSTEM_CREATING; i++) {
        PLAY(&l, ON(T, YES, ""));
    }
    assert_int_equal(l.f->row.state, FILESYSTEM_AVAILABLE);
    assert_int_equal(l.boot_us, linked_us + 60 * SEC);
    leader_world_done(&l.w);
}

/* FSx may say so for a moment and mend it, or a person does: what jobs wrote is not thrown away. */
static void test_filesystem_life__misconfigured_in_use_is_only_said(void **state UNUSED)
{
    for (int exports = 0; exports < 2; exports++) {
        struct life l;
        life_init(&l);
        l.f->row.exports = exports;
        PLAY(&l, MADE, FILLED, TO(L, YES, "MISCONFIGURED", AVAILABLE));
        assert_true(l.last.tell && l.last.news == FILESYSTEM_MOVED);
        assert_string_equal(l.f->row.reason, "FSx says that it is misconfigured: no room");
        assert_false(l.f->row.failed || ends(&l));
        PLAY(&l, TO(L, YES, "MISCONFIGURED", AVAILABLE));
        assert_int_equal(l.last.news, FILESYSTEM_AS_BEFORE); /* told once */
        l.f->row.kept_for_retry = true;
        PLAY(&l, TO(L, YES, "AVAILABLE", AVAILABLE));
        assert_string_equal(l.f->row.reason, "");
        assert_false(l.f->row.kept_for_retry || l.last.tell);
        leader_world_done(&l.w);
    }
}

static void test_filesystem_life__one_that_failed_in_use_is_exported_first(void **state UNUSED)
{
    for (int exports = 0; exports < 2; exports++) {
        struct life l;
        life_init(&l);
        l.f->row.exports = exports;
        PLAY(&l, MADE, FILLED, ON(L, YES, "FAILED"));
        assert_true(l.f->row.failed);
        assert_string_equal(l.f->row.reason, "no room");
        assert_int_equal(l.f->row.state, exports ? FILESYSTEM_EXPORTING : FILESYSTEM_DELETING);
        if (exports) {
            PLAY(&l, EXPORTED);
        }
        PLAY(&l, ON(L, YES, "FAILED"), ON(D, YES, ""), TO(L, ABSENT, "", FAILED));
        assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
        leader_world_done(&l.w);
    }
}

/* What is not readable yet is not gone, though AWS' clock puts its making long ago. */
static void test_filesystem_life__a_clock_ahead_of_aws_ends_none(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE);
    l.f->row.created_us = l.f->row.intended_us - 600 * SEC;
    PLAY(&l, ON(L, ABSENT, ""));
    assert_int_equal(l.f->row.state, FILESYSTEM_CREATING);
    assert_false(l.f->row.failed);
    leader_world_done(&l.w);
}

static void test_filesystem_life__a_limit_is_waited_for(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, TO(C, NO, "ServiceLimitExceeded", INTENDED),
         TO(C, NO, "ThrottlingException", INTENDED), TO(C, NO, "InternalServerError", INTENDED));
    assert_int_equal(l.f->row.state, FILESYSTEM_INTENDED);
    PLAY(&l, MADE, FILLED);
    assert_string_equal(l.f->row.reason, "");
    leader_world_done(&l.w);

    life_init(&l); /* for longer than it may take to be made and live */
    PLAY(&l, ON(C, NO, "ServiceLimitExceeded"));
    int64_t wake_us = INT64_MAX;
    pass(&l, FILESYSTEM_CREATE_MAX_US + TTL * SEC);
    l.f->next_us = l.boot_us + 30 * SEC;
    assert_int_equal(leader_filesystem_next(&l.w.s, l.f, l.now_us, l.boot_us, POLL, &wake_us),
                     FILESYSTEM_ACT_NONE);
    assert_int_equal(wake_us, l.boot_us + 30 * SEC); /* nor is its time looked at all the time */
    assert_false(ends(&l));
    PLAY(&l, TO(C, NO, "ServiceLimitExceeded", INTENDED));
    l.created_us = l.now_us;
    PLAY(&l, MADE);
    assert_int_equal(l.f->row.state, FILESYSTEM_CREATING);
    assert_int_equal(leader_filesystem_until(&l.f->row), l.created_us + TTL * SEC);
    pass(&l, FILESYSTEM_CREATE_MAX_US);
    PLAY(&l, TO(L, YES, "CREATING", DELETING));
    assert_true(l.f->row.failed);
    leader_world_done(&l.w);
}

/* A held campaign starts nothing that costs, whatever limit is raised meanwhile. */
static void test_filesystem_life__is_not_made_while_its_campaign_does_not_run(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, ON(C, NO, "ServiceLimitExceeded"));
    l.w.lc->row.state = CAMPAIGN_HELD;
    assert_int_equal(next(&l), FILESYSTEM_ACT_NONE);
    assert_true(ends(&l)); /* its row says why */
    assert_int_equal(l.f->row.state, FILESYSTEM_INTENDED);
    assert_string_equal(l.f->row.reason,
                        "not made while its campaign does not run: drover resume c-7");
    assert_false(ends(&l));
    l.w.lc->row.state = CAMPAIGN_RUNNING;
    assert_true(ends(&l));
    assert_string_equal(l.f->row.reason, "");
    PLAY(&l, ON(C, NOTHING, "")); /* what may have been made is looked for */
    l.w.lc->row.state = CAMPAIGN_HELD;
    assert_false(ends(&l));
    l.created_us = l.now_us;
    PLAY(&l, TO(F, YES, "CREATING", CREATING), ON(L, YES, "CREATING"), FILLED);
    leader_world_done(&l.w);
}

/* Tried again and again, and deleted without it an hour after its time. */
static void test_filesystem_life__an_export_that_fails_does_not_keep_it_for_ever(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, ON(T, YES, ""), ON(X, NO, "BadRequest"), ON(T, YES, ""), ON(X, YES, "PENDING"),
         ON(T, YES, "FAILED"), ON(X, YES, "PENDING"), TO(T, YES, "CANCELED", EXPORTING));
    assert_string_equal(l.f->row.reason, "export 2 failed: 1 of 2 files failed; no room");
    take_over(&l);
    pass(&l, WALL + TTL * SEC + FILESYSTEM_EXPORT_MAX_US - 1 - l.now_us);
    assert_false(ends(&l));
    PLAY(&l, TO(T, YES, "EXECUTING", EXPORTING));
    pass(&l, POLL);
    assert_true(ends(&l));
    assert_int_equal(l.f->row.state, FILESYSTEM_DELETING);
    PLAY(&l, GOES, TO(L, ABSENT, "", FAILED));
    assert_int_equal(l.last.end.hours, 4); /* as was reserved */
    leader_world_done(&l.w);
}

/* A person's export, of before the last job wrote or of some paths, saves nothing. */
static void test_filesystem_life__only_its_own_export_ends_it(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, ON(T, YES, "others EXECUTING"), TO(T, YES, "others SUCCEEDED", EXPORTING),
         ON(X, YES, "PENDING"), TO(T, YES, "others SUCCEEDED", EXPORTING));
    /* Our own is not in the list yet: the same again, not at once. */
    usec_t asked_us = l.now_us;
    PLAY(&l, ON(X, YES, "PENDING"));
    assert_true(l.now_us > asked_us);
    PLAY(&l, ON(T, YES, "others FAILED"));
    assert_int_equal(l.f->tasks_failed, 0);
    assert_string_equal(l.f->row.reason, "a person asked for it");
    PLAY(&l, ON(X, YES, "PENDING"), TO(T, YES, "SUCCEEDED", DELETING));
    leader_world_done(&l.w);
}

/* A new leader learns from the answers to the same tokens which exports were its own. */
static void test_filesystem_life__a_takeover_finds_its_own_export(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    l.f->row.delete_asked = true;
    assert_true(ends(&l));
    PLAY(&l, ON(T, YES, ""), ON(X, YES, "PENDING"), ON(T, YES, "FAILED"), ON(X, YES, "PENDING"));
    take_over(&l);
    PLAY(&l, TO(T, YES, "SUCCEEDED", EXPORTING), ON(X, YES, "FAILED"));
    assert_int_equal(l.f->tasks_failed, 1);
    usec_t asked_us = l.now_us;
    PLAY(&l, ON(X, YES, "SUCCEEDED"));
    assert_true(l.now_us > asked_us); /* a pause: answers may be wrong for ever */
    PLAY(&l, TO(T, YES, "SUCCEEDED", DELETING));
    leader_world_done(&l.w);
}

static void test_filesystem_life__ends_after_its_last_use(void **state)
{
    (void)state;
    struct life l;
    struct spec_training training = {.channels_n = 1};
    training.channels[0].lustre_stage = "volume";
    struct spec_stage user = {.kind = SPEC_KIND_JOBS, .name = "train", .training = &training};
    life_init(&l);
    struct live_campaign *lc = l.w.lc;
    struct live_stage *old = lc->stages;
    struct live_stage both[2] = {old[0], old[0]};
    both[1].row.id = 71;
    both[1].row.state = STAGE_BLOCKED;
    both[1].row.counts[TASK_ACTIVE] = 0;
    both[1].spec = &user;
    lc->stages = both;
    lc->stages_n = 2;
    PLAY(&l, MADE, FILLED);
    leader_filesystems_mark(&l.w.s, l.now_us);
    assert_int_equal(both[0].endpoint, ENDPOINT_SERVES);
    assert_true(both[0].endpoint_there);
    assert_false(ends(&l)); /* its own stage has not ended */
    both[0].row.state = STAGE_SUCCEEDED;
    static const enum stage_state open[] = {STAGE_BLOCKED, STAGE_RUNNING, STAGE_HELD};
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        both[1].row.state = open[i];
        assert_false(ends(&l));
    }
    struct request_volume volumes[SPEC_CHANNELS_MAX];
    assert_int_equal(leader_filesystem_volumes(&l.w.s, 7, &user, volumes), 1);
    assert_string_equal(volumes[0].aws_id, "fs-0a");
    assert_string_equal(volumes[0].mount, "mnt");
    both[1].row.state = STAGE_SUCCEEDED;
    l.f->row.keep = true;
    assert_false(ends(&l));
    l.f->row.keep = false;
    l.f->row.campaign_id = 99; /* of a campaign that could not be read */
    assert_false(ends(&l));
    l.f->row.campaign_id = 7;
    l.f->row.exports = false;
    assert_true(ends(&l));
    assert_int_equal(l.f->row.state, FILESYSTEM_DELETING);
    assert_string_equal(l.f->row.reason, "no stage uses it any more");
    assert_int_equal(leader_filesystem_volumes(&l.w.s, 7, &user, volumes), 0);
    lc->stages = old;
    lc->stages_n = 1;
    leader_world_done(&l.w);
}

/* What a running job writes is exported when it has stopped; the ttl waits for nobody. */
static void test_filesystem_life__a_cancelled_campaign_stops_its_jobs_first(void **state)
{
    (void)state;
    struct life l;
    life_init(&l);
    PLAY(&l, MADE, FILLED);
    l.w.lc->row.wanted = WANTED_CANCEL;
    l.w.lc->live = 1;
    assert_false(ends(&l));
    l.w.lc->live = 0;
    assert_true(ends(&l));
    assert_int_equal(l.f->row.state, FILESYSTEM_EXPORTING);
    leader_world_done(&l.w);

    life_init(&l);
    PLAY(&l, MADE, FILLED);
    l.w.lc->row.wanted = WANTED_CANCEL;
    l.w.lc->live = 1;
    pass(&l, TTL * SEC);
    assert_true(ends(&l));
    l.w.lc->live = 0;
    leader_world_done(&l.w);
}

static void test_filesystem_life__an_ended_one_is_known_to_an_unread_campaign(void **state UNUSED)
{
    struct life l;
    life_init(&l);
    l.f->row.state = FILESYSTEM_DELETED;
    l.f->row.campaign_id = 8; /* not in memory */
    (void)parking_failed(&l.w.s, &PARKING_CAMPAIGN(8), TX_REFUSED, BOOT);
    leader_filesystems_forget(&l.w.s);
    assert_int_equal(l.w.s.filesystems_n, 1);
    leader_world_done(&l.w);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_life__is_filled_used_and_gone_when_its_ttl_is_over),
        cmocka_unit_test(test_filesystem_life__a_lost_answer_is_resolved_by_a_listing),
        cmocka_unit_test(test_filesystem_life__what_was_just_made_may_not_be_readable),
        cmocka_unit_test(test_filesystem_life__a_new_leader_looks_before_it_makes),
        cmocka_unit_test(test_filesystem_life__no_time_is_over_before_aws_tells_it),
        cmocka_unit_test(test_filesystem_life__ttl_over_while_nobody_led_ends_first),
        cmocka_unit_test(test_filesystem_life__is_due_once_its_earlier_tries_are_known),
        cmocka_unit_test(test_filesystem_life__an_ended_one_is_known_to_an_unread_campaign),
        cmocka_unit_test(test_filesystem_life__absence_is_proven_after_the_signature_window),
        cmocka_unit_test(test_filesystem_life__failures_end_it_with_their_words),
        cmocka_unit_test(test_filesystem_life__is_filled_when_its_import_has_ended),
        cmocka_unit_test(test_filesystem_life__misconfigured_in_use_is_only_said),
        cmocka_unit_test(test_filesystem_life__one_that_failed_in_use_is_exported_first),
        cmocka_unit_test(test_filesystem_life__a_clock_ahead_of_aws_ends_none),
        cmocka_unit_test(test_filesystem_life__a_limit_is_waited_for),
        cmocka_unit_test(test_filesystem_life__is_not_made_while_its_campaign_does_not_run),
        cmocka_unit_test(test_filesystem_life__an_export_that_fails_does_not_keep_it_for_ever),
        cmocka_unit_test(test_filesystem_life__only_its_own_export_ends_it),
        cmocka_unit_test(test_filesystem_life__a_takeover_finds_its_own_export),
        cmocka_unit_test(test_filesystem_life__ends_after_its_last_use),
        cmocka_unit_test(test_filesystem_life__a_cancelled_campaign_stops_its_jobs_first),
    };
    return cmocka_run_group_tests_name("filesystem_life", tests, NULL, NULL);
}
