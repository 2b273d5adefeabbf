/* Which campaigns a plan looks at. A campaign rests while a plan can neither start a part of it nor
 * say anything new about it (sched_view.h decides), so thousands of paused campaigns cost a plan
 * nothing. Whatever changes a fact behind that wakes the campaign: its state and wishes, states of
 * its stages, its queues, pools and money, and what its attempts teach. To wake it without need is
 * harmless. */
#pragma once
#include "leader_state.h"

void campaign_wake(struct live_campaign *lc);
void campaign_rest(struct live_campaign *lc);
