/* Records that wait for their transaction, at most one of each attempt. Pure. */
#pragma once
#include "leader_state.h"

/* Queues a planned record for the next transaction; an accepted manifest goes with it when the task
 * ends. */
void leader_push_record(struct leader_state *s, struct live_attempt *a,
                        const struct pending_record *p);
/* True when its transaction may be tried: its attempt is not parked nor its campaign locked. */
bool leader_record_due(const struct leader_state *s, const struct pending_record *p,
                       int64_t boot_us);
/* Its own transaction was not taken. When its attempt is parked for it, the record is over, and the
 * attempt has to be read again from its row. A record of a locked campaign stays. */
void leader_record_not_taken(struct leader_state *s, struct pending_record *p);
/* Takes the records that are over out of the queue. */
void leader_forget_records(struct leader_state *s);
