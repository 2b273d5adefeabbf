/* The hosts of a training job, as resourceconfig.json names them. The first one sums over TCP what
 * all have computed. The batch is cut into GROUP_CHUNKS pieces, each computed by one host and added
 * in the order of the pieces, so the sum has the same bits for any number of hosts. */
#pragma once
#include "linear_model.h"

#define GROUP_CHUNKS 8 /* and the most hosts */

struct hosts_group;
/* Connect to all hosts; a job without resourceconfig.json has one. wait_us: for the others to come,
 * and for each answer of theirs. stop: not 0 ends the wait. ERR_INVALID, ERR_NETWORK,
 * ERR_UNAVAILABLE (stopped). */
bool group_open(int port, int64_t wait_us, const _Atomic int *stop, struct hosts_group **ret,
                struct err *err) MUST_CHECK;
void group_free(struct hosts_group *g);
int group_rank(const struct hosts_group *g); /* 0: the first host */
int group_hosts(const struct hosts_group *g);
bool group_computes(const struct hosts_group *g, int chunk); /* true: this host's piece */
/* Give everybody the first host's model. ERR_INVALID when a host has another run (rows, settings).
 */
bool group_begin(struct hosts_group *g, const char *run, struct linear_model *m,
                 struct err *err) MUST_CHECK;
/* Sum chunks[GROUP_CHUNKS] of all hosts. *stop: in, this host is to stop; out, some host is. */
bool group_sum(struct hosts_group *g, const struct model_gradient *chunks, bool *stop,
               struct model_gradient *ret, struct err *err) MUST_CHECK;
