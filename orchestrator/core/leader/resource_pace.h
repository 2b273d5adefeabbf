/* How often endpoints and file systems are asked for, and about: one pace for both. Pure; boot_us
 * is CLOCK_BOOTTIME. */
#pragma once
#include "leader_state.h"

/* From one look at what is being made or deleted to the next, where Lists of jobs come every
 * interval_us: as often, within bounds. */
int64_t resource_pace_poll_us(int64_t interval_us);
/* Whether an intent of the stage may be tried: its last try is long enough ago. */
bool resource_pace_due(const struct live_stage *ls, int64_t boot_us);
/* An intent of the stage is tried now: when it is not taken, the next try waits. */
void resource_pace_tried(struct live_stage *ls, int64_t boot_us);
/* No request was made of the stage. True when none can ever be: a value of its file fits in
 * none. */
bool resource_pace_never(const struct err *why);
/* Then it fails, and says why; else it is tried again later. */
void resource_pace_not_built(struct live_stage *ls, const struct err *why, int64_t boot_us);
