/* A stage that has ended well with a gate is judged before it succeeds: the shell reads what its
 * runs printed once their logs are read to the end, and the stage succeeds, or is held until a
 * person overrides the gate. Pure. */
#pragma once
#include "core/metrics/gate.h"
#include "leader_state.h"

/* Its gate waits to be judged: the values of its runs are to be read. What was judged before its
 * runs ran once more, or before people gave some of them up, is forgotten. */
bool stage_gate_asks(const struct live_campaign *lc, struct live_stage *ls);
/* complete: no log of a run is still being read; else it asks again. */
void stage_gate_judge(const struct live_campaign *lc, struct live_stage *ls,
                      const struct gate_run *runs, size_t n, bool complete);
/* Nothing of the gate keeps the stage from succeeding. */
bool stage_gate_open(const struct live_stage *ls);
/* It was judged and holds; why, with the command that overrides it. */
bool stage_gate_holds(const struct live_stage *ls, const char **ret_why);
