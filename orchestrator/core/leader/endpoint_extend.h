/* A later end of an endpoint, which people want: its ttl grows, and with it what is reserved for
 * it, when the caps have room. It never ends earlier. Pure. */
#pragma once
#include "endpoint_life.h"

/* True: a wish is to be answered. *ret: the row with it taken. What is not later than now, or
 * cannot be reckoned, changes nothing but the answer. */
bool leader_plan_endpoint_extension(const struct live_endpoint *e, struct endpoint_row *ret);
/* The answer is committed. refused: no cap had room. */
void leader_apply_endpoint_extension(struct leader_state *s, struct live_endpoint *e,
                                     const struct endpoint_row *row, bool refused);
