/* Between world.c and world_calls.c. */
#pragma once
#include "world.h"

#define TICK_US USEC_PER_SEC
#define NOW_US  (1000 * TICK_US) /* always: a state holds spans only */

extern const struct protocol_config world_proto;
extern struct world_coverage world_coverage;

/* Converts a controller's memory to the protocol's struct, and back. */
void world_unpack(const struct memory *m, struct protocol_attempt *ret);
void world_pack(struct memory *m, const struct protocol_attempt *a);
/* The controller forgets the Create. The request may still arrive while its signature is valid.
 * Of several with one name the one that is valid longest is kept. */
void world_orphan(struct world *w, int p, struct memory *m);
void world_create_job(struct world *w, int p, int n);
/* Gives the protocol a fact and records its effect in a transaction. */
void world_step(struct world *w, int c, int p, const struct fact *f, const char **ret_wrong);

/* Makes one of the moves MOVE_ACT .. MOVE_LIST or MOVE_TAKE_CANCEL. False: it is not possible
 * here. */
bool call_act(struct world *w, int c, int p, int v, const char **ret_wrong);
bool call_send(struct world *w, int c, int p, int v, const char **ret_wrong);
bool call_arrive(struct world *w, int c, int p, int v);
bool call_time_out(struct world *w, int c, int p, const char **ret_wrong);
bool call_reply(struct world *w, int c, int p, int v, const char **ret_wrong);
bool call_looked(struct world *w, int c, int p, int v, const char **ret_wrong);
bool call_list(struct world *w, int c, int p, const char **ret_wrong);
bool call_take_cancel(struct world *w, int c, int p, const char **ret_wrong);
