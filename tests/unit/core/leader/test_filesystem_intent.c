/* Aim: a stage of kind lustre asks for one file system at a time, under a token of its try, with
 * its whole time reserved at the price of its throughput, and for none without a price. Method: a
 * running stage of kind lustre in a state made by hand. */
#include "core/leader/filesystem_intent.h"
#include "filesystem_world.h"
#include "store/leader/lease.h"

struct lustre_plan {
    struct filesystem_row row;
    struct buf request;
    enum wait_reason why;
    bool exact;
};

static void intent_world(struct life *l)
{
    memset(l, 0, sizeof *l);
    world(l);
    static const struct spec campaign = {.name = "laion"};
    l->spec = (struct spec_filesystem){.deployment = "PERSISTENT_2",
                                       .throughput = 250,
                                       .capacity_gib = 1200,
                                       .ttl_s = TTL,
                                       .import_from = "s3://acme/img/",
                                       .exports = true};
    l->w.spec.subnets[0] = "subnet-0a";
    l->w.spec.subnets_n = 1;
    l->w.lc->spec = (struct spec *)(uintptr_t)&campaign;
    (void)snprintf(l->w.s.install_id, sizeof l->w.s.install_id, "i-1");
}

static void price(struct life *l, const char *tier, musd_t musd)
{
    leader_state_slots(&l->w.s, tier, MARKET_ON_DEMAND)->s.price_musd_per_hour = musd;
}

static bool plan(struct life *l, int n, struct lustre_plan *p, struct err *err)
{
    const struct filesystem_intent_facts f = {
        .filesystem_id = 5, .n = n, .job_prefix = "d", .now_us = WALL};
    memset(p, 0, sizeof *p);
    buf_init(&p->request, FILESYSTEM_REQUEST_BYTES_MAX);
    p->why = WAIT_PARKED;
    return leader_plan_filesystem_intent(&l->w.s, l->w.lc, l->w.ls, &f, &p->row, &p->request,
                                         &p->why, &p->exact, err);
}

static struct lustre_plan planned(struct life *l, int n)
{
    struct err err = ERR_INIT;
    struct lustre_plan p;
    assert_true(plan(l, n, &p, &err));
    return p;
}

static void test_filesystem_intent__without_a_price_nothing_is_asked_for(void **state)
{
    (void)state;
    struct life l;
    intent_world(&l);
    price(&l, "storage:SCRATCH_2", PRICE); /* of another deployment */
    leader_state_slots(&l.w.s, "storage:PERSISTENT_2", MARKET_SPOT)->s.price_musd_per_hour = PRICE;
    struct lustre_plan p = planned(&l, 1);
    assert_int_equal(p.why, WAIT_PRICE_UNKNOWN);
    assert_int_equal(p.row.reserved_musd, 0);
    assert_int_equal(p.request.n, 0);
    assert_string_equal(p.row.token.s, "");
    buf_done(&p.request);
    leader_world_done(&l.w);
}

/* 1200 GiB for two hours and what its making and its end take, of a month of 730. */
static void test_filesystem_intent__reserves_its_whole_time_at_the_price_of_its_tier(void **state)
{
    (void)state;
    static const struct {
        musd_t exact, dearest, reserved;
        bool is_exact;
    } rows[] = {{PRICE, -1, 4 * 240000, true},
                {PRICE, 2 * PRICE, 4 * 240000, true},
                {-1, PRICE, 4 * 240000, false},
                {0, PRICE, 0, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life l;
        intent_world(&l);
        price(&l, "storage:PERSISTENT_2/250", rows[i].exact);
        price(&l, "storage:PERSISTENT_2", rows[i].dearest);
        price(&l, "storage:PERSISTENT_2/125", 1);
        struct lustre_plan p = planned(&l, 1);
        assert_int_equal(p.why, WAIT_NONE);
        assert_int_equal(p.exact, rows[i].is_exact);
        assert_int_equal(p.row.reserved_musd, rows[i].reserved);
        buf_done(&p.request);
        l.spec.ttl_s += 1; /* a begun hour is a whole one */
        p = planned(&l, 1);
        assert_int_equal(p.row.reserved_musd, rows[i].reserved / 4 * 5);
        buf_done(&p.request);
        leader_world_done(&l.w);
    }
}

static void test_filesystem_intent__the_row_says_what_the_stage_says(void **state)
{
    (void)state;
    struct life l;
    intent_world(&l);
    price(&l, "storage:PERSISTENT_2", PRICE);
    l.spec.keep = true;
    struct lustre_plan p = planned(&l, 1);
    assert_int_equal(p.row.id, 5);
    assert_int_equal(p.row.project_id, 3);
    assert_int_equal(p.row.campaign_id, 7);
    assert_int_equal(p.row.stage_id, 70);
    assert_int_equal(p.row.state, FILESYSTEM_INTENDED);
    assert_int_equal(p.row.size_gib, 1200);
    assert_int_equal(p.row.ttl_s, TTL);
    assert_int_equal(p.row.price_musd_per_gb_month, PRICE);
    assert_int_equal(p.row.intended_us, WALL);
    assert_true(p.row.keep && p.row.exports);
    assert_string_equal(p.row.deployment, "PERSISTENT_2");
    assert_string_equal(p.row.import_from, "s3://acme/img/");
    assert_non_null(strstr(buf_cstr(&p.request), p.row.token.s));
    assert_non_null(strstr(buf_cstr(&p.request), "\"i-1\""));
    buf_done(&p.request);
    l.spec.import_from = NULL; /* there is nowhere to export to */
    l.spec.keep = false;
    p = planned(&l, 1);
    assert_false(p.row.keep || p.row.exports);
    assert_string_equal(p.row.import_from, "");
    buf_done(&p.request);
    leader_world_done(&l.w);
}

/* FSx makes one under one token: a try that is written again is the same, the next one is not, nor
 * is that of another stage, or of a campaign that was restored from a copy. */
static void test_filesystem_intent__a_token_belongs_to_one_try(void **state)
{
    (void)state;
    struct life l;
    struct lustre_plan p[5];
    intent_world(&l);
    price(&l, "storage:PERSISTENT_2", PRICE);
    p[0] = planned(&l, 1);
    p[1] = planned(&l, 1);
    p[2] = planned(&l, 2);
    (void)snprintf(l.w.lc->row.nonce, sizeof l.w.lc->row.nonce, "restored");
    p[3] = planned(&l, 1);
    l.w.lc->row.nonce[0] = '\0';
    l.w.ls->row.id = 71;
    p[4] = planned(&l, 1);
    assert_int_equal(p[2].row.n, 2);
    for (size_t i = 1; i < ARRAY_LEN(p); i++) {
        const char *first = strrchr(p[0].row.token.s, '-'); /* its hash */
        assert_int_equal(strcmp(first, strrchr(p[i].row.token.s, '-')) == 0, i == 1);
    }
    assert_string_equal(buf_cstr(&p[0].request), buf_cstr(&p[1].request));
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        buf_done(&p[i].request);
    }
    leader_world_done(&l.w);
}

/* As one of a campaign that was stored before its file would have been refused. */
static void test_filesystem_intent__what_cannot_be_asked_for_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct life l;
        struct lustre_plan p;
        struct err err = ERR_INIT;
        intent_world(&l);
        price(&l, "storage:PERSISTENT_2", i == 0 ? INT64_MAX / 2 : PRICE);
        const struct spec campaign = {.name = "laion", .tags_n = i * (SPEC_FSX_TAGS_MAX + 1)};
        l.w.lc->spec = (struct spec *)(uintptr_t)&campaign;
        assert_false(plan(&l, 1, &p, &err));
        assert_int_equal(err.code, i == 0 ? ERR_OVERFLOW : ERR_INVALID);
        buf_done(&p.request);
        leader_world_done(&l.w);
    }
}

static bool due(struct life *l, usec_t now_us, int *ret_n)
{
    *ret_n = 0;
    return leader_filesystem_due(&l->w.s, l->w.lc, l->w.ls, now_us, ret_n);
}

static void test_filesystem_intent__is_due_while_its_stage_and_campaign_run(void **state)
{
    (void)state;
    struct life l;
    int n;
    intent_world(&l);
    l.w.s.tries_unread = true; /* an earlier one may have its token */
    assert_false(due(&l, WALL, &n));
    l.w.s.tries_unread = false;
    assert_true(due(&l, WALL, &n));
    assert_int_equal(n, 1);
    l.w.ls->row.state = STAGE_BLOCKED;
    assert_false(due(&l, WALL, &n));
    l.w.ls->row.state = STAGE_RUNNING;
    l.w.lc->row.wanted = WANTED_PAUSE;
    assert_false(due(&l, WALL, &n));
    l.w.lc->row.wanted = WANTED_RUN;
    l.w.lc->set_aside = WAIT_PARKED;
    assert_false(due(&l, WALL, &n));
    l.w.lc->set_aside = WAIT_NONE;
    l.w.ls->endpoint_unmade = true;
    assert_false(due(&l, WALL, &n));
    l.w.ls->endpoint_unmade = false;
    l.w.spec.kind = SPEC_KIND_JOBS;
    assert_false(due(&l, WALL, &n));
    leader_world_done(&l.w);
}

static void test_filesystem_intent__the_next_try_waits_until_the_last_is_gone(void **state)
{
    (void)state;
    struct life l;
    int n;
    intent_world(&l);
    struct filesystem_row row = intent();
    struct live_filesystem *f = leader_apply_filesystem_intent(&l.w.s, &row);
    f->row.failed = true;
    f->row.cause = CAUSE_CAPACITY;
    f->row.ended_us = WALL;
    f->row.state = FILESYSTEM_DELETING;
    assert_false(due(&l, WALL + 86400 * SEC, &n));
    f->row.state = FILESYSTEM_FAILED;
    assert_false(due(&l, WALL, &n)); /* after a pause */
    assert_true(due(&l, WALL + 86400 * SEC, &n));
    assert_int_equal(n, 2);
    f->row.ready = true; /* it was used */
    assert_false(due(&l, WALL + 86400 * SEC, &n));
    f->row.ready = false;
    f->row.failed = false; /* a person deleted it */
    assert_false(due(&l, WALL + 86400 * SEC, &n));
    leader_world_done(&l.w);
}

static void test_filesystem_intent__what_its_tries_come_to(void **state)
{
    (void)state;
    static const struct {
        bool none, ready, failed, unmade;
        enum filesystem_state is;
        enum endpoint_verdict want;
    } rows[] = {
        {true, false, false, false, FILESYSTEM_INTENDED, ENDPOINT_NOT_YET},
        {true, false, false, true, FILESYSTEM_INTENDED, ENDPOINT_GAVE_UP},
        {false, false, false, false, FILESYSTEM_CREATING, ENDPOINT_NOT_YET},
        {false, false, false, true, FILESYSTEM_CREATING, ENDPOINT_NOT_YET},
        {false, true, false, false, FILESYSTEM_AVAILABLE, ENDPOINT_SERVES},
        {false, true, false, false, FILESYSTEM_DELETED, ENDPOINT_SERVES},
        {false, false, true, false, FILESYSTEM_DELETING, ENDPOINT_NOT_YET},
        {false, false, true, false, FILESYSTEM_FAILED, ENDPOINT_GAVE_UP},
        {false, false, false, false, FILESYSTEM_DELETED, ENDPOINT_GAVE_UP},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct life l;
        intent_world(&l);
        struct filesystem_row row = intent();
        row.ready = rows[i].ready;
        row.failed = rows[i].failed;
        row.cause = rows[i].failed ? CAUSE_USER_CODE : CAUSE_NONE;
        if (!rows[i].none) {
            leader_apply_filesystem_intent(&l.w.s, &row)->row.state = rows[i].is;
        }
        l.w.ls->endpoint_unmade = rows[i].unmade;
        leader_filesystems_mark(&l.w.s, WALL);
        assert_int_equal(l.w.ls->endpoint, rows[i].want);
        assert_int_equal(l.w.ls->endpoint_there,
                         !rows[i].none && !filesystem_state_terminal(rows[i].is));
        leader_world_done(&l.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesystem_intent__without_a_price_nothing_is_asked_for),
        cmocka_unit_test(test_filesystem_intent__reserves_its_whole_time_at_the_price_of_its_tier),
        cmocka_unit_test(test_filesystem_intent__the_row_says_what_the_stage_says),
        cmocka_unit_test(test_filesystem_intent__a_token_belongs_to_one_try),
        cmocka_unit_test(test_filesystem_intent__what_cannot_be_asked_for_is_refused),
        cmocka_unit_test(test_filesystem_intent__is_due_while_its_stage_and_campaign_run),
        cmocka_unit_test(test_filesystem_intent__the_next_try_waits_until_the_last_is_gone),
        cmocka_unit_test(test_filesystem_intent__what_its_tries_come_to),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
