/* One ListTrainingJobs shows which jobs moved; quotas are read here too. */
#pragma once
#include "shell.h"

/* Asks for the next page of a List that is due, or sets the timer for it. */
void observe_go_on(struct controller *c);
/* What a page of a List has shown since the last tick. */
void list_tick(struct controller *c);
/* Asks for the quotas, unless that is under way. */
void quota_start(struct controller *c);
/* Writes the quotas that were read since the last tick. */
void quota_tick(struct controller *c);
/* Cancels what is under way and drops what was read. */
void observe_cancel(struct controller *c);
