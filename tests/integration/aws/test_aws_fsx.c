/* Aim: the FSx client says what the service told: one file system a token, another request under it
 * told as that, what is gone, a task at a time, and whatever cannot be read may have taken effect.
 * Method: build/bin/drover-local, real files in a bucket and in a file system; a second one, slow,
 * for what must last. */
#include "aws/fsx.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/kit/local.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS_KEPT 40

static struct local local;
static struct loop *l;
static struct aws_client *c;
static const struct aws_gate open_gate;

struct got {
    int n;
    enum fsx_answer answer;
    struct aws_failure failure;
    size_t rows_n;
    union fsx_row row; /* the first */
    char ids[ROWS_KEPT][24];
};

static void on_answer(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                      const struct aws_failure *f)
{
    struct got *g = ctx;
    g->n++;
    g->answer = answer;
    assert_true((f != NULL) == (answer == FSX_FAILED));
    assert_true(n == 0 || answer == FSX_DONE);
    g->failure = f != NULL ? *f : (struct aws_failure){0};
    g->rows_n = n;
    for (size_t i = 0; i < MIN(n, (size_t)ROWS_KEPT); i++) {
        g->row = i == 0 ? rows[0] : g->row;
        (void)snprintf(g->ids[i], sizeof g->ids[i], "%s", rows[i].filesystem.id);
    }
}

static void run_until_answered(const struct got *g)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    while (g->n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
    assert_int_equal(g->n, 1);
}

static struct got create(enum fsx_kind kind, const char *body)
{
    struct got g = {.n = 0};
    (void)aws_fsx_create(c, open_gate, kind, str_of(body), on_answer, &g);
    run_until_answered(&g);
    return g;
}

static struct got create_filesystem(const char *token, int gib)
{
    AUTO_FREE char *body = xasprintf(
        "{\"ClientRequestToken\":\"%s\",\"FileSystemType\":\"LUSTRE\",\"StorageCapacity\":%d,"
        "\"SubnetIds\":[\"subnet-0123456789abcdef0\"],\"LustreConfiguration\":{\"DeploymentType\":"
        "\"PERSISTENT_2\",\"PerUnitStorageThroughput\":250},\"Tags\":[{\"Key\":\"drover-token\","
        "\"Value\":\"%s\"},{\"Key\":\"drover-install\",\"Value\":\"i-1\"}]}",
        token, gib, token);
    return create(FSX_FILESYSTEM, body);
}

static struct got create_association(const char *token, const char *fs)
{
    AUTO_FREE char *body = xasprintf(
        "{\"ClientRequestToken\":\"%s\",\"FileSystemId\":\"%s\",\"FileSystemPath\":\"/ns\","
        "\"DataRepositoryPath\":\"s3://bkt/in/\",\"BatchImportMetaDataOnCreate\":true}",
        token, fs);
    return create(FSX_ASSOCIATION, body);
}

static struct got create_task(const char *token, const char *fs)
{
    AUTO_FREE char *body =
        xasprintf("{\"ClientRequestToken\":\"%s\",\"FileSystemId\":\"%s\",\"Type\":"
                  "\"EXPORT_TO_REPOSITORY\",\"Paths\":[\"ns\"],\"Report\":{\"Enabled\":false}}",
                  token, fs);
    return create(FSX_TASK, body);
}

static struct got describe(enum fsx_kind kind, const char *id)
{
    struct got g = {.n = 0};
    (void)aws_fsx_describe(c, open_gate, kind, id, on_answer, &g);
    run_until_answered(&g);
    return g;
}

static struct got list(enum fsx_kind kind, const char *fs)
{
    struct got g = {.n = 0};
    (void)aws_fsx_list(c, open_gate, kind, fs, on_answer, &g);
    run_until_answered(&g);
    return g;
}

static struct got end(enum fsx_kind kind, const char *id)
{
    struct got g = {.n = 0};
    (void)aws_fsx_end(c, open_gate, kind, id, on_answer, &g);
    run_until_answered(&g);
    return g;
}

static const char *lifecycle(enum fsx_kind kind, const struct got *g)
{
    return g->answer == FSX_NOT_FOUND ? "gone"
           : kind == FSX_FILESYSTEM   ? g->row.filesystem.lifecycle
           : kind == FSX_ASSOCIATION  ? g->row.association.lifecycle
                                      : g->row.task.lifecycle;
}

static struct got wait_for(enum fsx_kind kind, const char *id, const char *wanted)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    for (;;) {
        struct got g = describe(kind, id);
        assert_true(g.answer == FSX_NOT_FOUND || (g.answer == FSX_DONE && g.rows_n == 1));
        if (strcmp(lifecycle(kind, &g), wanted) == 0) {
            return g;
        }
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 20 * USEC_PER_MSEC);
    }
}

static struct got made(const char *token)
{
    struct got g = create_filesystem(token, 1200);
    assert_int_equal(g.answer, FSX_DONE);
    return wait_for(FSX_FILESYSTEM, g.row.filesystem.id, "AVAILABLE");
}

/* A file of a folder below the root. */
static void write_file(const char *folder, const char *name, const char *text)
{
    AUTO_FREE char *path = xasprintf("%s/%s/%s", local.root, folder, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_failures__are_told_apart(void **state)
{
    (void)state;
    struct got g = create_filesystem("throttled", 1200);
    assert_int_equal(g.answer, FSX_FAILED);
    assert_int_equal(g.failure.outcome, AWS_THROTTLED);
    g = create_filesystem("broken", 1200); /* the answer is not JSON: it has taken effect */
    assert_int_equal(g.answer, FSX_FAILED);
    assert_int_equal(g.failure.outcome, AWS_UNKNOWN);
    g = list(FSX_FILESYSTEM, NULL);
    assert_int_equal(g.rows_n, 1);
    char first[24];
    (void)snprintf(first, sizeof first, "%s", g.ids[0]);
    g = create_filesystem("broken", 1200);
    assert_int_equal(g.answer, FSX_DONE);
    assert_string_equal(g.row.filesystem.id, first);
    g = create_filesystem("over", 1200);
    assert_int_equal(g.answer, FSX_FAILED);
    assert_string_equal(g.failure.code, "ServiceLimitExceeded");
    g = create_filesystem("fails", 1200);
    assert_int_equal(g.answer, FSX_DONE);
    assert_string_equal(g.row.filesystem.failure_reason, "");
    g = wait_for(FSX_FILESYSTEM, g.row.filesystem.id, "FAILED");
    assert_string_equal(g.row.filesystem.failure_reason, "no room");
    g = create_filesystem("odd", 1000);
    assert_int_equal(g.answer, FSX_FAILED);
    assert_int_equal(g.failure.outcome, AWS_REFUSED);
    assert_string_equal(g.failure.code, "BadRequest");
}

static void test_token__makes_one(void **state)
{
    (void)state;
    struct got first = create_filesystem("t-1", 2400);
    assert_int_equal(first.answer, FSX_DONE);
    assert_string_equal(first.row.filesystem.lifecycle, "CREATING");
    struct got g = create_filesystem("t-1", 2400);
    assert_int_equal(g.answer, FSX_DONE);
    assert_string_equal(g.row.filesystem.id, first.row.filesystem.id);
    g = create_filesystem("t-1", 1200);
    assert_int_equal(g.answer, FSX_TOKEN_TAKEN);
    const char *fs = first.row.filesystem.id;
    (void)wait_for(FSX_FILESYSTEM, fs, "AVAILABLE");
    struct got a = create_association("a-1", fs);
    assert_int_equal(a.answer, FSX_DONE);
    g = create_association("a-1", fs);
    assert_string_equal(g.row.association.id, a.row.association.id);
    g = list(FSX_ASSOCIATION, fs);
    assert_int_equal(g.rows_n, 1);
    g = create_association("a-1", "fs-00000000");
    assert_int_equal(g.answer, FSX_TOKEN_TAKEN);
}

static void check_filesystem(const struct filesystem_description *d, const char *token)
{
    AUTO_FREE char *arn = xasprintf("arn:aws:fsx:us-east-1:123456789012:file-system/%s", d->id);
    assert_string_equal(d->arn, arn);
    assert_string_equal(d->owner, "i-1");
    assert_string_equal(d->token, token);
    assert_string_equal(d->subnet, "subnet-0123456789abcdef0");
    assert_string_equal(d->deployment_type, "PERSISTENT_2");
    assert_string_equal(d->failure_reason, "");
    assert_int_equal(strlen(d->mount_name), 8);
    assert_true(strncmp(d->dns_name, d->id, strlen(d->id)) == 0);
    assert_true(d->capacity_gib == 1200 && d->throughput_per_unit == 250 && d->created > 0);
}

static void check_task(const struct fsx_task_description *t, const char *fs)
{
    assert_string_equal(t->filesystem_id, fs);
    assert_string_equal(t->type, "EXPORT_TO_REPOSITORY");
    assert_string_equal(t->failure_reason, "");
    assert_true(t->total == 1 && t->succeeded == 1 && t->failed == 0);
    assert_true(t->created > 0 && t->started >= t->created && t->ended > t->started);
}

static void test_life__from_s3_and_back(void **state)
{
    (void)state;
    struct got g = made("l-1");
    check_filesystem(&g.row.filesystem, "l-1");
    char fs[24];
    char association[24];
    (void)snprintf(fs, sizeof fs, "%s", g.row.filesystem.id);
    g = create_association("la-1", fs);
    assert_int_equal(g.answer, FSX_DONE);
    assert_string_equal(g.row.association.lifecycle, "CREATING");
    g = wait_for(FSX_ASSOCIATION, g.row.association.id, "AVAILABLE");
    (void)snprintf(association, sizeof association, "%s", g.row.association.id);
    assert_string_equal(g.row.association.filesystem_id, fs);
    assert_string_equal(g.row.association.path, "/ns");
    assert_string_equal(g.row.association.s3_path, "s3://bkt/in/");
    assert_true(g.row.association.created > 0);
    struct got import = list(FSX_TASK, fs);
    assert_int_equal(import.rows_n, 1);
    (void)wait_for(FSX_TASK, import.ids[0], "SUCCEEDED");
    AUTO_FREE char *folder = xasprintf("fsx/%s/ns", fs);
    write_file(folder, "b", "new");
    g = create_task("lt-1", fs);
    assert_int_equal(g.answer, FSX_DONE);
    assert_string_equal(g.row.task.lifecycle, "PENDING");
    assert_true(g.row.task.total == -1 && g.row.task.failed == -1 && g.row.task.ended == 0);
    g = wait_for(FSX_TASK, g.row.task.id, "SUCCEEDED");
    check_task(&g.row.task, fs);
    AUTO_FREE char *object = xasprintf("%s/s3/bkt/in/b", local.root);
    assert_int_equal(access(object, F_OK), 0);
    assert_int_equal(end(FSX_TASK, g.row.task.id).answer, FSX_TASK_ENDED);
    assert_int_equal(end(FSX_ASSOCIATION, association).answer, FSX_DONE);
    (void)wait_for(FSX_ASSOCIATION, association, "gone");
    assert_int_equal(end(FSX_ASSOCIATION, association).answer, FSX_NOT_FOUND);
    write_file(folder, "c", "files stay when their association goes");
    assert_int_equal(end(FSX_FILESYSTEM, fs).answer, FSX_DONE);
    (void)wait_for(FSX_FILESYSTEM, fs, "gone");
    assert_int_equal(end(FSX_FILESYSTEM, fs).answer, FSX_NOT_FOUND);
}

static void check_one_at_a_time(const char *fs)
{
    struct got first = create_task("t-1", fs);
    assert_int_equal(first.answer, FSX_DONE);
    assert_int_equal(create_task("t-2", fs).answer, FSX_TASK_RUNS);
    assert_string_equal(create_task("t-1", fs).row.task.id, first.row.task.id);
    struct got g = end(FSX_FILESYSTEM, fs);
    assert_int_equal(g.answer, FSX_FAILED);
    assert_string_equal(g.failure.code, "BadRequest");
    assert_int_equal(end(FSX_TASK, first.row.task.id).answer, FSX_DONE);
    g = describe(FSX_TASK, first.row.task.id);
    assert_string_equal(g.row.task.lifecycle, "CANCELING");
}

static void test_task__one_at_a_time(void **state)
{
    (void)state;
    struct local slow;
    struct err err = ERR_INIT;
    struct aws_client *usual = c;
    const struct aws_config cfg = {.user_agent = "test/1"};
    local_start(&slow, "{\"fsx_create_seconds\":0.05,\"fsx_task_seconds\":1000}");
    assert_true(aws_client_new(l, &cfg, &c, &err));
    struct got g = made("o-1");
    check_one_at_a_time(g.row.filesystem.id);
    aws_client_free(c);
    c = usual;
    local_stop(&slow);
}

static void test_missing__is_an_answer(void **state)
{
    (void)state;
    static const char *const ids[] = {"fs-00000000", "dra-0123456789abcdef0",
                                      "task-00000000000000000"};
    for (int kind = 0; kind < FSX_KIND_COUNT; kind++) {
        assert_int_equal(describe((enum fsx_kind)kind, ids[kind]).answer, FSX_NOT_FOUND);
        assert_int_equal(end((enum fsx_kind)kind, ids[kind]).answer, FSX_NOT_FOUND);
    }
    assert_int_equal(create_association("m-1", "fs-00000000").answer, FSX_NOT_FOUND);
    assert_int_equal(create_task("m-1", "fs-00000000").answer, FSX_NOT_FOUND);
}

static bool is_listed(const struct got *g, const char *id)
{
    for (size_t i = 0; i < g->rows_n; i++) {
        if (strcmp(g->ids[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static void test_list__over_all_pages(void **state)
{
    (void)state;
    char token[16];
    char one[24] = "";
    size_t before = list(FSX_FILESYSTEM, NULL).rows_n;
    for (int i = 0; i < 27; i++) {
        (void)snprintf(token, sizeof token, "p-%d", i);
        struct got g = create_filesystem(token, 1200);
        assert_int_equal(g.answer, FSX_DONE);
        (void)snprintf(one, sizeof one, "%s", g.row.filesystem.id);
    }
    struct got g = list(FSX_FILESYSTEM, NULL);
    assert_int_equal(g.answer, FSX_DONE);
    assert_true(g.rows_n >= 27 && g.rows_n <= before + 27 && g.rows_n <= ROWS_KEPT);
    assert_true(is_listed(&g, one));
    for (size_t i = 1; i < g.rows_n; i++) {
        assert_string_not_equal(g.ids[i], g.ids[i - 1]);
    }
    (void)wait_for(FSX_FILESYSTEM, one, "AVAILABLE");
    assert_int_equal(list(FSX_TASK, one).rows_n, 0);
    struct got a = create_association("pa", one);
    assert_int_equal(a.answer, FSX_DONE);
    struct got b = made("p-other");
    assert_int_equal(create_association("pb", b.row.filesystem.id).answer, FSX_DONE);
    g = list(FSX_ASSOCIATION, one);
    assert_int_equal(g.rows_n, 1);
    assert_string_equal(g.ids[0], a.row.association.id);
    g = list(FSX_ASSOCIATION, NULL);
    assert_true(g.rows_n >= 2 && is_listed(&g, a.row.association.id));
}

static void on_never(void *ctx, enum fsx_answer answer, const union fsx_row *rows, size_t n,
                     const struct aws_failure *f)
{
    (void)answer;
    (void)rows;
    (void)n;
    (void)f;
    *(bool *)ctx = true;
}

static void test_cancel__is_silent(void **state)
{
    (void)state;
    bool called = false;
    aws_fsx_cancel(aws_fsx_describe(c, open_gate, FSX_TASK, "task-0", on_never, &called));
    aws_fsx_cancel(aws_fsx_list(c, open_gate, FSX_FILESYSTEM, NULL, on_never, &called));
    assert_int_equal(describe(FSX_FILESYSTEM, "fs-00000000").answer, FSX_NOT_FOUND);
    assert_false(called);
    aws_fsx_cancel(NULL);
}

static bool never(void *ctx UNUSED)
{
    return false;
}

static void test_gate__keeps_a_create_back(void **state)
{
    (void)state;
    const struct aws_gate closed = {.may_send = never};
    struct got g = {.n = 0};
    (void)aws_fsx_create(c, closed, FSX_FILESYSTEM, STR("{}"), on_answer, &g);
    run_until_answered(&g);
    assert_int_equal(g.answer, FSX_FAILED);
    assert_int_equal(g.failure.outcome, AWS_UNSENT);
}

static const char config[] =
    "{\"fsx_create_seconds\":0.1,\"fsx_delete_seconds\":0.05,\"fsx_task_seconds\":0.1,\"faults\":["
    "{\"kind\":\"throttle\",\"operation\":\"CreateFileSystem\",\"name_contains\":\"throttled\"},"
    "{\"kind\":\"html_error\",\"operation\":\"CreateFileSystem\",\"name_contains\":\"broken\"},"
    "{\"kind\":\"quota_refuse\",\"operation\":\"CreateFileSystem\",\"name_contains\":\"over\"},"
    "{\"kind\":\"job_failure\",\"operation\":\"CreateFileSystem\",\"name_contains\":\"fails\","
    "\"reason\":\"no room\"}]}";

static int setup(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    local_start(&local, config);
    local_bucket(&local, "bkt");
    AUTO_FREE char *prefix = xasprintf("%s/s3/bkt/in", local.root);
    ASSERT(mkdir(prefix, 0777) == 0);
    write_file("s3/bkt/in", "a", "old");
    const struct aws_config cfg = {.user_agent = "test/1"};
    ASSERT(loop_new(&l, &err) && aws_client_new(l, &cfg, &c, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aws_client_free(c);
    loop_free(l);
    local_stop(&local);
    return 0;
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures__are_told_apart),
        cmocka_unit_test(test_token__makes_one),
        cmocka_unit_test(test_life__from_s3_and_back),
        cmocka_unit_test(test_task__one_at_a_time),
        cmocka_unit_test(test_missing__is_an_answer),
        cmocka_unit_test(test_list__over_all_pages),
        cmocka_unit_test(test_cancel__is_silent),
        cmocka_unit_test(test_gate__keeps_a_create_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
