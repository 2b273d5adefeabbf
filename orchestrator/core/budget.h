/* Caps of money at five levels: task, stage, campaign, project, global. A cap stops starting and is
 * never passed: the worst case is reserved at intent. Pure; checked arithmetic; integer micro-USD.
 */
#pragma once
#include "common/err.h"
#include "model.h"

enum budget_level {
    BUDGET_TASK,
    BUDGET_STAGE,
    BUDGET_CAMPAIGN,
    BUDGET_PROJECT,
    BUDGET_GLOBAL,
    BUDGET_LEVELS
};

struct budget {      /* one level */
    musd_t cap_musd; /* -1: none */
    musd_t reserved_musd, spent_musd;
};
/* What may still be reserved: cap - reserved - spent, never below 0; INT64_MAX without a cap. */
musd_t budget_left(const struct budget *b);
/* The least over all levels; *ret_level: which one binds (BUDGET_LEVELS: none). NULL entries: none.
 */
musd_t budget_left_all(const struct budget *const b[BUDGET_LEVELS], enum budget_level *ret_level);
/* Reserve at every level or at none. ERR_BUDGET (names level and both numbers), ERR_OVERFLOW. */
bool budget_reserve(struct budget *const b[BUDGET_LEVELS], musd_t musd, struct err *err) MUST_CHECK;
/* Give a reservation back and book what it cost (0 for a void), once. ERR_INTERNAL when more is
 * given back than is reserved. Cost over the reservation (an overrun) is booked and told. */
bool budget_settle(struct budget *const b[BUDGET_LEVELS], musd_t reserved_musd, musd_t cost_musd,
                   bool *ret_overrun, struct err *err) MUST_CHECK;
/* Thresholds in ppm of the cap (sorted, n <= 8) that `before` had not reached and `after` has; the
 * highest one's index, -1 none. */
int budget_warns(const struct budget *before, const struct budget *after, const int64_t *at_ppm,
                 int n);
