/* Transactions that belong to one campaign, part, attempt or operation: when the database does not
 * take one, its subject waits and everybody else goes on (core/leader/parking.h has the rule). */
#pragma once
#include "core/leader/parking.h"
#include "lease.h"

/* True when a transaction of the subject may be tried now. */
bool parking_due(const struct controller *c, struct parking_subject who);
/* One transaction of the subject. False: nothing was written; the subject is locked or parked now,
 * or the leadership is lost (c->leading). */
bool parking_tx(struct controller *c, struct parking_subject who, leader_fn *fn, void *arg);
/* The subject's part of somebody's transaction was taken: it is not parked any more. */
void parking_done(struct controller *c, struct parking_subject who);
/* The subject's part of a transaction was refused, for a reason that no transaction has told. */
void parking_refuse(struct controller *c, struct parking_subject who, enum tx_meaning why,
                    const struct err *err);
/* Inside a transaction: which rows people see, and which they have unparked. */
bool parking_read(struct controller *c, struct err *err) MUST_CHECK;
/* Before the scheduler looks: who is set aside, and rows that have still to go. */
void parking_tick(struct controller *c);
