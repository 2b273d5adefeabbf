/* See run_rest.h. */
#include "run_rest.h"

int64_t leader_run_rest_s(const struct live_attempt *a, enum cause cause,
                          const struct task_change_row *change)
{
    const struct spec_stage *stage = a->stage->spec;
    int64_t job_s = a->row.max_runtime_s;
    int64_t run_s =
        change != NULL && change->max_runtime_s > 0 ? change->max_runtime_s : stage->max_runtime_s;
    if (cause != CAUSE_TIMEOUT || a->row.stop_cause != CAUSE_NONE) {
        return 0;
    }
    if (a->row.started_us == 0 || a->row.ended_us - a->row.started_us < job_s * USEC_PER_SEC) {
        return 0;
    }
    if (!spec_goes_on(stage) || job_s <= 0 || job_s >= run_s) {
        return 0;
    }
    return MAX(run_s - job_s, MIN(stage->min_runtime_s, job_s));
}
