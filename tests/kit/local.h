/* Starts build/bin/drover-local on a free port with a folder of its own; run from the root of the
 * tree. The environment is set so that clients find it. */
#pragma once
#include "common/base.h"

struct local {
    int pid;
    char root[64]; /* deleted by local_stop */
    char *url;     /* http://127.0.0.1:PORT */
};
/* config: JSON text for --config; NULL: no config. Sets AWS_ENDPOINT_URL, AWS_REGION and the key
 * pair AKIDLOCAL / local-secret. */
void local_start(struct local *l, const char *config);
/* Keeps its log of requests in the folder DROVER_REQUESTS when that is set. */
void local_stop(struct local *l);
/* Make an empty bucket. */
void local_bucket(const struct local *l, const char *bucket);
