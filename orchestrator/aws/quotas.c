/* Lists every SageMaker quota, page by page, and keeps those that limit training jobs; then, when
 * quotas of every account are missing, what is missing from the defaults. */
#include "quotas.h"
#include "common/json.h"
#include "json_call.h"
#include <math.h>
#include <stdio.h>

#define QUOTA_PAGES_MAX 60

struct quotas_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct json_call *req;
    enum aws_operation from;
    quotas_cb cb;
    void *ctx;
    char token[4097];
    int pages;
    struct quota_reading reading;
};

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f);

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
        json_call_cancel(call->req);
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
    call->req = json_call_send(call->client, call->gate, call->from, buf_str(&body), on_page, call);
}

static bool is_listed(const struct quota_value *list, size_t n, struct str type)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq_cstr(type, list[i].instance_type)) {
            return true;
        }
    }
    return false;
}

static void keep_type(struct quota_value **list, size_t *n, struct str type, int64_t limit)
{
    struct quota_value *q;
    if (type.n >= sizeof q->instance_type || memchr(type.p, ' ', type.n) != NULL ||
        is_listed(*list, *n, type)) {
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

/* What was kept before stays: the value that is applied comes before the default. */
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
    if (r->create_rate < 0 && strcmp(name, "Rate of CreateTrainingJob requests") == 0) {
        r->create_rate = value;
    }
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (*fixed[i].value < 0 && strcmp(name, fixed[i].name) == 0) {
            *fixed[i].value = (int64_t)floor(value);
        }
    }
    if (strncmp(name, "ml.", 3) == 0) {
        keep_by_type(r, str_of(name), (int64_t)floor(value));
    }
}

/* Every account has these. */
static bool is_whole(const struct quota_reading *r)
{
    return r->total >= 0 && r->spot_total >= 0 && r->instances_max >= 0 && r->runtime_max_s >= 0 &&
           r->keep_alive_s >= 0 && r->volume_max_gib >= 0 && r->create_rate >= 0;
}

/* The next page, or the first of the defaults. False: that was all. */
static bool next_page(struct quotas_call *call, const char *token)
{
    if (token != NULL && token[0] != '\0' && strlen(token) < sizeof call->token &&
        strcmp(token, call->token) != 0 && ++call->pages < QUOTA_PAGES_MAX) {
        (void)snprintf(call->token, sizeof call->token, "%s", token);
        return true;
    }
    bool more = call->from == AWS_OP_ListServiceQuotas && !is_whole(&call->reading);
    call->from = AWS_OP_ListAWSDefaultServiceQuotas;
    call->token[0] = '\0';
    call->pages = 0;
    return more;
}

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct quotas_call *call = ctx;
    size_t i;
    json_t *row;
    call->req = NULL;
    /* Defaults that may not be read take nothing away from what is applied. */
    if (f != NULL && call->from == AWS_OP_ListServiceQuotas) {
        call->cb(call->ctx, NULL, f);
        call_free(call);
        return;
    }
    json_array_foreach(json_object_get(o, "Quotas"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "QuotaName"));
        const json_t *value = json_object_get(row, "Value");
        if (name != NULL && json_is_number(value)) { /* one that AWS could not tell is no 0 */
            keep(&call->reading, name, json_number_value(value));
        }
    }
    if (next_page(call, json_string_value(json_object_get(o, "NextToken")))) {
        send_page(call);
        return;
    }
    call->reading.whole = f == NULL;
    call->cb(call->ctx, &call->reading, NULL);
    call_free(call);
}

struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb, void *ctx)
{
    struct quotas_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->from = AWS_OP_ListServiceQuotas;
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
