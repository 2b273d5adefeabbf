/* See job_list.h. */
#include "job_list.h"
#include "attempt_answer.h"
#include "pool_life.h"

#define STRAYS_EVERY_US (60 * USEC_PER_SEC)
#define LIST_MARGIN_US  (60 * USEC_PER_SEC) /* clocks differ, List's filter has whole seconds */

usec_t leader_list_since(const struct leader_state *s)
{
    usec_t oldest = USEC_NEVER;
    for (size_t i = 0; i < s->attempts_n; i++) {
        oldest = MIN(oldest, s->attempts[i]->row.intended_us);
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        oldest = MIN(oldest, s->pools[i]->row.intended_us);
    }
    return oldest == USEC_NEVER ? USEC_NEVER : MAX(0, oldest - LIST_MARGIN_US);
}

bool leader_listed(struct leader_state *s, const struct job_summary *job, int64_t boot_us,
                   struct live_attempt **ret_attempt, struct fact *ret)
{
    *ret_attempt = leader_state_attempt_named(s, job->name);
    if (*ret_attempt == NULL) {
        leader_pool_listed(s, job->name, job->pool.status);
        return false;
    }
    *ret = (struct fact){.kind = FACT_LISTED,
                         .at_us = boot_us,
                         .job = leader_job_seen(job->status, job->secondary, job->modified)};
    return true;
}

size_t leader_strays(const struct leader_state *s, const struct job_summary *jobs, size_t n,
                     int64_t boot_us, int64_t *looked_us, const char **ret, size_t max)
{
    size_t found = 0;
    if (boot_us < *looked_us + STRAYS_EVERY_US) {
        return 0;
    }
    for (size_t i = 0; i < n && found < max; i++) {
        if (leader_state_attempt_named(s, jobs[i].name) == NULL) {
            ret[found++] = jobs[i].name;
        }
    }
    *looked_us = found > 0 ? boot_us : *looked_us;
    return found;
}
