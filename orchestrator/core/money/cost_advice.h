/* What would cut the part of a stage's bill and time that trained nothing. Pure. */
#pragma once
#include "cost_phase.h"

#define COST_ADVICE_MAX 8
/* Below these parts of a stage's bill or time nothing is said. */
#define COST_ADVICE_MUSD_PPM 30000
#define COST_ADVICE_TIME_PPM 100000
/* And nothing below this money or time, whatever its part is. */
#define COST_ADVICE_LEAST_MUSD 10000
#define COST_ADVICE_LEAST_MS   60000

struct cost_advice_facts { /* of a stage */
    struct cost_phase_sums sums;
    bool warm_pool;   /* its instances are kept for the next job */
    bool one_type;    /* its list of instance types has no other */
    int64_t attempts; /* with a measured time */
};
struct cost_advice {
    enum cost_phase phase;
    const char *text;   /* what to write in the campaign file */
    musd_t musd;        /* at most this was to be saved; 0: time only */
    int64_t elapsed_ms; /* of all attempts */
};
/* Writes what applies, the most money first, then the most time. Returns how many. */
int cost_advise(const struct cost_advice_facts *f, struct cost_advice ret[static COST_ADVICE_MAX]);
