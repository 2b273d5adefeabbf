/* The sweep for endpoints, endpoint configs, models and file systems that no row stands for. What
 * is decided is in core/leader/resource_sweep.h. */
#pragma once
#include "shell.h"

/* Takes an answer, writes what is held, asks the next question or for the next list: one call at a
 * time. *wake_us is lowered to when to ask again. */
void resource_sweep_tick(struct controller *c, int64_t *wake_us);
void resource_sweep_cancel(struct controller *c);
