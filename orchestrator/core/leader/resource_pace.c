/* See resource_pace.h. */
#include "resource_pace.h"
#include "attempt.h"
#include "intents.h"
#include <stdio.h>

#define POLL_MIN_US (100 * USEC_PER_MSEC)
#define POLL_MAX_US (10 * USEC_PER_SEC)

int64_t resource_pace_poll_us(int64_t interval_us)
{
    return MIN(MAX(interval_us, POLL_MIN_US), POLL_MAX_US);
}

bool resource_pace_due(const struct live_stage *ls, int64_t boot_us)
{
    return boot_us >= ls->endpoint_next_us;
}

void resource_pace_tried(struct live_stage *ls, int64_t boot_us)
{
    ls->endpoint_next_us = boot_us + INTENT_AGAIN_US;
}

bool resource_pace_never(const struct err *why)
{
    return why->code == ERR_INVALID;
}

void resource_pace_not_built(struct live_stage *ls, const struct err *why, int64_t boot_us)
{
    ls->endpoint_next_us = boot_us + INTENT_NOT_BUILT_US;
    ls->endpoint_unmade = resource_pace_never(why);
    if (ls->endpoint_unmade) {
        (void)snprintf(ls->endpoint_why, sizeof ls->endpoint_why, ATTEMPT_NO_REQUEST_WHY "%.240s",
                       why->message);
    }
}
