/* Answers what API handlers ask of AWS, in every droverd, leader or not: S3 listings, log tails,
 * endpoints. */
#include "bridge_answers.h"
#include "aws/event_queue.h"
#include "aws/hosting.h"
#include "aws/identity.h"
#include "aws/images.h"
#include "aws/logs.h"
#include "aws/quota_request.h"
#include "aws/subnets.h"
#include "common/log.h"
#include "core/leader/answer_error.h"
#include "lease.h"
#include "object_listing.h"
#include "output_check.h"
#include "shell.h"
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define MODEL_ANSWER_MAX (8 * 1024 * 1024)

struct bridge_call {
    struct bridge *bridge;
    struct api_status *status;
    struct bridge_question q;
    void *mapped; /* S3_PUT: the file */
    struct aws_client *aws;
};

static void on_log(void *ctx, struct str json, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    buf_init(&reply.json, 8 * 1024 * 1024);
    if (f == NULL) {
        buf_add_str(&reply.json, json);
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        struct err err = ERR_INIT;
        (void)err_set(&err, answer_error_log(f, a->q.token[0] != '\0'),
                      "cannot read the log of '%s': %.64s %.500s", a->q.job, f->code, f->message);
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    bridge_reply_done(&reply);
    free(a);
}

static void on_model(void *ctx, const struct endpoint_answer *m, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    struct err err = ERR_INIT;
    buf_init(&reply.json, MODEL_ANSWER_MAX);
    if (f != NULL) {
        (void)err_set(&err, answer_error(f), "endpoint '%s' cannot be asked: %.64s %.500s",
                      a->q.endpoint, f->code, f->message);
        bridge_refuse(a->bridge, a->q.id, &err);
    } else if (answer_error_model(m->status) != ERR_NONE) {
        (void)err_set(&err, answer_error_model(m->status), "the model answered with %d: %.*s",
                      m->status, (int)MIN(m->body.n, (size_t)500), m->body.p);
        bridge_refuse(a->bridge, a->q.id, &err);
    } else {
        buf_add_str(&reply.json, m->body);
        (void)snprintf(reply.content_type, sizeof reply.content_type, "%s", m->content_type);
        bridge_answer(a->bridge, a->q.id, &reply);
    }
    bridge_reply_done(&reply);
    free(a);
}

static void on_put(void *ctx, const struct s3_result *r)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    (void)munmap(a->mapped, (size_t)a->q.size);
    if (r->outcome == AWS_OK) {
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        struct err err = r->err;
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    free(a);
}

static void ask_put(struct controller *c, struct bridge_call *a)
{
    struct s3_uri u;
    struct err err = ERR_INIT;
    bool ok = s3_parse_uri(str_of(a->q.uri), &u, &err);
    if (ok) {
        a->mapped = mmap(NULL, (size_t)a->q.size, PROT_READ, MAP_PRIVATE, a->q.fd, 0);
        ok = a->mapped != MAP_FAILED ||
             err_set_os(&err, ERR_IO, errno, "cannot map what is to be sent to '%s'", a->q.uri);
    }
    if (!ok) {
        bridge_refuse(a->bridge, a->q.id, &err);
        free(a);
        return;
    }
    s3_put_lent(c->aws_plain, &u, (struct str){a->mapped, (size_t)a->q.size},
                a->q.content_type[0] != '\0' ? a->q.content_type : "application/gzip",
                c->cfg.bucket_kms_key, on_put, a);
}

static void on_delete(void *ctx, const struct s3_result *r)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    if (answer_error_deleted(r->outcome, r->status)) {
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        struct err err = r->err;
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    free(a);
}

static void ask_delete(struct controller *c, struct bridge_call *a)
{
    struct s3_uri u;
    struct err err = ERR_INIT;
    if (s3_parse_uri(str_of(a->q.uri), &u, &err)) {
        s3_delete(c->aws_plain, &u, on_delete, a);
        return;
    }
    bridge_refuse(a->bridge, a->q.id, &err);
    free(a);
}

static void on_identity(void *ctx, const struct aws_identity *who, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    int64_t account = 0;
    if (f == NULL) {
        struct json_out w;
        if (parse_i64(str_of(who->account), 1, INT64_MAX, &account, NULL)) {
            atomic_store(&a->status->account, account);
            atomic_store(&a->status->aws_ok, true);
        }
        buf_init(&reply.json, 8192);
        json_out_init(&w, &reply.json);
        json_out_object(&w, NULL);
        json_out_str(&w, "account", who->account);
        json_out_str(&w, "arn", who->arn);
        json_out_i64(&w, "skew_seconds", aws_client_skew_us(a->aws) / USEC_PER_SEC);
        json_out_end_object(&w);
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        struct err err = ERR_INIT;
        (void)err_set(&err, answer_error(f), "GetCallerIdentity: %.64s %.500s", f->code,
                      f->message);
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    bridge_reply_done(&reply);
    free(a);
}

static void on_image(void *ctx, const char *digest, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    struct err err = ERR_INIT;
    if (digest != NULL) {
        buf_init(&reply.json, IMAGE_DIGEST_N);
        buf_add_cstr(&reply.json, digest);
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        if (f == NULL) {
            (void)err_set(&err, ERR_NOT_FOUND, "ECR has no such image");
        } else {
            (void)err_set(&err, answer_error(f), "BatchGetImage: %.64s %.500s", f->code,
                          f->message);
        }
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    bridge_reply_done(&reply);
    free(a);
}

static void on_subnets(void *ctx, const struct subnet *list, size_t n, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    struct json_out w;
    if (f != NULL) {
        struct err err = ERR_INIT;
        (void)err_set(&err, answer_error(f), "DescribeSubnets: %.64s %.500s", f->code, f->message);
        bridge_refuse(a->bridge, a->q.id, &err);
        free(a);
        return;
    }
    buf_init(&reply.json, 65536);
    json_out_init(&w, &reply.json);
    json_out_array(&w, NULL);
    for (size_t i = 0; i < n; i++) {
        json_out_object(&w, NULL);
        json_out_str(&w, "id", list[i].id);
        json_out_str(&w, "zone", list[i].zone);
        json_out_i64(&w, "free", list[i].free_n);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    bridge_answer(a->bridge, a->q.id, &reply);
    bridge_reply_done(&reply);
    free(a);
}

static void on_quota(void *ctx, const char *id, const char *status, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    struct bridge_reply reply = {0};
    struct err err = ERR_INIT;
    struct json_out w;
    if (f == NULL && id != NULL) {
        buf_init(&reply.json, 1024);
        json_out_init(&w, &reply.json);
        json_out_object(&w, NULL);
        json_out_str(&w, "id", id);
        json_out_str(&w, "status", status);
        json_out_end_object(&w);
        bridge_answer(a->bridge, a->q.id, &reply);
    } else {
        if (f == NULL) {
            (void)err_set(&err, ERR_NOT_FOUND, "AWS has no quota \"%.160s\"", a->q.uri);
        } else {
            (void)err_set(&err, answer_error(f), "Service Quotas: %.64s %.500s", f->code,
                          f->message);
        }
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    bridge_reply_done(&reply);
    free(a);
}

static void answer_queue(struct bridge_call *a, const char *url, int64_t waiting)
{
    struct bridge_reply reply = {0};
    struct json_out w;
    buf_init(&reply.json, 8192);
    json_out_init(&w, &reply.json);
    json_out_object(&w, NULL);
    json_out_str(&w, "queue", url);
    json_out_i64(&w, "waiting", waiting);
    json_out_end_object(&w);
    bridge_answer(a->bridge, a->q.id, &reply);
    bridge_reply_done(&reply);
}

static void on_queue(void *ctx, int64_t waiting, const struct aws_failure *f)
{
    struct bridge_call *a = ctx;
    if (f == NULL) {
        answer_queue(a, a->q.uri, waiting);
    } else {
        struct err err = ERR_INIT;
        (void)err_set(&err, answer_error(f), "GetQueueAttributes: %.64s %.500s", f->code,
                      f->message);
        bridge_refuse(a->bridge, a->q.id, &err);
    }
    free(a);
}

static void ask_queue(struct controller *c, struct bridge_call *a)
{
    const char *url = c->cfg.events_queue_url;
    if (url == NULL || url[0] == '\0') {
        answer_queue(a, "", 0);
        free(a);
        return;
    }
    (void)snprintf(a->q.uri, sizeof a->q.uri, "%s", url);
    (void)event_queue_look(c->aws_plain, (struct aws_gate){NULL, NULL}, url, on_queue, a);
}

static void ask(struct controller *c, struct bridge_call *a)
{
    const struct bridge_question *q = &a->q;
    switch (q->kind) {
    case BRIDGE_S3_LIST: /* object_listing.c */
        break;
    case BRIDGE_LOG_TAIL:
        logs_tail(c->aws_plain, q->job, (int)q->max, q->token, on_log, a);
        break;
    case BRIDGE_INVOKE:
        (void)endpoint_invoke(c->aws_plain, (struct aws_gate){NULL, NULL}, q->endpoint,
                              q->content_type, q->body, on_model, a);
        break;
    case BRIDGE_S3_PUT:
        ask_put(c, a);
        break;
    case BRIDGE_S3_DELETE:
        ask_delete(c, a);
        break;
    case BRIDGE_IDENTITY:
        identity_get(c->aws_plain, on_identity, a);
        break;
    case BRIDGE_IMAGE:
        image_digest(c->aws_plain, q->job, q->uri, q->token, on_image, a);
        break;
    case BRIDGE_SUBNETS:
        subnets_describe(c->aws_plain, q->uri, on_subnets, a);
        break;
    case BRIDGE_QUOTA:
        quota_request(c->aws_plain, q->uri, q->max, on_quota, a);
        break;
    case BRIDGE_EVENTS:
        ask_queue(c, a);
        break;
    }
}

static void on_question(void *ctx, int fd, uint32_t events)
{
    struct controller *c = ctx;
    struct bridge_question q;
    (void)fd;
    (void)events;
    while (bridge_take(c->bridge, &q)) {
        if (q.kind == BRIDGE_S3_LIST) {
            object_listing_start(c, &q);
            continue;
        }
        struct bridge_call *a = xcalloc(1, sizeof *a);
        a->bridge = c->bridge;
        a->status = c->status;
        a->aws = c->aws_plain;
        a->q = q;
        ask(c, a);
    }
}

bool bridge_answers_start(struct controller *c, struct err *err)
{
    (void)err;
    c->bridge_watch = loop_fd_add(c->loop, bridge_fd(c->bridge), EPOLLIN, on_question, c);
    return true;
}

void bridge_answers_stop(struct controller *c)
{
    loop_fd_del(c->loop, c->bridge_watch);
    c->bridge_watch = NULL;
    object_listings_stop(c);
}
