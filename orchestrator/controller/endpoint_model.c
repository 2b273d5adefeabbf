/* See endpoint_model.h. */
#include "endpoint_model.h"
#include "call_limits.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/retry.h"
#include "core/leader/endpoint_intent.h"
#include "lease.h"
#include "metrics.h"
#include "store/leader/endpoints.h"
#include <stdio.h>

#define MODEL_AGAIN_US     (2 * USEC_PER_SEC) /* after an answer that is none */
#define MODEL_AGAIN_MAX_US (60 * USEC_PER_SEC)

struct model_look { /* one for each stage that waits */
    struct model_look *next;
    struct controller *c;
    int64_t campaign_id, stage_id; /* that serves the model */
    int64_t made_by;               /* the stage that has made it */
    struct sagemaker_call *call;
    struct job_name job; /* "": not known yet */
    int failures;
    int64_t next_us;  /* boot */
    char place[1025]; /* "": not known yet */
};

static void look_free(struct model_look *look)
{
    sagemaker_cancel(look->call);
    free(look);
}

void endpoint_models_cancel(struct controller *c)
{
    while (c->model_looks != NULL) {
        struct model_look *look = c->model_looks;
        c->model_looks = look->next;
        look_free(look);
    }
}

static bool waits(struct controller *c, const struct model_look *look)
{
    int n;
    struct live_campaign *lc = leader_state_campaign(&c->state, look->campaign_id);
    const struct live_stage *ls = lc != NULL ? leader_state_stage(lc, look->stage_id) : NULL;
    return ls != NULL && leader_endpoint_due(&c->state, lc, ls, clock_wall_us(), &n);
}

void endpoint_models_forget(struct controller *c)
{
    for (struct model_look **at = &c->model_looks; *at != NULL;) {
        struct model_look *look = *at;
        if (waits(c, look)) {
            at = &look->next;
        } else {
            *at = look->next;
            look_free(look);
        }
    }
}

static struct model_look *look_of(struct controller *c, const struct live_campaign *lc,
                                  const struct live_stage *ls)
{
    for (struct model_look *look = c->model_looks; look != NULL; look = look->next) {
        if (look->stage_id == ls->row.id) {
            return look;
        }
    }
    struct model_look *look = xcalloc(1, sizeof *look);
    *look = (struct model_look){
        .next = c->model_looks, .c = c, .campaign_id = lc->row.id, .stage_id = ls->row.id};
    for (int i = 0; i < lc->stages_n; i++) {
        if (strcmp(lc->stages[i].row.name, ls->spec->endpoint->model_stage) == 0) {
            look->made_by = lc->stages[i].row.id;
        }
    }
    c->model_looks = look;
    return look;
}

static void look_again(struct model_look *look, const char *why)
{
    log_event(LOG_WARN, "model_unknown", LF_I("stage", look->stage_id), LF_S("job", look->job.s),
              LF_S("why", why));
    look->next_us =
        clock_boot_us() + retry_step_us(MODEL_AGAIN_US, MODEL_AGAIN_MAX_US, look->failures++);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct model_look *look = ctx;
    look->call = NULL;
    look->c->state.look_at_db = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    if (f != NULL || not_found || job->artifacts[0] == '\0') {
        look_again(look, f != NULL ? f->message : not_found ? "no such job" : "no artifacts");
    } else {
        (void)snprintf(look->place, sizeof look->place, "%s", job->artifacts);
    }
}

static bool read_job(struct controller *c, void *arg, struct err *err)
{
    struct model_look *look = arg;
    return view_endpoint_model_job(c->store, look->made_by, &look->job, err);
}

static size_t calls_under_way(const struct controller *c)
{
    size_t n = 0;
    for (const struct model_look *look = c->model_looks; look != NULL; look = look->next) {
        n += look->call != NULL;
    }
    return n;
}

bool endpoint_model_known(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                          const char **ret)
{
    *ret = NULL;
    if (ls->spec->endpoint->model_stage == NULL) {
        return true;
    }
    struct model_look *look = look_of(c, lc, ls);
    if (look->place[0] != '\0') {
        *ret = look->place;
        return true;
    }
    if (look->call != NULL || clock_boot_us() < look->next_us ||
        !call_pace_room(calls_under_way(c))) {
        return false;
    }
    if (!leader_tx(c, read_job, look)) {
        look_again(look, "the database cannot be asked");
    } else if (look->job.s[0] == '\0') {
        leader_endpoint_no_model(ls);
        c->state.look_at_db = true;
    } else {
        metric_add(METRIC_AWS_REQUESTS, 1);
        look->call = sagemaker_describe(c->aws, lease_gate(c), look->job.s, on_describe, look);
    }
    return false;
}
