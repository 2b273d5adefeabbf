/* See invocations.h. */
#include "invocations.h"
#include "common/json.h"
#include "json_call.h"
#include <math.h>
#include <stdio.h>

struct invocations_call {
    struct json_call *json;
    invocations_cb cb;
    void *ctx;
    struct invocation_report report;
};

static bool read_count(const json_t *point, struct invocation_count *ret)
{
    const json_t *sum = json_object_get(point, "Sum");
    double n = json_number_value(sum);
    ret->from = json_call_epoch(point, "Timestamp");
    if (ret->from == 0 || !json_is_number(sum) || !(n >= 0 && n < 1e15)) {
        return false;
    }
    ret->n = (int64_t)ceil(n);
    return true;
}

static bool read_report(const json_t *o, struct invocation_report *ret)
{
    const json_t *points = json_object_get(o, "Datapoints");
    size_t i;
    const json_t *point;
    ret->n = 0;
    if (!json_is_array(points) || json_array_size(points) > INVOCATION_COUNTS_MAX) {
        return false;
    }
    json_array_foreach(points, i, point)
    {
        if (!read_count(point, &ret->counts[ret->n])) {
            return false;
        }
        ret->n += ret->counts[ret->n].n > 0;
    }
    return true;
}

static void on_answer(void *ctx, const json_t *o, const struct aws_failure *f)
{
    static const struct aws_failure unread = {.outcome = AWS_UNKNOWN,
                                              .message = "an answer without whole datapoints"};
    struct invocations_call *call = ctx;
    bool whole = f == NULL && read_report(o, &call->report);
    call->cb(call->ctx, whole ? &call->report : NULL, whole ? NULL : f != NULL ? f : &unread);
    free(call);
}

static void dimension(struct json_out *w, const char *name, const char *value)
{
    json_out_object(w, NULL);
    json_out_str(w, "Name", name);
    json_out_str(w, "Value", value);
    json_out_end_object(w);
}

struct invocations_call *invocations_read(struct aws_client *c, struct aws_gate gate,
                                          const char *endpoint, const char *variant,
                                          const struct invocation_question *q, invocations_cb cb,
                                          void *ctx)
{
    struct invocations_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(2048);
    struct json_out w;
    ASSERT(q->from < q->to && q->period_s >= 60 && q->period_s % 60 == 0);
    call->cb = cb;
    call->ctx = ctx;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "Namespace", "AWS/SageMaker");
    json_out_str(&w, "MetricName", "Invocations");
    json_out_array(&w, "Dimensions");
    dimension(&w, "EndpointName", endpoint);
    dimension(&w, "VariantName", variant);
    json_out_end_array(&w);
    json_out_i64(&w, "StartTime", q->from / USEC_PER_SEC);
    json_out_i64(&w, "EndTime", (q->to + USEC_PER_SEC - 1) / USEC_PER_SEC);
    json_out_i64(&w, "Period", q->period_s);
    json_out_array(&w, "Statistics");
    json_out_str(&w, NULL, "Sum");
    json_out_end_array(&w);
    json_out_end_object(&w);
    call->json =
        json_call_send(c, gate, AWS_OP_GetMetricStatistics, buf_str(&body), on_answer, call);
    return call;
}

void invocations_cancel(struct invocations_call *call)
{
    if (call != NULL) {
        json_call_cancel(call->json);
        free(call);
    }
}
