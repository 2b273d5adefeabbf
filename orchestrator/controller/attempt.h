/* Live attempts: the facts that come in about each. */
#pragma once
#include "shell.h"

/* A row found at takeover enters memory; what follows of it is queued for the record. */
void attempt_take_over(struct controller *c, struct attempt_row *row, struct live_campaign *lc);
/* Attempts of which memory is ahead of their rows are read again, as a takeover does. */
void attempts_reread(struct controller *c);
/* Nothing may be asked of AWS for it now: a record of it waits, or its row is to be read again. */
bool attempt_waits(const struct live_attempt *a);
/* Paused, cancelled or hung: no longer wanted. */
void attempt_unwant(struct live_attempt *a);
void attempt_protocol_config(const struct controller *c, struct protocol_config *ret);
/* Feeds a fact; what follows is queued for the record transaction. Never writes or frees anything,
 * so that callbacks may call it. */
void attempt_fact(struct live_attempt *a, const struct fact *f);
/* After record_flush: feeds the facts that came while their attempt waited for it. True: some did,
 * and there may be records of them to flush. */
bool attempts_go_on(struct controller *c);
