/* Waiting tasks of a stage, from their rows into its queues. */
#pragma once
#include "shell.h"

/* Tasks [loaded, taken) enter the queues, all or none. Inside a transaction. */
bool task_load(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
