/* The private PostgreSQL of the deep simulation, with a migrated database for each worker. */
#pragma once

#define CLUSTER_CONNINFO_MAX 600

/* dir NULL: a new cluster, removed by cluster_stop; else the one in that folder, made if it is not
 * there, which stays. Its databases are new in either case. */
void cluster_start(const char *dir, int databases);
void cluster_stop(void);
int cluster_pid(void);
void cluster_database(int w, char ret[static CLUSTER_CONNINFO_MAX]);
