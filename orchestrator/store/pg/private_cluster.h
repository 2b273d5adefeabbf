/* A PostgreSQL cluster of our own in a directory. It listens only on a unix socket that its owner
 * and root can reach; all durability settings stay on. Started by root it runs as user `postgres`,
 * or `nobody` if that does not exist. The server outlives the process that started it; a second
 * start finds it running. */
#pragma once
#include "common/err.h"

#define PRIVATE_CLUSTER_CONNINFO_MAX 512

enum private_cluster_mode { PRIVATE_CLUSTER_FAST, PRIVATE_CLUSTER_IMMEDIATE };

/* Make `dir` this process's own until *ret_fd is closed or the process ends. One process only may
 * stop its server at the end. ERR_CONFLICT when another process has it. */
bool private_cluster_own(const char *dir, int *ret_fd, struct err *err) MUST_CHECK;
/* Start the cluster of `dir` (created when absent) and wait until it answers; after a crash it
 * recovers. ret_conninfo: a libpq string. Blocks up to a minute. ERR_PRECONDITION: no PostgreSQL
 * server binaries of the version that made it, or a directory its user cannot reach (with a
 * remedy); ERR_IO, ERR_UNAVAILABLE with the server's message. */
bool private_cluster_start(const char *dir, char *ret_conninfo, size_t size,
                           struct err *err) MUST_CHECK;
/* Stop it. True also when it was not running. */
bool private_cluster_stop(const char *dir, enum private_cluster_mode mode,
                          struct err *err) MUST_CHECK;
/* Process id of the running postmaster; 0 when it is not running. */
int private_cluster_pid(const char *dir);
