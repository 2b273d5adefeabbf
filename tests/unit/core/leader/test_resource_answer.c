/* Aim: an answer of AWS about an endpoint or a file system is taken for what it is: a call that
 * may have taken effect is no refusal, another installation's file system is not ours, an export
 * that runs is waited for and one that failed is told. Method: every outcome, and tables. */
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

static void add(struct filesystem_tasks_seen *s, const char *type, const char *lifecycle,
                usec_t created, const char *why)
{
    struct fsx_task_description d = {.created = created, .total = 5, .failed = 2};
    (void)snprintf(d.type, sizeof d.type, "%s", type);
    (void)snprintf(d.lifecycle, sizeof d.lifecycle, "%s", lifecycle);
    (void)snprintf(d.failure_reason, sizeof d.failure_reason, "%s", why);
    resource_answer_task(s, &d);
}

static void test_resource_answer__what_each_task_tells(void **state)
{
    (void)state;
    static const char *const export = "EXPORT_TO_REPOSITORY";
    static const char *const import = "IMPORT_METADATA_FROM_REPOSITORY";
    const struct {
        const char *type, *lifecycle;
        bool runs, succeeded;
        int failed;
    } rows[] = {{export, "SUCCEEDED", false, true, 0},      {export, "FAILED", false, false, 1},
                {export, "CANCELED", false, false, 1},      {export, "PENDING", true, false, 0},
                {export, "EXECUTING", true, false, 0},      {export, "CANCELING", true, false, 0},
                {export, "of a later day", true, false, 0}, {import, "SUCCEEDED", false, false, 0},
                {import, "FAILED", false, false, 0},        {import, "EXECUTING", true, false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct filesystem_tasks_seen s = {.why_us = 0};
        add(&s, rows[i].type, rows[i].lifecycle, WALL, "no room");
        assert_int_equal(s.tasks.runs, rows[i].runs);
        assert_int_equal(s.tasks.succeeded, rows[i].succeeded);
        assert_int_equal(s.tasks.failed, rows[i].failed);
        assert_string_equal(s.why, rows[i].failed > 0 ? "2 of 5 files failed; no room" : "");
    }
}

static void test_resource_answer__the_newest_failed_export_is_told(void **state)
{
    (void)state;
    struct filesystem_tasks_seen s = {.why_us = 0};
    add(&s, "EXPORT_TO_REPOSITORY", "FAILED", WALL + 10, "second");
    add(&s, "EXPORT_TO_REPOSITORY", "FAILED", WALL + 20, "third");
    add(&s, "EXPORT_TO_REPOSITORY", "FAILED", WALL, "first"); /* a list has no order */
    add(&s, "EXPORT_TO_REPOSITORY", "SUCCEEDED", WALL + 30, "");
    assert_int_equal(s.tasks.failed, 3);
    assert_true(s.tasks.succeeded);
    assert_string_equal(s.why, "2 of 5 files failed; third");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_answer__only_a_clean_no_is_a_refusal),
        cmocka_unit_test(test_resource_answer__a_file_system_is_ours_by_token_and_installation),
        cmocka_unit_test(test_resource_answer__what_each_task_tells),
        cmocka_unit_test(test_resource_answer__the_newest_failed_export_is_told),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
