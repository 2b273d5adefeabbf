/* When will a stage be done? A bootstrap over the durations of its finished parts: honest about
 * what few of them can tell, and silent under ETA_PARTS_MIN. Pure: same input, same answer. */
#pragma once
#include "common/units.h"

#define ETA_PARTS_MIN 5
#define ETA_SLOTS_MAX 4096

struct eta {
    bool known;         /* false: under ETA_PARTS_MIN finished parts, or no slot */
    double parts_per_h; /* slots / mean duration */
    int64_t p10_us;     /* from now; one in ten ends sooner than p10, nine in ten sooner than p90 */
    int64_t p50_us, p90_us;
};
/* durations_us[n]: of finished parts (each > 0; the newest few hundred are enough). remaining:
 * parts not ended, the running ones included. slots: parts that run at once. */
void eta_estimate(const int64_t *durations_us, size_t n, int64_t remaining, int64_t slots,
                  uint64_t seed, struct eta *ret);
