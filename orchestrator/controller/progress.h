/* The progress objects that live parts keep next to their output. */
#pragma once
#include "shell.h"

/* Starts the looks that are due; *wake_us is lowered to when to ask again. */
void progress_tick(struct controller *c, int64_t *wake_us);
