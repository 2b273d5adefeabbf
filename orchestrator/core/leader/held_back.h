/* What is intended and not made yet is not made while its campaign does not run: paused, draining,
 * or held for its budget or by a breaker it starts nothing that costs. What may have been made is
 * still looked for, and what is made goes on. */
#pragma once
#include "leader_state.h"

/* True: nothing of this campaign is created now. lc is NULL when it is not in memory: true, too. */
bool held_back(const struct live_campaign *lc);
/* Writes into the reason of what is intended that it waits for its campaign, or takes that back.
 * True: the reason has changed. */
bool held_back_say(const struct live_campaign *lc, char reason[static 512]);
