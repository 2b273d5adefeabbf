/* What is done now and then, on a connection of its own that never waits: days of events, expired
 * idempotency keys, the policy by which campaigns are archived. */
#pragma once
#include "common/base.h"

struct controller;

/* Does what is due. Returns when to come again, in us. */
int64_t maintenance_run(struct controller *c);
