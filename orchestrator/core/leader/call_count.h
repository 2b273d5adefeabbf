/* How many calls of AWS an hour of a job costs: the seconds that live jobs have had since this
 * droverd began, against the calls it has made. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "leader_state.h"

struct call_count {      /* all zero at first */
    int64_t counted_us;  /* boot: counted up to then; 0: not yet */
    int64_t live_job_us; /* that jobs have lived until then */
};
/* What lives now has lived since the last look. */
void call_count_tick(struct call_count *n, const struct leader_state *s, int64_t boot_us);
/* Seconds that jobs have lived. */
int64_t call_count_job_s(const struct call_count *n);
/* For each thousand hours of jobs; 0: no job has lived for a second. */
int64_t call_count_per_1000_hours(const struct call_count *n, int64_t calls);
