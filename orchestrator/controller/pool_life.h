/* The calls about warm pools: Describe of the jobs that left them, the wish that they end. */
#pragma once
#include "ctl.h"

/* The calls of a pool that has just come into memory: none under way. */
void pool_attach_io(struct controller *c, struct live_pool *p);
void pool_remove(struct controller *c, struct live_pool *p); /* cancels its calls */
/* Reads the open pools and the campaigns they belong to. */
bool pool_load(struct controller *c, struct err *err) MUST_CHECK;
/* The scheduler wants its end. */
void pool_ask_end(struct controller *c, struct live_pool *p, enum warm_pool_end why);
/* Sends what is due; *wake_us is lowered to when to ask again. */
void pools_tick(struct controller *c, int64_t *wake_us);
