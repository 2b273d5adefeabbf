/* What is intended and not made yet is not made while its campaign does not run: paused, draining,
 * or held for its budget or by a breaker it starts nothing that costs. What may have been made is
 * still looked for, and what is made goes on. */
#pragma once
#include "leader_state.h"

/* Is no create of it sent? lc is NULL when its campaign is not in memory: nobody knows. */
bool held_back(const struct live_campaign *lc);
/* Of what is intended: has the reason why it waits to be said, or taken back? */
bool held_back_say(const struct live_campaign *lc, char reason[static 512]);
