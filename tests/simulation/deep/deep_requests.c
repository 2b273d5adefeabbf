/* What droverd asks for: linked in place of aws/ and the calls of common/s3.c, each becomes a
 * request in flight (deep_calls.c). */
#include "deep_calls_private.h"
#include <stdio.h>

struct sagemaker_call *sagemaker_create(struct aws_client *c, struct aws_gate gate,
                                        struct str request, sagemaker_create_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, CREATE, "", ctx);
    rates_asked(k->p);
    char *body = world_alloc(request.n + 1);
    memcpy(body, request.p, request.n);
    k->body = (struct str){body, request.n};
    const char *at = strstr(k->body.p, "\"TrainingJobName\":\"");
    if (at != NULL) {
        (void)sscanf(at + strlen("\"TrainingJobName\":\""), "%63[^\"]", k->name);
    }
    k->cb.create = cb;
    return k;
}

struct sagemaker_call *sagemaker_describe(struct aws_client *c, struct aws_gate gate,
                                          const char *name, sagemaker_describe_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, DESCRIBE, name, ctx);
    k->cb.describe = cb;
    return k;
}

struct sagemaker_call *sagemaker_list(struct aws_client *c, struct aws_gate gate,
                                      const struct job_list_query *q, sagemaker_list_cb cb,
                                      void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, LIST, q->contains, ctx);
    k->list = (struct list_asked){.created_after = q->created_after,
                                  .created_before = q->created_before,
                                  .status = q->status,
                                  .pool = q->pool,
                                  .from = strtoul(q->token, NULL, 10)};
    k->cb.list = cb;
    return k;
}

struct sagemaker_call *sagemaker_stop(struct aws_client *c, struct aws_gate gate, const char *name,
                                      sagemaker_stop_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, STOP, name, ctx);
    k->cb.stop = cb;
    return k;
}

struct sagemaker_call *sagemaker_update_keep_alive(struct aws_client *c, struct aws_gate gate,
                                                   const char *name, int64_t seconds,
                                                   sagemaker_update_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, UPDATE, name, ctx);
    k->seconds = seconds;
    k->cb.update = cb;
    return k;
}

/* The answer is in k->arn. */
struct sagemaker_call *sagemaker_tag(struct aws_client *c, struct aws_gate gate, const char *arn,
                                     const char *key, sagemaker_tag_cb cb, void *ctx)
{
    const char *name = strrchr(arn, '/');
    ASSERT(name != NULL && strcmp(key, "drover-install") == 0);
    struct sagemaker_call *k = call_named(c, gate, TAG, name + 1, ctx);
    k->cb.tag = cb;
    return k;
}

struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, QUOTAS, "", ctx);
    k->cb.quotas = cb;
    return (struct quotas_call *)(void *)k;
}

void quotas_cancel(struct quotas_call *call)
{
    sagemaker_cancel((struct sagemaker_call *)(void *)call);
}

void logs_tail(struct aws_client *c, const char *job_name, int limit, const char *token, logs_cb cb,
               void *ctx)
{
    (void)limit;
    (void)token;
    struct sagemaker_call *k = call_named(c, (struct aws_gate){0}, LOGS, job_name, ctx);
    k->cb.logs = cb;
}

struct job_log_call *job_log_read(struct aws_client *c, struct aws_gate gate, const char *job_name,
                                  job_log_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_named(c, gate, JOB_LOG, job_name, ctx);
    k->cb.job_log = cb;
    return (struct job_log_call *)(void *)k;
}

void job_log_cancel(struct job_log_call *call)
{
    sagemaker_cancel((struct sagemaker_call *)(void *)call);
}

static struct sagemaker_call *s3_call(struct aws_client *c, enum call_kind kind,
                                      const struct s3_uri *u, s3_cb cb, void *ctx)
{
    struct sagemaker_call *k = call_new(c, kind, ctx);
    k->uri = *u;
    k->cb.s3 = cb;
    return k;
}

void __wrap_s3_get(struct aws_client *c, const struct s3_uri *u, int64_t range_from,
                   int64_t range_to_incl, size_t max_bytes, s3_cb cb, void *ctx)
{
    (void)range_from;
    (void)range_to_incl;
    (void)max_bytes;
    (void)s3_call(c, S3_GET, u, cb, ctx);
}

void __wrap_s3_head(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx)
{
    (void)s3_call(c, S3_HEAD, u, cb, ctx);
}

void __wrap_s3_list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                    void *ctx)
{
    (void)max_keys;
    (void)s3_call(c, S3_LIST, u, cb, ctx);
}

void __wrap_s3_list_page(struct aws_client *c, const struct s3_uri *u, const char *after,
                         const char *token, s3_cb cb, void *ctx)
{
    struct sagemaker_call *k = s3_call(c, S3_PAGE, u, cb, ctx);
    k->page_after = xstrdup(after);
    k->page_token = token != NULL ? xstrdup(token) : NULL;
}
