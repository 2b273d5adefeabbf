/* Aim: a pool's fingerprint differs in every field SageMaker compares and in no other, keep-alive
 * is what break-even, policy, quota and cap allow, a task waits for a pool only when that is
 * cheaper, and a pool is given back for each of its reasons. Method: one field changed at a time;
 * the fingerprint held against the request that lower.c really writes; tables at and beside the
 * bounds. */
#include "core/capacity/warm_pool.h"
#include "core/lowering/training_request.h"
#include "core/spec/spec_expand.h"
#include "store/leader/lease.h"
#include "tests/unit/core/spec/spec_text.h"

#define NOW INT64_C(1700000000000000)

static const char *const nets[] = {"subnet-1", "subnet-2"};
static const char *const turned[] = {"subnet-2", "subnet-1"};
static const char *const groups[] = {"sg-1", "sg-2"};
static const char *const other_groups[] = {"sg-1", "sg-3"};

static struct warm_pool_match base(void)
{
    return (struct warm_pool_match){.role = "arn:role/a",
                                    .instance_type = "ml.c5.18xlarge",
                                    .volume_kms_key = NULL,
                                    .instance_count = 1,
                                    .volume_gb = 225,
                                    .subnets = nets,
                                    .subnets_n = 2,
                                    .security_groups = groups,
                                    .security_groups_n = 2};
}

/* One change of one field makes another fingerprint, and taking it back makes the first again. */
#define differs(name, change)                                                                      \
    static void test_warm__the_fingerprint_has_##name(void **state)                                \
    {                                                                                              \
        (void)state;                                                                               \
        struct warm_pool_match m = base();                                                         \
        uint64_t before = warm_pool_fingerprint(&m);                                               \
        assert_true(before != 0 && before == warm_pool_fingerprint(&m));                           \
        change;                                                                                    \
        assert_true(warm_pool_fingerprint(&m) != before);                                          \
        m = base();                                                                                \
        assert_true(warm_pool_fingerprint(&m) == before);                                          \
    }
differs(the_role, m.role = "arn:role/b");
differs(the_instance_type, m.instance_type = "ml.c5n.18xlarge");
differs(the_instance_count, m.instance_count = 2);
differs(the_volume_size, m.volume_gb = 450);
differs(the_volume_key, m.volume_kms_key = "alias/sm");
differs(the_subnets, m.subnets_n = 1);
differs(the_order_of_subnets, m.subnets = turned);
differs(the_absence_of_a_vpc, m.subnets_n = 0; m.security_groups_n = 0);
differs(the_security_groups, m.security_groups = other_groups);
differs(the_encryption_between_hosts, m.encrypt_traffic = true);
differs(the_network_isolation, m.network_isolation = true);
differs(the_session_chaining, m.session_chaining = true);

static void test_warm__the_fingerprint_keeps_fields_apart(void **state)
{
    (void)state;
    /* The same characters, cut elsewhere; no key and an empty one; a flag in another's place. */
    struct warm_pool_match a = base();
    struct warm_pool_match b = base();
    a.role = "ab";
    a.instance_type = "c";
    b.role = "a";
    b.instance_type = "bc";
    assert_true(warm_pool_fingerprint(&a) != warm_pool_fingerprint(&b));
    a = base();
    b = base();
    a.volume_kms_key = "";
    assert_true(warm_pool_fingerprint(&a) != warm_pool_fingerprint(&b));
    static const char *const four[] = {"subnet-1", "subnet-2", "sg-1", "sg-2"};
    b = base();
    b.subnets = four;
    b.subnets_n = 3;
    b.security_groups = four + 3;
    b.security_groups_n = 1;
    a = base();
    assert_true(warm_pool_fingerprint(&a) != warm_pool_fingerprint(&b));
    a = base();
    b = base();
    a.encrypt_traffic = true;
    b.network_isolation = true;
    assert_true(warm_pool_fingerprint(&a) != warm_pool_fingerprint(&b));
    a = base();
    b = base();
    a.instance_count = 225;
    a.volume_gb = 1;
    assert_true(warm_pool_fingerprint(&a) != warm_pool_fingerprint(&b));
}

/* What SageMaker would compare, read out of the request we send. */
static uint64_t of_request(const json_t *q)
{
    const json_t *res = json_object_get(q, "ResourceConfig");
    const json_t *vpc = json_object_get(q, "VpcConfig");
    const json_t *lists[] = {json_object_get(vpc, "Subnets"),
                             json_object_get(vpc, "SecurityGroupIds")};
    const char *texts[2][16] = {{NULL}};
    int n[2] = {0};
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < json_array_size(lists[i]); k++) {
            texts[i][n[i]++] = json_string_value(json_array_get(lists[i], k));
        }
    }
    const struct warm_pool_match m = {
        .role = json_string_value(json_object_get(q, "RoleArn")),
        .instance_type = json_string_value(json_object_get(res, "InstanceType")),
        .volume_kms_key = json_string_value(json_object_get(res, "VolumeKmsKeyId")),
        .instance_count = (int)json_integer_value(json_object_get(res, "InstanceCount")),
        .volume_gb = (int)json_integer_value(json_object_get(res, "VolumeSizeInGB")),
        .subnets = texts[0],
        .subnets_n = n[0],
        .security_groups = texts[1],
        .security_groups_n = n[1],
        .encrypt_traffic =
            json_is_true(json_object_get(q, "EnableInterContainerTrafficEncryption")),
        .network_isolation = json_is_true(json_object_get(q, "EnableNetworkIsolation")),
        .session_chaining = json_is_true(json_object_get(
            json_object_get(q, "SessionChainingConfig"), "EnableSessionTagChaining"))};
    return warm_pool_fingerprint(&m);
}

static json_t *request_of(const struct parsed *p, int rung, int volume_gb, int64_t keep_alive_s)
{
    static const struct job_name job = {"drover-c9-train-17-a2-0a1b2c3d"};
    const struct spec_task task = {
        .campaign_id = 9, .stage_name = "train", .task_id = 7, .attempt_n = 1};
    const struct spec_stage *s = p->spec->stages[0];
    const struct training_request_input in = {.spec = p->spec,
                                              .stage = s,
                                              .task = &task,
                                              .name = &job,
                                              .attempt_id = 5,
                                              .instance_type = s->instance_type[rung],
                                              .volume_gb = volume_gb,
                                              .max_runtime_s = 600,
                                              .keep_alive_s = keep_alive_s,
                                              .install_id = "i",
                                              .region = "us-east-1"};
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    char id[HASH_HEX_N];
    struct err err = ERR_INIT;
    assert_true(training_request_make(&in, &out, id, &err));
    json_t *v = json_loads(buf_cstr(&out), 0, NULL);
    assert_non_null(v);
    return v;
}

static void test_warm__the_fingerprint_is_that_of_the_request_we_send(void **state)
{
    (void)state;
    static const char *const extras[] = {
        "",
        "    network_isolation: true\n",
        "    instance_count: 3\n",
        "    vpc: none\n",
        "    vpc: {subnets: [subnet-9], security_groups: [sg-9, sg-8]}\n",
        "    role: arn:aws:iam::111122223333:role/other\n"};
    uint64_t seen[ARRAY_LEN(extras) * 4] = {0};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(extras); i++) {
        AUTO_FREE char *text = xasprintf(
            "name: c\nsecurity: {vpc: {subnets: [subnet-1, subnet-2], security_groups: [sg-1]}}\n"
            "stages:\n  - name: train\n    image: r/x:1\n"
            "    instance_type: [ml.m5.large, ml.m5.xlarge]\n%s",
            extras[i]);
        struct parsed *p = parse(text);
        show(&p->faults);
        assert_true(p->good);
        for (int rung = 0; rung < 2; rung++) {
            for (int volume_gb = 30; volume_gb <= 60; volume_gb += 30) {
                AUTO_JSON json_t *q = request_of(p, rung, volume_gb, 0);
                AUTO_JSON json_t *kept = request_of(p, rung, volume_gb, 180);
                uint64_t want = of_request(q);
                assert_true(warm_pool_fingerprint_of(p->spec->stages[0], rung, volume_gb, -1) ==
                            want);
                assert_true(of_request(kept) == want); /* keep-alive is not compared */
                for (size_t k = 0; k < n; k++) {
                    assert_true(seen[k] != want);
                }
                seen[n++] = want;
            }
        }
        parsed_free(p);
    }
    (void)printf("# %zu requests, each with a fingerprint of its own\n", n);
}

static void test_warm__what_is_not_compared_does_not_count(void **state)
{
    (void)state;
    struct parsed *a = parse("name: c\nstages:\n  - name: a\n    image: r/x:1\n"
                             "    instance_type: ml.m5.large\n");
    struct parsed *b = parse("name: d\ntags: {t: u}\nstages:\n  - name: b\n    image: r/y:2\n"
                             "    instance_type: ml.m5.large\n    command: [go]\n"
                             "    max_runtime: 1h\n    hyperparameters: {x: y}\n"
                             "    warm_pool: {keep_alive: 9m}\n    environment: {E: f}\n");
    show(&b->faults);
    assert_true(a->good && b->good);
    assert_true(warm_pool_fingerprint_of(a->spec->stages[0], 0, 30, -1) ==
                warm_pool_fingerprint_of(b->spec->stages[0], 0, 30, -1));
    parsed_free(a);
    parsed_free(b);
}

static void test_warm__one_subnet_is_not_all_and_spot_matches_nothing(void **state)
{
    (void)state;
    struct parsed *p = parse("name: c\nsecurity: {vpc: {subnets: [subnet-1, subnet-2], "
                             "security_groups: [sg-1]}}\nstages:\n  - name: a\n    image: r/x:1\n"
                             "    instance_type: ml.m5.large\n    resumable: true\n");
    assert_true(p->good);
    struct spec_stage *s = p->spec->stages[0];
    uint64_t all = warm_pool_fingerprint_of(s, 0, 30, -1);
    uint64_t first = warm_pool_fingerprint_of(s, 0, 30, 0);
    uint64_t second = warm_pool_fingerprint_of(s, 0, 30, 1);
    assert_true(all != first && all != second && first != second);
    s->spot = true;
    assert_true(warm_pool_fingerprint_of(s, 0, 30, -1) == 0);
    parsed_free(p);
}

/* A part of 128 in the middle of its stage. */
static struct warm_pool_gap middle(void)
{
    return (struct warm_pool_gap){.matching_waiting = 60,
                                  .matching_live = 17,
                                  .expected_gap_s = WARM_POOL_GAP_S,
                                  .start_saved_s = 160,
                                  .price_musd_per_hour = 3600000,
                                  .warm_free = 1,
                                  .instances = 1};
}

static const struct warm_pool_policy automatic = {-1, -1, true};
static const struct warm_pool_policy fixed = {900, -1, true};
static const struct warm_pool_policy never = {0, -1, true};

static void test_warm__kept_as_long_as_the_start_it_saves(void **state)
{
    (void)state;
    struct warm_pool_gap g = middle();
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 160);
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 900);
    assert_int_equal(warm_pool_keep_alive(&never, &g), 0);
    g.start_saved_s = 90000; /* never more than AWS takes */
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), WARM_POOL_KEEP_ALIVE_MAX_S);
    g.start_saved_s = WARM_POOL_GAP_S + 1;
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), WARM_POOL_GAP_S + 1);
    g.start_saved_s = WARM_POOL_GAP_S; /* idle costs as much as it saves */
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 0);
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 900); /* the user's own estimate stands */
}

static void test_warm__nothing_is_kept_for_spot_or_without_quota(void **state)
{
    (void)state;
    struct warm_pool_gap g = middle();
    g.spot = true;
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 0);
    g = middle();
    g.warm_free = 0;
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 0);
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 0);
    g.warm_free = -1; /* quota lowered below what is held */
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 0);
    g.warm_free = 3;
    g.instances = 4;
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 0);
    g.warm_free = 4;
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 160);
}

static void test_warm__nothing_is_kept_when_nothing_will_match(void **state)
{
    (void)state;
    struct warm_pool_gap g = middle();
    g.matching_waiting = 0;
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 0);
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 0);
    const struct warm_pool_policy stays = {900, -1, false};
    assert_int_equal(warm_pool_keep_alive(&stays, &g), 900); /* asked for: for what comes later */
    g.matching_waiting = 8; /* 17 pools come first: not even half as many tasks are left */
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 0);
    g.matching_waiting = 9;
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 160);
    g.matching_waiting = 1;
    g.matching_live = 0; /* a chain of runs, one after the other */
    assert_int_equal(warm_pool_keep_alive(&automatic, &g), 160);
}

static void test_warm__the_cap_of_idle_cost_is_never_passed(void **state)
{
    (void)state;
    struct warm_pool_gap g = middle(); /* 1,000 micro-USD a second */
    struct warm_pool_policy p = {900, 900000, true};
    assert_int_equal(warm_pool_keep_alive(&p, &g), 900);
    p.max_idle_cost_musd = 899999;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 899);
    g.idle_spent_musd = 799999;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 100);
    g.idle_spent_musd = 899999 - WARM_POOL_GAP_S * 1000; /* over before a match can come */
    assert_int_equal(warm_pool_keep_alive(&p, &g), 0);
    g.idle_spent_musd = 899999;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 0);
    g.idle_spent_musd = INT64_MAX;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 0);
    g.idle_spent_musd = 0;
    g.instances = 8;
    g.warm_free = 8;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 112);
    g.price_musd_per_hour = -1; /* a cap cannot be kept without a price */
    assert_int_equal(warm_pool_keep_alive(&p, &g), 0);
    assert_int_equal(warm_pool_keep_alive(&fixed, &g), 900);
    g.price_musd_per_hour = 0;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 900);
    p.max_idle_cost_musd = 0;
    g.price_musd_per_hour = 1;
    assert_int_equal(warm_pool_keep_alive(&p, &g), 0);
}

static struct warm_pool available(void)
{
    return (struct warm_pool){.attempt_id = 1,
                              .fingerprint = 77,
                              .instances = 1,
                              .state = POOL_AVAILABLE,
                              .keep_alive_s = 160,
                              .available_us = NOW - 10 * USEC_PER_SEC,
                              .expires_us = NOW + 150 * USEC_PER_SEC,
                              .price_musd_per_hour = 3600000};
}

static void test_warm__only_an_available_pool_that_stays_takes_a_job(void **state)
{
    (void)state;
    struct warm_pool p = available();
    assert_true(warm_pool_takes(&p, 77, NOW));
    assert_false(warm_pool_takes(&p, 78, NOW));
    for (int s = 0; s < POOL_STATE_COUNT; s++) {
        p.state = (enum pool_state)s;
        assert_int_equal(warm_pool_takes(&p, 77, NOW), s == POOL_AVAILABLE);
    }
    p = available();
    p.ending = true;
    assert_false(warm_pool_takes(&p, 77, NOW));
    p = available();
    p.expires_us = NOW + WARM_POOL_EXPIRY_MARGIN_US;
    assert_false(warm_pool_takes(&p, 77, NOW));
    p.expires_us++;
    assert_true(warm_pool_takes(&p, 77, NOW));
    p.fingerprint = 0; /* of spot: nothing matches nothing */
    assert_false(warm_pool_takes(&p, 0, NOW));
}

static void test_warm__a_task_waits_for_a_pool_only_when_that_is_cheaper(void **state)
{
    (void)state;
    struct warm_pool p = available();
    p.state = POOL_EXPECTED;
    p.available_us = NOW - 5 * USEC_PER_SEC;
    usec_t until = 0;
    assert_true(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    assert_int_equal(until, p.available_us + WARM_POOL_HAND_OVER_US);
    assert_false(warm_pool_worth_waiting(&p, 78, 180, 20, NOW, &until));
    assert_false(
        warm_pool_worth_waiting(&p, 77, WARM_POOL_GAP_S + 20, 20, NOW, &until)); /* as fast cold */
    assert_true(warm_pool_worth_waiting(&p, 77, WARM_POOL_GAP_S + 21, 20, NOW, &until));
    p.available_us = NOW + 10 * USEC_PER_SEC;
    assert_false(warm_pool_worth_waiting(&p, 77, WARM_POOL_GAP_S + 30, 20, NOW, &until));
    assert_true(warm_pool_worth_waiting(&p, 77, WARM_POOL_GAP_S + 31, 20, NOW, &until));
    p.available_us = NOW + WARM_POOL_HAND_OVER_US;
    assert_true(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    p.available_us++; /* not soon */
    assert_false(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    p.available_us = NOW - WARM_POOL_HAND_OVER_US; /* it should be here: cold start instead */
    until = 0;
    assert_false(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    assert_int_equal(until, 0);
    p.available_us++;
    assert_true(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    p.ending = true;
    assert_false(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    p.ending = false;
    p.available_us = USEC_NEVER;
    assert_false(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until));
    p = available();
    assert_false(warm_pool_worth_waiting(&p, 77, 180, 20, NOW, &until)); /* take it */
}

static void test_warm__idle_cost_counts_begun_seconds_of_all_instances(void **state)
{
    (void)state;
    struct warm_pool p = available();
    assert_int_equal(warm_pool_idle_cost(&p, NOW), 10000);
    assert_int_equal(warm_pool_idle_cost(&p, NOW + 1), 11000);
    assert_int_equal(warm_pool_idle_cost(&p, p.available_us), 0);
    assert_int_equal(warm_pool_idle_cost(&p, p.available_us - 1), 0);
    p.instances = 8;
    assert_int_equal(warm_pool_idle_cost(&p, NOW), 80000);
    assert_int_equal(warm_pool_idle_worst(&p), 1280000);
    p.state = POOL_EXPECTED;
    assert_int_equal(warm_pool_idle_cost(&p, NOW), 0);
    assert_int_equal(warm_pool_idle_worst(&p), 1280000);
    p.state = POOL_IN_USE;
    assert_int_equal(warm_pool_idle_worst(&p), 0);
    p = available();
    p.price_musd_per_hour = INT64_MAX;
    assert_true(warm_pool_idle_worst(&p) > 0 && warm_pool_idle_cost(&p, NOW) > 0);
    p.price_musd_per_hour = -1;
    assert_int_equal(warm_pool_idle_worst(&p), 0);
}

static void test_warm__a_pool_is_ended_for_each_of_its_reasons(void **state)
{
    (void)state;
    const struct warm_pool_use wanted = {.wanted = true, .left_musd = INT64_MAX};
    const struct warm_pool_use idle = {.left_musd = INT64_MAX};
    struct warm_pool p = available();
    assert_int_equal(warm_pool_ends_now(&p, &wanted, NOW), WARM_POOL_KEEP);
    assert_int_equal(warm_pool_ends_now(&p, &idle, NOW), WARM_POOL_END_NO_MATCH);
    p.stays = true;
    assert_int_equal(warm_pool_ends_now(&p, &idle, NOW), WARM_POOL_KEEP);
    struct warm_pool_use u = wanted;
    u.blocks = true;
    assert_int_equal(warm_pool_ends_now(&p, &u, NOW), WARM_POOL_END_BLOCKS_QUOTA);
    u = wanted;
    u.left_musd = 0;
    assert_int_equal(warm_pool_ends_now(&p, &u, NOW), WARM_POOL_END_COST);
    u.left_musd = 1;
    assert_int_equal(warm_pool_ends_now(&p, &u, NOW), WARM_POOL_KEEP);
    p.expires_us = NOW - WARM_POOL_HAND_OVER_US;
    assert_int_equal(warm_pool_ends_now(&p, &wanted, NOW), WARM_POOL_KEEP);
    p.expires_us--;
    assert_int_equal(warm_pool_ends_now(&p, &wanted, NOW), WARM_POOL_END_EXPIRED);
    p.ending = true; /* once is enough */
    assert_int_equal(warm_pool_ends_now(&p, &wanted, NOW), WARM_POOL_KEEP);
    p.ending = false;
    u = (struct warm_pool_use){.matched = true, .blocks = true};
    assert_int_equal(warm_pool_ends_now(&p, &u, NOW), WARM_POOL_KEEP);
    for (int s = 0; s < POOL_STATE_COUNT; s++) {
        p = available();
        p.state = (enum pool_state)s;
        assert_int_equal(warm_pool_ends_now(&p, &idle, NOW) != WARM_POOL_KEEP, s == POOL_AVAILABLE);
    }
    for (int e = WARM_POOL_KEEP; e <= WARM_POOL_END_EXPIRED; e++) {
        for (int k = WARM_POOL_KEEP; k < e; k++) {
            assert_string_not_equal(warm_pool_end_name((enum warm_pool_end)e),
                                    warm_pool_end_name((enum warm_pool_end)k));
        }
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm__the_fingerprint_has_the_role),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_instance_type),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_instance_count),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_volume_size),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_volume_key),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_subnets),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_order_of_subnets),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_absence_of_a_vpc),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_security_groups),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_encryption_between_hosts),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_network_isolation),
        cmocka_unit_test(test_warm__the_fingerprint_has_the_session_chaining),
        cmocka_unit_test(test_warm__the_fingerprint_keeps_fields_apart),
        cmocka_unit_test(test_warm__the_fingerprint_is_that_of_the_request_we_send),
        cmocka_unit_test(test_warm__what_is_not_compared_does_not_count),
        cmocka_unit_test(test_warm__one_subnet_is_not_all_and_spot_matches_nothing),
        cmocka_unit_test(test_warm__kept_as_long_as_the_start_it_saves),
        cmocka_unit_test(test_warm__nothing_is_kept_for_spot_or_without_quota),
        cmocka_unit_test(test_warm__nothing_is_kept_when_nothing_will_match),
        cmocka_unit_test(test_warm__the_cap_of_idle_cost_is_never_passed),
        cmocka_unit_test(test_warm__only_an_available_pool_that_stays_takes_a_job),
        cmocka_unit_test(test_warm__a_task_waits_for_a_pool_only_when_that_is_cheaper),
        cmocka_unit_test(test_warm__idle_cost_counts_begun_seconds_of_all_instances),
        cmocka_unit_test(test_warm__a_pool_is_ended_for_each_of_its_reasons),
    };
    return cmocka_run_group_tests_name("warm", tests, NULL, NULL);
}
