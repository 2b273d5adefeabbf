/* Writes the thresholds of caps that were reached since the last tick. */
#pragma once
#include "shell.h"

bool budget_state_tick(struct controller *c); /* false: leadership lost */
