/* Endpoints: the calls about their models, configs and themselves, their smoke test, and their
 * rows. What is decided is in core/leader/endpoint_life.h. */
#pragma once
#include "shell.h"

/* Inside a transaction: the open ones, and what people have asked of them. */
bool endpoints_read(struct controller *c, struct err *err) MUST_CHECK;
/* One that was just intended has no calls yet. */
void endpoint_attach_io(struct controller *c, struct live_endpoint *e);
/* No answer comes any more. */
void endpoints_cancel(struct controller *c);
/* Answers become rows. */
void endpoints_record(struct controller *c);
/* Those whose time is over end; then one call each. *wake_us is lowered to when to ask again. */
void endpoints_tick(struct controller *c, int64_t *wake_us);
