/* One ListTrainingJobs shows which jobs moved; quotas are read here too. */
#pragma once
#include "shell.h"

/* Asks for the next page of a List that is due, or sets the timer for it. */
void observe_go_on(struct controller *c);
/* What a page of a List has shown since the last tick. */
void list_tick(struct controller *c);
/* Asks for the quotas, unless that is under way. */
void quota_start(struct controller *c);
/* Takes those over all types that were read before: what a retry changes must not be more than they
 * allow, and a new leader has not read yet. In a transaction. */
bool quota_kept_read(struct controller *c, struct err *err) MUST_CHECK;
/* Writes the quotas that were read since the last tick. */
void quota_tick(struct controller *c);
/* Cancels what is under way and drops what was read. */
void observe_cancel(struct controller *c);
