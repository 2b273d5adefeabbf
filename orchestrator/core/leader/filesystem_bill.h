/* What a file system that is gone has cost: the begun hours of its storage, from its creation on,
 * once it was available. Pure. */
#pragma once
#include "leader_state.h"

/* One deleted without a sight of it is billed as if it was there: its row says so before its
 * deletion is sent, whose answer may be lost. */
void leader_filesystem_unseen(const struct live_filesystem *f, struct filesystem_row *r);
/* DELETING: what a look tells of that. */
void leader_filesystem_seen_going(struct filesystem_row *r, const char *lifecycle, usec_t now_us);
/* Closes its account: r says how it ended, *end what is booked. False: it cannot be booked. */
bool leader_filesystem_book(const struct live_filesystem *f, const struct filesystem_row *r,
                            struct filesystem_end *end, struct err *err) MUST_CHECK;
