/* See job_phases.h. */
#include "job_phases.h"

/* Does the job download input before it starts? Pipe and FastFile stream, file systems are
 * mounted. */
static bool has_file_channels(const struct spec_stage *stage)
{
    const struct spec_training *t = stage != NULL ? stage->training : NULL;
    for (int i = 0; t != NULL && i < t->channels_n; i++) {
        const struct spec_channel *c = &t->channels[i];
        const char *mode = c->mode != NULL ? c->mode : t->input_mode;
        if (c->from != NULL && (mode == NULL || strcmp(mode, "File") == 0)) {
            return true;
        }
    }
    return false;
}

void leader_job_phases(const struct live_attempt *a, const struct job_description *job,
                       struct cost_phase_times *ret)
{
    struct cost_phase_span spans[JOB_TRANSITIONS_MAX + 1];
    bool file = has_file_channels(a->stage->spec);
    spans[0] = (struct cost_phase_span){COST_PHASE_WAIT, a->row.intended_us, job->created};
    for (int i = 0; i < job->transitions_n; i++) {
        const struct job_transition *t = &job->transitions[i];
        enum cost_phase p = cost_phase_of_status(t->status, file);
        if (p == COST_PHASE_START && t->no_capacity) {
            p = COST_PHASE_WAIT;
        }
        spans[i + 1] = (struct cost_phase_span){p, t->start, t->end};
    }
    int n = job->transitions_n > 0 && job->created > 0 ? job->transitions_n + 1 : 0;
    cost_phase_measure(spans, n, job->started, job->ended, job->spot, ret);
}

void leader_bill_phases(const struct live_attempt *a, struct attempt_record *r)
{
    struct cost_phase_times t = a->phases;
    struct cost_phase_sums sums;
    if (r->cause == CAUSE_CAPACITY) {
        t.elapsed_us[COST_PHASE_WAIT] += t.elapsed_us[COST_PHASE_START];
        t.billed_us[COST_PHASE_WAIT] += t.billed_us[COST_PHASE_START];
        t.elapsed_us[COST_PHASE_START] = t.billed_us[COST_PHASE_START] = 0;
    }
    cost_phase_split(&t, r->billable_s, r->cost_musd, &sums);
    r->has_phases = true;
    cost_phase_store(&sums, r->phases);
}
