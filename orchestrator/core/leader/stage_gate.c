/* See stage_gate.h. */
#include "stage_gate.h"
#include <stdio.h>

static bool has_gate(const struct live_stage *ls)
{
    return ls->spec != NULL && ls->spec->gate.metric != NULL;
}

static bool runs_ended(const struct live_stage *ls)
{
    const int64_t *n = ls->row.counts;
    return ls->row.closed && ls->row.taken == ls->row.tasks && n[TASK_WAITING] == 0 &&
           n[TASK_ACTIVE] == 0 && n[TASK_HELD] == 0;
}

bool stage_gate_asks(const struct live_campaign *lc, struct live_stage *ls)
{
    bool alive = ls->row.state == STAGE_RUNNING || ls->row.state == STAGE_HELD;
    if (!has_gate(ls)) {
        return false;
    }
    if (!runs_ended(ls) || ls->gate_skipped != ls->row.counts[TASK_SKIPPED]) {
        ls->gate = GATE_NOT_JUDGED;
    }
    return runs_ended(ls) && alive && ls->gate == GATE_NOT_JUDGED && !ls->row.gate_override &&
           lc->row.wanted != WANTED_CANCEL;
}

void stage_gate_judge(const struct live_campaign *lc, struct live_stage *ls,
                      const struct gate_run *runs, size_t n, bool complete)
{
    char why[200];
    if (!complete) {
        return;
    }
    ls->gate_skipped = ls->row.counts[TASK_SKIPPED];
    bool good = gate_passes(&ls->spec->gate, runs, n, ls->gate_skipped, why, sizeof why);
    ls->gate = good ? GATE_PASSED : GATE_HOLDS;
    if (!good) {
        (void)snprintf(ls->gate_why, sizeof ls->gate_why, "gate: %s: drover override c-%lld/%s",
                       why, (long long)lc->row.id, ls->row.name);
    }
}

bool stage_gate_open(const struct live_stage *ls)
{
    return !has_gate(ls) || ls->row.gate_override || ls->gate == GATE_PASSED;
}

bool stage_gate_holds(const struct live_stage *ls, const char **ret_why)
{
    *ret_why = ls->gate_why;
    return !stage_gate_open(ls) && ls->gate == GATE_HOLDS;
}
