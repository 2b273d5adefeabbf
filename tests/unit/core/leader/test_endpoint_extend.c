/* Aim: a later end is taken once, with the money for it, and nothing else about the endpoint
 * changes; an earlier one never is. Method: an endpoint in service in a state made by hand. */
#include "core/leader/endpoint_extend.h"
#include "leader_world.h"

#define TTL 7200

struct served {
    struct leader_world w;
    struct live_endpoint *e;
};

static struct endpoint_row in_service(void)
{
    return (struct endpoint_row){.id = 5,
                                 .project_id = 3,
                                 .campaign_id = 7,
                                 .stage_id = 70,
                                 .n = 1,
                                 .state = ENDPOINT_IN_SERVICE,
                                 .made = 3,
                                 .passed = true,
                                 .instances = 2,
                                 .ttl_s = TTL,
                                 .price_musd_per_hour = 3600000, /* 1,000 micro-USD a second */
                                 .reserved_musd = 2 * (TTL + 1020) * 1000,
                                 .intended_us = WALL,
                                 .in_service_us = WALL + 300 * SEC};
}

static void served_init(struct served *d)
{
    leader_world_init(&d->w);
    const struct endpoint_row row = in_service();
    d->e = leader_apply_endpoint_intent(&d->w.s, &row);
}

/* A person asks that it live until then; the row is read again. */
static bool wishes(struct served *d, usec_t until_us)
{
    struct endpoint_row row = d->e->row;
    row.extend_us = until_us;
    return leader_take_endpoints(&d->w.s, &row, 1, BOOT);
}

static void test_endpoint_extend__is_taken_once_with_its_money(void **state)
{
    (void)state;
    struct served d;
    struct endpoint_row row;
    served_init(&d);
    usec_t until = leader_endpoint_until(&d.e->row);
    musd_t before = d.e->row.reserved_musd;
    assert_false(leader_plan_endpoint_extension(d.e, &row));
    d.w.s.act = false;
    assert_true(wishes(&d, until + 3600 * SEC - 1)); /* a second is the least that is reserved */
    assert_true(d.w.s.act);
    assert_false(wishes(&d, d.e->row.extend_us));
    assert_true(leader_plan_endpoint_extension(d.e, &row));
    assert_int_equal(row.ttl_s, TTL + 3600);
    assert_int_equal(row.reserved_musd, before + INT64_C(2) * 3600 * 1000);
    assert_true(leader_endpoint_until(&row) >= row.extend_us);
    assert_int_equal(d.e->row.ttl_s, TTL); /* until it is committed */
    leader_apply_endpoint_extension(&d.w.s, d.e, &row, false);
    assert_int_equal(leader_endpoint_until(&d.e->row), until + 3600 * SEC);
    assert_int_equal(d.e->account.reserved_musd, row.reserved_musd);
    assert_int_equal(d.w.lc->row.reserved_musd, row.reserved_musd);
    assert_int_equal(d.w.s.projects[0].reserved_musd, row.reserved_musd);
    assert_false(leader_plan_endpoint_extension(d.e, &row));
    struct endpoint_writes w;
    leader_plan_endpoint_end(&d.w.s, d.e, until + SEC, &w);
    assert_int_equal(w.news, ENDPOINT_AS_BEFORE);
    leader_plan_endpoint_end(&d.w.s, d.e, until + 3600 * SEC, &w);
    assert_int_equal(w.news, ENDPOINT_MOVED);
    leader_world_done(&d.w);
}

static void test_endpoint_extend__never_ends_it_earlier(void **state)
{
    (void)state;
    struct served d;
    struct endpoint_row row;
    served_init(&d);
    usec_t until = leader_endpoint_until(&d.e->row);
    assert_true(wishes(&d, until - 60 * SEC));
    assert_true(leader_plan_endpoint_extension(d.e, &row));
    assert_int_equal(row.ttl_s, TTL);
    assert_int_equal(row.reserved_musd, d.e->row.reserved_musd);
    assert_int_equal(row.extend_seen_us, until - 60 * SEC); /* it is answered for good */
    leader_world_done(&d.w);
}

static void test_endpoint_extend__what_no_cap_has_room_for_changes_nothing(void **state)
{
    (void)state;
    struct served d;
    struct endpoint_row row;
    served_init(&d);
    struct endpoint_row before = d.e->row;
    (void)wishes(&d, WALL + 90000 * SEC);
    assert_true(leader_plan_endpoint_extension(d.e, &row));
    leader_apply_endpoint_extension(&d.w.s, d.e, &row, true);
    assert_int_equal(d.e->row.ttl_s, before.ttl_s);
    assert_int_equal(d.e->row.reserved_musd, before.reserved_musd);
    assert_int_equal(d.e->account.reserved_musd, before.reserved_musd);
    assert_int_equal(d.w.lc->row.reserved_musd, before.reserved_musd);
    assert_false(leader_plan_endpoint_extension(d.e, &row)); /* and is not asked for again */
    assert_true(wishes(&d, WALL + 80000 * SEC));             /* another wish is */
    assert_true(leader_plan_endpoint_extension(d.e, &row));
    leader_world_done(&d.w);
}

static void test_endpoint_extend__only_one_in_service_lives_longer(void **state)
{
    (void)state;
    struct served d;
    struct endpoint_row row;
    for (int s = 0; s < ENDPOINT_STATE_COUNT; s++) {
        served_init(&d);
        (void)wishes(&d, WALL + 90000 * SEC);
        d.e->row.state = (enum endpoint_state)s;
        assert_int_equal(leader_plan_endpoint_extension(d.e, &row), s == ENDPOINT_IN_SERVICE);
        leader_world_done(&d.w);
    }
    served_init(&d); /* nor is what cannot be reckoned */
    d.e->row.price_musd_per_hour = INT64_MAX / 10;
    (void)wishes(&d, WALL + 90000 * SEC);
    assert_true(leader_plan_endpoint_extension(d.e, &row));
    assert_int_equal(row.ttl_s, TTL);
    leader_world_done(&d.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoint_extend__is_taken_once_with_its_money),
        cmocka_unit_test(test_endpoint_extend__never_ends_it_earlier),
        cmocka_unit_test(test_endpoint_extend__what_no_cap_has_room_for_changes_nothing),
        cmocka_unit_test(test_endpoint_extend__only_one_in_service_lives_longer),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
