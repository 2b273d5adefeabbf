/* Whether anybody asks an endpoint: the question to CloudWatch, one at a time. What follows is
 * decided in core/leader/endpoint_idle.h. */
#pragma once
#include "core/leader/endpoint_life.h"
#include "shell.h"

struct endpoint_use;
struct endpoint_use *endpoint_use_new(struct controller *c);
void endpoint_use_free(struct endpoint_use *u); /* no answer comes any more; NULL ignored */
/* Asks when it is time and no answer is awaited. *wake_us is lowered to when to ask again. */
void endpoint_use_ask(struct endpoint_use *u, struct live_endpoint *e, int64_t *wake_us);
/* True: an answer has come, and *ret is what follows. */
bool endpoint_use_take(struct endpoint_use *u, const struct live_endpoint *e,
                       struct endpoint_writes *ret);
