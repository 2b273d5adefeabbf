/* One ListTrainingJobs in place of a hundred Describes: from when it must list, and what follows of
 * each job in it. Pure. */
#pragma once
#include "core/capacity/job_report.h"
#include "leader_state.h"

/* Jobs created from here on are listed, with a margin for clocks that differ; USEC_NEVER: we have
 * nothing at AWS. Wall clock. */
usec_t leader_list_since(const struct leader_state *s, int64_t boot_us);
/* The same by AWS' clock, which is skew_us after ours; USEC_NEVER stays. Only ever earlier: a clock
 * that was set right since has written down times that need no shift. */
usec_t leader_list_from(usec_t since_us, int64_t skew_us);
/* A Create that was signed before may land until `until_us` (boot), unnoticed: jobs created from
 * from_us on (wall) are listed until then. */
void leader_list_watch(struct leader_state *s, usec_t from_us, int64_t until_us, int64_t boot_us);
/* The attempt moved so by a fact of f_us (boot): one that is void was refused, and the refusal may
 * have lied, so its name is watched for while a signature of it may still be accepted. */
void leader_list_moved(struct leader_state *s, const struct live_attempt *a,
                       const struct protocol_effect *e, int64_t f_us, int64_t signature_window_us);
/* What a List is asked for: the prefix as jobs carry it, with its hyphen. */
void leader_list_prefix(const char *job_prefix, char ret[static JOB_PREFIX_MAX + 2]);
/* What a listed job says of a live attempt or of a pool. True: *ret is a fact for *ret_attempt.
 * boot_us: when the answer came. */
bool leader_listed(struct leader_state *s, const struct job_summary *job, int64_t boot_us,
                   struct live_attempt **ret_attempt, struct fact *ret);

/* Names that are decided once: of rows that have ended, of strays, of others' jobs. */
struct name_set {
    uint64_t *slots;
    size_t n, cap;
};
/* All zero is the empty set; names are kept as 64-bit hashes. clear frees and empties it. */
void name_set_add(struct name_set *set, const char *name);
bool name_set_has(const struct name_set *set, const char *name);
void name_set_clear(struct name_set *set);
/* Names that read like ours and that no live attempt, stray or pool has and nobody has decided on:
 * to be looked up in the rows. At most `max`; borrowed from jobs. */
size_t leader_unknown_names(const struct leader_state *s, const char *job_prefix,
                            const struct name_set *decided, const struct job_summary *jobs,
                            size_t n, const char **ret, size_t max);
