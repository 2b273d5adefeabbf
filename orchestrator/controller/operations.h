/* Operations of people (retry, skip, archive), carried out in batches. */
#pragma once
#include "common/base.h"

struct controller;

/* One batch of each open operation. False: leadership lost. */
bool operations_tick(struct controller *c);
