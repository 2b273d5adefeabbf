/* Strays: calls about jobs that have no attempt, and their rows. What is decided is in
 * core/leader/strays.h. */
#pragma once
#include "shell.h"

/* Inside a transaction: the open rows, and which of them people want stopped. */
bool strays_read(struct controller *c, struct err *err) MUST_CHECK;
/* No answer comes any more. */
void strays_cancel(struct controller *c);
/* One call at a time. *wake_us is lowered to when to ask again. */
void strays_tick(struct controller *c, int64_t *wake_us);
