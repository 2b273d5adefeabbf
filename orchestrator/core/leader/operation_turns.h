/* In which order the open operations are carried out in one tick. Pure. */
#pragma once
#include "core/rows.h"

/* The loop waits for them, and the lease is renewed between two ticks. */
#define OPERATION_TURNS_US (500 * USEC_PER_MSEC)

/* The indices of rows[n], oldest first, into ret[n]: all of one campaign stand together and in
 * their order. The campaigns come in the order of their oldest ones; those behind the operation
 * `after` first, which had the last turn when the tick before ran out of time (0: it did not). */
void operation_turns(const struct operation_row *rows, size_t n, int64_t after, size_t *ret);
/* True when the tick has run out of time behind order[at]. *ret_after is then where the next one
 * goes on, with another campaign: later ones of this one wait for its next turn; else it is 0. */
bool operation_turns_over(const struct operation_row *rows, size_t n, const size_t *order,
                          size_t at, int64_t took_us, int64_t *ret_after);
