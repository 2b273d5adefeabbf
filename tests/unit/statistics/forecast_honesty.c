/* Aim: P10-P90 is what it says. Method: a campaign is stopped at several points, what a leader
 * knows there is forecast, and then it goes on to its end. */
#include "forecast_honesty.h"
#include <math.h>

const int honesty_at_percent[HONESTY_POINTS] = {20, 40, 60, 80};

static struct forecast look(struct truth *t, int runs)
{
    struct err err = ERR_INIT;
    struct forecast f;
    struct forecast_input in = *truth_input(t);
    in.runs = runs;
    bool ok = forecast_run(&in, &f, &err);
    ASSERT(ok);
    return f;
}

static void plan(const struct truth_how *how, uint64_t seed, int runs, usec_t true_us,
                 struct honesty *c)
{
    struct truth *t = truth_new(how, seed, 0);
    struct forecast silent = look(t, runs);
    c->needs_told += !silent.known && silent.needs_parts == 5;
    double mean_s = truth_mean_s(t);
    truth_free(t);
    t = truth_new(how, seed, (int64_t)(mean_s * 1e6));
    struct forecast f = look(t, runs);
    bool near = f.known && fabs((double)f.end_us.p50 / (double)true_us - 1) <= 0.2;
    bool dry = how->capacity > 0;
    c->plans += !dry;
    c->plans_near += !dry && near;
    c->dry += dry;
    c->dry_near += dry && near;
    truth_free(t);
}

void honesty_campaign(uint64_t seed, int runs, struct honesty *c)
{
    struct truth_how how;
    truth_draw(seed, &how);
    struct truth *t = truth_new(&how, seed, 0);
    struct forecast f[HONESTY_POINTS];
    usec_t at[HONESTY_POINTS];
    usec_t began = truth_now(t);
    for (int i = 0; i < HONESTY_POINTS; i++) {
        (void)truth_until(t, (how.parts * honesty_at_percent[i] + 99) / 100);
        at[i] = truth_now(t);
        f[i] = look(t, runs);
    }
    (void)truth_until(t, how.parts);
    musd_t spent = truth_spent(t);
    for (int i = 0; i < HONESTY_POINTS; i++) {
        int64_t left = truth_now(t) - at[i];
        c->checks++;
        c->inside[i] += left >= f[i].end_us.p10 && left <= f[i].end_us.p90;
        c->sooner[i] += left < f[i].end_us.p10;
        c->cost_inside += spent >= f[i].cost_musd.p10 && spent <= f[i].cost_musd.p90;
        c->width += (double)(f[i].end_us.p90 - f[i].end_us.p10) / (double)left;
    }
    plan(&how, seed, runs, truth_now(t) - began, c);
    truth_free(t);
}

double honesty_inside_percent(const struct honesty *c)
{
    int inside = 0;
    for (int i = 0; i < HONESTY_POINTS; i++) {
        inside += c->inside[i];
    }
    return 100.0 * inside / c->checks;
}
