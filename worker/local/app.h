/* The parts of drover-local. One mutex, `mu`, guards everything below it; S3 objects need none of
 * it. */
#pragma once
#include "faults.h"
#include "job.h"
#include "rates.h"
#include "settings.h"
#include "state.h"
#include "wire.h"
#include <limits.h>
#include <pthread.h>

struct MHD_Daemon;
struct ticker;

struct app {
    struct settings set;
    char root[PATH_MAX - 512]; /* absolute */
    char exe[PATH_MAX];        /* this program */
    char url[96];              /* http://ADDR:PORT of this endpoint, given to jobs */
    pthread_mutex_t s3_mu;     /* publishing and removing objects */
    pthread_mutex_t mu;
    struct jobs jobs;
    struct state state;
    struct wire wire;
    struct faults faults;
    struct rates rates;
    struct ticker *ticker;
};
