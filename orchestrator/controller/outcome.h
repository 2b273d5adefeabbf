/* Record: what the protocol concluded becomes rows, in batches, and only then changes memory. */
#pragma once
#include "shell.h"

/* Plans the record of an effect on `a` and queues it for record_flush. None of it is queued yet. */
void record_push(struct live_attempt *a, const struct protocol_effect *e);
bool record_flush(struct controller *c); /* false: leadership lost */
