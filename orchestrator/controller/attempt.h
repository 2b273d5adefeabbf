/* Live attempts: what is under way of each with AWS, and the facts that come in. */
#pragma once
#include "ctl.h"

/* The calls of an attempt that has just come into memory: none under way. */
void attempt_attach_io(struct controller *c, struct live_attempt *a);
/* A row found at takeover enters memory; what follows of it is queued for the record. */
void attempt_take_over(struct controller *c, const struct attempt_row *row,
                       struct live_campaign *lc);
void attempt_remove(struct controller *c, struct live_attempt *a); /* cancels its calls */
/* Paused, cancelled or hung: no longer wanted. */
void attempt_unwant(struct live_attempt *a);
void attempt_protocol_config(const struct controller *c, struct protocol_config *ret);
/* Feeds a fact; what follows is queued for the record transaction, which may have to be written
 * first: the leadership, and the attempt with it, may be lost. */
void attempt_fact(struct live_attempt *a, const struct fact *f);
