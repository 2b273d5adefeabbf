/* See call_count.h. */
#include "call_count.h"

void call_count_tick(struct call_count *n, const struct leader_state *s, int64_t boot_us)
{
    int64_t live = 0;
    for (size_t i = 0; i < s->attempts_n; i++) {
        live += attempt_state_terminal(s->attempts[i]->p.state) ? 0 : 1;
    }
    n->live_job_us += n->counted_us == 0 ? 0 : live * (boot_us - n->counted_us);
    n->counted_us = boot_us;
}

int64_t call_count_job_s(const struct call_count *n)
{
    return n->live_job_us / USEC_PER_SEC;
}

int64_t call_count_per_1000_hours(const struct call_count *n, int64_t calls)
{
    int64_t job_s = call_count_job_s(n);
    return job_s == 0 ? 0 : calls * 3600 * 1000 / job_s;
}
