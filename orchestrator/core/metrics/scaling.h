/* A scaling table: what more instances made of the same work. Pure. */
#pragma once
#include "common/err.h"
#include "core/model.h"
#include "sample.h"

#define SCALING_RUNS_MAX 32

struct scaling_run {
    int64_t instances;          /* >= 1 */
    double seconds;             /* that its program ran; > 0 */
    struct metric_sample rate;  /* units a second, after warm-up; n 0: not measured */
    musd_t price_musd_per_hour; /* of one instance */
};
struct scaling_row {
    double seconds;    /* of an epoch: the run, or `epoch` units at its median rate */
    double speedup;    /* over the fewest instances of the table */
    double efficiency; /* of the instances added: 1 when twice as many are twice as fast */
    musd_t musd;       /* of an epoch: its instances for that time */
    bool in_time;      /* seconds <= deadline */
    bool cheapest;     /* of those in time; the fewest instances of equals */
};
/* epoch: units of work, > 0; 0: the run itself is the epoch, and rates are not looked at.
 * deadline_s 0: none. Fills ret[n] in the order of runs. ERR_INVALID: a run without time, or
 * without a rate when one is needed; ERR_OVERFLOW. */
bool scaling_table(const struct scaling_run *runs, int n, double epoch, double deadline_s,
                   struct scaling_row *ret, struct err *err) MUST_CHECK;
