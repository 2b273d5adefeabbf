/* A training job and the list of all of them.
 *
 *   Starting --cold start--> Downloading --> Training --> Uploading --> Completed | Failed
 *      |                          |             |             |
 *      +------ StopTrainingJob ---+-------------+-------------+--> Stopping --> Stopped
 *
 * A spot job whose instances are reclaimed goes Training --> Interrupted --> Starting again, or
 * ends Stopped (MaxWaitTimeExceeded) when its wait time is over. The time from Downloading to the
 * end or to Interrupted is a run; only runs are billed.
 *
 * Starting is timed here. From Downloading on a supervisor process (supervise.h) runs the job and
 * reports through files, so a job continues while drover-local is dead. Invariants:
 * 1. A name is used only once.
 * 2. Instances count against the quota from `created` until `released`.
 * 3. `released` is set with the terminal status in one critical section, or by the end of the warm
 *    pool (warm.h) that began there.
 * 4. A terminal status never changes. */
#pragma once
#include "common/json.h"
#include "common/units.h"
#include <pthread.h>

#define JOBS_MAX            500000
#define JOB_TRANSITIONS_MAX 32
#define JOB_REASON_MAX      1024

struct app;

enum local_job_status {
    JOB_IN_PROGRESS,
    JOB_STOPPING,
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_STOPPED,
    JOB_STATUS_COUNT
};
enum local_job_phase {
    PHASE_STARTING,
    PHASE_DOWNLOADING,
    PHASE_TRAINING,
    PHASE_UPLOADING,
    PHASE_STOPPING,
    PHASE_STOPPED,
    PHASE_MAX_RUNTIME,
    PHASE_COMPLETED,
    PHASE_FAILED,
    PHASE_INTERRUPTED, /* the journal stores numbers: append only */
    PHASE_MAX_WAIT,
    JOB_PHASE_COUNT
};
enum job_inject { INJECT_NONE, INJECT_CAPACITY, INJECT_FAILURE, INJECT_SPOT };

struct transition {
    enum local_job_phase phase;
    usec_t start;
    usec_t end; /* 0 while it is current */
};

enum pool_status {
    POOL_NONE,
    POOL_AVAILABLE,
    POOL_IN_USE,
    POOL_REUSED,
    POOL_TERMINATED,
    POOL_STATUS_COUNT
};
struct pool { /* what happened to the instances; see warm.h */
    enum pool_status status;
    int64_t keep_s; /* current keep-alive */
    usec_t since;   /* the job's end */
    usec_t noticed; /* when that end was first seen */
    usec_t until;   /* when it expires */
    usec_t end;     /* when it was taken or ended; 0 before */
    int64_t retained_s;
    usec_t cluster_since; /* the first job of the chain started */
    char cluster[64];     /* that job */
    char taken_from[64];  /* job whose pool this one runs on; "": no pool */
    char reused_by[64];
};

struct local_job {
    int64_t seq; /* position in the list, from 0 */
    char name[64];
    json_t *request; /* body of CreateTrainingJob */
    json_t *tags;    /* array */
    char instance_type[64];
    int64_t instances;
    bool spot;
    bool ghost; /* created by a fault: no process, no slot, no cost */
    enum local_job_status status;
    enum local_job_phase phase;
    usec_t created;
    usec_t started; /* instances are up and billing begins; 0 before */
    usec_t ended;
    usec_t released;
    usec_t modified;
    usec_t run_started;     /* of the current run; 0 between runs */
    int64_t ran_us;         /* total of earlier runs */
    int64_t billed_percent; /* of the time it ran: spot costs less */
    int64_t billable_s;     /* 0 until it has started and ended */
    usec_t wait_until;      /* spot: end of MaxWaitTimeInSeconds; else USEC_NEVER */
    struct transition transitions[JOB_TRANSITIONS_MAX];
    size_t transitions_n;
    size_t told_n; /* of them, by events */
    char reason[JOB_REASON_MAX + 1];
    struct pool pool;
    usec_t due; /* the next timed change; 0: none */
    enum job_inject inject;
    int64_t inject_after_us;
    int64_t inject_times; /* interruptions left */
    char inject_reason[JOB_REASON_MAX + 1];
};

struct jobs {
    struct local_job **items; /* items[n], in order of creation */
    size_t n;
    size_t cap;
    json_t *by_name;         /* name -> seq */
    struct local_job **live; /* live[live_n]: not released, including ended jobs with a pool */
    size_t live_n;
    size_t live_cap;
};

const char *job_status_name(enum local_job_status s);
const char *job_phase_name(enum local_job_phase p);
/* Status that goes with a phase. */
enum local_job_status job_phase_status(enum local_job_phase p);

void jobs_init(struct jobs *j);
void jobs_done(struct jobs *j);
struct local_job *jobs_find(const struct jobs *j, const char *name); /* NULL when there is none */
/* Add a job that has just been created or read back; takes it. */
void jobs_add(struct jobs *j, struct local_job *take);
/* Remove a released job from the live list. */
void jobs_retire(struct jobs *j, struct local_job *job);
void job_free(struct local_job *job);
/* A new job from a create request that has passed the checks. The request's reference count grows.
 */
struct local_job *job_new(const char *name, json_t *request, usec_t now);
/* OutputDataConfig.CompressionType NONE: the model's files stay what they are, below a prefix. */
bool job_model_loose(const json_t *request);
/* Go to a phase at an instant: status, history and modified follow. */
void job_enter(struct local_job *job, enum local_job_phase phase, usec_t at);
/* End it: phase, reason ("": no reason), end of the billed time, and the instant its instances are
 * free again. */
void job_end(struct local_job *job, enum local_job_phase phase, const char *reason, usec_t ended,
             usec_t released);
/* True when its status is terminal. */
bool job_has_ended(const struct local_job *job);
/* True when it has ended and holds no instances. */
bool job_is_over(const struct local_job *job);
const char *pool_status_name(enum pool_status s);
/* What changes in a job, to JSON and back; the request is not in it. */
json_t *job_to_json(const struct local_job *job);
bool job_from_json(struct local_job *job, const json_t *o, struct err *err) MUST_CHECK;
