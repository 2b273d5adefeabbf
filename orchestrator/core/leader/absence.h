/* Jobs that somebody deletes at AWS after their end and before we have seen it. That Describe does
 * not find a job concludes nothing by itself, since it may be behind. It is proven gone when AWS
 * must have ended it, all Describes of a quarter of an hour have found nothing, and no List has
 * shown it meanwhile. Its bill cannot be asked for any more: it is booked as if it had lasted as
 * long as it could. Pure. */
#pragma once
#include "common/units.h"
#include <stdbool.h>

/* When AWS has ended it at the latest: it began then, and may run for runtime_s. */
usec_t absence_last_end(usec_t began, int64_t runtime_s);
/* A Describe found nothing. *unfound_us (boot): since then none has, 0: the last one found it; what
 * finds it, or a List that shows it, sets it back to 0. True: it is gone. now_us: the wall clock;
 * boot_us: CLOCK_BOOTTIME. */
bool absence_proven(int64_t *unfound_us, usec_t last_end_us, usec_t now_us, int64_t boot_us);
