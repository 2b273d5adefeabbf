/* Aim: what costs money and no row stands for is looked at rarely and ended only when people ask,
 * an endpoint before its config and its model, each until it is proven absent, and is booked once;
 * what a row of ours stands for is left to that row. Method: scripts of the call that is expected
 * next and how it is answered. */
#include "core/leader/resource_strays.h"
#include "core/money/cost.h"
#include "leader_world.h"

#define NAME "d-9-deploy-0-a1-0a1b2c3d"
#define FS   "fs-0123456789abcdef0"

enum {
    L = RESOURCE_ACT_DESCRIBE,
    D = RESOURCE_ACT_DELETE,
    YES = RESOURCE_SAID_YES,
    ABSENT = RESOURCE_SAID_ABSENT,
    NOTHING = RESOURCE_SAID_NOTHING
};
#define E    RESOURCE_ENDPOINT
#define C    RESOURCE_ENDPOINT_CONFIG
#define M    RESOURCE_MODEL
#define F    RESOURCE_FILE_SYSTEM
#define NONE RESOURCE_KIND_COUNT
#define END                                                                                        \
    {                                                                                              \
        0, 0, NULL, NONE                                                                           \
    }
struct step { /* a call that is expected within an hour, its answer, and what is left then */
    int act, said;
    const char *status; /* NULL: the end of the script */
    enum resource_kind left;
};

struct life {
    struct leader_world w;
    usec_t now_us;
    int64_t boot_us;
    struct resource_writes last;
};

static struct resource_stray_row row_of(enum resource_kind kind)
{
    struct resource_stray_row row = {.kind = kind,
                                     .instances = 2,
                                     .price_musd_per_hour = 3600000,
                                     .created_us = WALL - 600 * SEC,
                                     .started_us = WALL};
    bool fs = kind == RESOURCE_FILE_SYSTEM;
    (void)snprintf(row.name, sizeof row.name, "%s", fs ? FS : NAME);
    (void)snprintf(row.token, sizeof row.token, "%s", fs ? NAME : "");
    (void)snprintf(row.status, sizeof row.status, "%s", fs ? "AVAILABLE" : "InService");
    if (fs) {
        row.size_gib = 1200;
        row.started_us = row.created_us;
        row.price_musd_per_hour = 146000; /* 240,000 micro-USD an hour */
    }
    return row;
}

static void begin(struct life *l, const struct resource_stray_row *row)
{
    leader_world_init(&l->w);
    l->now_us = WALL + 10 * SEC;
    l->boot_us = BOOT;
    l->last = (struct resource_writes){.news = RESOURCE_AS_BEFORE};
    leader_apply_resource_stray(&l->w.s, row);
    leader_apply_resource_stray(&l->w.s, row); /* taken once */
    assert_int_equal(l->w.s.resource_strays_n, 1);
}

static void stop(struct life *l)
{
    struct resource_stray_row row = l->w.s.resource_strays[0].row;
    row.stop_asked = true;
    assert_true(leader_take_resource_strays(&l->w.s, &row, 1));
    assert_false(leader_take_resource_strays(&l->w.s, &row, 1)); /* once */
}

/* Waits for the next call. Returns for how long. */
static int64_t until_due(struct life *l, int act)
{
    int64_t waited_us = 0;
    for (int i = 0; i < 3; i++) {
        int64_t wake_us = INT64_MAX;
        enum resource_act next =
            leader_resource_stray_next(&l->w.s.resource_strays[0], l->boot_us, &wake_us);
        if (next != RESOURCE_ACT_NONE) {
            assert_int_equal(next, act);
            return waited_us;
        }
        assert_true(wake_us > l->boot_us && wake_us <= l->boot_us + 3600 * SEC);
        waited_us += wake_us - l->boot_us;
        l->now_us += wake_us - l->boot_us;
        l->boot_us = wake_us;
    }
    fail_msg("no call is due");
    return 0;
}

static void answer(struct life *l, const struct step *s, usec_t since_us)
{
    struct live_resource_stray *r = &l->w.s.resource_strays[0];
    struct resource_fact f = {.act = (enum resource_act)s->act,
                              .said = (enum resource_word)s->said,
                              .status = s->status,
                              .since_us = since_us};
    leader_plan_resource_stray_fact(r, &f, l->now_us, l->boot_us, &l->last);
    assert_int_equal(l->last.error.code, ERR_NONE);
    if (l->last.news != RESOURCE_AS_BEFORE) {
        leader_apply_resource_stray_writes(&l->w.s, r, &l->last);
    }
}

static void play(struct life *l, const struct step *steps)
{
    for (const struct step *s = steps; s->status != NULL; s++) {
        (void)until_due(l, s->act);
        answer(l, s, 0);
        if (s->left == RESOURCE_KIND_COUNT) {
            assert_int_equal(l->last.news, RESOURCE_OVER);
            assert_int_equal(l->w.s.resource_strays_n, 0);
            assert_null(s[1].status);
        } else {
            assert_int_equal(l->w.s.resource_strays_n, 1);
            assert_int_equal(l->w.s.resource_strays[0].row.kind, s->left);
        }
    }
}

static void test_resource_strays__end_in_order_and_are_proven_absent(void **state)
{
    (void)state;
    static const struct {
        enum resource_kind begins;
        struct step steps[16];
    } scripts[] = {
        {E,
         {{L, YES, "InService", E},
          {D, YES, "", E},
          {L, YES, "Deleting", E},
          {L, ABSENT, "", C},
          {L, YES, "", C},
          {D, YES, "", C},
          {L, ABSENT, "", M},
          {L, YES, "", M},
          {D, YES, "", M},
          {L, ABSENT, "", NONE},
          END}},
        /* One that is being made cannot be deleted yet; a Delete that nobody answered is sent again
         * after a look; one that was too late is no proof. */
        {E,
         {{L, YES, "Creating", E},
          {L, YES, "Failed", E},
          {D, NOTHING, "", E},
          {L, YES, "Failed", E},
          {D, ABSENT, "", E},
          {L, ABSENT, "", C},
          {L, ABSENT, "", M},
          {L, NOTHING, "", M},
          {L, ABSENT, "", NONE},
          END}},
        {M,
         {{L, YES, "", M},
          {D, YES, "", M},
          {L, YES, "", M},
          {D, YES, "", M},
          {L, ABSENT, "", NONE},
          END}},
        {F,
         {{L, YES, "AVAILABLE", F},
          {D, YES, "", F},
          {L, YES, "DELETING", F},
          {L, YES, "DELETING", F},
          {L, ABSENT, "", NONE},
          END}},
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct resource_stray_row row = row_of(scripts[i].begins);
        struct life l;
        begin(&l, &row);
        stop(&l);
        play(&l, scripts[i].steps);
        leader_world_done(&l.w);
    }
}

static void test_resource_strays__are_left_alone_and_looked_at_rarely(void **state)
{
    (void)state;
    static const struct step there = {L, YES, "InService", RESOURCE_ENDPOINT};
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    struct life l;
    begin(&l, &row);
    assert_int_equal(until_due(&l, L), 0);
    for (int i = 0; i < 5; i++) {
        answer(&l, &there, 0);
        assert_int_equal(l.last.news, RESOURCE_AS_BEFORE);
        assert_int_equal(until_due(&l, L), 600 * SEC);
    }
    answer(&l, &there, 0);
    stop(&l); /* at once */
    assert_int_equal(until_due(&l, D), 0);
    leader_world_done(&l.w);
}

static void test_resource_strays__calls_that_fail_back_off(void **state)
{
    (void)state;
    static const struct step silent = {L, NOTHING, "", RESOURCE_ENDPOINT};
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    struct life l;
    int64_t last_us = 0;
    begin(&l, &row);
    for (int i = 0; i < 12; i++) {
        int64_t waited_us = until_due(&l, L);
        assert_true(waited_us >= last_us && waited_us <= 60 * SEC);
        last_us = waited_us;
        answer(&l, &silent, 0);
    }
    assert_int_equal(last_us, 60 * SEC);
    leader_resource_stray_not_written(&l.w.s.resource_strays[0], l.boot_us);
    assert_int_equal(until_due(&l, L), 60 * SEC);
    leader_world_done(&l.w);
}

/* What was made a moment ago may not be readable yet: that is no proof, unless we deleted it. */
static void test_resource_strays__a_young_one_is_not_taken_for_gone(void **state)
{
    (void)state;
    static const struct step absent = {L, ABSENT, "", RESOURCE_ENDPOINT};
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    struct life l;
    row.created_us = WALL;
    begin(&l, &row);
    (void)until_due(&l, L);
    answer(&l, &absent, 0);
    assert_int_equal(l.last.news, RESOURCE_AS_BEFORE);
    l.now_us = WALL + 60 * SEC;
    answer(&l, &absent, 0);
    assert_int_equal(l.last.news, RESOURCE_MOVED);
    assert_int_equal(l.w.s.resource_strays[0].row.kind, RESOURCE_ENDPOINT_CONFIG);
    leader_world_done(&l.w);
}

static void test_resource_strays__hosting_is_booked_once_to_the_second(void **state)
{
    (void)state;
    static const struct step deleting = {L, YES, "Deleting", RESOURCE_ENDPOINT};
    static const struct step left[] = {{L, ABSENT, "", RESOURCE_ENDPOINT_CONFIG},
                                       {L, ABSENT, "", RESOURCE_MODEL},
                                       {L, ABSENT, "", RESOURCE_KIND_COUNT},
                                       END};
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    struct life l;
    begin(&l, &row);
    stop(&l);
    answer(&l, &deleting, WALL + 7 * SEC); /* billed until then, as AWS says */
    l.now_us += 100 * SEC;
    play(&l, left);
    assert_int_equal(l.last.end.billable_s, 2 * 7);
    assert_int_equal(l.last.end.cost_musd, 14000);
    assert_false(l.last.end.estimated);
    assert_int_equal(l.w.s.projects[0].spent_musd, 14000);
    assert_int_equal(l.w.s.projects[0].reserved_musd, 0);
    assert_true(l.w.s.decide);
    leader_world_done(&l.w);

    begin(&l, &row); /* somebody else deletes it, and nobody sees when: an estimate */
    play(&l, left);
    assert_int_equal(l.last.end.billable_s, 2 * 10);
    assert_true(l.last.end.estimated);
    leader_world_done(&l.w);

    row.started_us = 0; /* never in service */
    begin(&l, &row);
    play(&l, left);
    assert_int_equal(l.last.end.entries_n, 0);
    assert_int_equal(l.last.end.cost_musd, 0);
    assert_false(l.last.end.estimated);
    leader_world_done(&l.w);
}

static void test_resource_strays__come_into_service_later(void **state)
{
    (void)state;
    static const struct step serves = {L, YES, "InService", RESOURCE_ENDPOINT};
    static const struct step made = {L, YES, "AVAILABLE", RESOURCE_FILE_SYSTEM};
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    struct life l;
    row.started_us = 0;
    begin(&l, &row);
    answer(&l, &serves, WALL + 3 * SEC);
    assert_int_equal(l.last.news, RESOURCE_MOVED);
    assert_int_equal(l.w.s.resource_strays[0].row.started_us, WALL + 3 * SEC);
    leader_world_done(&l.w);
    row.created_us = WALL + 5 * SEC; /* where the last of its name ended */
    begin(&l, &row);
    answer(&l, &serves, WALL + 3 * SEC);
    assert_int_equal(l.w.s.resource_strays[0].row.started_us, WALL + 5 * SEC);
    leader_world_done(&l.w);
    row = row_of(RESOURCE_FILE_SYSTEM);
    row.started_us = 0;
    begin(&l, &row);
    answer(&l, &made, 0);
    assert_int_equal(l.w.s.resource_strays[0].row.started_us, row.created_us);
    leader_world_done(&l.w);
}

static void test_resource_strays__storage_is_booked_by_begun_hours(void **state)
{
    (void)state;
    static const struct step steps[] = {{L, YES, "AVAILABLE", F}, {D, YES, "", F}, END};
    static const struct step gone[] = {{L, ABSENT, "", NONE}, END};
    static const struct step going[] = {{L, YES, "DELETING", F}, {L, ABSENT, "", NONE}, END};
    struct resource_stray_row row = row_of(RESOURCE_FILE_SYSTEM);
    struct life l;
    begin(&l, &row);
    l.now_us = row.created_us + 5399 * SEC;
    stop(&l);
    play(&l, steps);
    l.now_us += 7200 * SEC;
    play(&l, gone);
    assert_int_equal(l.last.end.cost_musd, 2 * 240000);
    assert_int_equal(l.last.end.billable_s, 0); /* no instance-seconds */
    assert_int_equal(l.last.end.ended_us, row.created_us + 5399 * SEC);
    assert_false(l.last.end.estimated);
    leader_world_done(&l.w);
    begin(&l, &row); /* somebody else deletes it */
    l.now_us = row.created_us + 7201 * SEC;
    play(&l, going);
    assert_int_equal(l.last.end.cost_musd, 3 * 240000);
    assert_true(l.last.end.estimated);
    leader_world_done(&l.w);
    row.price_musd_per_hour = 0; /* nobody knows what it costs */
    begin(&l, &row);
    stop(&l);
    play(&l, steps);
    play(&l, gone);
    assert_int_equal(l.last.end.cost_musd, 0);
    assert_true(l.last.end.estimated);
    leader_world_done(&l.w);
}

static void put_endpoint(struct leader_world *w, enum endpoint_state state)
{
    struct live_endpoint *e = xcalloc(1, sizeof *e);
    e->row = (struct endpoint_row){.id = 1, .state = state};
    (void)snprintf(e->row.name.s, sizeof e->row.name.s, "%s", NAME);
    w->s.endpoints = xcalloc(1, sizeof(struct live_endpoint *));
    w->s.endpoints[0] = e;
    w->s.endpoints_n = 1;
}

static void put_filesystem(struct leader_world *w, enum filesystem_state state, const char *aws_id,
                           const char *token)
{
    struct live_filesystem *f = xcalloc(1, sizeof *f);
    f->row = (struct filesystem_row){.id = 1, .state = state};
    (void)snprintf(f->row.aws_id, sizeof f->row.aws_id, "%s", aws_id);
    (void)snprintf(f->row.token.s, sizeof f->row.token.s, "%s", token);
    w->s.filesystems = xcalloc(1, sizeof(struct live_filesystem *));
    w->s.filesystems[0] = f;
    w->s.filesystems_n = 1;
}

static void owner(struct life *l, enum resource_news want)
{
    leader_plan_resource_stray_owner(&l->w.s, &l->w.s.resource_strays[0], &l->last);
    assert_int_equal(l->last.news, want);
}

static void test_resource_strays__are_left_to_a_row_that_stands_for_them(void **state)
{
    (void)state;
    static const struct {
        enum resource_kind kind;
        int state; /* of the row */
        const char *aws_id, *token;
        enum resource_news want;
    } cases[] = {
        {RESOURCE_ENDPOINT, ENDPOINT_INTENDED, NULL, NULL, RESOURCE_ADOPTED},
        {RESOURCE_MODEL, ENDPOINT_DELETING, NULL, NULL, RESOURCE_ADOPTED},
        {RESOURCE_ENDPOINT, ENDPOINT_DELETED, NULL, NULL, RESOURCE_AS_BEFORE},
        {RESOURCE_ENDPOINT, ENDPOINT_FAILED, NULL, NULL, RESOURCE_AS_BEFORE},
        {RESOURCE_FILE_SYSTEM, FILESYSTEM_INTENDED, "", NAME, RESOURCE_ADOPTED},
        {RESOURCE_FILE_SYSTEM, FILESYSTEM_AVAILABLE, FS, "other", RESOURCE_ADOPTED},
        {RESOURCE_FILE_SYSTEM, FILESYSTEM_AVAILABLE, "fs-1", "other", RESOURCE_AS_BEFORE},
        {RESOURCE_FILE_SYSTEM, FILESYSTEM_DELETED, FS, NAME, RESOURCE_AS_BEFORE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct resource_stray_row row = row_of(cases[i].kind);
        struct life l;
        begin(&l, &row);
        owner(&l, RESOURCE_AS_BEFORE);
        if (cases[i].token == NULL) {
            put_endpoint(&l.w, (enum endpoint_state)cases[i].state);
        } else {
            put_filesystem(&l.w, (enum filesystem_state)cases[i].state, cases[i].aws_id,
                           cases[i].token);
        }
        owner(&l, cases[i].want);
        if (cases[i].want == RESOURCE_ADOPTED) {
            leader_apply_resource_stray_writes(&l.w.s, &l.w.s.resource_strays[0], &l.last);
            assert_int_equal(l.w.s.resource_strays_n, 0);
            assert_int_equal(l.w.s.projects[0].spent_musd, 0); /* that row books it */
        }
        leader_world_done(&l.w);
    }
}

/* What a new leader needs to know is written when it becomes known, not at the end. */
static void test_resource_strays__a_type_and_a_price_are_written_once_known(void **state)
{
    (void)state;
    struct life l;
    struct resource_stray_row row = row_of(RESOURCE_ENDPOINT);
    row.started_us = WALL;
    row.price_musd_per_hour = 0;
    row.instance_type[0] = '\0';
    begin(&l, &row);
    struct live_resource_stray *r = &l.w.s.resource_strays[0];
    struct resource_fact seen = {.act = RESOURCE_ACT_DESCRIBE,
                                 .said = RESOURCE_SAID_YES,
                                 .status = "InService",
                                 .config = "c"};
    struct resource_fact told[] = {
        {.act = RESOURCE_ACT_CONFIG, .said = RESOURCE_SAID_NOTHING},
        {.act = RESOURCE_ACT_CONFIG, .said = RESOURCE_SAID_YES, .instance_type = "ml.a.large"}};
    for (int i = 0; i < 2; i++) {
        leader_plan_resource_stray_fact(r, &seen, l.now_us, l.boot_us, &l.last);
        assert_int_equal(l.last.news, RESOURCE_AS_BEFORE);
        assert_int_equal(until_due(&l, RESOURCE_ACT_CONFIG), 0);
        leader_plan_resource_stray_fact(r, &told[i], l.now_us, l.boot_us, &l.last);
        assert_int_equal(l.last.news, i == 1 ? RESOURCE_MOVED : RESOURCE_AS_BEFORE);
        assert_true(until_due(&l, RESOURCE_ACT_DESCRIBE) > 0); /* no sooner than it was */
    }
    leader_apply_resource_stray_writes(&l.w.s, r, &l.last);
    assert_string_equal(r->row.instance_type, "ml.a.large");
    seen.price_musd_per_hour = 7200;
    leader_plan_resource_stray_fact(r, &seen, l.now_us, l.boot_us, &l.last);
    assert_int_equal(l.last.news, RESOURCE_MOVED);
    assert_int_equal(l.last.row.price_musd_per_hour, 7200);
    leader_apply_resource_stray_writes(&l.w.s, r, &l.last);
    leader_plan_resource_stray_fact(r, &seen, l.now_us, l.boot_us, &l.last);
    assert_int_equal(l.last.news, RESOURCE_AS_BEFORE); /* once */
    leader_world_done(&l.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_strays__end_in_order_and_are_proven_absent),
        cmocka_unit_test(test_resource_strays__are_left_alone_and_looked_at_rarely),
        cmocka_unit_test(test_resource_strays__calls_that_fail_back_off),
        cmocka_unit_test(test_resource_strays__a_young_one_is_not_taken_for_gone),
        cmocka_unit_test(test_resource_strays__hosting_is_booked_once_to_the_second),
        cmocka_unit_test(test_resource_strays__come_into_service_later),
        cmocka_unit_test(test_resource_strays__storage_is_booked_by_begun_hours),
        cmocka_unit_test(test_resource_strays__are_left_to_a_row_that_stands_for_them),
        cmocka_unit_test(test_resource_strays__a_type_and_a_price_are_written_once_known),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
