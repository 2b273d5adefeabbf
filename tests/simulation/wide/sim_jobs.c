/* The lives of jobs at SageMaker: pending, starting, running, uploading, their ends, and the pools
 * they leave. What they are billed is counted here, by arithmetic of its own. */
#include "sim_world.h"

static const char *const failures[] = {
    "AlgorithmError: Framework Error: OSError: [Errno 28] No space left on device",
    "AlgorithmError: torch.cuda.OutOfMemoryError: CUDA out of memory, exit code: 1",
    "ClientError: Data download failed: No S3 objects found under S3 URL s3://bucket/in",
    "AlgorithmError: ExecuteUserScriptError: Traceback ValueError: bad value, exit code: 1",
    "AlgorithmError: ClientConnectorError: Connection timed out",
    "AlgorithmError: something nobody has read before, exit code: 99",
    "ClientError: CannotPullContainerError: manifest unknown",
    "ClientError: Access denied for repository",
    "AlgorithmError: SlowDown: reduce your request rate",
    "ClientError: SpotInstanceTermination: the instance is reclaimed",
    "something nobody has read before",
};
static const char internal_error[] = "InternalServerError: We encountered an internal error. "
                                     "Please try again.";
static const char no_capacity[] = "CapacityError: Unable to provision requested ML compute "
                                  "capacity. Please retry using a different ML instance type.";

static usec_t wall(const struct world *w)
{
    return SIM_EPOCH_US + w->now_us;
}

bool job_is_over(const struct job *j)
{
    return j->over;
}

int64_t job_billed_s(const struct world *w, const struct job *j)
{
    (void)w;
    return j->v.billable_s * j->count;
}

int64_t job_idle_s(const struct world *w, const struct job *j)
{
    (void)w;
    return j->v.retained_s * j->count;
}

#define PROGRESS_US MINUTE

/* The progress object that a worker writes once a minute. A hung worker stops writing, or
 * repeats the same figures. */
bool job_progress(const struct world *w, const struct job *j, struct hang_detector_seen *ret)
{
    *ret = j->progress;
    if (j->v.phase != PHASE_RUNNING || wall(w) < j->v.modified + PROGRESS_US) {
        return j->progress.at_us != 0; /* what was written stays there */
    }
    int64_t at_us = (wall(w) - j->v.modified) / PROGRESS_US * PROGRESS_US;
    int64_t worked_us = MIN(at_us, j->hangs_at_us);
    bool silent = j->hung && (j->name_hash & 1) != 0 && at_us > j->hangs_at_us;
    if (silent) {
        at_us = j->hangs_at_us / PROGRESS_US * PROGRESS_US;
        worked_us = at_us;
    }
    *ret = (struct hang_detector_seen){.at_us = j->v.modified + at_us,
                                       .rows_done = worked_us / 1000,
                                       .rows_total = MAX(1, j->run_us / 1000),
                                       .bytes = worked_us,
                                       .shards_done = worked_us / (5 * MINUTE)};
    return at_us > 0;
}

static void show(struct world *w, struct job *j, enum job_status status, enum job_phase phase)
{
    struct hang_detector_seen last;
    if (j->v.phase == PHASE_RUNNING && job_progress(w, j, &last)) {
        j->progress = last;
    }
    memmove(&j->hist[1], &j->hist[0], (HIST - 1) * sizeof j->hist[0]);
    j->hist[0] = (struct job_snap){wall(w), j->v};
    j->v.status = status;
    j->v.phase = phase;
    j->v.modified = MAX(j->v.modified + 1, wall(w));
}

static void next(struct world *w, int job, int64_t after_us)
{
    struct job *j = &w->aws.jobs[job];
    ev_push(w, w->now_us + after_us, EV_JOB, 0, ++j->gen, job, 0);
}

static const char *fate(struct world *w, int task)
{
    int stage = TASK(w, task)->stage;
    if (w->nature[stage].all_fail != NULL) {
        return w->nature[stage].all_fail;
    }
    if (w->poison[task]) {
        return failures[3];
    }
    if (fault(w, FAULT_JOB_INTERNAL)) {
        return internal_error;
    }
    if (fault(w, FAULT_JOB_FAILS)) {
        return failures[rng_below(&w->rng_fault[FAULT_JOB_FAILS], ARRAY_LEN(failures))];
    }
    return NULL;
}

void job_plan(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    struct rng *r = &w->rng_aws;
    int task = w->judge.intents[j->intent].task;
    const struct stage_nature *n = &w->nature[TASK(w, task)->stage];
    int64_t run_us = n->base_s * SEC + (int64_t)w->size_mb[task] * n->per_mb_ms * 1000;
    j->start_us = j->pool_from >= 0 ? between(r, 10, 40) * SEC : between(r, 60, 240) * SEC;
    j->run_us = run_us * between(r, 80, 120) / 100;
    j->upload_us = between(r, 1, 60) * SEC;
    j->hangs_at_us = INT64_MAX;
    j->fails = fate(w, task);
    if (w->aws.no_capacity[j->type] && j->pool_from < 0) {
        j->fails = no_capacity;
        j->start_us = between(r, 300, 1200) * SEC;
    } else if (fault(w, FAULT_JOB_HANGS)) {
        j->hangs_at_us = (int64_t)(rng_unit(r) * (double)j->run_us);
        j->hung = true; /* the progress object is only our own worker's */
    } else if (fault(w, FAULT_JOB_SLOW)) {
        j->run_us = j->max_runtime_s * SEC + between(r, 1, 600) * SEC;
    }
    if (j->fails != NULL && j->fails != no_capacity) {
        j->run_us = MAX(SEC, (int64_t)(rng_unit(r) * (double)j->run_us));
    }
    j->short_output = j->fails == NULL && fault(w, FAULT_JOB_SHORT);
    j->had_interruption = !fault(w, FAULT_JOB_SPOT);
    next(w, job, between(r, 1, 10) * SEC);
}

/* True when AWS keeps the instances: not after a failure that they may have caused, nor beyond
 * the quota. */
static bool keeps_pool(struct world *w, const struct job *j)
{
    return j->keep_alive_s > 0 && j->v.started != 0 && !j->deleted &&
           (j->v.status != JOB_FAILED || j->v.reason != internal_error) &&
           w->aws.pools[j->type] + j->count <= w->aws.warm_quota[j->type] &&
           !fault(w, FAULT_WARM_DENIED);
}

static void release_instances(struct world *w, struct job *j)
{
    j->holds = false;
    w->aws.used[j->type] -= j->count;
}

static void end(struct world *w, int job, enum job_status status, enum job_phase phase)
{
    struct job *j = &w->aws.jobs[job];
    show(w, j, status, phase);
    j->over = true;
    j->gen++;
    j->v.ended = j->v.modified;
    j->v.reason = status == JOB_FAILED ? j->fails : NULL;
    if (j->v.started != 0) {
        int64_t us = j->v.ended - j->v.started;
        j->v.billable_s = MAX(1, (us + SEC - 1) / SEC);
    }
    if (keeps_pool(w, j)) {
        j->v.has_pool = true;
        j->v.pool = POOL_AVAILABLE;
        j->pool_since_us = wall(w);
        j->pool_until_us = wall(w) + j->keep_alive_s * SEC;
        w->aws.pools[j->type] += j->count;
        ev_push(w, w->now_us + j->keep_alive_s * SEC, EV_POOL, 0, ++j->pool_gen, job, 0);
    } else {
        if (j->keep_alive_s > 0) {
            SOMETIMES(w, POOL_DENIED);
            j->v.has_pool = true;
            j->v.pool = POOL_TERMINATED;
        }
        release_instances(w, j);
    }
    trace(w, 0x70be4, (uint64_t)job * 64 + (uint64_t)status * 8 + (uint64_t)j->v.billable_s);
    tell(w, j->intent >= 0 ? w->judge.intents[j->intent].task : -1, "the job has ended: %s%s%s",
         status == JOB_COMPLETED ? "completed"
         : status == JOB_FAILED  ? "failed: "
                                 : "stopped",
         "", j->v.reason != NULL ? j->v.reason : "");
    judge_job_over(w, job);
}

static void pool_over(struct world *w, int job, enum pool_state how)
{
    struct job *j = &w->aws.jobs[job];
    int64_t us = wall(w) - j->pool_since_us;
    j->v.retained_s = (us + SEC - 1) / SEC;
    j->v.pool = how;
    j->pool_gen++;
    w->aws.pools[j->type] -= j->count;
    trace(w, 0x9001, (uint64_t)job * 8 + how);
}

void pool_expire(struct world *w, int job, uint32_t gen)
{
    struct job *j = &w->aws.jobs[job];
    if (gen == j->pool_gen && j->v.pool == POOL_AVAILABLE) {
        SOMETIMES(w, POOL_EXPIRED);
        judge_pool_expired(w, job);
        pool_over(w, job, POOL_TERMINATED);
        release_instances(w, j);
    }
}

/* The instances move to another job; the use of the quota stays. */
void pool_take(struct world *w, int from, int by)
{
    pool_over(w, from, POOL_REUSED);
    w->aws.jobs[from].holds = false;
    w->aws.jobs[from].v.reused_by = w->aws.jobs[by].name_hash;
    w->aws.jobs[by].pool_from = from;
    w->aws.jobs[by].v.has_pool = w->aws.jobs[by].keep_alive_s > 0;
    w->aws.jobs[by].v.pool = POOL_IN_USE;
}

void job_update(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    j->keep_alive_s = 0;
    if (j->over && j->v.has_pool && j->v.pool == POOL_AVAILABLE) {
        SOMETIMES(w, POOL_ENDED_EARLY);
        pool_over(w, job, POOL_TERMINATED);
        release_instances(w, j);
    }
}

void job_delete(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    j->deleted = true;
    end(w, job, JOB_STOPPED, PHASE_ENDED);
}

void job_stop(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    if (j->over || j->stop_asked || j->v.status == JOB_STOPPING) {
        return;
    }
    j->stop_asked = true;
    show(w, j, JOB_STOPPING, PHASE_STOPPING);
    next(w, job, between(&w->rng_aws, 1, j->v.started != 0 ? 120 : 30) * SEC);
}

/* Schedules the next event of a run: its end, hang, interruption or time limit, the earliest of
 * them. */
static void run_on(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    int64_t left_us = j->hung ? INT64_MAX / 4 : j->run_us - j->ran_us;
    int64_t limit_us = j->v.started + j->max_runtime_s * SEC - wall(w);
    if (!j->had_interruption && left_us > 2 * SEC && left_us < INT64_MAX / 8) {
        left_us = left_us / 2;
    }
    next(w, job, MAX(0, MIN(left_us, limit_us)));
    j->ran_us += left_us;
}

static void while_running(struct world *w, int job)
{
    struct job *j = &w->aws.jobs[job];
    if (wall(w) >= j->v.started + j->max_runtime_s * SEC) {
        show(w, j, JOB_STOPPING, PHASE_MAX_RUNTIME);
        next(w, job, between(&w->rng_aws, 1, 120) * SEC);
    } else if (!j->had_interruption) {
        j->had_interruption = true;
        SOMETIMES(w, INTERRUPTED);
        show(w, j, JOB_IN_PROGRESS, PHASE_INTERRUPTED);
        next(w, job, between(&w->rng_aws, 30, 300) * SEC);
    } else if (j->fails != NULL) {
        end(w, job, JOB_FAILED, PHASE_ENDED);
    } else {
        show(w, j, JOB_IN_PROGRESS, PHASE_UPLOADING);
        next(w, job, j->upload_us);
    }
}

void job_step(struct world *w, int job, uint32_t gen)
{
    struct job *j = &w->aws.jobs[job];
    if (gen != j->gen || j->over) {
        return;
    }
    switch (j->v.phase) {
    case PHASE_PENDING:
        show(w, j, JOB_IN_PROGRESS, PHASE_STARTING);
        next(w, job, j->start_us);
        return;
    case PHASE_STARTING:
    case PHASE_INTERRUPTED:
        if (j->fails == no_capacity) {
            end(w, job, JOB_FAILED, PHASE_ENDED);
            return;
        }
        show(w, j, JOB_IN_PROGRESS, PHASE_RUNNING);
        j->v.started = j->v.started != 0 ? j->v.started : j->v.modified;
        run_on(w, job);
        return;
    case PHASE_RUNNING:
        while_running(w, job);
        return;
    case PHASE_UPLOADING:
        if (fault(w, FAULT_JOB_UPLOAD)) {
            j->fails = internal_error;
        }
        end(w, job, j->fails != NULL ? JOB_FAILED : JOB_COMPLETED, PHASE_ENDED);
        return;
    case PHASE_STOPPING:
        end(w, job, JOB_STOPPED, PHASE_ENDED);
        return;
    case PHASE_MAX_RUNTIME:
        end(w, job, JOB_STOPPED, PHASE_MAX_RUNTIME);
        return;
    case PHASE_MAX_WAIT:
    case PHASE_ENDED:
    case PHASE_OTHER:
        return;
    }
}
