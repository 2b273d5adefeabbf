/* The API of SageMaker: CreateTrainingJob with its checks in AWS' order, reads that may be stale
 * or incomplete, others' jobs. Names are never reused. */
#include "sim_world.h"
#include <stdio.h>

enum market market_of(const struct world *w, int kind)
{
    return kind >= w->cfg.types ? MARKET_SPOT : MARKET_ON_DEMAND;
}

void aws_init(struct world *w)
{
    struct aws *s = &w->aws;
    s->by_name_cap = 1024;
    s->by_name = xmalloc(s->by_name_cap * sizeof *s->by_name);
    memset(s->by_name, 0xff, s->by_name_cap * sizeof *s->by_name);
    for (int t = 0; t < w->kinds; t++) {
        struct rng *r = &w->rng_aws;
        s->quota[t] = rng_chance(r, 0.6) ? 18 : between(r, 1, 24);
        s->warm_quota[t] = rng_chance(r, 0.5) ? 0 : between(r, 1, s->quota[t]);
        s->price[t] = between(r, 50000, 40000000);
        s->price_known[t] = true;
    }
    for (int m = 0; m < MARKET_COUNT; m++) {
        s->total_quota[m] = rng_chance(&w->rng_aws, 0.3) ? between(&w->rng_aws, 8, 40) : -1;
    }
    s->per_job = rng_chance(&w->rng_aws, 0.2) ? between(&w->rng_aws, 1, 8) : -1;
    s->longest_run_s = rng_chance(&w->rng_aws, 0.1) ? between(&w->rng_aws, 1, 8) * 3600 : -1;
    s->volume_gb = rng_chance(&w->rng_aws, 0.1) ? between(&w->rng_aws, 30, 240) : -1;
}

void aws_done(struct world *w)
{
    free(w->aws.jobs);
    free(w->aws.by_name);
}

static size_t slot_of(const struct aws *s, uint64_t name_hash)
{
    size_t i = name_hash & (s->by_name_cap - 1);
    while (s->by_name[i] >= 0 && s->jobs[s->by_name[i]].name_hash != name_hash) {
        i = (i + 1) & (s->by_name_cap - 1);
    }
    return i;
}

int aws_find(const struct world *w, uint64_t name_hash)
{
    return w->aws.by_name[slot_of(&w->aws, name_hash)];
}

void aws_index(struct world *w, int job)
{
    struct aws *s = &w->aws;
    if ((s->jobs_n + 1) * 2 > s->by_name_cap) {
        s->by_name_cap *= 2;
        s->by_name = xrealloc(s->by_name, s->by_name_cap * sizeof *s->by_name);
        memset(s->by_name, 0xff, s->by_name_cap * sizeof *s->by_name);
        for (size_t i = 0; i < s->jobs_n; i++) { /* in order: of one name the newest wins */
            s->by_name[slot_of(s, s->jobs[i].name_hash)] = (int32_t)i;
        }
    }
    s->by_name[slot_of(s, s->jobs[job].name_hash)] = job;
}

static int job_add(struct world *w)
{
    struct aws *s = &w->aws;
    if (s->jobs_n == s->jobs_cap) {
        s->jobs_cap = MAX(256, s->jobs_cap * 2);
        s->jobs = xrealloc(s->jobs, s->jobs_cap * sizeof *s->jobs);
    }
    struct job *j = &s->jobs[s->jobs_n];
    *j = (struct job){.intent = -1, .pool_from = -1, .created_us = SIM_EPOCH_US + w->now_us};
    return (int)s->jobs_n++;
}

/* Somebody else's job: it never ends and uses no quota here (others' use is `foreign`). */
int aws_ghost(struct world *w, const char *name, int type)
{
    int i = job_add(w);
    struct job *j = &w->aws.jobs[i];
    (void)snprintf(j->name.s, sizeof j->name.s, "%s", name);
    j->name_hash = name_hash_of(name);
    j->request = mix(j->name_hash, 0x9057);
    j->type = type;
    j->count = 1;
    j->v = (struct job_view){.status = JOB_IN_PROGRESS,
                             .phase = PHASE_RUNNING,
                             .modified = j->created_us,
                             .started = j->created_us};
    aws_index(w, i);
    return i;
}

static void refuse(struct call *k, const char *code, const char *text)
{
    k->answer = ANSWER_REFUSED;
    k->http = 400;
    k->code = code;
    (void)snprintf(k->text, sizeof k->text, "%s", text);
}

static void refuse_quota(struct call *k, const char *what, int64_t limit, int64_t used,
                         int64_t wanted)
{
    refuse(k, "ResourceLimitExceeded", "");
    (void)snprintf(
        k->text, sizeof k->text,
        "The account-level service limit '%s' is %lld Instances, with current utilization"
        " of %lld Instances and a request delta of %lld Instances. Please use AWS Service"
        " Quotas to request an increase for this quota.",
        what, (long long)limit, (long long)used, (long long)wanted);
}

/* What SageMaker compares before it reuses a pool, as a hash computed independently. */
static uint64_t match_of(const struct world *w, const struct db_attempt *a)
{
    const struct spec_stage *s = &w->stage[TASK_STAGE(w, a->task)];
    uint64_t h = mix((uint64_t)a->type + 1, (uint64_t)a->instances);
    h = mix(h, (uint64_t)a->volume_gb);
    for (const char *p = s->role; *p != '\0'; p++) {
        h = mix(h, (uint8_t)*p);
    }
    for (int i = 0; i < s->subnets_n; i++) {
        h = a->subnet_i < 0 || a->subnet_i == i ? mix(h, (uint64_t)i + 7) : h;
    }
    return mix(h, s->network_isolation);
}

/* A matching pool is used by the next job that fits it. */
static int find_pool(const struct world *w, const struct db_attempt *a)
{
    if (w->aws.pools[a->type] == 0) {
        return -1;
    }
    uint64_t match = match_of(w, a);
    for (size_t i = 0; i < w->aws.jobs_n; i++) {
        const struct job *j = &w->aws.jobs[i];
        if (j->v.has_pool && j->v.pool == POOL_AVAILABLE && j->match == match) {
            return (int)i;
        }
    }
    return -1;
}

/* The limits of a single job. */
static bool too_large(struct world *w, struct call *k, const struct db_attempt *a)
{
    const struct aws *s = &w->aws;
    if (s->per_job >= 0 && a->instances > s->per_job) {
        refuse_quota(k, "Maximum number of instances per training job", s->per_job, 0,
                     a->instances);
    } else if (s->longest_run_s >= 0 && a->max_runtime_s > s->longest_run_s) {
        refuse_quota(k, "Longest run time for a training job", s->longest_run_s, 0,
                     a->max_runtime_s);
    } else if (s->volume_gb >= 0 && a->volume_gb > s->volume_gb) {
        refuse_quota(k, "Size of EBS volume for a training job instance", s->volume_gb, 0,
                     a->volume_gb);
    } else {
        return false;
    }
    SOMETIMES(w, TOO_LARGE);
    return true;
}

static bool over_quota(struct world *w, struct call *k, const struct db_attempt *a)
{
    struct aws *s = &w->aws;
    enum market market = market_of(w, a->type);
    int64_t used = s->used[a->type] + s->foreign[a->type];
    int64_t total = 0;
    char what[80];
    if (used + a->instances > s->quota[a->type]) {
        (void)snprintf(what, sizeof what, "%s for %straining job usage", w->types[a->type],
                       market == MARKET_SPOT ? "spot " : "");
        refuse_quota(k, what, s->quota[a->type], used, a->instances);
        return true;
    }
    for (int t = 0; t < w->kinds; t++) {
        total += market_of(w, t) == market ? s->used[t] + s->foreign[t] : 0;
    }
    if (s->total_quota[market] >= 0 && total + a->instances > s->total_quota[market]) {
        refuse_quota(k,
                     market == MARKET_SPOT ? "Number of instances across all spot training jobs"
                                           : "Number of instances across all training jobs",
                     s->total_quota[market], total, a->instances);
        return true;
    }
    return false;
}

static void accept_job(struct world *w, struct call *k, const struct db_attempt *a, int pool)
{
    int i = job_add(w);
    struct job *j = &w->aws.jobs[i];
    j->name = a->name;
    j->name_hash = a->name_hash;
    j->request = k->request;
    j->type = a->type;
    j->count = a->instances;
    j->volume_gb = a->volume_gb;
    j->match = match_of(w, a);
    j->max_runtime_s = a->max_runtime_s;
    j->keep_alive_s = a->keep_alive_s;
    j->price_musd = a->price_musd;
    j->holds = true;
    j->v = (struct job_view){
        .status = JOB_IN_PROGRESS, .phase = PHASE_PENDING, .modified = j->created_us};
    aws_index(w, i);
    w->aws.accepted++;
    if (pool >= 0) {
        pool_take(w, pool, i);
    } else {
        w->aws.used[a->type] += a->instances;
    }
    judge_accepted(w, i, k);
    job_plan(w, i);
    k->answer = ANSWER_OK;
    k->job = i;
}

void aws_create(struct world *w, struct call *k)
{
    const struct intent_seen *in = judge_intent(w, k->name_hash);
    w->aws.creates++;
    if (w->now_us - k->signed_us > w->cfg.window_us - 10 * SEC) {
        SOMETIMES(w, SIGNATURE_EXPIRED);
        refuse(k, "InvalidSignatureException", "Signature expired");
        k->answer = ANSWER_CREDENTIALS;
        return;
    }
    if (in == NULL) { /* the judge has said so already */
        refuse(k, "ValidationException", "no such intent");
        return;
    }
    /* The bytes sent are those of the intent, even if its row has changed since. */
    const struct db_attempt *a = &in->row;
    if (fault(w, FAULT_NAME_TAKEN) && aws_find(w, k->name_hash) < 0) {
        SOMETIMES(w, NAME_TAKEN);
        w->judge.intents[in - w->judge.intents].conflict = true;
        (void)aws_ghost(w, a->name.s, a->type);
    }
    if (aws_find(w, k->name_hash) >= 0) {
        SOMETIMES(w, NAME_IN_USE);
        refuse(k, "ResourceInUse", "Training job names must be unique within an AWS account");
        k->answer = ANSWER_IN_USE;
        return;
    }
    if (w->refused[a->task]) {
        SOMETIMES(w, REQUEST_REFUSED);
        refuse(k, "ValidationException",
               "1 validation error detected: value failed to satisfy "
               "constraint: Member must satisfy regular expression");
        return;
    }
    int pool = find_pool(w, a);
    if (too_large(w, k, a)) {
        return;
    }
    if (pool < 0 && over_quota(w, k, a)) {
        SOMETIMES(w, QUOTA_REFUSED);
        return;
    }
    if (pool < 0 && fault(w, FAULT_CAPACITY_CREATE)) {
        SOMETIMES(w, CAPACITY_REFUSED);
        refuse(k, "CapacityError", "Unable to provision requested ML compute capacity");
        return;
    }
    accept_job(w, k, a, pool);
}

/* What a Describe shows: the truth, or an older view of it. */
static void describe(struct world *w, struct call *k)
{
    int i = aws_find(w, k->name_hash);
    struct job *j = i >= 0 ? &w->aws.jobs[i] : NULL;
    int64_t age_us = j != NULL ? SIM_EPOCH_US + w->now_us - j->created_us : 0;
    if (j == NULL || (age_us < 20 * SEC && fault(w, FAULT_DESCRIBE_BLIND))) {
        k->answer = ANSWER_NOT_FOUND;
        return;
    }
    k->answer = ANSWER_OK;
    k->job = i;
    k->ours = j->request == k->request;
    k->seen = j->v;
    if (j->hist[0].at_us != 0 && fault(w, FAULT_DESCRIBE_STALE)) {
        int back = (int)rng_below(&w->rng_fault[FAULT_DESCRIBE_STALE], HIST);
        while (j->hist[back].at_us == 0) {
            back--;
        }
        SOMETIMES(w, DESCRIBE_STALE);
        k->seen = j->hist[back].v;
    } else if (!job_is_over(j) && fault(w, FAULT_NEW_WORD)) {
        k->seen.status = JOB_STATUS_UNKNOWN;
        k->seen.phase = PHASE_OTHER;
    } else if (job_is_over(j) && j->v.billable_s > 0 && fault(w, FAULT_BILL_MISSING)) {
        k->seen.billable_s = 0;
    }
}

static void list_add(struct call *k, int job, const struct job_view *v)
{
    if (k->list_n == k->list_cap) {
        k->list_cap = MAX(64, k->list_cap * 2);
        k->list = xrealloc(k->list, k->list_cap * sizeof *k->list);
    }
    k->list[k->list_n++] = (struct listed){
        .job = job, .status = v->status, .phase = v->phase, .modified = v->modified};
}

static void list(struct world *w, struct call *k)
{
    k->answer = ANSWER_OK;
    k->list_n = 0;
    for (size_t i = w->aws.jobs_n; i-- > 0;) {
        const struct job *j = &w->aws.jobs[i];
        if (j->created_us < k->since_us) {
            break;
        }
        if (j->deleted) {
            continue;
        }
        bool young = SIM_EPOCH_US + w->now_us - j->created_us < 10 * MINUTE;
        if (young && fault(w, FAULT_LIST_OMITS)) {
            SOMETIMES(w, LIST_OMITS);
            continue;
        }
        list_add(k, (int)i, &j->v);
        if (j->hist[0].at_us != 0 && fault(w, FAULT_LIST_REPEATS)) {
            list_add(k, (int)i, &j->hist[0].v);
        }
    }
}

static void stop(struct world *w, struct call *k)
{
    int i = aws_find(w, k->name_hash);
    if (i < 0) {
        k->answer = ANSWER_NOT_FOUND;
        return;
    }
    if (w->aws.jobs[i].intent < 0) {
        const struct intent_seen *in = judge_intent(w, k->name_hash);
        if (in != NULL && in->conflict) { /* it took the place of one of ours: nobody can know */
            k->answer = ANSWER_OK;
            return;
        }
        wrong(w, "I8", "somebody else's job %s is stopped by us", w->aws.jobs[i].name.s);
        return;
    }
    k->answer = ANSWER_OK;
    job_stop(w, i);
}

void aws_read(struct world *w, struct call *k)
{
    int i = aws_find(w, k->name_hash);
    switch ((enum call_kind)k->kind) {
    case CALL_DESCRIBE:
    case CALL_POOL:
        describe(w, k);
        return;
    case CALL_LIST:
        list(w, k);
        return;
    case CALL_STOP:
        stop(w, k);
        return;
    case CALL_VERIFY:
        k->answer = fault(w, FAULT_VERIFY_FAILS) ? ANSWER_LOST : ANSWER_OK;
        k->good = i >= 0 && !w->aws.jobs[i].short_output;
        return;
    case CALL_QUOTA:
        k->answer = fault_open(w, FAULT_QUOTA_UNREADABLE) ? ANSWER_LOST : ANSWER_OK;
        memcpy(k->quota, w->aws.quota, sizeof k->quota);
        memcpy(k->warm_quota, w->aws.warm_quota, sizeof k->warm_quota);
        memcpy(k->total_quota, w->aws.total_quota, sizeof k->total_quota);
        k->per_job = w->aws.per_job;
        k->longest_run_s = w->aws.longest_run_s;
        k->volume_gb = w->aws.volume_gb;
        return;
    case CALL_UPDATE:
        k->answer = i >= 0 ? ANSWER_OK : ANSWER_NOT_FOUND;
        if (i >= 0) {
            job_update(w, i);
        }
        return;
    case CALL_PROGRESS:
        k->answer = ANSWER_OK;
        return;
    case CALL_CREATE:
    case CALL_KINDS:
        return;
    }
}
