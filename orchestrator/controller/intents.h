/* Decide and intend: the view goes to the scheduler, its plan becomes committed intents. */
#pragma once
#include "shell.h"

/* One plan and its transaction. May lose the leadership. */
void intend_tick(struct controller *c);
