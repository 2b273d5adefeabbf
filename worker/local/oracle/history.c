/* See history.h. */
#include "history.h"
#include "common/clock.h"
#include "local/app.h"
#include "local/jobs/job.h"
#include <stdio.h>

#define COUNT_MAX 100000

struct past {
    const char *name; /* with {} for the number */
    int64_t count;
    usec_t from, until;
};

static bool past_parse(const json_t *in, struct past *ret, struct err *err)
{
    usec_t now = clock_wall_us();
    if (!json_get_str(in, "name", "", &ret->name, err) ||
        !json_get_i64(in, "count", 1, COUNT_MAX, 1, &ret->count, err) ||
        !json_get_epoch(in, "from", now, &ret->from, err) ||
        !json_get_epoch(in, "until", now, &ret->until, err)) {
        return false;
    }
    return (strstr(ret->name, "{}") != NULL && ret->from <= ret->until) ||
           err_set(err, ERR_INVALID, "'name' has {} for the number, 'from' is before 'until'");
}

static void past_add(struct jobs *jobs, const char *name, usec_t created)
{
    if (jobs->n >= JOBS_MAX || jobs_find(jobs, name) != NULL) {
        return;
    }
    json_t *request = json_pack("{s:s, s:{s:s}, s:{s:s, s:i, s:i}, s:{}}", "TrainingJobName", name,
                                "OutputDataConfig", "S3OutputPath", "s3://past/", "ResourceConfig",
                                "InstanceType", "ml.c5.xlarge", "InstanceCount", 1,
                                "VolumeSizeInGB", 30, "StoppingCondition");
    struct local_job *job = job_new(name, request, created);
    json_decref(request);
    job->ghost = true;
    job_end(job, PHASE_COMPLETED, "", created, created);
    jobs_add(jobs, job);
}

void history_post(struct request *r)
{
    struct past p;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *in = NULL;
    if (!json_parse(buf_str(&r->body), REQUEST_BODY_BYTES_MAX, &in, &err) ||
        !past_parse(in, &p, &err)) {
        reply_error(r, 400, "Invalid", "%s", err.message);
        return;
    }
    const char *at = strstr(p.name, "{}");
    for (int64_t i = 0; i < p.count; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s%lld%s", (int)(at - p.name), p.name, (long long)i,
                       at + 2);
        past_add(&r->app->jobs, name, p.from + (p.until - p.from) * i / p.count);
    }
    reply_json(r, json_pack("{s:I}", "jobs", (json_int_t)r->app->jobs.n));
}
