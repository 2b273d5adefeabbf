/* A campaign as it really goes, for holding forecasts against: sizes, noise, failures and start
 * waits drawn from a seed, decided by the production scheduler, with everything a leader would
 * learn on the way. It shares no code with the forecast but the scheduler and struct duration. */
#pragma once
#include "core/forecast/forecast.h"

#define TRUTH_PARTS_MAX 2000

struct truth_how { /* how the campaign goes; all drawn by truth_draw */
    int parts, slots;
    double size_median_mb, size_sigma;    /* log-normal */
    double base_s, per_mb_s, noise_sigma; /* run time: (base + per_mb * size) * log-normal noise */
    double wild, wild_times;              /* chance of a part that takes times as long */
    double fail, fail_bend;               /* chance of a try, at share u^bend of its run time */
    double start_s, start_sigma;          /* wait from intent to running */
    double capacity, capacity_s;          /* chance of an exponential wait more */
    double creates_per_s;
};
struct truth;

void truth_draw(uint64_t seed, struct truth_how *ret);
/* expect_us: of the spec; 0 none. */
struct truth *truth_new(const struct truth_how *how, uint64_t seed, int64_t expect_us);
void truth_free(struct truth *t);
/* Go on until so many parts are done, or the end. False: the campaign had ended before. */
bool truth_until(struct truth *t, int done);
int truth_done(const struct truth *t);
usec_t truth_now(const struct truth *t);
/* Micro-USD of ended tries. */
musd_t truth_spent(const struct truth *t);
/* What a leader knows now; points into t, good until the next call. */
const struct forecast_input *truth_input(struct truth *t);
/* Mean seconds of a part that does not fail. */
double truth_mean_s(const struct truth *t);
