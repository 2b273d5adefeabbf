/* All state of drover-local. The mutex `mu` guards everything below it; S3 objects do not need
 * it. */
#pragma once
#include "local/jobs/job.h"
#include "local/oracle/faults.h"
#include "local/oracle/journal.h"
#include "local/oracle/rates.h"
#include "local/oracle/records.h"
#include "local/oracle/request_log.h"
#include "local/oracle/wire.h"
#include "settings.h"
#include <limits.h>
#include <pthread.h>

struct job_clock;
struct queues;

struct app {
    struct local_settings set;
    char root[PATH_MAX - 512]; /* absolute */
    char exe[PATH_MAX];        /* this program */
    char url[96];              /* http://ADDR:PORT of this endpoint, given to jobs */
    pthread_mutex_t s3_mu;     /* publishing and removing objects */
    pthread_mutex_t mu;
    struct jobs jobs;
    struct records records;
    struct journal state;
    struct wire_log wire;
    struct request_log requests;
    struct injected_faults faults;
    struct rates rates;
    json_t *quota_requests; /* array of RequestedQuota; NULL: none was asked for */
    struct job_clock *ticker;
    struct queues *queues; /* of SQS */
    usec_t fleets_check;   /* when dead supervisors of endpoints are looked for */
    int forwards_n;        /* invocations at a model server now */
    pthread_cond_t forwards_over;
};
