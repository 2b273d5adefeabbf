/* The lives of jobs at SageMaker: pending, starting, running, uploading, their ends, and the pools
 * they leave. What they are billed is counted here, by arithmetic of its own. */
#include "deep.h"

static const char *const failures[] = {
    "AlgorithmError: Framework Error: OSError: [Errno 28] No space left on device",
    "AlgorithmError: torch.cuda.OutOfMemoryError: CUDA out of memory, exit code: 1",
    "AlgorithmError: ExecuteUserScriptError: Traceback ValueError: bad value, exit code: 1",
    "AlgorithmError: ClientConnectorError: Connection timed out",
    "AlgorithmError: something nobody has read before, exit code: 99",
    "AlgorithmError: SlowDown: reduce your request rate",
    "ClientError: SpotInstanceTermination: the instance is reclaimed",
};
static const char internal_error[] =
    "InternalServerError: We encountered an internal error. Please try again.";
static const char no_capacity[] = "CapacityError: Unable to provision requested ML compute "
                                  "capacity. Please retry using a different ML instance type.";

static void step(void *ctx, int64_t gen);

static void next(struct job *j, int64_t after_us)
{
    event_at(deep->now_us + after_us, step, j, ++j->gen);
}

static void show(struct job *j, enum job_life life, const char *status, const char *secondary)
{
    j->old_status = j->status;
    j->old_secondary = j->secondary;
    j->old_modified = j->modified;
    j->life = life;
    j->status = status;
    j->secondary = secondary;
    j->modified = MAX(j->modified + 1, wall_now());
    trace("job %s: %s %s%s%s", j->name, status, secondary,
          life == LIFE_ENDED && j->fails ? ": " : "",
          life == LIFE_ENDED && j->fails != NULL ? j->fails : "");
}

static const char *fate(void)
{
    struct rng *r = &deep->rng_fault[FAULT_JOB_FAILS];
    return fault(FAULT_JOB_INTERNAL) ? internal_error
           : fault(FAULT_JOB_FAILS)  ? failures[rng_below(r, ARRAY_LEN(failures))]
                                     : NULL;
}

void job_begin(struct job *j, const struct job *pool)
{
    struct rng *r = &deep->rng_aws;
    j->created = wall_now();
    j->holds = true;
    j->start_us = (pool != NULL ? between(r, 10, 40) : between(r, 60, 240)) * SEC;
    j->run_us = between(r, 60, 1500) * SEC;
    j->upload_us = between(r, 1, 60) * SEC;
    j->hangs_at_us = INT64_MAX;
    j->fails = strcmp(j->stage, "doomed") == 0 ? failures[2] : fate();
    if (deep->no_capacity[j->type] && pool == NULL) {
        j->fails = no_capacity;
        j->start_us = between(r, 300, 1200) * SEC;
    } else if (fault(FAULT_JOB_HANGS)) {
        j->hangs_at_us = between(r, 0, j->run_us);
    } else if (fault(FAULT_JOB_SLOW)) {
        j->run_us = (j->max_runtime_s + between(r, 1, 600)) * SEC;
    } else if (fault(FAULT_JOB_SLOW_START)) {
        j->start_us = between(r, 10, 60) * MINUTE;
    }
    if (j->fails != NULL && j->fails != no_capacity) {
        j->run_us = between(r, SEC, j->run_us);
    }
    j->short_output = j->fails == NULL && fault(FAULT_JOB_SHORT);
    j->interrupted_once = !(j->spot && fault(FAULT_JOB_SPOT));
    if (j->prints) {
        j->cents = (int)(rng_chance(r, 0.6) ? between(r, 0, 499) : between(r, 500, 999));
        j->mute = rng_chance(r, 0.07);
        if (fault(FAULT_LOG_DENIED)) {
            j->denied_at = wall_now() + j->start_us + between(r, 0, j->run_us);
            j->no_final = rng_chance(r, 0.5);
        }
        j->log_late_us = fault(FAULT_LOG_LATE) ? between(r, 0, 2 * deep->observe_us) : 0;
    }
    show(j, LIFE_PENDING, "InProgress", "Pending");
    next(j, between(r, 1, 10) * SEC);
}

static void pool_over(struct job *j, enum warm_pool_status how)
{
    j->retained_s = (wall_now() - j->pool_since + SEC - 1) / SEC;
    j->pool = how;
    j->pool_gen++;
    j->modified = MAX(j->modified + 1, wall_now());
    trace("the pool of %s is over after %lld s", j->name, (long long)j->retained_s);
}

static void pool_expires(void *ctx, int64_t gen)
{
    struct job *j = ctx;
    if (gen == j->pool_gen && j->pool == WARM_POOL_AVAILABLE) {
        pool_over(j, WARM_POOL_TERMINATED);
        j->holds = false;
    }
}

void job_take_pool(struct job *from, struct job *by)
{
    pool_over(from, WARM_POOL_REUSED);
    from->holds = false;
    (void)snprintf(from->reused_by, sizeof from->reused_by, "%s", by->name);
    by->pool = by->keep_alive_s > 0 ? WARM_POOL_IN_USE : WARM_POOL_NONE;
}

bool job_end_pool(struct job *j)
{
    if (j->pool != WARM_POOL_AVAILABLE) {
        return false;
    }
    pool_over(j, WARM_POOL_TERMINATED);
    j->holds = false;
    return true;
}

static int64_t pools_of(int type)
{
    int64_t n = 0;
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        n += j->pool == WARM_POOL_AVAILABLE && j->type == type ? j->count : 0;
    }
    return n;
}

/* Describe says what an ended job is billed minutes or hours later, and of spot capacity less than
 * its times: so it differs from the estimate. Returns the time that is not billed. */
static int64_t bill_late(struct job *j)
{
    static const int64_t most_us[] = {MINUTE, 20 * MINUTE, 5 * HOUR};
    struct rng *r = &deep->rng_late_bills;
    bool at_once = rng_chance(r, 0.3);
    j->billed_at = at_once ? 0 : j->ended + between(r, 0, most_us[rng_below(r, 3)]);
    return j->spot ? between(r, 0, (j->ended - j->started) / 10 * 7) : 0;
}

static void end(struct job *j, const char *status, const char *secondary)
{
    show(j, LIFE_ENDED, status, secondary);
    j->over = true;
    j->gen++;
    j->ended = j->modified;
    if (j->started != 0) {
        int64_t free_us = deep->late_bills ? bill_late(j) : 0;
        j->billable_s = MAX(1, (j->ended - j->started - free_us + SEC - 1) / SEC);
    }
    j->pool = WARM_POOL_NONE;
    bool keeps = j->keep_alive_s > 0 && j->started != 0 && j->fails != internal_error &&
                 pools_of(j->type) + j->count <= deep->warm_quota[j->type] &&
                 !fault(FAULT_WARM_DENIED);
    if (keeps) {
        j->pool = WARM_POOL_AVAILABLE;
        j->pool_since = wall_now();
        event_at(deep->now_us + j->keep_alive_s * SEC, pool_expires, j, ++j->pool_gen);
    } else {
        j->pool = j->keep_alive_s > 0 ? WARM_POOL_TERMINATED : WARM_POOL_NONE;
        j->holds = false;
    }
}

void job_stop(struct job *j)
{
    struct rng *r = &deep->rng_aws;
    if (j->over || j->stop_asked || j->life == LIFE_STOPPING || j->foreign) {
        if (j->foreign) {
            wrong("I8", "somebody else's job %s is stopped by us", j->name);
        }
        return;
    }
    j->stop_asked = true;
    show(j, LIFE_STOPPING, "Stopping", "Stopping");
    next(j, between(r, 1, j->started != 0 ? 120 : 30) * SEC);
}

static void run_on(struct job *j)
{
    int64_t left_us = j->hangs_at_us < INT64_MAX ? DEEP_NEVER / 2 : j->run_us - j->ran_us;
    int64_t limit_us = j->started + j->max_runtime_s * SEC - wall_now();
    if (!j->interrupted_once && left_us > 2 * SEC && left_us < DEEP_NEVER / 4) {
        left_us /= 2;
    }
    next(j, MAX(0, MIN(left_us, limit_us)));
    j->ran_us += left_us;
}

static void while_running(struct job *j)
{
    struct rng *r = &deep->rng_aws;
    if (wall_now() >= j->started + j->max_runtime_s * SEC) {
        j->max_runtime_hit = true;
        show(j, LIFE_STOPPING, "Stopping", "MaxRuntimeExceeded");
        next(j, between(r, 1, 120) * SEC);
    } else if (!j->interrupted_once) {
        j->interrupted_once = true;
        show(j, LIFE_INTERRUPTED, "InProgress", "Interrupted");
        j->cut_at = j->modified;
        next(j, between(r, 30, 300) * SEC);
    } else if (j->fails != NULL) {
        end(j, "Failed", "Failed");
    } else {
        show(j, LIFE_UPLOADING, "InProgress", "Uploading");
        next(j, j->upload_us);
    }
}

static void write_output(void *ctx, int64_t arg)
{
    struct job *j = ctx;
    (void)arg;
    j->written = true;
}

static void step(void *ctx, int64_t gen)
{
    struct job *j = ctx;
    if (gen != j->gen || j->over) {
        return;
    }
    switch (j->life) {
    case LIFE_PENDING:
        show(j, LIFE_STARTING, "InProgress", "Starting");
        next(j, j->start_us);
        return;
    case LIFE_STARTING:
    case LIFE_INTERRUPTED:
        if (j->fails == no_capacity) {
            end(j, "Failed", "Failed");
            return;
        }
        show(j, LIFE_RUNNING, "InProgress", "Training");
        j->started = j->started != 0 ? j->started : j->modified;
        j->again_at = j->cut_at != 0 ? j->modified : 0;
        run_on(j);
        return;
    case LIFE_RUNNING:
        while_running(j);
        return;
    case LIFE_UPLOADING:
        if (!j->short_output && fault(FAULT_S3_LATE)) {
            j->late = true;
            event_at(deep->now_us + between(&deep->rng_aws, 1, 60) * SEC, write_output, j, 0);
        } else {
            j->written = true;
        }
        end(j, "Completed", "Completed");
        return;
    case LIFE_STOPPING:
        end(j, "Stopped", j->max_runtime_hit ? "MaxRuntimeExceeded" : "Stopped");
        return;
    case LIFE_ENDED:
        return;
    }
}
