/* See scaling.h. */
#include "scaling.h"
#include "core/money/cost.h"
#include <math.h>

#define SECONDS_MAX 1e12 /* so that money keeps within its type */

static bool time_of(const struct scaling_run *run, double epoch, double *ret, struct err *err)
{
    *ret = run->seconds;
    if (epoch > 0) {
        if (run->rate.n == 0 || !(run->rate.median > 0)) {
            return err_set(err, ERR_INVALID, "a run has no rate");
        }
        *ret = epoch / run->rate.median;
    }
    return (*ret > 0 && *ret < SECONDS_MAX) || err_set(err, ERR_INVALID, "a run has no time");
}

bool scaling_table(const struct scaling_run *runs, int n, double epoch, double deadline_s,
                   struct scaling_row *ret, struct err *err)
{
    int base = 0, best = -1;
    ASSERT(n >= 0 && n <= SCALING_RUNS_MAX);
    for (int i = 0; i < n; i++) {
        double s = 0;
        ASSERT(runs[i].instances >= 1 && runs[i].price_musd_per_hour >= 0);
        if (!time_of(&runs[i], epoch, &s, err) ||
            !cost_of_seconds(runs[i].price_musd_per_hour,
                             llround(ceil(s) * (double)runs[i].instances), &ret[i].musd, err)) {
            return false;
        }
        ret[i].seconds = s;
        ret[i].cheapest = false;
        ret[i].in_time = deadline_s <= 0 || s <= deadline_s;
        if (runs[i].instances < runs[base].instances) {
            base = i;
        }
        if (ret[i].in_time &&
            (best < 0 || ret[i].musd < ret[best].musd ||
             (ret[i].musd == ret[best].musd && runs[i].instances < runs[best].instances))) {
            best = i;
        }
    }
    for (int i = 0; i < n; i++) {
        double more = (double)runs[i].instances / (double)runs[base].instances;
        ret[i].speedup = ret[base].seconds / ret[i].seconds;
        ret[i].efficiency = ret[i].speedup / more;
    }
    if (best >= 0) {
        ret[best].cheapest = true;
    }
    return true;
}
