/* One ListTrainingJobs in place of a hundred Describes: from when it must list, and what follows of
 * each job in it. Pure. */
#pragma once
#include "core/capacity/job_report.h"
#include "leader_state.h"

/* Jobs created from here on are listed, with a margin for clocks that differ; USEC_NEVER: we have
 * nothing at AWS. Wall clock. */
usec_t leader_list_since(const struct leader_state *s);
/* What a listed job says of a live attempt or of a pool. True: *ret is a fact for *ret_attempt.
 * boot_us: when the answer came. */
bool leader_listed(struct leader_state *s, const struct job_summary *job, int64_t boot_us,
                   struct live_attempt **ret_attempt, struct fact *ret);
/* Names of jobs that no live attempt has, to be looked up in the rows: those without a row are not
 * ours. At most `max`, one look a minute, since ended attempts of ours are in every list too.
 * *looked_us is when it was looked last. Names are borrowed from jobs. */
size_t leader_strays(const struct leader_state *s, const struct job_summary *jobs, size_t n,
                     int64_t boot_us, int64_t *looked_us, const char **ret, size_t max);
