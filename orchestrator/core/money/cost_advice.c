/* See cost_advice.h. */
#include "cost_advice.h"

static bool is_much(int64_t v, int64_t of, int64_t ppm, int64_t floor)
{
    int64_t least;
    return v >= floor && muldiv_i64(MAX(of, 0), ppm, 1000000, &least) && v >= least;
}

static bool goes_before(const struct cost_advice *a, const struct cost_advice *b)
{
    return a->musd != b->musd ? a->musd > b->musd : a->elapsed_ms > b->elapsed_ms;
}

static void add(const struct cost_advice_facts *f, enum cost_phase phase, const char *text,
                struct cost_advice ret[static COST_ADVICE_MAX], int *n)
{
    struct cost_phase_total all = cost_phase_total(&f->sums, false);
    struct cost_advice one = {phase, text, f->sums.musd[phase], f->sums.elapsed_ms[phase]};
    if (*n == COST_ADVICE_MAX ||
        (!is_much(one.musd, all.musd, COST_ADVICE_MUSD_PPM, COST_ADVICE_LEAST_MUSD) &&
         !is_much(one.elapsed_ms, all.elapsed_ms, COST_ADVICE_TIME_PPM, COST_ADVICE_LEAST_MS))) {
        return;
    }
    int at = (*n)++;
    for (; at > 0 && goes_before(&one, &ret[at - 1]); at--) {
        ret[at] = ret[at - 1];
    }
    ret[at] = one;
}

int cost_advise(const struct cost_advice_facts *f, struct cost_advice ret[static COST_ADVICE_MAX])
{
    int n = 0;
#define X(phase, when, text)                                                                       \
    if (when) {                                                                                    \
        add(f, COST_PHASE_##phase, text, ret, &n);                                                 \
    }
#include "cost_advice.def"
#undef X
    return n;
}
