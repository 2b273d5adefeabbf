/* See identity.h. */
#include "identity.h"
#include "common/cleanup.h"
#include "common/xml.h"
#include "json_call.h"
#include <stdio.h>

struct identity_call {
    identity_cb cb;
    void *ctx;
};

static bool read_answer(struct str xml, struct aws_identity *ret)
{
    AUTO_BUF struct buf account = BUF_INIT(64);
    AUTO_BUF struct buf arn = BUF_INIT(2048);
    if (!xml_find(xml, "Account", &account) || account.n != IDENTITY_ACCOUNT_DIGITS ||
        strspn(buf_cstr(&account), "0123456789") != IDENTITY_ACCOUNT_DIGITS ||
        !xml_find(xml, "Arn", &arn)) {
        return false;
    }
    (void)snprintf(ret->account, sizeof ret->account, "%s", buf_cstr(&account));
    (void)snprintf(ret->arn, sizeof ret->arn, "%s", buf_cstr(&arn));
    return true;
}

static void on_answer(void *ctx, const struct aws_reply *r)
{
    AUTO_FREE struct identity_call *call = ctx;
    struct aws_identity who = {{0}, {0}};
    struct aws_failure f;
    if (r->outcome == AWS_OK && read_answer(r->body, &who)) {
        call->cb(call->ctx, &who, NULL);
        return;
    }
    aws_failure_from(r, &f);
    if (r->outcome == AWS_OK) {
        f.outcome = AWS_UNKNOWN;
        (void)snprintf(f.message, sizeof f.message, "an answer without an account");
    }
    call->cb(call->ctx, NULL, &f);
}

void identity_get(struct aws_client *c, identity_cb cb, void *ctx)
{
    struct identity_call *call = xcalloc(1, sizeof *call);
    *call = (struct identity_call){cb, ctx};
    const struct aws_call aws =
        aws_operation_call(AWS_OP_GetCallerIdentity, (struct aws_gate){NULL, NULL},
                           STR("Action=GetCallerIdentity&Version=2011-06-15"));
    (void)aws_send(c, &aws, on_answer, call);
}
