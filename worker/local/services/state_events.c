/* See state_events.h. */
#include "state_events.h"
#include "common/clock.h"
#include "common/hash.h"
#include "local/app.h"
#include "local/sagemaker/sagemaker_local.h"
#include "sqs_local.h"
#include <stdio.h>

#define SOURCE       "aws.sagemaker"
#define LATE_US      (30 * USEC_PER_SEC)
#define REORDERED_US (2 * USEC_PER_SEC)

/* Milliseconds as text, as AWS' own sample has them. */
static json_t *milliseconds(usec_t t)
{
    AUTO_FREE char *text = xasprintf("%lld", (long long)(t / USEC_PER_MSEC));
    return json_string(text);
}

static void copy_members(json_t *detail, const json_t *request)
{
    static const char *const keys[] = {"HyperParameters", "AlgorithmSpecification", "RoleArn",
                                       "InputDataConfig", "OutputDataConfig",       "VpcConfig",
                                       "ResourceConfig",  "StoppingCondition"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_t *v = json_object_get(request, keys[i]);
        if (v != NULL) {
            (void)json_object_set(detail, keys[i], v);
        }
    }
}

/* The job as it was in its k-th step. */
static json_t *detail_of(const struct app *app, const struct local_job *job, size_t k)
{
    const struct transition *t = &job->transitions[k];
    bool last = k + 1 == job->transitions_n;
    char arn[SAGEMAKER_ARN_MAX];
    sagemaker_arn(app, job->name, arn);
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:{}}", "TrainingJobName", job->name, "TrainingJobArn", arn,
        "TrainingJobStatus", job_status_name(job_phase_status(t->phase)), "SecondaryStatus",
        job_phase_name(t->phase), "CreationTime", milliseconds(job->created), "LastModifiedTime",
        milliseconds(last ? job->modified : t->start), "Tags");
    copy_members(o, job->request);
    if (t->phase == PHASE_FAILED) {
        (void)json_object_set_new(o, "FailureReason", json_string(job->reason));
    }
    if (job->started != 0) {
        (void)json_object_set_new(o, "TrainingStartTime", milliseconds(job->started));
    }
    if (job->ended != 0 && last) {
        (void)json_object_set_new(o, "TrainingEndTime", milliseconds(job->ended));
    }
    return o;
}

static char *event_text(const struct app *app, const struct local_job *job, size_t k)
{
    char arn[SAGEMAKER_ARN_MAX], digest[SHA256_HEX_N], at[32];
    AUTO_FREE char *seed = xasprintf("%s %zu", job->name, k);
    sagemaker_arn(app, job->name, arn);
    hash_sha256_hex(seed, strlen(seed), digest);
    clock_format_rfc3339(job->transitions[k].start, false, at);
    AUTO_FREE char *id = xasprintf("%.8s-%.4s-4%.3s-8%.3s-%.12s", digest, digest + 8, digest + 12,
                                   digest + 16, digest + 20);
    AUTO_JSON json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:[s], s:o}", "version", "0", "id", id, "detail-type",
        "SageMaker Training Job State Change", "source", SOURCE, "account", app->set.account,
        "time", at, "region", app->set.region, "resources", arn, "detail", detail_of(app, job, k));
    return json_text(o);
}

static void tell(struct app *app, const struct local_job *job, size_t k)
{
    AUTO_FREE char *body = event_text(app, job, k);
    const struct injected_fault *f = faults_take_event(&app->faults, job->name);
    usec_t now = clock_wall_us();
    if (f != NULL && f->kind == FAULT_EVENT_LOST) {
        return;
    }
    bool late = f != NULL && f->kind == FAULT_EVENT_LATE;
    bool held = f != NULL && f->kind == FAULT_EVENT_REORDERED;
    usec_t visible = late   ? now + fault_delay_us(f, LATE_US)
                     : held ? now + fault_delay_us(f, REORDERED_US)
                            : now;
    queues_put_event(app, SOURCE, body, visible, held);
    if (f != NULL && f->kind == FAULT_EVENT_TWICE) {
        queues_put_event(app, SOURCE, body, now + fault_delay_us(f, 0), false);
    }
}

void state_events_tell(struct app *app, struct local_job *job)
{
    for (; job->told_n < job->transitions_n; job->told_n++) {
        tell(app, job, job->told_n);
    }
}
