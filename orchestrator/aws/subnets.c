/* See subnets.h. */
#include "subnets.h"
#include "common/cleanup.h"
#include "common/xml.h"
#include "json_call.h"
#include <stdio.h>

#define ITEM_DEPTH 3 /* DescribeSubnetsResponse, subnetSet, item */

struct subnets_call {
    subnets_cb cb;
    void *ctx;
    struct subnet list[SUBNETS_MAX];
    size_t n;
};

static void take_text(const struct xml *x, struct str text, struct subnet *ret)
{
    struct str name = x->name[x->depth - 1];
    if (x->depth != ITEM_DEPTH + 1 || !str_eq_cstr(x->name[1], "subnetSet")) {
        return;
    }
    if (str_eq_cstr(name, "subnetId")) {
        (void)snprintf(ret->id, sizeof ret->id, STR_FMT, STR_ARG(text));
    } else if (str_eq_cstr(name, "availabilityZone")) {
        (void)snprintf(ret->zone, sizeof ret->zone, STR_FMT, STR_ARG(text));
    } else if (str_eq_cstr(name, "availableIpAddressCount") &&
               !parse_i64(text, 0, INT32_MAX, &ret->free_n, NULL)) {
        ret->free_n = -1;
    }
}

/* False: not the whole answer, or a subnet without its figures. */
static bool read_answer(struct str body, struct subnets_call *call)
{
    struct xml x;
    struct str text;
    struct subnet one = {.free_n = -1};
    xml_init(&x, body);
    for (;;) {
        switch (xml_next(&x, &text)) {
        case XML_OPEN:
            break;
        case XML_TEXT:
            take_text(&x, text, &one);
            break;
        case XML_CLOSE:
            if (x.depth == ITEM_DEPTH - 1 && one.id[0] != '\0') {
                if (one.free_n < 0 || call->n == SUBNETS_MAX) {
                    return false;
                }
                call->list[call->n++] = one;
                one = (struct subnet){.free_n = -1};
            }
            break;
        case XML_END:
            return true;
        case XML_ERROR:
            return false;
        }
    }
}

static void on_answer(void *ctx, const struct aws_reply *r)
{
    AUTO_FREE struct subnets_call *call = ctx;
    struct aws_failure f;
    if (r->outcome == AWS_OK && read_answer(r->body, call)) {
        call->cb(call->ctx, call->list, call->n, NULL);
        return;
    }
    aws_failure_from(r, &f);
    if (r->outcome == AWS_OK) {
        f.outcome = AWS_UNKNOWN;
        (void)snprintf(f.message, sizeof f.message, "an answer without whole subnets");
    }
    call->cb(call->ctx, NULL, 0, &f);
}

void subnets_describe(struct aws_client *c, const char *ids, subnets_cb cb, void *ctx)
{
    struct subnets_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(AWS_REQUEST_BYTES_MAX);
    struct str rest = str_of(ids);
    call->cb = cb;
    call->ctx = ctx;
    buf_add_cstr(&body, "Action=DescribeSubnets&Version=2016-11-15");
    for (int i = 1; rest.n > 0 && i <= SUBNETS_MAX; i++) {
        buf_addf(&body, "&SubnetId.%d=", i);
        str_url_encode(&body, str_split(&rest, ','), false);
    }
    const struct aws_call aws =
        aws_operation_call(AWS_OP_DescribeSubnets, (struct aws_gate){NULL, NULL}, buf_str(&body));
    (void)aws_send(c, &aws, on_answer, call);
}
