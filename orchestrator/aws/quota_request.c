/* Looks for the quota's code among the applied ones, then among the defaults, which also has those
 * that were never changed; then asks. See quota_request.h. */
#include "quota_request.h"
#include "common/json.h"
#include "json_call.h"
#include "quotas.h"
#include <stdio.h>

struct quota_request_call {
    struct aws_client *client;
    quota_request_cb cb;
    void *ctx;
    enum aws_operation from;
    int64_t value;
    int pages;
    char name[160], token[4097];
};

static void on_quotas(void *ctx, const json_t *o, const struct aws_failure *f);

static void end(struct quota_request_call *q, const char *id, const char *status,
                const struct aws_failure *f)
{
    q->cb(q->ctx, id, status, f);
    free(q);
}

static void send_page(struct quota_request_call *q)
{
    AUTO_BUF struct buf body = BUF_INIT(8192);
    quotas_page_ask(q->token, &body);
    (void)json_call_send(q->client, (struct aws_gate){NULL, NULL}, q->from, buf_str(&body),
                         on_quotas, q);
}

static void on_asked(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct quota_request_call *q = ctx;
    const json_t *asked = json_object_get(o, "RequestedQuota");
    char id[65], status[33];
    json_call_text(asked, "Id", id, sizeof id);
    json_call_text(asked, "Status", status, sizeof status);
    end(q, id, status, f);
}

static void ask(struct quota_request_call *q, const char *code)
{
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "ServiceCode", "sagemaker");
    json_out_str(&w, "QuotaCode", code);
    json_out_i64(&w, "DesiredValue", q->value);
    json_out_end_object(&w);
    (void)json_call_send(q->client, (struct aws_gate){NULL, NULL},
                         AWS_OP_RequestServiceQuotaIncrease, buf_str(&body), on_asked, q);
}

static const char *code_of(const json_t *list, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        const char *have = json_string_value(json_object_get(v, "QuotaName"));
        const char *code = json_string_value(json_object_get(v, "QuotaCode"));
        if (have != NULL && code != NULL && strcmp(have, name) == 0) {
            return code;
        }
    }
    return NULL;
}

/* The next page, or the first of the defaults. False: that was all. */
static bool next_page(struct quota_request_call *q, const char *token)
{
    if (token != NULL && token[0] != '\0' && strlen(token) < sizeof q->token &&
        strcmp(token, q->token) != 0 && ++q->pages < JSON_CALL_PAGES_MAX) {
        (void)snprintf(q->token, sizeof q->token, "%s", token);
        return true;
    }
    bool more = q->from == AWS_OP_ListServiceQuotas;
    q->from = AWS_OP_ListAWSDefaultServiceQuotas;
    q->token[0] = '\0';
    q->pages = 0;
    return more;
}

static void on_quotas(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct quota_request_call *q = ctx;
    if (f != NULL) {
        end(q, NULL, NULL, f);
        return;
    }
    const char *code = code_of(json_object_get(o, "Quotas"), q->name);
    if (code != NULL) {
        ask(q, code);
    } else if (next_page(q, json_string_value(json_object_get(o, "NextToken")))) {
        send_page(q);
    } else {
        end(q, NULL, NULL, NULL);
    }
}

void quota_request(struct aws_client *c, const char *name, int64_t value, quota_request_cb cb,
                   void *ctx)
{
    struct quota_request_call *q = xcalloc(1, sizeof *q);
    *q = (struct quota_request_call){
        .client = c, .cb = cb, .ctx = ctx, .from = AWS_OP_ListServiceQuotas, .value = value};
    (void)snprintf(q->name, sizeof q->name, "%s", name);
    send_page(q);
}
