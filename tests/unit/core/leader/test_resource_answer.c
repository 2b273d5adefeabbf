/* Aim: an answer of AWS about an endpoint or a file system is taken for what it is: a call that
 * may have taken effect is no refusal, another installation's file system is not ours, an export
 * that runs is waited for, and only our own is told of. Method: every outcome, and tables. */
#include "core/leader/resource_answer.h"
#include "leader_world.h"

static void test_resource_answer__only_a_clean_no_is_a_refusal(void **state)
{
    (void)state;
    static const bool refused[] = {
        [AWS_OK] = false,         [AWS_THROTTLED] = true, [AWS_REFUSED] = true,
        [AWS_CREDENTIALS] = true, [AWS_UNKNOWN] = false,  [AWS_UNSENT] = false};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const struct aws_failure f = {.outcome = (enum aws_outcome)i};
        assert_int_equal(resource_answer_refused(&f), refused[i]);
    }
}

static void test_resource_answer__a_limit_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        enum aws_outcome outcome;
        const char *code;
        bool waits;
    } rows[] = {{AWS_THROTTLED, "ThrottlingException", true},
                {AWS_CREDENTIALS, "ExpiredTokenException", true},
                {AWS_REFUSED, "ResourceLimitExceeded", true},
                {AWS_REFUSED, "ServiceLimitExceeded", true},
                {AWS_REFUSED, "AccessDeniedException", false},
                {AWS_REFUSED, "ValidationException", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct aws_failure f = {.outcome = rows[i].outcome, .status = 400};
        enum cause cause;
        (void)snprintf(f.code, sizeof f.code, "%s", rows[i].code);
        assert_int_equal(resource_answer_waits(&f, &cause), rows[i].waits);
    }
}

static void test_resource_answer__a_file_system_is_ours_by_token_and_installation(void **state)
{
    (void)state;
    static const struct {
        const char *token, *owner;
        bool ours;
    } rows[] = {{"d-7-volume-0-a1", "i-1", true},
                {"d-7-volume-0-a1", "i-2", false},
                {"d-7-volume-0-a1", "", false},
                {"d-7-volume-0-a2", "i-1", false},
                {"", "i-1", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct filesystem_description d = {.id = "fs-0a"};
        (void)snprintf(d.token, sizeof d.token, "%s", rows[i].token);
        (void)snprintf(d.owner, sizeof d.owner, "%s", rows[i].owner);
        assert_int_equal(resource_answer_is(&d, "i-1", "d-7-volume-0-a1"), rows[i].ours);
    }
}

static void add(struct filesystem_tasks_seen *s, const char *id, const char *lifecycle)
{
    struct fsx_task_description d = {.total = 5, .failed = 2, .failure_reason = "no room"};
    (void)snprintf(d.id, sizeof d.id, "%s", id);
    (void)snprintf(d.lifecycle, sizeof d.lifecycle, "%s", lifecycle);
    resource_answer_task(s, &d, "task-0a");
}

static void test_resource_answer__what_each_task_tells(void **state)
{
    (void)state;
    static const char *const own = "task-0a";
    static const char *const others = "task-0b";
    const struct {
        const char *id, *lifecycle;
        bool runs, succeeded, failed;
    } rows[] = {
        {own, "SUCCEEDED", false, true, false},      {own, "FAILED", false, false, true},
        {own, "CANCELED", false, false, true},       {own, "PENDING", true, false, false},
        {own, "EXECUTING", true, false, false},      {own, "CANCELING", true, false, false},
        {own, "of a later day", true, false, false}, {others, "SUCCEEDED", false, false, false},
        {others, "FAILED", false, false, false},     {others, "EXECUTING", true, false, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct filesystem_tasks_seen s = {.why = ""};
        add(&s, rows[i].id, rows[i].lifecycle);
        assert_int_equal(s.tasks.runs, rows[i].runs);
        assert_int_equal(s.tasks.succeeded, rows[i].succeeded);
        assert_int_equal(s.tasks.failed, rows[i].failed);
        assert_string_equal(s.why, rows[i].failed ? "2 of 5 files failed; no room" : "");
    }
}

/* Before our create was answered, and after a takeover. */
static void test_resource_answer__without_an_id_no_task_is_ours(void **state)
{
    (void)state;
    struct filesystem_tasks_seen s = {.why = ""};
    const struct fsx_task_description d = {.type = "EXPORT_TO_REPOSITORY",
                                           .lifecycle = "SUCCEEDED"};
    resource_answer_task(&s, &d, "");
    assert_false(s.tasks.succeeded);
}

static void test_resource_answer__our_export_counts_wherever_it_stands(void **state)
{
    (void)state;
    struct filesystem_tasks_seen s = {.why = ""};
    add(&s, "task-09", "FAILED");
    add(&s, "task-0a", "SUCCEEDED"); /* a list has no order */
    add(&s, "task-0b", "FAILED");
    assert_true(s.tasks.succeeded);
    assert_false(s.tasks.failed);
    assert_string_equal(s.why, "");
}

/* The newest, wherever it stands: people import again what failed. */
static void test_resource_answer__the_newest_import_tells(void **state)
{
    (void)state;
    static const int orders[][2] = {{0, 1}, {1, 0}};
    for (size_t k = 0; k < ARRAY_LEN(orders); k++) {
        struct filesystem_tasks_seen s = {.why = ""};
        for (int i = 0; i < 2; i++) {
            bool newest = orders[k][i] == 1;
            struct fsx_task_description d = {.type = "IMPORT_METADATA_FROM_REPOSITORY",
                                             .created = newest ? 20 : 10,
                                             .total = 5,
                                             .failed = 2};
            (void)snprintf(d.lifecycle, sizeof d.lifecycle, newest ? "SUCCEEDED" : "FAILED");
            resource_answer_task(&s, &d, "");
        }
        assert_int_equal(s.tasks.import, FILESYSTEM_IMPORT_DONE);
        assert_string_equal(s.import_why, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_answer__only_a_clean_no_is_a_refusal),
        cmocka_unit_test(test_resource_answer__a_limit_is_waited_for),
        cmocka_unit_test(test_resource_answer__a_file_system_is_ours_by_token_and_installation),
        cmocka_unit_test(test_resource_answer__what_each_task_tells),
        cmocka_unit_test(test_resource_answer__without_an_id_no_task_is_ours),
        cmocka_unit_test(test_resource_answer__our_export_counts_wherever_it_stands),
        cmocka_unit_test(test_resource_answer__the_newest_import_tells),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
