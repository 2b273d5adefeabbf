/* Record: what the protocol concluded becomes rows, in batches, and only then changes memory. */
#pragma once
#include "shell.h"

/* Plans the record of an effect on `a` and queues it for record_flush. When one of the same attempt
 * is queued already, that is written first, which may lose the leadership or end the attempt. */
void record_push(struct live_attempt *a, const struct protocol_effect *e);
bool record_flush(struct controller *c); /* false: leadership lost */
