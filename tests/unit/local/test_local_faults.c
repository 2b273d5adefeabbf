/* The list of ordered failures. Aim: a fault meets exactly the requests it names, in its turn, as
 * often as said; a bad list changes nothing. Method: requests made by hand, no server. */
#include "tests/unit/unit.h"

#include "local/oracle/faults.h"

static struct injected_faults *make(const char *json, struct err *err)
{
    struct injected_faults *f = xcalloc(1, sizeof *f);
    AUTO_JSON json_t *list = json_loads(json, 0, NULL);
    assert_non_null(list);
    faults_init(f);
    if (!faults_set(f, list, false, err)) {
        faults_done(f);
        free(f);
        return NULL;
    }
    return f;
}

static void drop(struct injected_faults *f)
{
    faults_done(f);
    free(f);
}

/* The kind of the fault that acts on this request at the stage, -1 for none. */
static int meet(struct injected_faults *f, const char *operation, const char *name,
                enum fault_stage stage)
{
    struct request r = {.operation = operation};
    (void)snprintf(r.name, sizeof r.name, "%s", name);
    faults_arm(f, &r);
    const struct injected_fault *x = faults_take(&r, stage);
    return x == NULL ? -1 : (int)x->kind;
}

static void test_faults__meet_operation_and_name(void **state UNUSED)
{
    struct err err = ERR_INIT;
    struct injected_faults *f =
        make("[{\"kind\":\"throttle\",\"operation\":\"CreateTrainingJob\",\"name_contains\":"
             "\"part-7\",\"times\":9}]",
             &err);
    assert_non_null(f);
    assert_int_equal(meet(f, "CreateTrainingJob", "c-part-7-a1", STAGE_BEFORE), FAULT_THROTTLE);
    assert_int_equal(meet(f, "CreateTrainingJob", "c-part-8-a1", STAGE_BEFORE), -1);
    assert_int_equal(meet(f, "DescribeTrainingJob", "c-part-7-a1", STAGE_BEFORE), -1);
    assert_int_equal(meet(f, "CreateTrainingJob", "c-part-7-a1", STAGE_AFTER), -1);
    assert_int_equal(f->items[0]->times, 8); /* one that did not act is not counted */
    drop(f);
}

static void test_faults__of_events_meet_events_alone(void **state UNUSED)
{
    struct err err = ERR_INIT;
    struct injected_faults *f = make("[{\"kind\":\"event_lost\",\"name_contains\":\"part-7\","
                                     "\"after\":1},{\"kind\":\"event_twice\",\"times\":2},"
                                     "{\"kind\":\"throttle\"}]",
                                     &err);
    assert_non_null(f);
    assert_int_equal(meet(f, "ReceiveMessage", "part-7", STAGE_EVENT), -1);
    static const int want[] = {FAULT_EVENT_TWICE, FAULT_EVENT_LOST, FAULT_EVENT_TWICE, -1};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const struct injected_fault *x = faults_take_event(f, "c-part-7-a1");
        assert_int_equal(x == NULL ? -1 : (int)x->kind, want[i]);
    }
    assert_int_equal(f->items[2]->times, 1);
    drop(f);
}

static void test_faults__after_then_times(void **state UNUSED)
{
    struct err err = ERR_INIT;
    struct injected_faults *f = make("[{\"kind\":\"drop_after\",\"after\":2,\"times\":2}]", &err);
    static const int want[] = {-1, -1, FAULT_DROP_AFTER, FAULT_DROP_AFTER, -1, -1};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(meet(f, "X", "n", STAGE_AFTER), want[i]);
    }
    drop(f);
}

static void test_faults__one_a_stage_in_order_of_the_list(void **state UNUSED)
{
    struct err err = ERR_INIT;
    struct injected_faults *f =
        make("[{\"kind\":\"error_500\"},{\"kind\":\"throttle\"},{\"kind\":\"slow\"}]", &err);
    struct request r = {.operation = "X"};
    faults_arm(f, &r);
    assert_int_equal(faults_take(&r, STAGE_BEFORE)->kind, FAULT_ERROR_500);
    assert_null(faults_take(&r, STAGE_BEFORE));
    assert_int_equal(faults_take(&r, STAGE_AFTER)->kind, FAULT_SLOW);
    assert_int_equal(meet(f, "X", "", STAGE_BEFORE), FAULT_THROTTLE);
    drop(f);
}

static void test_faults__probability_follows_its_seed_and_has_no_end(void **state UNUSED)
{
    struct err err = ERR_INIT;
    int hits[2] = {0, 0};
    struct injected_faults *f[2];
    for (int k = 0; k < 2; k++) {
        f[k] = make("[{\"kind\":\"throttle\",\"probability\":0.1,\"seed\":5}]", &err);
    }
    for (int i = 0; i < 5000; i++) {
        int a = meet(f[0], "X", "", STAGE_BEFORE);
        assert_int_equal(a, meet(f[1], "X", "", STAGE_BEFORE));
        hits[0] += a >= 0;
    }
    assert_in_range(hits[0], 400, 600);
    drop(f[0]);
    drop(f[1]);
}

static void test_faults__bad_lists_are_refused_whole(void **state UNUSED)
{
    static const char *const bad[] = {"[{\"kind\":\"nothing\"}]",
                                      "[{}]",
                                      "[{\"kind\":\"slow\",\"time\":1}]",
                                      "[1]",
                                      "[{\"kind\":\"slow\",\"probability\":2}]",
                                      "[{\"kind\":\"slow\",\"probability\":\"x\"}]",
                                      "[{\"kind\":\"slow\",\"times\":-1}]",
                                      "[{\"kind\":\"slow\",\"after\":-1}]",
                                      "[{\"kind\":\"slow\",\"delay_seconds\":-0.5}]",
                                      "[{\"kind\":\"slow\"},{\"kind\":\"x\"}]"};
    struct err err = ERR_INIT;
    struct injected_faults *f = make("[{\"kind\":\"throttle\"}]", &err);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_JSON json_t *list = json_loads(bad[i], 0, NULL);
        assert_non_null(list);
        assert_false(faults_set(f, list, i % 2 == 0, &err));
        assert_int_equal(f->n, 1);
        assert_int_equal(f->items[0]->kind, FAULT_THROTTLE);
    }
    drop(f);
}

static void test_faults__a_replaced_fault_still_answers_who_was_armed_with_it(void **state UNUSED)
{
    struct err err = ERR_INIT;
    struct injected_faults *f = make("[{\"kind\":\"slow\"}]", &err);
    struct request r = {.operation = "X"};
    AUTO_JSON json_t *empty = json_array();
    faults_arm(f, &r);
    assert_true(faults_set(f, empty, false, &err));
    assert_int_equal(faults_take(&r, STAGE_AFTER)->kind, FAULT_SLOW);
    drop(f);
}

static void test_faults__every_kind_has_a_name_of_its_own(void **state UNUSED)
{
    for (int a = 0; a < FAULT_KIND_COUNT; a++) {
        AUTO_FREE char *json =
            xasprintf("[{\"kind\":\"%s\"}]", fault_kind_name((enum injected_fault_kind)a));
        struct err err = ERR_INIT;
        struct injected_faults *f = make(json, &err);
        assert_non_null(f);
        assert_int_equal(f->items[0]->kind, a);
        drop(f);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults__meet_operation_and_name),
        cmocka_unit_test(test_faults__of_events_meet_events_alone),
        cmocka_unit_test(test_faults__after_then_times),
        cmocka_unit_test(test_faults__one_a_stage_in_order_of_the_list),
        cmocka_unit_test(test_faults__probability_follows_its_seed_and_has_no_end),
        cmocka_unit_test(test_faults__bad_lists_are_refused_whole),
        cmocka_unit_test(test_faults__a_replaced_fault_still_answers_who_was_armed_with_it),
        cmocka_unit_test(test_faults__every_kind_has_a_name_of_its_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("local_faults", tests, NULL, NULL);
}
