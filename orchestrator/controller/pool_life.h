/* The calls about warm pools: Describe of the jobs that left them, the wish that they end. */
#pragma once
#include "shell.h"

/* Reads which pools people want to end. */
bool pool_ends_read(struct controller *c, struct err *err) MUST_CHECK;
/* The scheduler wants its end. */
void pool_ask_end(struct controller *c, struct live_pool *p, enum warm_pool_end why);
/* Carries out what Describes have said since the last tick: books pools that are over. */
void pools_record(struct controller *c);
/* Sends what is due; *wake_us is lowered to when to ask again. */
void pools_tick(struct controller *c, int64_t *wake_us);
