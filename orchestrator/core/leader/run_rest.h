/* How long a run with checkpoints still has when its job ended at a limit shorter than the run: the
 * account's longest run time, or what a cap had left. Pure. */
#pragma once
#include "leader_state.h"

/* Seconds for the run's next jobs, at least the stage's min_runtime; 0: `a` did not end so. Its
 * times say so, not its words. change: what earlier attempts changed of the task, or NULL. */
int64_t leader_run_rest_s(const struct live_attempt *a, enum cause cause,
                          const struct task_change_row *change);
