/* See endpoint_model.h. */
#include "endpoint_model.h"
#include "common/retry.h"
#include "endpoint_intent.h"
#include <stdio.h>

#define MODEL_AGAIN_US     (2 * USEC_PER_SEC)
#define MODEL_AGAIN_MAX_US (60 * USEC_PER_SEC)

void leader_model_begin(struct model_ask *m, const struct live_campaign *lc,
                        const struct live_stage *ls)
{
    *m = (struct model_ask){.campaign_id = lc->row.id, .stage_id = ls->row.id};
    for (int i = 0; i < lc->stages_n; i++) {
        if (strcmp(lc->stages[i].row.name, ls->spec->endpoint->model_stage) == 0) {
            m->made_by = lc->stages[i].row.id;
        }
    }
}

bool leader_model_wanted(const struct leader_state *s, const struct model_ask *m, usec_t now_us)
{
    int n;
    struct live_campaign *lc = leader_state_campaign(s, m->campaign_id);
    const struct live_stage *ls = lc != NULL ? leader_state_stage(lc, m->stage_id) : NULL;
    return ls != NULL && leader_endpoint_due(s, lc, ls, now_us, &n);
}

bool leader_model_due(const struct model_ask *m, int64_t boot_us)
{
    return boot_us >= m->next_us;
}

bool leader_model_job_read(const struct model_ask *m, struct live_stage *ls)
{
    if (m->job.s[0] == '\0') {
        leader_endpoint_no_model(ls);
    }
    return m->job.s[0] != '\0';
}

void leader_model_again(struct model_ask *m, int64_t boot_us)
{
    m->next_us = boot_us + retry_step_us(MODEL_AGAIN_US, MODEL_AGAIN_MAX_US, m->failures);
    m->failures = MIN(m->failures + 1, 1000);
}

const char *leader_model_described(struct model_ask *m, const struct job_description *job,
                                   bool not_found, const struct aws_failure *f, int64_t boot_us)
{
    const char *why = f != NULL                   ? f->message
                      : not_found                 ? "no such job"
                      : job->artifacts[0] == '\0' ? "no artifacts"
                                                  : NULL;
    if (why != NULL) {
        leader_model_again(m, boot_us);
    } else {
        (void)snprintf(m->place, sizeof m->place, "%s", job->artifacts);
    }
    return why;
}
