/* See runtime.h. */
#include "runtime.h"
#include "common/http.h"
#include "local/app.h"
#include "local/oracle/records.h"
#include "local/services/services.h"
#include <stdio.h>

#define PATH_BEGIN       "/endpoints/"
#define PATH_END         "/invocations"
#define MODEL_LIMIT_US   (60 * USEC_PER_SEC)
#define MODEL_REPLY_MAX  (25u << 20)
#define MESSAGE_TEXT_MAX 1024

bool runtime_is(const struct request *r)
{
    struct str auth = request_header(r, "authorization");
    return strcmp(r->method, "POST") == 0 && str_starts(r->path, PATH_BEGIN) &&
           str_ends(r->path, PATH_END) && str_find(auth, STR("/sagemaker/aws4_request")) >= 0;
}

static bool refuse(struct request *r, const char *name)
{
    reply_error(r, 400, "ValidationError", "Endpoint %s of account %s not found.", name,
                r->app->set.account);
    return false;
}

/* The fleet by weight, or the one that the request names; NULL: answered. */
static const json_t *fleet_choose(struct request *r, const json_t *fleets)
{
    struct str wanted = request_header(r, "x-amzn-sagemaker-target-variant");
    double total = 0.0;
    size_t i;
    const json_t *f;
    json_array_foreach(fleets, i, f)
    {
        if (wanted.p != NULL && str_eq_cstr(wanted, record_text(f, "variant"))) {
            return f;
        }
        total += json_number_value(json_object_get(f, "weight"));
    }
    if (wanted.p != NULL) {
        reply_error(r, 400, "ValidationError", "Variant " STR_FMT " not found for Request",
                    STR_ARG(wanted));
        return NULL;
    }
    double at = (double)(r->id * 7919 % 1000) / 1000.0 * total;
    json_array_foreach(fleets, i, f)
    {
        at -= json_number_value(json_object_get(f, "weight"));
        if (at < 0.0) {
            return f;
        }
    }
    return json_array_get(fleets, json_array_size(fleets) - 1);
}

void runtime_invoke(struct request *r)
{
    const json_t *o = record_find(r->app, RECORD_ENDPOINT, r->name);
    const char *status = record_text(o, "status");
    if (r->body.n > RUNTIME_BODY_BYTES_MAX) {
        reply_error(r, 413, "RequestEntityTooLarge", "The payload is larger than %d bytes",
                    RUNTIME_BODY_BYTES_MAX);
        return;
    }
    if (strcmp(status, "InService") != 0 && strcmp(status, "Updating") != 0) {
        (void)refuse(r, r->name);
        return;
    }
    const json_t *f = fleet_choose(r, json_object_get(o, "fleets"));
    if (f == NULL) {
        return;
    }
    struct str net = str_of(record_text(f, "net"));
    struct str prefix = str_split(&net, ' ');
    int64_t instance = 1 + (int64_t)(r->id % (uint64_t)record_i64(f, "instances"));
    r->forward_to = xasprintf("http://" STR_FMT "%lld:" STR_FMT "/invocations", STR_ARG(prefix),
                              (long long)instance, STR_ARG(net));
    (void)snprintf(r->variant, sizeof r->variant, "%s", record_text(f, "variant"));
    metrics_count_invocation(r->app, r->name, r->variant, r->arrival);
}

/* The server said no, or nothing: ModelError with what it said. */
static void model_error(struct request *r, int status, struct str said)
{
    char text[MESSAGE_TEXT_MAX + 1];
    struct str cut = {said.p, MIN(said.n, (size_t)MESSAGE_TEXT_MAX)};
    while (cut.n > 0 && !str_is_utf8(cut)) {
        cut.n--;
    }
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(cut));
    AUTO_FREE char *group = xasprintf("/aws/sagemaker/Endpoints/%s", r->name);
    AUTO_FREE char *message = xasprintf(
        "Received %s error (%d) from primary with message \"%s\". See "
        "https://%s.console.aws.amazon.com/cloudwatch/home?region=%s#logEventViewer:group=%s in "
        "account %s for more information.",
        status >= 500 || status == 0 ? "server" : "client", status, text, r->app->set.region,
        r->app->set.region, group, r->app->set.account);
    AUTO_FREE char *arn = xasprintf("arn:aws:logs:%s:%s:log-group:%s", r->app->set.region,
                                    r->app->set.account, group);
    reply_error(r, 424, "ModelError", "%s", message);
    AUTO_JSON json_t *o =
        json_pack("{s:s, s:s, s:i, s:s, s:s}", "ErrorCode",
                  status == 0 ? "CLIENT_ERROR_FROM_MODEL" : "MODEL_ERROR", "Message", message,
                  "OriginalStatusCode", status, "OriginalMessage", text, "LogStreamArn", arn);
    AUTO_FREE char *body = json_text(o);
    buf_reset(&r->reply.body);
    buf_add_cstr(&r->reply.body, body);
}

static void answer(struct request *r, const struct http_reply *reply)
{
    static const char *const kept[] = {"Content-Type", "X-Amzn-SageMaker-Custom-Attributes"};
    r->reply.status = 200;
    buf_reset(&r->reply.body);
    buf_add_str(&r->reply.body, buf_str(&reply->body));
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct str v = http_reply_header(reply, kept[i]);
        if (v.n > 0) {
            AUTO_FREE char *value = str_dup(v);
            reply_header(r, kept[i], value);
        }
    }
    reply_header(r, "x-Amzn-Invoked-Production-Variant", r->variant);
}

void runtime_forward(struct request *r)
{
    static const char *const kept[] = {"Content-Type", "Accept",
                                       "X-Amzn-SageMaker-Custom-Attributes",
                                       "X-Amzn-SageMaker-Target-Model"};
    struct http_header headers[ARRAY_LEN(kept)];
    size_t n = 0;
    struct http_reply reply;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct str v = request_header(r, kept[i]);
        if (v.p != NULL) {
            headers[n++] = (struct http_header){kept[i], str_dup(v)};
        }
    }
    struct http_request q = {.method = "POST",
                             .url = r->forward_to,
                             .headers = headers,
                             .headers_n = n,
                             .body = buf_str(&r->body),
                             .reply_max = MODEL_REPLY_MAX,
                             .timeout_us = MODEL_LIMIT_US};
    if (!http_fetch(&q, &reply, &err)) {
        model_error(r, 0,
                    STR("Your invocation timed out while waiting for a response from container "
                        "primary. Review the latency metrics for each container in Amazon "
                        "CloudWatch, resolve the issue, and try again."));
    } else {
        if (reply.status == 200) {
            answer(r, &reply);
        } else {
            model_error(r, reply.status, buf_str(&reply.body));
        }
        http_reply_done(&reply);
    }
    for (size_t i = 0; i < n; i++) {
        free((char *)(uintptr_t)headers[i].value);
    }
}
