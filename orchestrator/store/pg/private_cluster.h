/* A PostgreSQL cluster of our own below a directory: made once, started, stopped. It listens on a
 * unix socket only that only its owner (and root) can reach; everything that makes a commit durable
 * stays on. Started by root it runs as user `postgres`, or `nobody` where that does not exist.
 * The server outlives the process that started it, and a second start finds it running. */
#pragma once
#include "common/err.h"

#define PRIVATE_CLUSTER_CONNINFO_MAX 512

enum private_cluster_mode { PRIVATE_CLUSTER_FAST, PRIVATE_CLUSTER_IMMEDIATE };

/* Start the cluster of `dir` (made when absent) and wait until it answers; one that was killed
 * recovers. ret_conninfo: a libpq string. Blocks up to a minute.
 * ERR_PRECONDITION: no PostgreSQL server binaries, or a directory its user cannot reach (named,
 * with what to do); ERR_IO, ERR_UNAVAILABLE with the server's own words. */
bool private_cluster_start(const char *dir, char *ret_conninfo, size_t size,
                           struct err *err) MUST_CHECK;
/* Stop it; true when it was not running. */
bool private_cluster_stop(const char *dir, enum private_cluster_mode mode,
                          struct err *err) MUST_CHECK;
/* Process id of the running postmaster, 0 when there is none. */
int private_cluster_pid(const char *dir);
