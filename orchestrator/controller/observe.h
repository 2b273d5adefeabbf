/* One ListTrainingJobs shows which jobs moved; quotas are read here too. */
#pragma once
#include "shell.h"

void observe_start(struct controller *c);
void quota_start(struct controller *c);
/* SageMaker's words as the protocol's; unknown words are JOB_STATUS_UNKNOWN and PHASE_OTHER. */
struct job_seen observe_seen(const char *status, const char *secondary, usec_t modified);
