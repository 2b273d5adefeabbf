/* Asks for one kind of product after the other, page by page. See pricing.h. */
#include "pricing.h"
#include "common/aws.h"
#include "common/json.h"
#include "json_call.h"
#include "price_list.h"
#include <stdio.h>

#define TOKEN_N 4097

static const struct {
    const char *service;
    struct {
        const char *field, *value;
    } filters[3];
} kinds[] = {
    {"AmazonSageMaker", {{"productFamily", "ML Instance"}, {"platoinstancetype", "Training"}}},
    {"AmazonSageMaker", {{"productFamily", "ML Instance"}, {"platoinstancetype", "Hosting"}}},
    {"AmazonFSx", {{"productFamily", "Storage"}, {"fileSystemType", "Lustre"}}},
};

struct pricing_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct json_call *call;
    pricing_cb cb;
    void *ctx;
    char region[64];
    char token[TOKEN_N];
    size_t kind;
    int pages;
    struct price_reading reading;
};

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f);

const char *pricing_region(const char *region)
{
    static const struct {
        const char *prefix, *region;
    } rows[] = {{"cn-", "cn-northwest-1"},
                {"ap-", "ap-south-1"},
                {"eu-", "eu-central-1"},
                {"af-", "eu-central-1"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_starts(str_of(region), rows[i].prefix)) {
            return rows[i].region;
        }
    }
    return "us-east-1";
}

bool pricing_covers(const char *region)
{
    return strcmp(aws_partition(region), "aws") == 0;
}

static void call_free(struct pricing_call *p)
{
    free(p->reading.list);
    free(p);
}

void pricing_cancel(struct pricing_call *p)
{
    if (p != NULL) {
        json_call_cancel(p->call);
        call_free(p);
    }
}

static void filter(struct json_out *w, const char *field, const char *value)
{
    json_out_object(w, NULL);
    json_out_str(w, "Type", "TERM_MATCH");
    json_out_str(w, "Field", field);
    json_out_str(w, "Value", value);
    json_out_end_object(w);
}

static void send_page(struct pricing_call *p)
{
    AUTO_BUF struct buf body = BUF_INIT(8192);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "ServiceCode", kinds[p->kind].service);
    json_out_array(&w, "Filters");
    filter(&w, "regionCode", p->region);
    for (size_t i = 0; i < ARRAY_LEN(kinds[0].filters) && kinds[p->kind].filters[i].field != NULL;
         i++) {
        filter(&w, kinds[p->kind].filters[i].field, kinds[p->kind].filters[i].value);
    }
    json_out_end_array(&w);
    json_out_str(&w, "FormatVersion", "aws_v1");
    json_out_i64(&w, "MaxResults", 100);
    if (p->token[0] != '\0') {
        json_out_str(&w, "NextToken", p->token);
    }
    json_out_end_object(&w);
    p->call = json_call_send(p->client, p->gate, AWS_OP_GetProducts, buf_str(&body), on_page, p);
}

static void fail(struct pricing_call *p, const struct aws_failure *f)
{
    p->cb(p->ctx, NULL, f);
    call_free(p);
}

static void fail_text(struct pricing_call *p, const char *text)
{
    struct aws_failure f = {.outcome = AWS_UNKNOWN};
    (void)snprintf(f.message, sizeof f.message, "%s", text);
    fail(p, &f);
}

/* False: there are too many. */
static bool keep_page(struct pricing_call *p, const json_t *list)
{
    size_t i;
    json_t *text;
    json_array_foreach(list, i, text)
    {
        struct price_value v;
        struct err why = ERR_INIT;
        const char *s = json_string_value(text);
        p->reading.products++;
        enum price_product how =
            price_product_read(str_of(s != NULL ? s : ""), p->region, &v, &why);
        p->reading.unreadable += how == PRICE_PRODUCT_BROKEN;
        if (how == PRICE_PRODUCT_READ && !price_reading_add(&p->reading, &v)) {
            return false;
        }
    }
    return true;
}

/* The token of the next page, or the next kind of product. False: that was all. */
static bool next_page(struct pricing_call *p, const char *token)
{
    if (token[0] != '\0') {
        (void)snprintf(p->token, sizeof p->token, "%s", token);
        return true;
    }
    p->token[0] = '\0';
    p->pages = 0;
    return ++p->kind < ARRAY_LEN(kinds);
}

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct pricing_call *p = ctx;
    p->call = NULL;
    if (f != NULL) {
        fail(p, f);
        return;
    }
    const char *token = json_string_value(json_object_get(o, "NextToken"));
    token = token != NULL ? token : "";
    if (!json_is_array(json_object_get(o, "PriceList"))) {
        fail_text(p, "unreadable answer to GetProducts: no PriceList");
        return;
    }
    if (!keep_page(p, json_object_get(o, "PriceList")) || ++p->pages > JSON_CALL_PAGES_MAX ||
        strlen(token) >= sizeof p->token || (token[0] != '\0' && strcmp(token, p->token) == 0)) {
        fail_text(p, "AWS Pricing lists more products than one region can have");
        return;
    }
    if (next_page(p, token)) {
        send_page(p);
        return;
    }
    if (p->reading.n == 0) {
        fail_text(p, "AWS Pricing lists no price for this region");
        return;
    }
    p->cb(p->ctx, &p->reading, NULL);
    call_free(p);
}

struct pricing_call *pricing_read(struct aws_client *c, struct aws_gate gate, const char *region,
                                  pricing_cb cb, void *ctx)
{
    struct pricing_call *p = xcalloc(1, sizeof *p);
    ASSERT(strlen(region) < sizeof p->region);
    p->client = c;
    p->gate = gate;
    p->cb = cb;
    p->ctx = ctx;
    (void)snprintf(p->region, sizeof p->region, "%s", region);
    send_page(p);
    return p;
}
