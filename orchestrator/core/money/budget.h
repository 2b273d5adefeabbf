/* Caps of money at five levels: task, stage, campaign, project, global. A cap stops starting and is
 * never passed: the worst case is reserved at intent. Only an overrun (a job that cost more than
 * its worst case) and a cap lowered below what is in use leave a level beyond its cap; nothing
 * starts there then, and what is left is 0, never less. Pure; checked arithmetic; integer
 * micro-USD. */
#pragma once
#include "common/err.h"
#include "core/model.h"

enum budget_level {
    BUDGET_TASK,
    BUDGET_STAGE,
    BUDGET_CAMPAIGN,
    BUDGET_PROJECT,
    BUDGET_GLOBAL,
    BUDGET_LEVELS
};
#define BUDGET_WARNS_MAX 8

struct budget {      /* one level */
    musd_t cap_musd; /* -1: none; may be changed at any time, to any value */
    musd_t reserved_musd, spent_musd;
};
const char *budget_level_name(enum budget_level level); /* "task" .. "global", "none" */
/* What may still be reserved: cap - reserved - spent, never below 0; INT64_MAX without a cap. */
musd_t budget_left(const struct budget *b);
/* The least over all levels; *ret_level: which one binds, the innermost of equals (BUDGET_LEVELS:
 * no level has a cap). NULL entries: none. */
musd_t budget_left_all(const struct budget *const b[BUDGET_LEVELS], enum budget_level *ret_level);
/* Reserve at every level or at none. NULL entries: no such level. ERR_BUDGET (names level and both
 * numbers), ERR_OVERFLOW, ERR_INVALID (a negative amount). */
bool budget_reserve(struct budget *const b[BUDGET_LEVELS], musd_t musd, struct err *err) MUST_CHECK;
/* Give a reservation back and book what it cost (0 for a void), at every level or at none, once.
 * ERR_INTERNAL when more is given back than is reserved. Cost over the reservation (an overrun) is
 * booked and told. ERR_OVERFLOW, ERR_INVALID. */
bool budget_settle(struct budget *const b[BUDGET_LEVELS], musd_t reserved_musd, musd_t cost_musd,
                   bool *ret_overrun, struct err *err) MUST_CHECK;
enum budget_action {
    BUDGET_GO_ON,
    BUDGET_HOLD,         /* no more starts till a person resumes; what runs runs on */
    BUDGET_STOP_AND_HOLD /* as HOLD, and what runs is stopped */
};
/* What at_limit asks for now. falls_short: a task that could start otherwise waits for money of
 * the campaign's or the stage's cap. DRAIN goes on while jobs are live: what they give back may do.
 */
enum budget_action budget_at_limit(enum at_limit at_limit, bool falls_short, int64_t live);
/* Thresholds in ppm of the cap (sorted, n <= BUDGET_WARNS_MAX) that what was spent had not reached
 * in `before` and has in `after`, by spending or by a lower cap; the highest one's index, -1 none.
 * As spent only grows each is told once, while the cap is not raised. */
int budget_warns(const struct budget *before, const struct budget *after, const int64_t *at_ppm,
                 int n);
