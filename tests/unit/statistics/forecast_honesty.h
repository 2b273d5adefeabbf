/* How often the forecast is right, over campaigns that went as they went (forecast_truth.h). */
#pragma once
#include "forecast_truth.h"

#define HONESTY_POINTS 4
extern const int honesty_at_percent[HONESTY_POINTS]; /* of the parts done */

struct honesty {
    int checks, inside[HONESTY_POINTS], sooner[HONESTY_POINTS];
    int cost_inside;
    double width; /* sum over the checks of P90 - P10, in shares of the time left */
    /* Plans before the start with durations given: within 20 %; apart where capacity was short. */
    int plans, plans_near, dry, dry_near;
    int needs_told; /* plans without durations that ask for five parts */
};
/* One campaign from plan to end, `runs` worlds a forecast; adds to c. */
void honesty_campaign(uint64_t seed, int runs, struct honesty *c);
/* Of all checks: the true end between P10 and P90. */
double honesty_inside_percent(const struct honesty *c);
