/* The model that another stage of the campaign has made, for an endpoint that serves it: which
 * stage that is, when its job is asked for, and what the answer tells. Pure; boot_us is
 * CLOCK_BOOTTIME. */
#pragma once
#include "common/aws_outcome.h"
#include "core/capacity/job_report.h"
#include "leader_state.h"

struct model_ask {                 /* of one stage that waits for its model */
    int64_t campaign_id, stage_id; /* that serves the model */
    int64_t made_by;               /* the stage that has made it; 0: none has its name */
    struct job_name job;           /* "": not known yet */
    int failures;                  /* in a row */
    int64_t next_us;               /* boot: not asked for before */
    char place[1025];              /* s3:// of the model; "": not known yet */
};
/* ls is of kind endpoint and names a stage as the maker of its model. */
void leader_model_begin(struct model_ask *m, const struct live_campaign *lc,
                        const struct live_stage *ls);
/* Its stage is to deploy and still waits for it. */
bool leader_model_wanted(const struct leader_state *s, const struct model_ask *m, usec_t now_us);
/* It is asked for now. */
bool leader_model_due(const struct model_ask *m, int64_t boot_us);
/* m->job is as the rows give it: a job that ended well, or "". False: there is none, which `ls`
 * is told; as the maker has ended, none ever comes. */
bool leader_model_job_read(const struct model_ask *m, struct live_stage *ls);
/* Its job was described: job NULL when not_found or f says why. NULL: m->place is known. Otherwise
 * why not, for people; it is asked for again, ever less often. */
const char *leader_model_described(struct model_ask *m, const struct job_description *job,
                                   bool not_found, const struct aws_failure *f, int64_t boot_us);
/* It could not be asked for: again later, the same way. */
void leader_model_again(struct model_ask *m, int64_t boot_us);
