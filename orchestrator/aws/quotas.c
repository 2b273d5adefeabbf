/* Lists every SageMaker quota, page by page, and keeps those that limit training jobs. */
#include "quotas.h"
#include "common/json.h"
#include <math.h>
#include <stdio.h>

#define QUOTA_PAGES_MAX 60

struct quotas_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct aws_req *req;
    quotas_cb cb;
    void *ctx;
    char token[4097];
    int pages;
    struct quota_reading reading;
};

static void on_page(void *ctx, const struct aws_reply *r);

static void call_free(struct quotas_call *call)
{
    free(call->reading.training);
    free(call->reading.warm);
    free(call->reading.spot);
    free(call);
}

void quotas_cancel(struct quotas_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        call_free(call);
    }
}

void quotas_page_ask(const char *token, struct buf *ret)
{
    struct json_out w;
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    json_out_str(&w, "ServiceCode", "sagemaker");
    json_out_i64(&w, "MaxResults", 100);
    if (token[0] != '\0') {
        json_out_str(&w, "NextToken", token);
    }
    json_out_end_object(&w);
}

static void send_page(struct quotas_call *call)
{
    AUTO_BUF struct buf body = BUF_INIT(8192);
    quotas_page_ask(call->token, &body);
    const struct aws_call aws = {
        .service = "servicequotas",
        .target = "ServiceQuotasV20190624.ListServiceQuotas",
        .content_type = "application/x-amz-json-1.1",
        .body = buf_str(&body),
        .may_send = call->gate.may_send,
        .may_send_ctx = call->gate.ctx,
    };
    call->req = aws_send(call->client, &aws, on_page, call);
}

static void keep_type(struct quota_value **list, size_t *n, struct str type, int64_t limit)
{
    struct quota_value *q;
    if (type.n >= sizeof q->instance_type || memchr(type.p, ' ', type.n) != NULL) {
        return;
    }
    *list = xrealloc(*list, (*n + 1) * sizeof **list);
    q = &(*list)[(*n)++];
    (void)snprintf(q->instance_type, sizeof q->instance_type, STR_FMT, STR_ARG(type));
    q->limit = limit;
}

/* "<type> for ..." */
static void keep_by_type(struct quota_reading *r, struct str name, int64_t limit)
{
    const struct {
        struct str suffix;
        struct quota_value **list;
        size_t *n;
    } kinds[] = {
        {STR(" for spot training job usage"), &r->spot, &r->spot_n},
        {STR(" for training warm pool usage"), &r->warm, &r->warm_n},
        {STR(" for training job usage"), &r->training, &r->training_n},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_ends(name, kinds[i].suffix.p)) {
            keep_type(kinds[i].list, kinds[i].n, (struct str){name.p, name.n - kinds[i].suffix.n},
                      limit);
            return;
        }
    }
}

static void keep(struct quota_reading *r, const char *name, double value)
{
    const struct {
        const char *name;
        int64_t *value;
    } fixed[] = {
        {"Number of instances across all training jobs", &r->total},
        {"Number of instances across all spot training jobs", &r->spot_total},
        {"Maximum number of instances per training job", &r->instances_max},
        {"Longest run time for a training job", &r->runtime_max_s},
        {"Keep alive period for cluster reuse", &r->keep_alive_s},
        {"Size of EBS volume for a training job instance", &r->volume_max_gib},
    };
    if (!(value >= 0 && value < 1e9)) {
        return;
    }
    if (strcmp(name, "Rate of CreateTrainingJob requests") == 0) {
        r->create_rate = value;
    }
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (strcmp(name, fixed[i].name) == 0) {
            *fixed[i].value = (int64_t)floor(value);
        }
    }
    if (strncmp(name, "ml.", 3) == 0) {
        keep_by_type(r, str_of(name), (int64_t)floor(value));
    }
}

static void on_page(void *ctx, const struct aws_reply *r)
{
    struct quotas_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    size_t i;
    json_t *row;
    call->req = NULL;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        struct aws_failure f;
        aws_failure_from(r, &f);
        call->cb(call->ctx, NULL, &f);
        call_free(call);
        return;
    }
    json_array_foreach(json_object_get(o, "Quotas"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "QuotaName"));
        if (name != NULL) {
            keep(&call->reading, name, json_number_value(json_object_get(row, "Value")));
        }
    }
    const char *token = json_string_value(json_object_get(o, "NextToken"));
    bool more = token != NULL && token[0] != '\0' && strlen(token) < sizeof call->token &&
                strcmp(token, call->token) != 0 && ++call->pages < QUOTA_PAGES_MAX;
    if (more) {
        (void)snprintf(call->token, sizeof call->token, "%s", token);
        send_page(call);
        return;
    }
    call->cb(call->ctx, &call->reading, NULL);
    call_free(call);
}

struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb, void *ctx)
{
    struct quotas_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->cb = cb;
    call->ctx = ctx;
    call->reading = (struct quota_reading){.total = -1,
                                           .spot_total = -1,
                                           .instances_max = -1,
                                           .runtime_max_s = -1,
                                           .keep_alive_s = -1,
                                           .volume_max_gib = -1,
                                           .create_rate = -1};
    send_page(call);
    return call;
}
