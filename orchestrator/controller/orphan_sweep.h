/* Jobs at AWS that no live attempt stands for: looked for before the first intent of an epoch, and
 * in every List. What is ours is adopted, or held as a stray; what is not costs one question. */
#pragma once
#include "shell.h"

/* Takes answers, writes what is decided, asks the next question. May end the leadership. */
void orphan_sweep_tick(struct controller *c);
/* False: before all that the first list of this epoch has shown is decided. */
bool orphan_sweep_lets_intend(struct controller *c);
/* A job under the part's name lives that cannot be held yet: the part is not started. */
bool orphan_sweep_keeps(struct controller *c, int64_t campaign_id, int64_t task_id);
/* A page of its first list was asked for. */
bool orphan_sweep_asked(struct controller *c);
/* A page of a List has come. */
void orphan_sweep_listed(struct controller *c, const struct job_summary *jobs, size_t n);
void orphan_sweep_cancel(struct controller *c);
