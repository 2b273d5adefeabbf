/* Strays that are no jobs: calls about them, and their rows. What is decided is in
 * core/leader/resource_strays.h. */
#pragma once
#include "core/leader/resource_strays.h"
#include "shell.h"

/* Inside a transaction: those that are not over, and which of them people want to end. */
bool resource_strays_read(struct controller *c, struct err *err) MUST_CHECK;
/* No answer comes any more. */
void resource_strays_cancel(struct controller *c);
/* One call at a time. *wake_us is lowered to when to ask again. */
void resource_strays_tick(struct controller *c, int64_t *wake_us);
