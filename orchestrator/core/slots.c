/* The quota ledger of one instance type and market. */
#include "slots.h"

int64_t slots_foreign(const struct slots *s, usec_t now_us)
{
    if (s->foreign <= 0 || now_us <= s->foreign_us) {
        return MAX(0, s->foreign);
    }
    int64_t halvings = (now_us - s->foreign_us) / SLOTS_FOREIGN_HALF_LIFE_US;
    return halvings >= 62 ? 0 : s->foreign >> halvings;
}

int64_t slots_limit(const struct slots *s, const struct slots_account *a)
{
    int64_t limit = s->quota;
    if (limit < 0) {
        return -1;
    }
    if (s->operator_limit >= 0) {
        limit = MIN(limit, s->operator_limit);
    }
    if (s->refused_limit >= 0) {
        limit = MIN(limit, s->refused_limit);
    }
    if (a->total_instances >= 0) {
        int64_t others = a->total_held - s->held - s->warm_idle;
        limit = MIN(limit, MAX(0, a->total_instances - others));
    }
    return limit;
}

int64_t slots_free(const struct slots *s, const struct slots_account *a, usec_t now_us)
{
    return MAX(0, slots_limit(s, a) - s->held - s->warm_idle - slots_foreign(s, now_us));
}

enum wait_reason slots_can_ever(const struct slots *s, const struct slots_account *a, int64_t n,
                                int64_t max_runtime_s, int volume_gb)
{
    if (s->quota < 0) {
        return WAIT_QUOTA_UNREADABLE;
    }
    int64_t most = s->quota;
    most = s->operator_limit >= 0 ? MIN(most, s->operator_limit) : most;
    most = s->refused_limit >= 0 ? MIN(most, s->refused_limit) : most;
    most = a->total_instances >= 0 ? MIN(most, a->total_instances) : most;
    most = a->per_job >= 0 ? MIN(most, a->per_job) : most;
    bool fits = n <= most && (a->longest_run_s < 0 || max_runtime_s <= a->longest_run_s) &&
                (a->volume_gb < 0 || volume_gb <= a->volume_gb);
    return fits ? WAIT_NONE : WAIT_QUOTA_TOO_SMALL;
}
