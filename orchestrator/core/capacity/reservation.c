/* The combined probability of many job ends. No random numbers: a sum over independent jobs is
 * computed exactly, so equal views give equal promises. */
#include "reservation.h"
#include <math.h>

static const double knot_chance[RESERVATION_KNOTS] = {0,    0.25, 0.5,   0.75, 0.9,
                                                      0.97, 0.99, 0.999, 1};
#define KNOT_P50 2
#define KNOT_P90 4
#define KNOT_P99 6

static usec_t plus(usec_t t, int64_t span_us)
{
    usec_t sum;
    return t == USEC_NEVER || __builtin_add_overflow(t, span_us, &sum) ? USEC_NEVER : sum;
}

/* What does not fit ends at the last that does. */
static int64_t span_of(double us)
{
    const double most = 0x1p63;
    return us >= most ? INT64_MAX : us <= -most ? -INT64_MAX : (int64_t)us;
}

void reservation_end_at(int instances, usec_t at_us, struct reservation_end *ret)
{
    ret->instances = instances;
    ret->learned = false;
    for (int i = 0; i < RESERVATION_KNOTS; i++) {
        ret->at_us[i] = at_us;
    }
}

/* Beyond P99 there are few observations: each further power of ten takes as long as the previous
 * one. */
static void tail(struct reservation_end *e)
{
    const usec_t *at = e->at_us;
    int64_t decade = MAX(at[KNOT_P99] - at[KNOT_P90], (at[KNOT_P90] - at[KNOT_P50]) / 2);
    e->at_us[KNOT_P99 + 1] = plus(at[KNOT_P99], decade);
    e->at_us[KNOT_P99 + 2] = plus(at[KNOT_P99 + 1], decade);
}

void reservation_end_spread(int instances, usec_t p50_us, usec_t p90_us,
                            struct reservation_end *ret)
{
    /* normal quantiles divided by that of P90 */
    static const double z[KNOT_P99 + 1] = {-1.28, -0.526, 0, 0.526, 1, 1.468, 1.815};
    if (p50_us == USEC_NEVER || p90_us == USEC_NEVER) {
        reservation_end_at(instances, USEC_NEVER, ret);
        return;
    }
    double step = (double)MAX(p90_us - p50_us, 0);
    ret->instances = instances;
    ret->learned = true;
    for (int i = 0; i <= KNOT_P99; i++) {
        ret->at_us[i] = plus(p50_us, span_of(z[i] * step));
    }
    tail(ret);
}

void reservation_end_model(const struct duration *d, uint32_t size_mb, int instances,
                           usec_t from_us, usec_t last_us, usec_t now_us,
                           struct reservation_end *ret)
{
    static const int percent[KNOT_P99 + 1] = {1, 25, 50, 75, 90, 97, 99};
    static const double z[KNOT_P99 + 1] = {-2.33, -0.67, 0, 0.67, 1.28, 1.88, 2.33};
    if (d == NULL || !duration_known(d)) {
        reservation_end_at(instances, MAX(last_us, now_us), ret);
        return;
    }
    int64_t elapsed_us = MAX(now_us - from_us, 0);
    int64_t start_us = MAX(from_us - now_us, 0);
    double mid_us = (double)duration_remaining_us(d, size_mb, elapsed_us, 50);
    /* The error of the fitted line applies to the whole run, not only to the remaining time. */
    double doubt_us = duration_doubt(d, size_mb) * (mid_us + (double)elapsed_us);
    doubt_us = elapsed_us > 0 ? MIN(doubt_us, mid_us) : doubt_us;
    ret->instances = instances;
    ret->learned = true;
    for (int i = 0; i <= KNOT_P99; i++) {
        double run_us = (double)duration_remaining_us(d, size_mb, elapsed_us, percent[i]);
        double off_us = copysign(hypot(run_us - mid_us, z[i] * doubt_us), z[i]);
        usec_t seen_us = plus(plus(now_us + start_us, start_us / 24 * i), RESERVATION_SEEN_US);
        ret->at_us[i] = plus(seen_us, span_of(fmax(mid_us + off_us, 0)));
    }
    tail(ret);
    for (int i = 0; i < RESERVATION_KNOTS; i++) {
        ret->at_us[i] = MIN(ret->at_us[i], MAX(last_us, now_us));
        ret->at_us[i] = i > 0 ? MAX(ret->at_us[i], ret->at_us[i - 1]) : ret->at_us[i];
    }
}

double reservation_end_by(const struct reservation_end *e, usec_t t_us)
{
    const usec_t *at = e->at_us;
    if (at[RESERVATION_KNOTS - 1] <= t_us) {
        return 1;
    }
    if (t_us < at[0]) {
        return 0;
    }
    int i = 0;
    while (at[i + 1] <= t_us) {
        i++;
    }
    if (at[i + 1] == USEC_NEVER) {
        return knot_chance[i];
    }
    double share = (double)(t_us - at[i]) / (double)(at[i + 1] - at[i]);
    return knot_chance[i] + share * (knot_chance[i + 1] - knot_chance[i]);
}

usec_t reservation_end_p90(const struct reservation_end *e)
{
    return e->at_us[KNOT_P90];
}

void reservation_odds_init(struct reservation_odds *o, int64_t spare)
{
    memset(o, 0, sizeof *o);
    o->spare = spare;
    o->late[0] = 1;
}

void reservation_odds_add(struct reservation_odds *o, int instances, double back)
{
    ASSERT(instances >= 0 && back >= 0 && back <= 1);
    o->mean += instances * (1 - back);
    o->var += (double)instances * instances * back * (1 - back);
    if (o->spare > RESERVATION_EXACT) {
        return;
    }
    for (int64_t k = o->spare; k >= 0; k--) {
        double was_less = k >= instances ? o->late[k - instances] : 0;
        o->late[k] = o->late[k] * back + was_less * (1 - back);
    }
}

double reservation_odds_met(const struct reservation_odds *o)
{
    if (o->spare < 0) {
        return 0;
    }
    if (o->spare <= RESERVATION_EXACT) {
        double sum = 0;
        for (int64_t k = 0; k <= o->spare; k++) {
            sum += o->late[k];
        }
        return MIN(sum, 1);
    }
    double room = (double)o->spare + 0.5 - o->mean;
    return o->var > 0 ? 0.5 * erfc(-room / sqrt(2 * o->var)) : room > 0 ? 1 : 0;
}

static double chance_at(int64_t spare, const struct reservation_end *ends, size_t n, usec_t t_us)
{
    struct reservation_odds o;
    reservation_odds_init(&o, spare);
    for (size_t i = 0; i < n; i++) {
        reservation_odds_add(&o, ends[i].instances, reservation_end_by(&ends[i], t_us));
    }
    return reservation_odds_met(&o);
}

bool reservation_start(int64_t spare, const struct reservation_end *ends, size_t n, double chance,
                       usec_t now_us, usec_t *ret)
{
    usec_t early = now_us;
    usec_t late = now_us;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < RESERVATION_KNOTS && ends[i].at_us[k] != USEC_NEVER; k++) {
            late = MAX(late, ends[i].at_us[k]);
        }
    }
    if (chance_at(spare, ends, n, late) < chance) {
        return false;
    }
    if (chance_at(spare, ends, n, early) >= chance) {
        *ret = early;
        return true;
    }
    while (late - early > USEC_PER_SEC) {
        usec_t mid = early + (late - early) / 2;
        if (chance_at(spare, ends, n, mid) >= chance) {
            late = mid;
        } else {
            early = mid;
        }
    }
    *ret = late;
    return true;
}

bool reservation_may_backfill(const struct reservation *g, usec_t p90_end_us, int64_t want,
                              int64_t spare)
{
    return want <= spare || (g->target_us != USEC_NEVER && p90_end_us <= g->target_us);
}

bool reservation_may_pass(const struct reservation *g, const struct reservation_odds *o,
                          const struct reservation_end *end, int64_t spare)
{
    if (!reservation_may_backfill(g, reservation_end_p90(end), end->instances, spare)) {
        return false;
    }
    if (g->target_us == USEC_NEVER) {
        return true;
    }
    struct reservation_odds with = *o;
    reservation_odds_add(&with, end->instances, reservation_end_by(end, g->target_us));
    /* A promise that is already late is not made worse by a part that is certain to end in time. */
    return reservation_odds_met(&with) >= MIN(RESERVATION_GUARD, reservation_odds_met(o));
}
