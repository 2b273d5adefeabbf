/* Aim: what of endpoints, configs, models and file systems reads like ours and has no row is asked
 * about once, and held only when its tag is ours and it is still there; others' things cost one
 * question; lists come one by one, rarely, and again after failures. Method: lists, tags and
 * descriptions by hand. */
#include "core/leader/filesystem_intent.h"
#include "core/leader/resource_strays.h"
#include "core/leader/resource_sweep.h"
#include "leader_world.h"
#include "store/leader/lease.h"

#define NAME   "d-9-deploy-0-a1-0a1b2c3d"
#define OTHER  "d-8-deploy-0-a1-0a1b2c3d"
#define FS     "fs-0123456789abcdef0"
#define PREFIX "d"

static const struct aws_failure refused = {.outcome = AWS_REFUSED},
                                slow = {.outcome = AWS_THROTTLED}, down = {.outcome = AWS_UNKNOWN};

struct scene {
    struct leader_world w;
    struct resource_sweep s;
    int64_t wake_us;
};

static void begin(struct scene *t)
{
    leader_world_init(&t->w);
    t->s = (struct resource_sweep){.n = 0};
    t->wake_us = INT64_MAX;
    (void)snprintf(t->w.s.install_id, sizeof t->w.s.install_id, "here");
}

static void finish(struct scene *t)
{
    resource_sweep_clear(&t->s);
    leader_world_done(&t->w);
}

static enum resource_kind due(struct scene *t, int64_t boot_us)
{
    t->wake_us = INT64_MAX;
    return resource_sweep_list_due(&t->s, boot_us, &t->wake_us);
}

static void list(struct scene *t, const char *name)
{
    struct hosting_summary row = {.arn = "arn:1"};
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    resource_sweep_hosting(&t->s, &t->w.s, PREFIX, &row, 1, BOOT);
}

static void list_fs(struct scene *t, const char *owner, const char *token)
{
    struct filesystem_description row = {.id = FS, .arn = "arn:2"};
    (void)snprintf(row.owner, sizeof row.owner, "%s", owner);
    (void)snprintf(row.token, sizeof row.token, "%s", token);
    t->s.list = RESOURCE_FILE_SYSTEM;
    resource_sweep_filesystems(&t->s, &t->w.s, &row, 1, BOOT);
}

static void test_resource_sweep__lists_all_kinds_at_once_then_rarely(void **state)
{
    (void)state;
    struct scene t;
    begin(&t);
    for (int round = 0; round < 3; round++) {
        int64_t boot_us = BOOT + round * RESOURCE_SWEEP_US;
        for (enum resource_kind k = RESOURCE_ENDPOINT; k < RESOURCE_FILE_SYSTEM; k++) {
            assert_int_equal(due(&t, boot_us), k);
            resource_sweep_hosting(&t.s, &t.w.s, PREFIX, NULL, 0, boot_us);
        }
        assert_int_equal(due(&t, boot_us), RESOURCE_FILE_SYSTEM);
        resource_sweep_filesystems(&t.s, &t.w.s, NULL, 0, boot_us);
        assert_int_equal(due(&t, boot_us), RESOURCE_KIND_COUNT);
        assert_int_equal(t.wake_us, boot_us + RESOURCE_SWEEP_US);
        assert_int_equal(due(&t, boot_us + RESOURCE_SWEEP_US - 1), RESOURCE_KIND_COUNT);
    }
    finish(&t);
}

static void test_resource_sweep__a_list_that_fails_is_asked_for_again(void **state)
{
    (void)state;
    struct scene t;
    begin(&t);
    int64_t boot_us = BOOT, last_us = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(due(&t, boot_us), RESOURCE_ENDPOINT);
        resource_sweep_unlisted(&t.s, i % 2 == 0 ? &slow : &down, boot_us);
        assert_int_equal(due(&t, boot_us), RESOURCE_KIND_COUNT);
        assert_true(t.wake_us - boot_us >= last_us && t.wake_us - boot_us <= 60 * SEC);
        last_us = t.wake_us - boot_us;
        boot_us = t.wake_us;
    }
    assert_int_equal(due(&t, boot_us), RESOURCE_ENDPOINT);
    resource_sweep_unlisted(&t.s, &refused, boot_us); /* by a role that may not: the others go on */
    assert_int_equal(due(&t, boot_us), RESOURCE_ENDPOINT_CONFIG);
    finish(&t);
}

static void test_resource_sweep__what_is_looked_into(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool want;
    } cases[] = {{NAME, true},
                 {"d-9-deploy-0-a1", false},             /* no hash */
                 {"my-d-9-deploy-0-a1-0a1b2c3d", false}, /* contains the prefix */
                 {"dd-9-deploy-0-a1-0a1b2c3d", false},   /* another prefix */
                 {"d-production-0-a1-0a1b2c3d", false},  /* no campaign */
                 {"d-9-deploy-0-b1-0a1b2c3d", false}};   /* no try */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene t;
        begin(&t);
        list(&t, cases[i].name);
        assert_int_equal(t.s.n, cases[i].want);
        finish(&t);
    }
    struct scene t;
    begin(&t);
    list(&t, NAME);
    list(&t, NAME); /* its config and its model are the same thing */
    list(&t, NAME);
    list_fs(&t, "there", NAME);
    list_fs(&t, "", NAME);
    assert_int_equal(t.s.n, 1);
    list_fs(&t, "here", NAME);
    assert_int_equal(t.s.n, 2);
    assert_int_equal(t.s.found[0].kind, RESOURCE_ENDPOINT);
    assert_int_equal(t.s.found[1].kind, RESOURCE_FILE_SYSTEM);
    assert_int_equal(resource_sweep_question(&t.s.found[0]), RESOURCE_ASK_TAG);
    assert_int_equal(resource_sweep_question(&t.s.found[1]), RESOURCE_ASK_DESCRIBE);
    finish(&t);
}

static void test_resource_sweep__known_things_are_left(void **state)
{
    (void)state;
    struct scene t;
    struct resource_stray_row row = {.kind = RESOURCE_FILE_SYSTEM, .name = FS};
    begin(&t);
    t.w.s.endpoints = xcalloc(1, sizeof(struct live_endpoint *));
    t.w.s.endpoints[0] = xcalloc(1, sizeof(struct live_endpoint));
    t.w.s.endpoints_n = 1;
    struct endpoint_row *e = &t.w.s.endpoints[0]->row;
    (void)snprintf(e->name.s, sizeof e->name.s, "%s", NAME);
    e->state = ENDPOINT_CREATING;
    list(&t, NAME);
    assert_int_equal(t.s.n, 0);
    leader_apply_resource_stray(&t.w.s, &row); /* a stray already */
    list_fs(&t, "here", NAME);
    assert_int_equal(t.s.n, 0);
    e->state = ENDPOINT_DELETED; /* the row says that it is gone, and it is there */
    list(&t, NAME);
    assert_int_equal(t.s.n, 1);
    finish(&t);
}

/* Its endpoint was thought to be gone, one kind after the other, and is listed: it is billed. */
static void test_resource_sweep__a_stray_that_has_more_than_was_thought(void **state)
{
    (void)state;
    for (enum resource_kind left = RESOURCE_ENDPOINT; left <= RESOURCE_MODEL; left++) {
        for (enum resource_kind seen = RESOURCE_ENDPOINT; seen <= RESOURCE_MODEL; seen++) {
            struct scene t;
            struct resource_stray_row row = {.kind = left,
                                             .name = NAME,
                                             .started_us = WALL,
                                             .ended_us = WALL + SEC,
                                             .stop_asked = true};
            begin(&t);
            leader_apply_resource_stray(&t.w.s, &row);
            t.w.s.resource_strays[0].delete_taken = true;
            t.s.list = seen;
            list(&t, NAME);
            assert_int_equal(t.s.n, seen < left);
            if (t.s.n == 1) {
                t.s.found[0].shown = (struct endpoint_description){.status = "InService",
                                                                   .modified = WALL + 9 * SEC};
                assert_true(resource_sweep_row(&t.w.s, &t.s.found[0], &row));
                assert_true(row.kind == seen && row.stop_asked);
                assert_true(row.started_us == WALL && row.ended_us == 0);
                leader_apply_resource_stray(&t.w.s, &row);
                assert_int_equal(t.w.s.resource_strays_n, 1);
                assert_int_equal(t.w.s.resource_strays[0].row.kind, seen);
                assert_false(t.w.s.resource_strays[0].delete_taken); /* it is deleted again */
                assert_false(resource_sweep_row(&t.w.s, &t.s.found[0], &row)); /* it is held */
            }
            finish(&t);
        }
    }
}

static void test_resource_sweep__whose_it_is(void **state)
{
    (void)state;
    struct scene t;
    begin(&t);
    t.s.list = RESOURCE_ENDPOINT;
    list(&t, OTHER);
    struct resource_found *u = &t.s.found[0];
    assert_int_equal(resource_sweep_tag(u, "", "here", &slow), RESOURCE_LATER);
    resource_sweep_apply(&t.s, 0, RESOURCE_LATER, BOOT);
    assert_int_equal(resource_sweep_due(&t.s, BOOT, &t.wake_us), t.s.n);
    assert_int_equal(t.wake_us, u->next_us);
    assert_int_equal(resource_sweep_due(&t.s, u->next_us, &t.wake_us), 0);
    /* Not told: left out of this sweep, and asked about in the next one. */
    assert_int_equal(resource_sweep_tag(u, "", "here", &refused), RESOURCE_DECIDED);
    resource_sweep_apply(&t.s, 0, RESOURCE_DECIDED, BOOT);
    assert_int_equal(t.s.n, 0);
    t.s.list = RESOURCE_ENDPOINT;
    list(&t, OTHER);
    assert_int_equal(t.s.n, 1);
    u = &t.s.found[0];
    assert_int_equal(resource_sweep_tag(u, "", "here", NULL), RESOURCE_FOREIGN);
    assert_int_equal(resource_sweep_tag(u, "there", "here", NULL), RESOURCE_FOREIGN);
    resource_sweep_apply(&t.s, 0, RESOURCE_FOREIGN, BOOT);
    assert_int_equal(t.s.n, 0);
    list(&t, OTHER); /* its config: asked about once a leader */
    assert_int_equal(t.s.n, 0);
    t.s.list = RESOURCE_ENDPOINT;
    list(&t, NAME);
    u = &t.s.found[0];
    assert_int_equal(resource_sweep_tag(u, "here", "here", NULL), RESOURCE_ON);
    assert_int_equal(resource_sweep_question(u), RESOURCE_ASK_DESCRIBE);
    finish(&t);
}

static void test_resource_sweep__only_what_is_there_is_held(void **state)
{
    (void)state;
    const struct endpoint_description serves = {.status = "InService"},
                                      ends = {.status = "Deleting"};
    const struct filesystem_description usable = {.lifecycle = "AVAILABLE"},
                                        going = {.lifecycle = "DELETING"};
    struct resource_found u = {.kind = RESOURCE_ENDPOINT, .ours = true};
    assert_int_equal(resource_sweep_described(&u, NULL, NULL), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_described(&u, NULL, &refused), RESOURCE_LATER);
    assert_int_equal(resource_sweep_described(&u, &ends, NULL), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_described(&u, &serves, NULL), RESOURCE_ON);
    assert_int_equal(resource_sweep_question(&u), RESOURCE_ASK_CONFIG);
    assert_int_equal(resource_sweep_config(&u, NULL, &down), RESOURCE_LATER);
    assert_int_equal(resource_sweep_config(&u, NULL, &refused), RESOURCE_HOLD);
    assert_int_equal(resource_sweep_config(&u, NULL, NULL), RESOURCE_HOLD);
    u = (struct resource_found){.kind = RESOURCE_MODEL, .ours = true};
    assert_int_equal(
        resource_sweep_described(&u, &(struct endpoint_description){.name = NAME}, NULL),
        RESOURCE_HOLD);
    u = (struct resource_found){.kind = RESOURCE_FILE_SYSTEM, .ours = true};
    assert_int_equal(resource_sweep_filesystem(&u, NULL, NULL), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_filesystem(&u, &going, NULL), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_filesystem(&u, NULL, &down), RESOURCE_LATER);
    assert_int_equal(resource_sweep_filesystem(&u, &usable, NULL), RESOURCE_HOLD);
    assert_int_equal(resource_sweep_held(TX_DONE), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_held(TX_REFUSED), RESOURCE_DECIDED);
    assert_int_equal(resource_sweep_held(TX_BUSY), RESOURCE_LATER);
    assert_int_equal(resource_sweep_held(TX_LOST), RESOURCE_STOP);
}

static void test_resource_sweep__what_its_row_says(void **state)
{
    (void)state;
    struct scene t;
    struct resource_stray_row row;
    begin(&t);
    leader_state_slots(&t.w.s, "storage:SCRATCH_2", MARKET_ON_DEMAND)->s.price_musd_per_hour =
        140000;
    struct resource_found u = {
        .kind = RESOURCE_ENDPOINT,
        .name = NAME,
        .shown = {.status = "InService", .instances = 2, .created = WALL, .modified = WALL + SEC}};
    const struct endpoint_description config = {.instance_type = "ml.a.large"};
    assert_true(resource_sweep_row(&t.w.s, &u, &row)); /* of what type nobody says */
    assert_int_equal(row.price_musd_per_hour, 0);
    (void)resource_sweep_config(&u, &config, NULL);
    assert_true(resource_sweep_row(&t.w.s, &u, &row));
    assert_int_equal(row.price_musd_per_hour, 3600000);
    row.price_musd_per_hour = 0;
    assert_int_equal(resource_sweep_price(&t.w.s, &row), 3600000);
    row.instance_type[0] = '\0';
    assert_int_equal(resource_sweep_price(&t.w.s, &row), 0);
    assert_int_equal(row.instances, 2);
    assert_int_equal(row.started_us, WALL + SEC);
    (void)snprintf(u.shown.status, sizeof u.shown.status, "Creating");
    assert_true(resource_sweep_row(&t.w.s, &u, &row));
    assert_int_equal(row.started_us, 0); /* nothing is billed yet */
    u = (struct resource_found){.kind = RESOURCE_FILE_SYSTEM,
                                .name = FS,
                                .token = NAME,
                                .fs = {.lifecycle = "AVAILABLE",
                                       .deployment_type = "SCRATCH_2",
                                       .capacity_gib = 1200,
                                       .created = WALL}};
    assert_true(resource_sweep_row(&t.w.s, &u, &row));
    assert_int_equal(row.price_musd_per_hour, 140000);
    row.price_musd_per_hour = 0; /* found before the price was known */
    assert_int_equal(resource_sweep_price(&t.w.s, &row), 140000);
    row.price_musd_per_hour = 7; /* as it was found it stays */
    assert_int_equal(resource_sweep_price(&t.w.s, &row), 7);
    memcpy(u.fs.deployment_type, "PERSISTENT_2", sizeof "PERSISTENT_2");
    u.fs.throughput_per_unit = 125;
    leader_state_slots(&t.w.s, "storage:PERSISTENT_2", MARKET_ON_DEMAND)->s.price_musd_per_hour =
        600000;
    assert_true(resource_sweep_row(&t.w.s, &u, &row));
    assert_string_equal(row.instance_type, "PERSISTENT_2/125");
    assert_int_equal(row.price_musd_per_hour, 600000); /* the dearest, while 125 has none */
    bool exact = true;
    assert_int_equal(leader_storage_price(&t.w.s, "PERSISTENT_2/125", &exact), 600000);
    assert_false(exact);
    leader_state_slots(&t.w.s, "storage:PERSISTENT_2/125", MARKET_ON_DEMAND)
        ->s.price_musd_per_hour = 145000;
    assert_true(resource_sweep_row(&t.w.s, &u, &row));
    assert_int_equal(row.price_musd_per_hour, 145000);
    assert_int_equal(leader_storage_price(&t.w.s, "PERSISTENT_2/125", &exact), 145000);
    assert_true(exact);
    assert_int_equal(leader_storage_price(&t.w.s, "PERSISTENT_1/50", &exact), -1);
    assert_int_equal(row.size_gib, 1200);
    assert_int_equal(row.started_us, WALL);
    assert_string_equal(row.token, NAME);
    t.w.s.filesystems = xcalloc(1, sizeof(struct live_filesystem *));
    t.w.s.filesystems[0] = xcalloc(1, sizeof(struct live_filesystem));
    t.w.s.filesystems_n = 1;
    (void)snprintf(t.w.s.filesystems[0]->row.token.s, sizeof t.w.s.filesystems[0]->row.token.s,
                   "%s", NAME);
    assert_false(resource_sweep_row(&t.w.s, &u, &row)); /* intended while it was asked about */
    finish(&t);
}

/* An endpoint that was found before its config could be read, and what an answer then tells. */
static void test_resource_sweep__a_type_that_is_told_has_a_price(void **state)
{
    (void)state;
    struct leader_world w;
    leader_world_init(&w);
    const struct resource_stray_row row = {.kind = RESOURCE_ENDPOINT};
    static const struct {
        enum resource_act act;
        enum resource_word said;
        musd_t price;
    } rows[] = {{RESOURCE_ACT_CONFIG, RESOURCE_SAID_YES, 3600000},
                {RESOURCE_ACT_CONFIG, RESOURCE_SAID_ABSENT, 0},
                {RESOURCE_ACT_CONFIG, RESOURCE_SAID_NOTHING, 0},
                {RESOURCE_ACT_DESCRIBE, RESOURCE_SAID_YES, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct resource_fact fact = {
            .act = rows[i].act, .said = rows[i].said, .instance_type = "ml.a.large"};
        assert_int_equal(resource_sweep_price_told(&w.s, &row, &fact), rows[i].price);
    }
    leader_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_sweep__lists_all_kinds_at_once_then_rarely),
        cmocka_unit_test(test_resource_sweep__a_list_that_fails_is_asked_for_again),
        cmocka_unit_test(test_resource_sweep__what_is_looked_into),
        cmocka_unit_test(test_resource_sweep__known_things_are_left),
        cmocka_unit_test(test_resource_sweep__a_stray_that_has_more_than_was_thought),
        cmocka_unit_test(test_resource_sweep__whose_it_is),
        cmocka_unit_test(test_resource_sweep__only_what_is_there_is_held),
        cmocka_unit_test(test_resource_sweep__what_its_row_says),
        cmocka_unit_test(test_resource_sweep__a_type_that_is_told_has_a_price),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
