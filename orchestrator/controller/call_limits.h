/* How often the controller calls AWS about one kind of thing. Times in microseconds, by the boot
 * clock. */
#pragma once
#include "common/units.h"

#define CALLS_AT_ONCE   8                     /* calls under way of one kind */
#define POLL_MIN_US     (100 * USEC_PER_MSEC) /* between two looks at what is not yet there */
#define POLL_MAX_US     (10 * USEC_PER_SEC)
#define INTENT_AGAIN_US (2 * USEC_PER_SEC)   /* after an intent was refused */
#define NOT_BUILT_US    (300 * USEC_PER_SEC) /* after no request could be made of the stage */
