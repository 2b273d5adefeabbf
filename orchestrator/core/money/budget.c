/* Caps: what they leave, reserving and settling at all levels or at none, and warnings. */
#include "budget.h"

__extension__ typedef __int128 wide;

static const char *const level_names[BUDGET_LEVELS + 1] = {
    [BUDGET_TASK] = "task",       [BUDGET_STAGE] = "stage",   [BUDGET_CAMPAIGN] = "campaign",
    [BUDGET_PROJECT] = "project", [BUDGET_GLOBAL] = "global", [BUDGET_LEVELS] = "none"};

const char *budget_level_name(enum budget_level level)
{
    ASSERT(level >= 0 && level <= BUDGET_LEVELS);
    return level_names[level];
}

musd_t budget_left(const struct budget *b)
{
    if (b->cap_musd < 0) {
        return INT64_MAX;
    }
    wide left = (wide)b->cap_musd - b->reserved_musd - b->spent_musd;
    return left < 0 ? 0 : left > INT64_MAX ? INT64_MAX : (musd_t)left;
}

/* Nothing fits beyond the cap, not even an amount of 0. */
static bool fits(const struct budget *b, musd_t musd)
{
    return b->cap_musd < 0 || (wide)b->reserved_musd + b->spent_musd + musd <= b->cap_musd;
}

bool budget_reserve(struct budget *const b[BUDGET_LEVELS], musd_t musd, struct err *err)
{
    if (musd < 0) {
        return err_set(err, ERR_INVALID, "a reservation of %lld micro-USD", (long long)musd);
    }
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (b[i] == NULL) {
            continue;
        }
        if (!fits(b[i], musd)) {
            return err_set(err, ERR_BUDGET,
                           "the %s's cap leaves %lld micro-USD, and %lld are asked", level_names[i],
                           (long long)budget_left(b[i]), (long long)musd);
        }
        musd_t sum;
        if (!add_i64(b[i]->reserved_musd, musd, &sum)) {
            return err_set(err, ERR_OVERFLOW, "what is reserved of the %s exceeds int64",
                           level_names[i]);
        }
    }
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (b[i] != NULL) {
            b[i]->reserved_musd += musd;
        }
    }
    return true;
}

bool budget_settle(struct budget *const b[BUDGET_LEVELS], musd_t reserved_musd, musd_t cost_musd,
                   bool *ret_overrun, struct err *err)
{
    if (reserved_musd < 0 || cost_musd < 0) {
        return err_set(err, ERR_INVALID, "a settlement of %lld micro-USD for %lld reserved",
                       (long long)cost_musd, (long long)reserved_musd);
    }
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (b[i] == NULL) {
            continue;
        }
        if (reserved_musd > b[i]->reserved_musd) {
            return err_set(
                err, ERR_INTERNAL, "%lld micro-USD to release of %lld reserved of the %s",
                (long long)reserved_musd, (long long)b[i]->reserved_musd, level_names[i]);
        }
        musd_t sum;
        if (!add_i64(b[i]->spent_musd, cost_musd, &sum)) {
            return err_set(err, ERR_OVERFLOW, "what is spent of the %s exceeds int64",
                           level_names[i]);
        }
    }
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (b[i] != NULL) {
            b[i]->reserved_musd -= reserved_musd;
            b[i]->spent_musd += cost_musd;
        }
    }
    *ret_overrun = cost_musd > reserved_musd;
    return true;
}

enum budget_action budget_at_limit(enum at_limit at_limit, bool falls_short, int64_t live)
{
    if (!falls_short) {
        return BUDGET_GO_ON;
    }
    switch (at_limit) {
    case AT_LIMIT_DRAIN:
        return live > 0 ? BUDGET_GO_ON : BUDGET_HOLD;
    case AT_LIMIT_STOP:
        return BUDGET_STOP_AND_HOLD;
    case AT_LIMIT_HOLD:
        return BUDGET_HOLD;
    }
    return BUDGET_HOLD;
}

static bool reached(const struct budget *b, int64_t at_ppm)
{
    return b->cap_musd >= 0 && (wide)b->spent_musd * 1000000 >= (wide)b->cap_musd * at_ppm;
}

int budget_warns(const struct budget *before, const struct budget *after, const int64_t *at_ppm,
                 int n)
{
    ASSERT(n >= 0 && n <= WARNS_MAX);
    for (int i = n - 1; i >= 0; i--) {
        if (reached(after, at_ppm[i]) && !reached(before, at_ppm[i])) {
            return i;
        }
    }
    return -1;
}
