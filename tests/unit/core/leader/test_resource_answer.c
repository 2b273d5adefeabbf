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

static const struct aws_failure refusal = {.outcome = AWS_REFUSED, .code = "AccessDenied"};
static const struct aws_failure silence = {.outcome = AWS_UNKNOWN, .code = "Timeout"};

/* What is no clear word is no proof: a wrong ABSENT forgets something that is paid for. */
static void test_resource_answer__of_an_endpoint_only_not_found_is_absent(void **state)
{
    (void)state;
    static const struct {
        bool not_found, busy;
        const struct aws_failure *f;
        enum endpoint_word said;
        enum resource_word stray;
    } rows[] = {{false, false, NULL, ENDPOINT_SAID_YES, RESOURCE_SAID_YES},
                {true, false, NULL, ENDPOINT_SAID_ABSENT, RESOURCE_SAID_ABSENT},
                {false, true, NULL, ENDPOINT_SAID_BUSY, RESOURCE_SAID_NOTHING},
                {false, false, &refusal, ENDPOINT_SAID_NO, RESOURCE_SAID_NOTHING},
                {false, false, &silence, ENDPOINT_SAID_NOTHING, RESOURCE_SAID_NOTHING}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool not_found = rows[i].not_found;
        bool busy = rows[i].busy;
        assert_int_equal(resource_answer_endpoint(not_found, busy, rows[i].f), rows[i].said);
        assert_int_equal(resource_answer_stray(not_found, busy, rows[i].f), rows[i].stray);
    }
    assert_int_equal(resource_answer_payloads(true, false), ENDPOINT_SAID_NO);
    assert_int_equal(resource_answer_payloads(false, true), ENDPOINT_SAID_NOTHING);
    assert_int_equal(resource_answer_payloads(false, false), ENDPOINT_SAID_YES);
}

/* Of every call but a list. f: of FSX_FAILED. */
static void test_resource_answer__of_a_file_system_only_not_found_is_absent(void **state)
{
    (void)state;
    static const struct {
        enum fsx_answer answer;
        const struct aws_failure *f;
        enum filesystem_word said;
        enum resource_word stray;
        bool untold;
        const char *why;
    } rows[] = {{FSX_DONE, NULL, FILESYSTEM_SAID_YES, RESOURCE_SAID_YES, false, NULL},
                {FSX_NOT_FOUND, NULL, FILESYSTEM_SAID_ABSENT, RESOURCE_SAID_ABSENT, false, NULL},
                {FSX_TOKEN_TAKEN, NULL, FILESYSTEM_SAID_NOTHING, RESOURCE_SAID_NOTHING, true,
                 "its token was used for another request"},
                {FSX_TASK_RUNS, NULL, FILESYSTEM_SAID_NOTHING, RESOURCE_SAID_NOTHING, true,
                 "a task on the file system has not ended"},
                {FSX_TASK_ENDED, NULL, FILESYSTEM_SAID_NOTHING, RESOURCE_SAID_NOTHING, true,
                 "the task has ended"},
                {FSX_FAILED, &refusal, FILESYSTEM_SAID_NO, RESOURCE_SAID_NOTHING, true, ""},
                {FSX_FAILED, &silence, FILESYSTEM_SAID_NOTHING, RESOURCE_SAID_NOTHING, true, ""}};
    static const struct filesystem_asked asked = {"i-1", "d-7-volume-0-a1", ""};
    static const enum filesystem_act acts[] = {FILESYSTEM_ACT_CREATE, FILESYSTEM_ACT_DESCRIBE,
                                               FILESYSTEM_ACT_LINK,   FILESYSTEM_ACT_TASKS,
                                               FILESYSTEM_ACT_EXPORT, FILESYSTEM_ACT_DELETE};
    const union fsx_row row = {.filesystem.id = "fs-0a"};
    for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(acts); i++) {
        size_t k = i % ARRAY_LEN(rows);
        struct filesystem_heard h = {.fact.act = acts[i / ARRAY_LEN(rows)]};
        size_t n = rows[k].answer == FSX_DONE && h.fact.act != FILESYSTEM_ACT_DELETE;
        resource_answer_filesystem(&h, &asked, rows[k].answer, &row, n, rows[k].f);
        assert_int_equal(h.fact.said, rows[k].said);
        assert_int_equal(h.fact.failure != NULL, rows[k].why != NULL);
        if (h.fact.failure != NULL) {
            assert_string_equal(h.fact.failure->message, rows[k].why);
            assert_int_equal(h.fact.failure->outcome,
                             rows[k].f != NULL ? rows[k].f->outcome : AWS_UNKNOWN);
        }
        assert_int_equal(resource_answer_stray_filesystem(rows[k].answer), rows[k].stray);
        assert_int_equal(resource_answer_untold(rows[k].answer, rows[k].f) != NULL, rows[k].untold);
    }
}

/* A list of all without ours proves that it is not there; a list that failed proves nothing. */
static void test_resource_answer__ours_is_found_in_a_list(void **state)
{
    (void)state;
    static const struct filesystem_asked asked = {"i-1", "d-7-volume-0-a1", ""};
    const union fsx_row all[] = {
        {.filesystem = {.id = "fs-0a", .owner = "i-2", .token = "d-7-volume-0-a1"}},
        {.filesystem = {.id = "fs-0b", .owner = "i-1", .token = "d-7-volume-0-a1"}},
        {.filesystem = {.id = "fs-0c", .owner = "i-1", .token = "d-7-volume-0-a2"}}};
    for (size_t n = 0; n <= ARRAY_LEN(all); n++) {
        struct filesystem_heard h = {.fact.act = FILESYSTEM_ACT_FIND};
        resource_answer_filesystem(&h, &asked, FSX_DONE, all, n, NULL);
        assert_int_equal(h.fact.said, n < 2 ? FILESYSTEM_SAID_ABSENT : FILESYSTEM_SAID_YES);
        assert_int_equal(h.fact.seen != NULL, n >= 2);
        assert_true(n < 2 || strcmp(h.fact.seen->id, "fs-0b") == 0);
    }
    struct filesystem_heard h = {.fact.act = FILESYSTEM_ACT_FIND};
    resource_answer_filesystem(&h, &asked, FSX_FAILED, NULL, 0, &silence);
    assert_int_equal(h.fact.said, FILESYSTEM_SAID_NOTHING);
}

static void test_resource_answer__what_each_call_shows(void **state)
{
    (void)state;
    static const struct filesystem_asked asked = {"i-1", "d-7-volume-0-a1", "task-0a"};
    static const enum filesystem_act acts[] = {FILESYSTEM_ACT_CREATE, FILESYSTEM_ACT_DESCRIBE,
                                               FILESYSTEM_ACT_LINK,   FILESYSTEM_ACT_FIND_LINK,
                                               FILESYSTEM_ACT_TASKS,  FILESYSTEM_ACT_EXPORT};
    const union fsx_row fs = {.filesystem.id = "fs-0a"};
    const union fsx_row link = {.association.id = "dra-0b"};
    const union fsx_row task = {.task = {.id = "task-0a", .lifecycle = "SUCCEEDED"}};
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        struct filesystem_heard h = {.fact.act = acts[i]};
        resource_answer_filesystem(&h, &asked, FSX_DONE,
                                   i < 2   ? &fs
                                   : i < 4 ? &link
                                           : &task,
                                   1, NULL);
        assert_int_equal(h.fact.said, FILESYSTEM_SAID_YES);
        assert_int_equal(h.fact.seen != NULL, i < 2);
        assert_int_equal(h.fact.link != NULL, i == 2 || i == 3);
        assert_int_equal(h.fact.tasks.succeeded, i == 4);
        assert_int_equal(h.fact.task != NULL, i == 5);
    }
    struct filesystem_heard h = {.fact.act = FILESYSTEM_ACT_FIND_LINK}; /* it has none */
    resource_answer_filesystem(&h, &asked, FSX_DONE, NULL, 0, NULL);
    assert_int_equal(h.fact.said, FILESYSTEM_SAID_ABSENT);
    assert_null(h.fact.link);
    h = (struct filesystem_heard){.fact.act = FILESYSTEM_ACT_TASKS}; /* nor any task */
    resource_answer_filesystem(&h, &asked, FSX_DONE, NULL, 0, NULL);
    assert_int_equal(h.fact.said, FILESYSTEM_SAID_YES);
    assert_false(h.fact.tasks.runs || h.fact.tasks.succeeded || h.fact.tasks.failed);
    assert_string_equal(h.fact.tasks.why, "");
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
        cmocka_unit_test(test_resource_answer__of_an_endpoint_only_not_found_is_absent),
        cmocka_unit_test(test_resource_answer__of_a_file_system_only_not_found_is_absent),
        cmocka_unit_test(test_resource_answer__ours_is_found_in_a_list),
        cmocka_unit_test(test_resource_answer__what_each_call_shows),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
