/* Operations of people (retry, skip, archive), carried out in batches. */
#pragma once
#include "common/base.h"

struct controller;
struct operation_row;

struct operations {
    struct operation_row *rows; /* oldest first; freed by operation_rows_free */
    size_t n;
};

/* The open ones. Read before what has changed: whatever was there before one of them is read then,
 * however fast parts are posted. False: leadership lost. */
bool operations_list(struct controller *c, struct operations *ret);
/* Some batches of each of them, or of as many as a tick has time for. False: leadership lost. */
bool operations_tick(struct controller *c, struct operations *l);
