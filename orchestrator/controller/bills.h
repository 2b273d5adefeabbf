/* Bills that come late: calls about ended jobs that are settled by an estimate, and their rows.
 * What is decided is in core/leader/bills.h. */
#pragma once
#include "shell.h"

/* Inside a transaction: the rows that are asked for. */
bool bills_read(struct controller *c, struct err *err) MUST_CHECK;
/* No answer comes any more. */
void bills_cancel(struct controller *c);
/* One call at a time. *wake_us is lowered to when to ask again. */
void bills_tick(struct controller *c, int64_t *wake_us);
