/* Caps: what they leave, what follows when they are reached, and warnings. */
#include "budget.h"

__extension__ typedef __int128 wide;

musd_t budget_left(const struct budget *b)
{
    if (b->cap_musd < 0) {
        return INT64_MAX;
    }
    wide left = (wide)b->cap_musd - b->reserved_musd - b->spent_musd;
    return left < 0 ? 0 : left > INT64_MAX ? INT64_MAX : (musd_t)left;
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
