/* Before the first intent of an epoch the jobs at AWS are matched with our rows. */
#pragma once
#include "shell.h"

void orphan_sweep_tick(struct controller *c);
void orphan_sweep_cancel(struct controller *c);
