/* Caps of money at five levels: task, stage, campaign, project, global. A cap stops starting and is
 * never passed: the worst case is reserved at intent. Only an overrun (a job that cost more than
 * its worst case) and a cap lowered below what is in use put a level beyond its cap; then nothing
 * starts there and 0 is left. Reserving and settling are statements of the store (sql/queries): at
 * every level or at none. Pure; integer micro-USD. */
#pragma once
#include "core/model.h"

enum budget_level {
    BUDGET_TASK,
    BUDGET_STAGE,
    BUDGET_CAMPAIGN,
    BUDGET_PROJECT,
    BUDGET_GLOBAL,
    BUDGET_LEVELS
};

struct budget {      /* one level */
    musd_t cap_musd; /* -1: no cap; may be changed at any time, to any value */
    musd_t reserved_musd, spent_musd;
};
/* What may still be reserved: cap - reserved - spent, never below 0; INT64_MAX without a cap. */
musd_t budget_left(const struct budget *b);
enum budget_action {
    BUDGET_GO_ON,
    BUDGET_HOLD,         /* no more starts until a person resumes; running jobs continue */
    BUDGET_STOP_AND_HOLD /* as HOLD, and running jobs are stopped */
};
/* The action at_limit requires now. falls_short: a task that could otherwise start waits for money
 * of the campaign's or the stage's cap. DRAIN lasts while jobs are live: the money they release may
 * be enough. */
enum budget_action budget_at_limit(enum at_limit at_limit, bool falls_short, int64_t live);
/* Index of the highest threshold (ppm of the cap, sorted, n <= WARNS_MAX) that the amount
 * spent reaches in `after` but not in `before`, by spending or by a lower cap; -1: no threshold.
 * Spending only grows, so each is reported once unless the cap is raised. */
int budget_warns(const struct budget *before, const struct budget *after, const int64_t *at_ppm,
                 int n);
