/* Aim: an event is read whole or taken for something else, whatever stands in a queue; what is
 * received and deleted is gone, the rest comes again; a queue that is not there says so. Method:
 * texts, and build/bin/drover-local. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "orchestrator/aws/event_queue.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include "tests/kit/local.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define EVENT(source, type, detail)                                                                \
    "{\"version\":\"0\",\"source\":\"" source "\",\"detail-type\":\"" type "\",\"detail\":" detail \
    "}"
#define CHANGE(detail) EVENT("aws.sagemaker", "SageMaker Training Job State Change", detail)

static struct local local;
static struct loop *l;
static struct aws_client *c;
static char *url;

static void test_event_queue__events(void **state)
{
    (void)state;
    struct training_event e;
    assert_true(training_event_read(
        str_of(CHANGE("{\"TrainingJobName\":\"d-7-x-1-a1-0a1b2c3d\",\"TrainingJobStatus\":"
                      "\"Completed\",\"SecondaryStatus\":\"Completed\",\"LastModifiedTime\":"
                      "\"1583831889050\",\"Tags\":{},\"New\":[1]}")),
        &e));
    assert_string_equal(e.name, "d-7-x-1-a1-0a1b2c3d");
    assert_string_equal(e.status, "Completed");
    assert_string_equal(e.secondary, "Completed");
    assert_int_equal(e.modified, INT64_C(1583831889050000));
    assert_true(training_event_read(
        str_of(CHANGE("{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"InProgress\","
                      "\"LastModifiedTime\":1583831889050}")),
        &e));
    assert_int_equal(e.modified, INT64_C(1583831889050000));
    assert_string_equal(e.secondary, "");
    assert_true(training_event_read(
        str_of(CHANGE("{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"InProgress\","
                      "\"LastModifiedTime\":\"soon\",\"SecondaryStatus\":7}")),
        &e));
    assert_int_equal(e.modified, 0);
    assert_true(training_event_read(
        str_of(CHANGE("{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"InProgress\","
                      "\"LastModifiedTime\":-1e300}")),
        &e));
    assert_int_equal(e.modified, 0);
}

static void test_event_queue__what_is_no_event(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "x",
        "7",
        "[]",
        "{}",
        "{\"detail\":{\"TrainingJobName\":\"a\"}}",
        EVENT("aws.ec2", "SageMaker Training Job State Change",
              "{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"Failed\"}"),
        EVENT("aws.sagemaker", "SageMaker Endpoint State Change",
              "{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"Failed\"}"),
        CHANGE("[]"),
        CHANGE("{\"TrainingJobName\":\"a\"}"),
        CHANGE("{\"TrainingJobName\":\"\",\"TrainingJobStatus\":\"Failed\"}"),
        CHANGE("{\"TrainingJobName\":\"a b\",\"TrainingJobStatus\":\"Failed\"}"),
        CHANGE("{\"TrainingJobName\":[\"a\"],\"TrainingJobStatus\":\"Failed\"}"),
    };
    struct training_event e;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (training_event_read(str_of(texts[i]), &e)) {
            fail_msg("read: %s", texts[i]);
        }
    }
    for (int n = 63; n <= 64; n++) { /* no name is longer than 63 */
        AUTO_FREE char *text = xasprintf(
            CHANGE("{\"TrainingJobName\":\"%0*d\",\"TrainingJobStatus\":\"Failed\"}"), n, 7);
        assert_int_equal(training_event_read(str_of(text), &e), n == 63);
    }
}

struct got {
    int n;
    bool failed;
    struct aws_failure failure;
    size_t messages, events;
    char *receipts[EVENT_QUEUE_BATCH];
    int64_t waiting;
};

static void keep(struct got *g, const struct aws_failure *f)
{
    g->n++;
    g->failed = f != NULL;
    if (f != NULL) {
        g->failure = *f;
    }
}

static void on_messages(void *ctx, const struct queue_message *m, size_t n,
                        const struct aws_failure *f)
{
    struct got *g = ctx;
    keep(g, f);
    g->messages = n;
    for (size_t i = 0; i < n; i++) {
        g->events += m[i].is_event;
        g->receipts[i] = xstrdup(m[i].receipt);
    }
}

static void on_deleted(void *ctx, const struct aws_failure *f)
{
    keep(ctx, f);
}

static void on_waiting(void *ctx, int64_t waiting, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep(g, f);
    g->waiting = waiting;
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

static void done(struct got *g)
{
    for (size_t i = 0; i < g->messages; i++) {
        free(g->receipts[i]);
    }
}

static void on_sent(void *ctx, const struct aws_reply *r)
{
    struct got *g = ctx;
    g->n++;
    g->failed = r->outcome != AWS_OK;
}

/* As EventBridge does. */
static void put(const char *text)
{
    struct got g = {.n = 0};
    AUTO_BUF struct buf body = BUF_INIT(65536);
    struct json_out w;
    begin(&w, &body, url);
    json_out_str(&w, "MessageBody", text);
    json_out_end_object(&w);
    const struct aws_call call = {.service = "sqs",
                                  .target = "AmazonSQS.SendMessage",
                                  .content_type = "application/x-amz-json-1.0",
                                  .body = buf_str(&body)};
    (void)aws_send(c, &call, on_sent, &g);
    run_until_answered(&g);
    assert_false(g.failed);
}

static const struct aws_gate no_gate = {NULL, NULL};

static int64_t waiting(void)
{
    struct got g = {.n = 0};
    (void)event_queue_look(c, no_gate, url, on_waiting, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    return g.waiting;
}

static void test_event_queue__received_and_deleted(void **state)
{
    (void)state;
    struct got g = {.n = 0}, gone = {.n = 0};
    put("what nobody knows");
    put(CHANGE("{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"Failed\"}"));
    put(CHANGE("{\"TrainingJobName\":\"b\",\"TrainingJobStatus\":\"Failed\"}"));
    assert_int_equal(waiting(), 3);
    (void)event_queue_receive(c, no_gate, url, EVENT_QUEUE_BATCH, on_messages, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    assert_int_equal(g.messages, 3);
    assert_int_equal(g.events, 2);
    assert_int_equal(waiting(), 0); /* nobody else gets them now */
    (void)event_queue_delete(c, no_gate, url, g.receipts, g.messages, on_deleted, &gone);
    run_until_answered(&gone);
    assert_false(gone.failed);
    done(&g);
}

static void test_event_queue__waits_for_a_message(void **state)
{
    (void)state;
    struct got g = {.n = 0};
    int64_t began_us = clock_mono_us();
    (void)event_queue_receive(c, no_gate, url, EVENT_QUEUE_BATCH, on_messages, &g);
    for (int i = 0; i < 3; i++) {
        loop_run_once(l, 50 * USEC_PER_MSEC);
    }
    assert_int_equal(g.n, 0);
    put(CHANGE("{\"TrainingJobName\":\"a\",\"TrainingJobStatus\":\"Failed\"}"));
    if (g.n == 0) {
        run_until_answered(&g);
    }
    assert_int_equal(g.events, 1);
    if (clock_mono_us() - began_us > 10 * USEC_PER_SEC) {
        print_message("# this machine is slow\n");
    }
    done(&g);
}

static void test_event_queue__cancelled(void **state)
{
    (void)state;
    struct got g = {.n = 0};
    struct event_queue_call *call =
        event_queue_receive(c, no_gate, url, EVENT_QUEUE_BATCH, on_messages, &g);
    loop_run_once(l, 50 * USEC_PER_MSEC);
    event_queue_cancel(call);
    event_queue_cancel(NULL);
    loop_run_once(l, 50 * USEC_PER_MSEC);
    assert_int_equal(g.n, 0);
}

static void test_event_queue__one_that_is_not_there(void **state)
{
    (void)state;
    AUTO_FREE char *none = xasprintf("%s/111122223333/none", local.url);
    struct got g = {.n = 0}, look = {.n = 0};
    (void)event_queue_receive(c, no_gate, none, 1, on_messages, &g);
    run_until_answered(&g);
    (void)event_queue_look(c, no_gate, none, on_waiting, &look);
    run_until_answered(&look);
    assert_true(g.failed && look.failed);
    assert_int_equal(g.failure.outcome, AWS_REFUSED);
    assert_string_equal(g.failure.code, "QueueDoesNotExist");
    assert_string_equal(look.failure.code, "QueueDoesNotExist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_queue__events),
        cmocka_unit_test(test_event_queue__what_is_no_event),
        cmocka_unit_test(test_event_queue__received_and_deleted),
        cmocka_unit_test(test_event_queue__waits_for_a_message),
        cmocka_unit_test(test_event_queue__cancelled),
        cmocka_unit_test(test_event_queue__one_that_is_not_there),
    };
    struct err err = ERR_INIT;
    const struct aws_config cfg = {.user_agent = "test/1"};
    local_start(&local, "{\"account\":\"111122223333\",\"queues\":{\"events\":\"\"}}");
    if (!loop_new(&l, &err) || !aws_client_new(l, &cfg, &c, &err)) {
        (void)printf("Bail out! %s\n", err.message);
        return 1;
    }
    url = xasprintf("%s/111122223333/events", local.url);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    aws_client_free(c);
    loop_free(l);
    free(url);
    local_stop(&local);
    return failed;
}
