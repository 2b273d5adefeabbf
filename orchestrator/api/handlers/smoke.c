/* The objects of a smoke campaign (drover smoke): PUT makes its input below
 * BUCKET/drover-smoke/ID/, DELETE takes that folder away. droverd's role may delete there and
 * nowhere else. */
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/routes.h"
#include "common/cleanup.h"
#include "default_bucket.h"
#include "refused.h"
#include "store/pg/tx.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMOKE_US          (10 * USEC_PER_SEC)
#define SMOKE_OBJECTS_MAX 50 /* input, copy, manifest, receipt, and what killed attempts left */

/* s3://BUCKET/drover-smoke/ID */
static bool folder_of(struct api_req *r, const char **ret, struct err *err)
{
    const char *bucket;
    if (!default_bucket(r, &bucket, err)) {
        return false;
    }
    size_t n = strlen(bucket);
    n -= n > 0 && bucket[n - 1] == '/';
    *ret = arena_printf(&r->arena, "%.*s/drover-smoke/" STR_FMT, (int)n, bucket,
                        STR_ARG(r->params[0]));
    return strlen(*ret) < sizeof((struct bridge_question *)0)->uri - 32 ||
           err_set(err, ERR_INVALID, "the bucket's name is too long: set DROVER_BUCKET");
}

static bool put(struct api_req *r, const char *uri, struct err *err)
{
    AUTO_FD int fd = memfd_create("smoke", MFD_CLOEXEC);
    const char *text = arena_printf(&r->arena, "drover smoke " STR_FMT "\n", STR_ARG(r->params[0]));
    size_t n = strlen(text);
    struct bridge_question q = {
        .kind = BRIDGE_S3_PUT, .fd = fd, .size = (int64_t)n, .content_type = "text/plain"};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    (void)snprintf(q.uri, sizeof q.uri, "%s", uri);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n) {
        return err_set_os(err, ERR_IO, errno, "cannot keep what is to be sent to '%s'", uri);
    }
    return req_bridge(r, &q, SMOKE_US, &reply, &why) || refused_by_s3(&why, "s3:PutObject", err);
}

static bool noted(struct api_req *r, const char *action, const char *detail, struct err *err)
{
    AUTO_TX struct store *tx = r->db;
    const char *subject = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    return tx_begin(tx, TX_WRITE, err) && req_audit(r, action, subject, detail, err) &&
           tx_commit(tx, err);
}

bool smoke_put(struct api_req *r, struct err *err)
{
    const char *folder;
    if (!req_db(r, err) || !folder_of(r, &folder, err)) {
        return false;
    }
    const char *input = arena_printf(&r->arena, "%s/input.txt", folder);
    if (!put(r, input, err) || !noted(r, "smoke.put", "{}", err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_strn(&w, "id", r->params[0]);
    json_out_str(&w, "folder", arena_printf(&r->arena, "%s/", folder));
    json_out_str(&w, "input", input);
    json_out_end_object(&w);
    return reply_out(r, 200);
}

static bool delete_one(struct api_req *r, const char *uri, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_S3_DELETE};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    (void)snprintf(q.uri, sizeof q.uri, "%s", uri);
    return req_bridge(r, &q, SMOKE_US, &reply, &why) || refused_by_s3(&why, "s3:DeleteObject", err);
}

bool smoke_delete(struct api_req *r, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_S3_LIST, .max = SMOKE_OBJECTS_MAX};
    CLEANUP(bridge_reply_done)
    struct bridge_reply there = {0};
    struct err why = ERR_INIT;
    const char *folder;
    if (!req_db(r, err) || !folder_of(r, &folder, err)) {
        return false;
    }
    (void)snprintf(q.uri, sizeof q.uri, "%s/**", folder);
    if (!req_bridge(r, &q, SMOKE_US, &there, &why) && why.code != ERR_NOT_FOUND) {
        return refused_by_s3(&why, "s3:ListBucket", err);
    }
    for (size_t i = 0; i < there.listing.n; i++) {
        if (!delete_one(r, there.listing.at[i].uri, err)) {
            return false;
        }
    }
    long long n = (long long)there.listing.n;
    if (n > 0 && !noted(r, "smoke.delete", arena_printf(&r->arena, "{\"objects\":%lld}", n), err)) {
        return false;
    }
    buf_addf(&r->out, "{\"id\":\"" STR_FMT "\",\"objects_deleted\":%lld}\n", STR_ARG(r->params[0]),
             n);
    return reply_out(r, 200);
}
