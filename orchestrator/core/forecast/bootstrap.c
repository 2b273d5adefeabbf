/* One bootstrap sample: models drawn from what was observed, and the draws of single tries, which
 * depend only on the task and the try. */
#include "forecast_work.h"
#include <math.h>

/* Prior: one try in thirty fails, with the weight of ten tries. */
#define FAILS_PRIOR  0.3
#define PASSES_PRIOR 9.7

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

double forecast_unit(const struct forecast_pass *r, int stage_i, int64_t task_id, uint32_t try_n,
                     uint32_t what)
{
    uint64_t x = mix(r->seed + (uint64_t)task_id * UINT64_C(0x9e3779b97f4a7c15));
    x = mix(x + ((uint64_t)stage_i << 32 | try_n << 8 | what));
    return (double)(x >> 11) * 0x1.0p-53;
}

/* Marsaglia and Tsang; shape >= 1. */
static double gamma_draw(struct rng *rng, double shape)
{
    double d = shape - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double x = rng_normal(rng);
        double v = 1 + c * x;
        if (v <= 0) {
            continue;
        }
        v = v * v * v;
        double u = 1 - rng_unit(rng);
        if (log(u) < x * x / 2 + d - d * v + d * log(v)) {
            return d * v;
        }
    }
}

static double gamma_any(struct rng *rng, double shape)
{
    return shape >= 1 ? gamma_draw(rng, shape)
                      : gamma_draw(rng, shape + 1) * pow(1 - rng_unit(rng), 1 / shape);
}

/* Draw the probability of a failure given the failures observed. Running tries count for the share
 * of their run they have passed: failing tries end early, so failures are over-represented among
 * ended tries. */
static double fail_draw(struct rng *rng, const struct forecast_stage_setup *s)
{
    double failed = (double)s->in->failed_tries;
    double passed = (double)s->in->tries - failed + s->passed;
    double f = gamma_any(rng, failed + FAILS_PRIOR);
    double p = gamma_any(rng, passed + PASSES_PRIOR);
    return f / (f + p);
}

void forecast_world_draw(struct forecast_pass *r, int run_i)
{
    rng_seed(&r->rng, r->f->in.seed + (uint64_t)run_i * UINT64_C(0x9e3779b97f4a7c15));
    r->seed = rng_u64(&r->rng);
    for (int i = 0; i < r->f->in.stages_n; i++) {
        const struct forecast_stage_setup *s = &r->f->stage[i];
        struct forecast_stage_pass *run = &r->stage[i];
        /* Each stage has its own random stream: adding a stage does not change the draws of
         * others. */
        struct rng rng;
        rng_seed(&rng, r->seed + (uint64_t)s->in->stage_id);
        if (s->parts_n > 0) {
            run->fail = fail_draw(&rng, s);
            duration_resample(s->duration, s->running, s->running_n, &rng, &run->world);
        }
        if (s->parts_n > 0 && s->start != NULL) {
            duration_resample(s->start, s->running + s->running_n, s->starting_n, &rng,
                              &run->start);
        }
    }
}
