/* See hosting.h. Texts are not an API, but codes alone do not tell: SageMaker answers a taken name,
 * a missing one and a busy endpoint with ValidationException. */
#include "hosting.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include <stdio.h>

#define ERROR_TEXT_MAX 1024

static const struct {
    const char *name_key;
    const char *arn_key;
    const char *list_key;
    enum aws_operation create, describe, list, delete;
} kinds[HOSTING_KIND_COUNT] = {
    [HOSTING_MODEL] = {"ModelName", "ModelArn", "Models", AWS_OP_CreateModel, AWS_OP_DescribeModel,
                       AWS_OP_ListModels, AWS_OP_DeleteModel},
    [HOSTING_CONFIG] = {"EndpointConfigName", "EndpointConfigArn", "EndpointConfigs",
                        AWS_OP_CreateEndpointConfig, AWS_OP_DescribeEndpointConfig,
                        AWS_OP_ListEndpointConfigs, AWS_OP_DeleteEndpointConfig},
    [HOSTING_ENDPOINT] = {"EndpointName", "EndpointArn", "Endpoints", AWS_OP_CreateEndpoint,
                          AWS_OP_DescribeEndpoint, AWS_OP_ListEndpoints, AWS_OP_DeleteEndpoint},
};

struct hosting_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct json_call *json;
    struct aws_req *req; /* of an invocation */
    enum hosting_kind kind;
    union {
        hosting_create_cb create;
        hosting_change_cb change;
        hosting_describe_cb describe;
        hosting_list_cb list;
        endpoint_invoke_cb invoke;
    } cb;
    void *ctx;
    /* list */
    char contains[64];
    char token[8193];
    int pages;
    struct hosting_summary *rows;
    size_t rows_n, rows_cap;
    /* invocation */
    int64_t began_us;
};

static struct hosting_call *call_new(struct aws_client *c, struct aws_gate gate,
                                     enum hosting_kind kind, void *ctx)
{
    struct hosting_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->kind = kind;
    call->ctx = ctx;
    return call;
}

static void call_free(struct hosting_call *call)
{
    free(call->rows);
    free(call);
}

void hosting_cancel(struct hosting_call *call)
{
    if (call != NULL) {
        json_call_cancel(call->json);
        if (call->req != NULL) {
            aws_cancel(call->req);
        }
        call_free(call);
    }
}

static bool says(const struct aws_failure *f, const char *words)
{
    return f != NULL && f->outcome == AWS_REFUSED &&
           (strcmp(f->code, "ValidationException") == 0 || strcmp(f->code, "ResourceInUse") == 0 ||
            strcmp(f->code, "ResourceNotFound") == 0) &&
           strcasestr(f->message, words) != NULL;
}

static bool is_missing(const struct aws_failure *f)
{
    return says(f, "could not find") || says(f, "not found");
}

static void on_create(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct hosting_call *call = ctx;
    const char *arn = json_string_value(json_object_get(o, kinds[call->kind].arn_key));
    struct aws_failure unread = {.outcome = AWS_UNKNOWN, .message = "an answer without an ARN"};
    if (says(f, "already exist")) {
        call->cb.create(call->ctx, NULL, true, NULL);
    } else {
        call->cb.create(call->ctx, arn, false, f != NULL ? f : arn == NULL ? &unread : NULL);
    }
    call_free(call);
}

struct hosting_call *hosting_create(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, struct str request,
                                    hosting_create_cb cb, void *ctx)
{
    struct hosting_call *call = call_new(c, gate, kind, ctx);
    call->cb.create = cb;
    call->json = json_call_send(c, gate, kinds[kind].create, request, on_create, call);
    return call;
}

static void on_change(void *ctx, const json_t *o UNUSED, const struct aws_failure *f)
{
    struct hosting_call *call = ctx;
    bool busy = says(f, "in-progress") || says(f, "in progress");
    bool missing = !busy && is_missing(f);
    call->cb.change(call->ctx, missing, busy, busy || missing ? NULL : f);
    call_free(call);
}

static void name_body(enum hosting_kind kind, const char *name, struct buf *body)
{
    struct json_out w;
    json_out_init(&w, body);
    json_out_object(&w, NULL);
    json_out_str(&w, kinds[kind].name_key, name);
    json_out_end_object(&w);
}

struct hosting_call *hosting_delete(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, const char *name, hosting_change_cb cb,
                                    void *ctx)
{
    struct hosting_call *call = call_new(c, gate, kind, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    name_body(kind, name, &body);
    call->cb.change = cb;
    call->json = json_call_send(c, gate, kinds[kind].delete, buf_str(&body), on_change, call);
    return call;
}

static void read_description(enum hosting_kind kind, const json_t *o,
                             struct endpoint_description *ret)
{
    size_t i;
    const json_t *v;
    memset(ret, 0, sizeof *ret);
    json_call_text(o, kinds[kind].name_key, ret->name, sizeof ret->name);
    json_call_text(o, kinds[kind].arn_key, ret->arn, sizeof ret->arn);
    ret->created = json_call_epoch(o, "CreationTime");
    if (kind == HOSTING_CONFIG) {
        v = json_array_get(json_object_get(o, "ProductionVariants"), 0);
        json_call_text(v, "InstanceType", ret->instance_type, sizeof ret->instance_type);
    }
    if (kind != HOSTING_ENDPOINT) {
        return;
    }
    json_call_text(o, "EndpointConfigName", ret->config, sizeof ret->config);
    json_call_text(o, "EndpointStatus", ret->status, sizeof ret->status);
    json_call_text(o, "FailureReason", ret->failure_reason, sizeof ret->failure_reason);
    secret_mask(ret->failure_reason);
    ret->modified = json_call_epoch(o, "LastModifiedTime");
    json_array_foreach(json_object_get(o, "ProductionVariants"), i, v)
    {
        ret->instances += json_integer_value(json_object_get(v, "CurrentInstanceCount"));
        ret->instances_wanted += json_integer_value(json_object_get(v, "DesiredInstanceCount"));
    }
}

static void on_describe(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct hosting_call *call = ctx;
    struct endpoint_description e;
    struct aws_failure unread = {.outcome = AWS_UNKNOWN, .message = "an answer without a name"};
    if (f == NULL) {
        read_description(call->kind, o, &e);
        bool whole = e.name[0] != '\0' && (call->kind != HOSTING_ENDPOINT || e.status[0] != '\0');
        call->cb.describe(call->ctx, whole ? &e : NULL, false, whole ? NULL : &unread);
    } else {
        bool missing = is_missing(f);
        call->cb.describe(call->ctx, NULL, missing, missing ? NULL : f);
    }
    call_free(call);
}

struct hosting_call *hosting_describe(struct aws_client *c, struct aws_gate gate,
                                      enum hosting_kind kind, const char *name,
                                      hosting_describe_cb cb, void *ctx)
{
    struct hosting_call *call = call_new(c, gate, kind, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    name_body(kind, name, &body);
    call->cb.describe = cb;
    call->json = json_call_send(c, gate, kinds[kind].describe, buf_str(&body), on_describe, call);
    return call;
}

static void page_send(struct hosting_call *call);

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct hosting_call *call = ctx;
    const json_t *list = json_object_get(o, kinds[call->kind].list_key);
    size_t i;
    const json_t *row;
    call->json = NULL;
    if (f != NULL) {
        call->cb.list(call->ctx, NULL, 0, f);
        call_free(call);
        return;
    }
    json_array_foreach(list, i, row)
    {
        ARRAY_ROOM(call->rows, call->rows_n, call->rows_cap);
        struct hosting_summary *s = &call->rows[call->rows_n++];
        memset(s, 0, sizeof *s);
        json_call_text(row, kinds[call->kind].name_key, s->name, sizeof s->name);
        json_call_text(row, kinds[call->kind].arn_key, s->arn, sizeof s->arn);
        json_call_text(row, "EndpointStatus", s->status, sizeof s->status);
        s->created = json_call_epoch(row, "CreationTime");
        s->modified = json_call_epoch(row, "LastModifiedTime");
    }
    const char *token = json_string_value(json_object_get(o, "NextToken"));
    if (token != NULL && token[0] != '\0' && strlen(token) < sizeof call->token &&
        strcmp(token, call->token) != 0 && ++call->pages < HOSTING_LIST_PAGES_MAX) {
        (void)snprintf(call->token, sizeof call->token, "%s", token);
        page_send(call);
        return;
    }
    call->cb.list(call->ctx, call->rows, call->rows_n, NULL);
    call_free(call);
}

static void page_send(struct hosting_call *call)
{
    AUTO_BUF struct buf body = BUF_INIT(16384);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "NameContains", call->contains);
    json_out_str(&w, "SortBy", "CreationTime");
    json_out_str(&w, "SortOrder", "Descending");
    json_out_i64(&w, "MaxResults", 100);
    if (call->token[0] != '\0') {
        json_out_str(&w, "NextToken", call->token);
    }
    json_out_end_object(&w);
    call->json = json_call_send(call->client, call->gate, kinds[call->kind].list, buf_str(&body),
                                on_page, call);
}

struct hosting_call *hosting_list(struct aws_client *c, struct aws_gate gate,
                                  enum hosting_kind kind, const char *contains, hosting_list_cb cb,
                                  void *ctx)
{
    struct hosting_call *call = call_new(c, gate, kind, ctx);
    call->cb.list = cb;
    (void)snprintf(call->contains, sizeof call->contains, "%s", contains);
    page_send(call);
    return call;
}

/* ModelError: the model was asked and said no. */
static bool read_model_error(const struct aws_reply *r, struct endpoint_answer *ret,
                             json_t **ret_body)
{
    if (strcmp(r->code, "ModelError") != 0 || !json_parse(r->body, r->body.n, ret_body, NULL)) {
        return false;
    }
    const char *text = json_string_value(json_object_get(*ret_body, "OriginalMessage"));
    ret->status = (int)json_integer_value(json_object_get(*ret_body, "OriginalStatusCode"));
    ret->body = str_of(text);
    ret->body.n = MIN(ret->body.n, (size_t)ERROR_TEXT_MAX);
    return true;
}

static void header_copy(const struct aws_reply *r, const char *name, char *out, size_t out_n)
{
    struct str v = r->http != NULL ? http_reply_header(r->http, name) : STR("");
    (void)snprintf(out, out_n, STR_FMT, STR_ARG(v));
}

static void on_invoke(void *ctx, const struct aws_reply *r)
{
    struct hosting_call *call = ctx;
    AUTO_JSON json_t *body = NULL;
    struct endpoint_answer a = {.status = r->status, .body = r->body};
    struct aws_failure f;
    a.took_us = clock_mono_us() - call->began_us;
    header_copy(r, "Content-Type", a.content_type, sizeof a.content_type);
    header_copy(r, "x-Amzn-Invoked-Production-Variant", a.variant, sizeof a.variant);
    if (r->outcome == AWS_OK || read_model_error(r, &a, &body)) {
        call->cb.invoke(call->ctx, &a, NULL);
    } else {
        aws_failure_from(r, &f);
        call->cb.invoke(call->ctx, NULL, &f);
    }
    call_free(call);
}

struct hosting_call *endpoint_invoke(struct aws_client *c, struct aws_gate gate, const char *name,
                                     const char *content_type, struct str body,
                                     endpoint_invoke_cb cb, void *ctx)
{
    struct hosting_call *call = call_new(c, gate, HOSTING_ENDPOINT, ctx);
    char path[128];
    ASSERT(body.n <= ENDPOINT_BODY_BYTES_MAX);
    (void)snprintf(path, sizeof path, "/endpoints/%.63s/invocations", name);
    struct aws_call aws = aws_operation_call(AWS_OP_InvokeEndpoint, gate, body);
    aws.content_type = content_type;
    aws.path = path;
    aws.timeout_us = ENDPOINT_INVOKE_US;
    call->cb.invoke = cb;
    call->began_us = clock_mono_us();
    call->req = aws_send(c, &aws, on_invoke, call);
    return call;
}
