/* What a submit did not wait for. The inputs of stages whose rows of input_listing go on are
 * listed by questions to the loop thread; those rows say how far it is; the parts are written.
 *
 * 1. All parts of a stage are written in one transaction with the end of its listing: after a crash
 *    or a change of the leader a listing begins again, and no part is written twice.
 * 2. A campaign does not start before all its inputs are listed; one that cannot be listed fails
 *    it (core/leader/campaign_life.h).
 * 3. LISTINGS_AT_ONCE are under way; others wait for their turn, in the order of their submits.
 *
 * Called by one thread, now and then; nothing here waits. */
#pragma once
#include "bridge.h"
#include "store/pg/connection.h"

struct listings;
struct listings *listings_new(struct bridge *b); /* the caller frees it */
void listings_free(struct listings *t);
/* One look at all of them, with a connection of role STORE_API. False: something could not be done
 * for one of them; it is done in a later look. */
bool listings_look(struct listings *t, struct store *s, struct err *err) MUST_CHECK;
/* This droverd does not lead any more: nothing is asked any further. */
void listings_let_go(struct listings *t);
