/* Where the programs of a PostgreSQL server are. */
#pragma once
#include "common/err.h"

#define SERVER_BIN_DEBIAN "/usr/lib/postgresql" /* MAJOR/bin below it */

/* The major version that made this data directory; 0: there is none. */
int server_bin_major_of(const char *data);
/* The directory of initdb, pg_ctl and postgres of this major version, 0: of the newest. Looks below
 * debian, then at what pg_config names, then in PATH. ERR_PRECONDITION with what to install. */
bool server_bin_find(const char *debian, int major, char *ret, size_t size,
                     struct err *err) MUST_CHECK;
