/* What a file system that is gone has cost: the begun hours of its storage, from its creation on,
 * once it was available. Pure. */
#pragma once
#include "leader_state.h"

/* Closes its account: r says how it ended, *end what is booked. False: it cannot be booked. */
bool leader_filesystem_book(const struct live_filesystem *f, const struct filesystem_row *r,
                            struct filesystem_end *end, struct err *err) MUST_CHECK;
