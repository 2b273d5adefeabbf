/* How soon the leader asks AWS again about one thing. In microseconds, by the boot clock. */
#pragma once
#include "common/retry.h"

/* After a call that failed: retry_step_us of these and the failures so far. */
#define AGAIN_US     USEC_PER_SEC
#define AGAIN_MAX_US (60 * USEC_PER_SEC)
#define LOOK_US      (60 * USEC_PER_SEC) /* between two looks at what serves or is used */
