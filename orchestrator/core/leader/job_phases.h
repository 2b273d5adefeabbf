/* The time that a job spent in each phase, as SageMaker's secondary statuses tell it. Pure. */
#pragma once
#include "core/capacity/job_report.h"
#include "core/money/cost_phase.h"
#include "leader_state.h"

/* a's times are known: its intent and its stage's channels. All 0 when the job says nothing. */
void leader_job_phases(const struct live_attempt *a, const struct job_description *job,
                       struct cost_phase_times *ret);
/* Share out what the attempt is charged by r. A job that ended for want of capacity has waited for
 * it, not started. */
void leader_bill_phases(const struct live_attempt *a, struct attempt_record *r);
