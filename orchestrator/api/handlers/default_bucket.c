/* See default_bucket.h. */
#include "default_bucket.h"
#include "common/cleanup.h"
#include "core/catalog/image_ref.h"

#define IDENTITY_US (10 * USEC_PER_SEC)

static bool account_of(struct api_req *r, int64_t *ret, struct err *err)
{
    const struct bridge_question q = {.kind = BRIDGE_IDENTITY};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    AUTO_JSON json_t *who = NULL;
    const struct api_status *status = req_config(r)->status;
    *ret = status != NULL ? atomic_load(&status->account) : 0;
    if (*ret > 0) {
        return true;
    }
    return req_bridge(r, &q, IDENTITY_US, &reply, err) &&
           json_parse(buf_str(&reply.json), reply.json.n, &who, err) &&
           parse_i64(str_of(json_string_value(json_object_get(who, "account"))), 1,
                     INT64_C(999999999999), ret, err);
}

bool default_bucket(struct api_req *r, const char **ret, struct err *err)
{
    const struct spec_defaults *d = &req_config(r)->defaults;
    int64_t account;
    if (d->bucket != NULL) {
        *ret = d->bucket;
        return true;
    }
    if (d->region == NULL || d->region[0] == '\0') {
        return err_set(err, ERR_INVALID, "there is no bucket and no region: set DROVER_BUCKET");
    }
    if (!account_of(r, &account, err)) {
        return err_wrap(err, "the default bucket is not known");
    }
    *ret = arena_printf(&r->arena, "s3://sagemaker-%s-%0*lld", d->region, ACCOUNT_DIGITS,
                        (long long)account);
    return true;
}
