/* One ListTrainingJobs shows which jobs moved; quotas are read here too. */
#pragma once
#include "shell.h"

void observe_start(struct controller *c);
void quota_start(struct controller *c);
