/* Where the hour went: the time of an attempt by phase, and its bill shared out by that time. Pure;
 * the shares of a bill always add up to it. */
#pragma once
#include "core/model.h"

enum cost_phase {
#define X(p, name, works) COST_PHASE_##p,
#include "cost_phase.def"
#undef X
    COST_PHASE_COUNT
};
#define COST_PHASES_OF_JOB COST_PHASE_WARM_IDLE

const char *cost_phase_name(enum cost_phase phase);

/* The phase of a secondary status. File channels: the job downloads its input before it starts, and
 * SageMaker shows the image's download under the same status, so all of that counts as data;
 * without such channels it counts as image. COST_PHASE_COUNT: none, the job has ended. */
enum cost_phase cost_phase_of_status(const char *status, bool file_channels);

struct cost_phase_span {
    enum cost_phase phase; /* COST_PHASE_COUNT: of none */
    usec_t from, to;       /* to 0: not over */
};
struct cost_phase_times {
    int64_t elapsed_us[COST_PHASES_OF_JOB];
    int64_t billed_us[COST_PHASES_OF_JOB]; /* of it, between billed_from and billed_to */
};
/* Add up the spans of a job. The bill runs from billed_from to billed_to (0: nothing is billed);
 * spot: the waits for new instances within it are not billed. An open span ends at billed_to. */
void cost_phase_measure(const struct cost_phase_span *spans, int n, usec_t billed_from,
                        usec_t billed_to, bool spot, struct cost_phase_times *ret);

struct cost_phase_sums {
    int64_t elapsed_ms[COST_PHASE_COUNT]; /* wall time, whatever the number of instances */
    int64_t seconds[COST_PHASE_COUNT];    /* billed instance-seconds */
    musd_t musd[COST_PHASE_COUNT];
};
/* Share out billable_s instance-seconds and cost_musd (>= 0) by the billed time of each phase. All
 * of it is OTHER when no phase has billed time. */
void cost_phase_split(const struct cost_phase_times *t, int64_t billable_s, musd_t cost_musd,
                      struct cost_phase_sums *ret);
/* The phases of a job as they are stored: of one after the other elapsed ms, seconds, micro-USD. */
void cost_phase_store(const struct cost_phase_sums *s, int64_t ret[static PHASE_FIGURES_N]);
/* Stored phases whose bill is another by now: shared out as before. */
void cost_phase_share_again(int64_t stored[static PHASE_FIGURES_N], int64_t billable_s,
                            musd_t cost_musd);
/* Sums of stored phases, and what the ledger has of the same attempts: the seconds and the money of
 * their jobs, and of their warm pools. What no phase explains is OTHER. */
void cost_phase_read(const int64_t stored[static PHASE_FIGURES_N], int64_t job_s, musd_t job_musd,
                     int64_t warm_s, musd_t warm_musd, struct cost_phase_sums *ret);
void cost_phase_add(struct cost_phase_sums *sum, const struct cost_phase_sums *s);
/* Adds what the ledger has of a stage's endpoints (HOSTING) or file systems (STORAGE). */
void cost_phase_add_service(struct cost_phase_sums *sum, enum cost_phase phase, int64_t seconds,
                            musd_t musd);
/* Sums over all phases, or (idle) over those that train nothing. */
struct cost_phase_total {
    int64_t elapsed_ms, seconds;
    musd_t musd;
};
struct cost_phase_total cost_phase_total(const struct cost_phase_sums *s, bool idle);
