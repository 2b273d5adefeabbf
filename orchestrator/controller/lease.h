/* The fence around all that a leader does: a transaction commits and a request is signed only
 * while the lease is ours. */
#pragma once
#include "core/leader/lease_watch.h"
#include "core/leader/tx_error.h"
#include "shell.h"

/* Opens for requests while the lease is ours by CLOCK_BOOTTIME. */
struct aws_gate lease_gate(struct controller *c);
struct lease_terms lease_terms_of(const struct controller *c);
/* Boot time after which nobody who led before can send anything, as far as is known now. */
int64_t lease_others_end_us(const struct controller *c);
/* Loses the leadership when the lease has lapsed: this process was frozen. */
void leader_lapse(struct controller *c);
/* Renews the lease when its time has come. False: it is no longer ours, or nobody knows. */
bool leader_renew_if_due(struct controller *c, struct err *err) MUST_CHECK;
/* A failed transaction, a lapsed lease: signs and commits nothing more. What is known stays valid
 * until the pass ends (leader_end_pass), so that no caller holds what was freed. */
void leader_lose(struct controller *c, const char *why, const struct err *err);
/* The timers and figures of leading end; without a word in the log. */
void lease_stop_leading(struct controller *c);

typedef bool leader_fn(struct controller *c, void *arg, struct err *err);
/* One transaction of the leader: begin, fn, commit. TX_BUSY and TX_REFUSED: nothing of it was
 * written, *ret_err says why, and we go on leading. TX_LOST: the leadership is lost already. */
enum tx_meaning leader_try(struct controller *c, leader_fn *fn, void *arg, struct err *ret_err);
/* The same for what belongs to no campaign: a failure is a warning. False: nothing was written;
 * c->leading tells whether we still lead. */
bool leader_tx(struct controller *c, leader_fn *fn, void *arg);
