/* The archiving of an ended campaign, an operation that people or the policy by age ask for. */
#pragma once
#include "common/base.h"

struct controller;
struct operation_row;

/* One step of it, a small one: the loop waits meanwhile. False: nothing was done; it is parked,
 * somebody reads its tables, or the leadership is lost (c->leading). */
bool archive_step(struct controller *c, const struct operation_row *op);
