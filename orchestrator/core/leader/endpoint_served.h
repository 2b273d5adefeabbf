/* Since when an endpoint that nobody sees is billed. Pure. */
#pragma once
#include "leader_state.h"

/* Nobody sees whether it serves: billed since it was made, which is the most that it can be. That
 * is written before its deletion is sent, whose answer may be lost; also of one whose Create had no
 * answer. */
void endpoint_served_assume(const struct live_endpoint *e, struct endpoint_row *r);
/* True: when it began to serve is assumed, nobody saw it. */
bool endpoint_served_assumed(const struct endpoint_row *r);
/* True: the same, and the only sign of it is a Create without an answer. */
bool endpoint_served_guessed(const struct endpoint_row *r);
/* It is proven absent: takes such a guess back, unless it was seen or a Delete of it may have been
 * taken. */
void endpoint_served_never(const struct live_endpoint *e, struct endpoint_row *r);
/* DELETING: it was there until then, and is billed at least so long. */
void endpoint_served(struct endpoint_row *r, usec_t now_us);
