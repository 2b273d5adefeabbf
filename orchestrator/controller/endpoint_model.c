/* See endpoint_model.h. */
#include "endpoint_model.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/endpoint_model.h"
#include "lease.h"
#include "metrics.h"
#include "store/leader/endpoints.h"
#include "wall.h"

struct model_look { /* one for each stage that waits */
    struct model_look *next;
    struct controller *c;
    struct sagemaker_call *call;
    struct model_ask ask;
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

void endpoint_models_forget(struct controller *c)
{
    for (struct model_look **at = &c->model_looks; *at != NULL;) {
        struct model_look *look = *at;
        if (leader_model_wanted(&c->state, &look->ask, leader_now(c))) {
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
        if (look->ask.stage_id == ls->row.id) {
            return look;
        }
    }
    struct model_look *look = xcalloc(1, sizeof *look);
    look->next = c->model_looks;
    look->c = c;
    leader_model_begin(&look->ask, lc, ls);
    c->model_looks = look;
    return look;
}

static void log_unknown(const struct model_look *look, const char *why)
{
    if (log_allow("model_unknown")) {
        log_event(LOG_WARN, "model_unknown", LF_I("stage", look->ask.stage_id),
                  LF_S("job", look->ask.job.s), LF_S("why", why));
    }
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct model_look *look = ctx;
    look->call = NULL;
    look->c->state.look_at_db = true;
    metric_add(METRIC_AWS_ERRORS, f != NULL);
    const char *why = leader_model_described(&look->ask, job, not_found, f, clock_boot_us());
    if (why != NULL) {
        log_unknown(look, why);
    }
}

static bool read_job(struct controller *c, void *arg, struct err *err)
{
    struct model_look *look = arg;
    return view_endpoint_model_job(c->store, look->ask.made_by, &look->ask.job, err);
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
    if (look->ask.place[0] != '\0') {
        *ret = look->ask.place;
        return true;
    }
    if (look->call != NULL || !leader_model_due(&look->ask, clock_boot_us()) ||
        !call_pace_room(calls_under_way(c))) {
        return false;
    }
    if (!leader_tx(c, read_job, look)) {
        log_unknown(look, "the database cannot be asked");
        leader_model_again(&look->ask, clock_boot_us());
    } else if (!leader_model_job_read(&look->ask, ls)) {
        c->state.look_at_db = true;
    } else {
        metric_add(METRIC_AWS_REQUESTS, 1);
        look->call = sagemaker_describe(c->aws, lease_gate(c), look->ask.job.s, on_describe, look);
    }
    return false;
}
