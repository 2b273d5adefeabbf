/* The API of SageMaker: CreateTrainingJob with its checks in AWS' order, Describe, List, quotas,
 * others' jobs. Names are never reused. */
#include "common/hash.h"
#include "common/json.h"
#include "deep.h"
#include <stdarg.h>
#include <stdio.h>

const char *const deep_types[TYPES] = {"ml.c5.xlarge", "ml.c5.2xlarge", "ml.m5.large"};

void aws_makes_room(void)
{
    for (int t = 0; t < TYPES; t++) {
        deep->no_capacity[t] = false;
        deep->foreign[t] = 0;
        deep->quota[t][0] = MAX(deep->quota[t][0], 4);
        deep->quota[t][1] = MAX(deep->quota[t][1], 2);
    }
    deep->total_quota = deep->total_quota < 0 ? -1 : MAX(deep->total_quota, 8);
}

void aws_world_init(void)
{
    struct rng *r = &deep->rng_aws;
    deep->jobs = xcalloc(JOBS_MAX, sizeof *deep->jobs);
    for (int t = 0; t < TYPES; t++) {
        deep->quota[t][0] = between(r, 1, 12);
        deep->quota[t][1] = between(r, 0, 6);
        deep->warm_quota[t] = rng_chance(r, 0.7) ? between(r, 1, 6) : 0;
        deep->foreign[t] = rng_chance(r, 0.2) ? between(r, 1, 3) : 0;
        deep->price[t] = between(r, 50000, 900000);
        sql_do(
            "INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('%s', %lld, 'list')",
            deep_types[t], (long long)deep->price[t]);
    }
    deep->lustres = xcalloc(LUSTRES_MAX, sizeof *deep->lustres);
    deep->hosted = xcalloc(HOSTED_MAX, sizeof *deep->hosted);
    sql_do("INSERT INTO price (instance_type, musd_per_hour, source) VALUES "
           "('storage:SCRATCH_2', 140000, 'list')");
    deep->total_quota = rng_chance(r, 0.3) ? between(r, 4, 16) : -1;
}

struct job *job_find(const char *name)
{
    for (size_t i = deep->jobs_n; i-- > 0;) {
        if (strcmp(deep->jobs[i].name, name) == 0) {
            return &deep->jobs[i];
        }
    }
    return NULL;
}

void aws_refuse(struct aws_failure *f, enum aws_outcome o, const char *code, const char *fmt, ...)
{
    va_list ap;
    *f = (struct aws_failure){.outcome = o, .status = 400};
    (void)snprintf(f->code, sizeof f->code, "%s", code);
    va_start(ap, fmt);
    (void)vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
}

const char *json_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

int64_t json_number_of(const json_t *o, const char *key)
{
    int64_t n = 0;
    const json_t *v = json_object_get(o, key);
    if (json_is_string(v)) {
        return parse_i64(str_of(json_string_value(v)), 0, INT64_MAX, &n, NULL) ? n : 0;
    }
    return json_integer_value(v);
}

const char *json_tag_of(const json_t *o, const char *key)
{
    size_t i;
    const json_t *tag;
    json_array_foreach(json_object_get(o, "Tags"), i, tag)
    {
        if (strcmp(json_text_of(tag, "Key"), key) == 0) {
            return json_text_of(tag, "Value");
        }
    }
    return "";
}

static void read_volume(const json_t *o, struct job *j)
{
    size_t i;
    const json_t *ch;
    json_array_foreach(json_object_get(o, "InputDataConfig"), i, ch)
    {
        const json_t *fs =
            json_object_get(json_object_get(ch, "DataSource"), "FileSystemDataSource");
        if (fs != NULL) {
            (void)snprintf(j->volume, sizeof j->volume, "%s", json_text_of(fs, "FileSystemId"));
        }
    }
}

static void read_tags(const json_t *o, struct job *j)
{
    size_t i;
    const json_t *tag;
    json_array_foreach(json_object_get(o, "Tags"), i, tag)
    {
        const char *key = json_text_of(tag, "Key");
        if (strcmp(key, "drover-campaign") == 0) {
            j->campaign_id = json_number_of(tag, "Value");
        } else if (strcmp(key, "drover-part") == 0) {
            j->part = json_number_of(tag, "Value");
        } else if (strcmp(key, "drover-stage") == 0) {
            (void)snprintf(j->stage, sizeof j->stage, "%s", json_text_of(tag, "Value"));
        } else if (strcmp(key, "drover-install") == 0) {
            (void)snprintf(j->install, sizeof j->install, "%s", json_text_of(tag, "Value"));
        }
    }
}

/* What SageMaker compares before it reuses a pool. */
static void fingerprint(const json_t *o, const struct job *j, char ret[static 65])
{
    AUTO_BUF struct buf b = BUF_INIT(65536);
    AUTO_FREE char *vpc =
        json_dumps(json_object_get(o, "VpcConfig"), JSON_SORT_KEYS | JSON_ENCODE_ANY);
    buf_addf(&b, "%d %d %lld %s %d %s", j->type, j->count, (long long)j->volume_gb,
             json_text_of(o, "RoleArn"), json_is_true(json_object_get(o, "EnableNetworkIsolation")),
             vpc != NULL ? vpc : "");
    uint8_t h[32];
    hash_sha256(b.p, b.n, h);
    str_hex(h, sizeof h, ret);
}

static bool read_request(struct str body, struct job *j)
{
    AUTO_JSON json_t *o = NULL;
    struct err err = ERR_INIT;
    if (!json_parse(body, body.n, &o, &err)) {
        return false;
    }
    const json_t *res = json_object_get(o, "ResourceConfig");
    const json_t *env = json_object_get(o, "Environment");
    *j = (struct job){.type = -1};
    (void)snprintf(j->name, sizeof j->name, "%s", json_text_of(o, "TrainingJobName"));
    (void)snprintf(j->request_hash, sizeof j->request_hash, "%s",
                   json_text_of(env, "DROVER_REQUEST"));
    j->attempt_id = json_number_of(env, "DROVER_ATTEMPT");
    j->task_id = json_number_of(env, "DROVER_TASK");
    j->worker = json_object_get(o, "HyperParameters") != NULL;
    for (int t = 0; t < TYPES; t++) {
        j->type = strcmp(json_text_of(res, "InstanceType"), deep_types[t]) == 0 ? t : j->type;
    }
    j->count = (int)json_number_of(res, "InstanceCount");
    j->volume_gb = json_number_of(res, "VolumeSizeInGB");
    j->keep_alive_s = json_number_of(res, "KeepAlivePeriodInSeconds");
    j->max_runtime_s =
        json_number_of(json_object_get(o, "StoppingCondition"), "MaxRuntimeInSeconds");
    j->spot = json_is_true(json_object_get(o, "EnableManagedSpotTraining"));
    j->prints = json_array_size(json_object_get(json_object_get(o, "AlgorithmSpecification"),
                                                "MetricDefinitions")) > 0;
    read_tags(o, j);
    read_volume(o, j);
    fingerprint(o, j, j->fingerprint);
    return j->name[0] != '\0' && j->type >= 0 && j->count >= 1;
}

int64_t aws_used(int type, bool spot)
{
    int64_t n = 0;
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        n += j->holds && j->type == type && j->spot == spot ? j->count : 0;
    }
    return n;
}

static void refuse_quota(struct aws_failure *f, const char *what, int64_t limit, int64_t used,
                         int64_t wanted)
{
    aws_refuse(f, AWS_REFUSED, "ResourceLimitExceeded",
               "The account-level service limit '%s' is %lld Instances, with current utilization"
               " of %lld Instances and a request delta of %lld Instances. Please use AWS Service"
               " Quotas to request an increase for this quota.",
               what, (long long)limit, (long long)used, (long long)wanted);
}

static bool over_quota(const struct job *j, struct aws_failure *f)
{
    char what[80];
    int64_t used = aws_used(j->type, j->spot) + (j->spot ? 0 : deep->foreign[j->type]);
    int64_t total = 0;
    (void)snprintf(what, sizeof what, "%s for %straining job usage", deep_types[j->type],
                   j->spot ? "spot " : "");
    if (used + j->count > deep->quota[j->type][j->spot]) {
        refuse_quota(f, what, deep->quota[j->type][j->spot], used, j->count);
        return true;
    }
    for (int t = 0; t < TYPES; t++) {
        total += aws_used(t, false) + deep->foreign[t];
    }
    if (!j->spot && deep->total_quota >= 0 && total + j->count > deep->total_quota) {
        refuse_quota(f, "Number of instances across all training jobs", deep->total_quota, total,
                     j->count);
        return true;
    }
    return false;
}

static struct job *find_pool(const struct job *j)
{
    for (size_t i = 0; i < deep->jobs_n && !j->spot; i++) {
        struct job *o = &deep->jobs[i];
        if (o->pool == WARM_POOL_AVAILABLE && strcmp(o->fingerprint, j->fingerprint) == 0) {
            return o;
        }
    }
    return NULL;
}

bool aws_create(struct str body, usec_t signed_us, char ret_arn[static 257], struct aws_failure *f)
{
    struct job j;
    deep->creates++;
    if (wall_now() - signed_us > deep->window_us - 10 * SEC) {
        aws_refuse(f, AWS_CREDENTIALS, "InvalidSignatureException", "Signature expired");
        return false;
    }
    if (!read_request(body, &j)) {
        wrong("I2", "a request that cannot be read: %.200s", body.p);
        aws_refuse(f, AWS_REFUSED, "ValidationException", "unreadable");
        return false;
    }
    judge_create_sent(&j);
    if (job_find(j.name) != NULL) {
        aws_refuse(f, AWS_REFUSED, "ResourceInUse",
                   "Training job names must be unique within an AWS account and region");
        return false;
    }
    struct job *pool = find_pool(&j);
    if (pool == NULL && over_quota(&j, f)) {
        return false;
    }
    /* A pool is promised, not owned: its instances may just have been taken away. */
    if (fault(FAULT_CAPACITY_CREATE)) {
        aws_refuse(f, AWS_REFUSED, "CapacityError",
                   "Unable to provision requested ML compute capacity");
        return false;
    }
    ASSERT(deep->jobs_n < JOBS_MAX);
    struct job *new = &deep->jobs[deep->jobs_n++];
    *new = j;
    deep->accepted++;
    job_begin(new, pool);
    if (pool != NULL) {
        job_take_pool(pool, new);
    }
    judge_job_created(new);
    judge_volume(new, signed_us);
    (void)snprintf(ret_arn, 257, "arn:aws:sagemaker:us-east-1:111122223333:training-job/%s",
                   j.name);
    return true;
}

static void pool_report(const struct job *j, struct warm_pool_report *ret)
{
    *ret = (struct warm_pool_report){.status = j->pool, .retained_s = -1};
    if (j->pool == WARM_POOL_REUSED || j->pool == WARM_POOL_TERMINATED) {
        ret->retained_s = j->retained_s;
    }
    (void)snprintf(ret->reused_by, sizeof ret->reused_by, "%s", j->reused_by);
}

void aws_describe(const struct job *j, bool stale, struct job_description *ret)
{
    *ret = (struct job_description){.created = aws_time(j->created),
                                    .started = aws_time(j->started),
                                    .modified = aws_time(j->modified),
                                    .instances = j->count,
                                    .volume_gb = j->volume_gb,
                                    .max_runtime_s = j->max_runtime_s,
                                    .attempt_id = j->attempt_id,
                                    .spot = j->spot,
                                    .keep_alive_s = j->keep_alive_s};
    stale = stale && j->old_status != NULL;
    (void)snprintf(ret->name, sizeof ret->name, "%s", j->name);
    (void)snprintf(ret->arn, sizeof ret->arn,
                   "arn:aws:sagemaker:us-east-1:111122223333:training-job/%s", j->name);
    (void)snprintf(ret->status, sizeof ret->status, "%s", stale ? j->old_status : j->status);
    (void)snprintf(ret->secondary, sizeof ret->secondary, "%s",
                   stale ? j->old_secondary : j->secondary);
    (void)snprintf(ret->arn, sizeof ret->arn,
                   "arn:aws:sagemaker:us-east-1:111122223333:training-job/%s", j->name);
    (void)snprintf(ret->request_hash, sizeof ret->request_hash, "%s", j->request_hash);
    (void)snprintf(ret->instance_type, sizeof ret->instance_type, "%s", deep_types[j->type]);
    ret->pool = (struct warm_pool_report){.retained_s = -1};
    if (stale) {
        ret->modified = aws_time(j->old_modified);
        return;
    }
    if (j->over) {
        ret->ended = aws_time(j->ended);
        bool untold = deep->late_bills ? wall_now() < j->billed_at : fault(FAULT_BILL_MISSING);
        ret->billable_s = untold ? 0 : j->billable_s;
        ret->training_s = j->billable_s;
        if (strcmp(j->status, "Failed") == 0) {
            (void)snprintf(ret->failure_reason, sizeof ret->failure_reason, "%s", j->fails);
            secrets_in_reason(ret->failure_reason, sizeof ret->failure_reason);
        }
        (void)snprintf(ret->artifacts, sizeof ret->artifacts,
                       "s3://bbb/out/%lld/%s/%lld/model.tar.gz", (long long)j->campaign_id,
                       j->stage, (long long)j->part);
    }
    pool_report(j, &ret->pool);
}

static void summary(const struct job *j, bool stale, struct job_summary *ret)
{
    *ret = (struct job_summary){.created = aws_time(j->created), .modified = aws_time(j->modified)};
    stale = stale && j->old_status != NULL;
    (void)snprintf(ret->name, sizeof ret->name, "%s", j->name);
    (void)snprintf(ret->status, sizeof ret->status, "%s", stale ? j->old_status : j->status);
    (void)snprintf(ret->secondary, sizeof ret->secondary, "%s",
                   stale ? j->old_secondary : j->secondary);
    if (deep->restores) { /* its tags are asked for by it */
        (void)snprintf(ret->arn, sizeof ret->arn,
                       "arn:aws:sagemaker:us-east-1:111122223333:training-job/%s", j->name);
    }
    ret->pool = (struct warm_pool_report){.retained_s = -1};
    if (stale) {
        ret->modified = aws_time(j->old_modified);
    } else {
        pool_report(j, &ret->pool);
    }
}

/* False: no filter lets it through. */
static bool list_shows(const struct list_asked *q, const char *contains, const struct job *j,
                       struct job_summary *ret)
{
    bool young = wall_now() - j->created < 10 * MINUTE;
    if (strstr(j->name, contains) == NULL || (young && fault(FAULT_LIST_OMITS))) {
        return false;
    }
    summary(j, fault(FAULT_STALE), ret);
    return (q->status[0] == '\0' || strcmp(ret->status, q->status) == 0) &&
           (q->pool[0] == '\0' || ret->pool.status == WARM_POOL_AVAILABLE);
}

size_t aws_list(const struct list_asked *q, const char *contains, struct job_summary *jobs,
                char next[257])
{
    bool late = deep->seed % 2 == 0;
    size_t at = 0, cut = 0, n = 0;
    for (size_t i = deep->jobs_n; i-- > 0;) {
        const struct job *j = &deep->jobs[i];
        int64_t s = aws_time(j->created) / USEC_PER_SEC;
        bool out = s < q->created_after / USEC_PER_SEC ||
                   (q->created_before > 0 && s >= q->created_before / USEC_PER_SEC);
        if (out || at++ < q->from) {
            continue;
        }
        if (cut == JOB_LIST_PAGE) {
            (void)snprintf(next, 257, "%zu", at - 1);
            return n;
        }
        bool shown = list_shows(q, contains, j, &jobs[n]);
        n += shown;
        cut += shown || late;
    }
    return n;
}

void aws_quotas(struct quota_reading *ret)
{
    *ret = (struct quota_reading){.whole = true,
                                  .training_n = TYPES,
                                  .warm_n = TYPES,
                                  .spot_n = TYPES,
                                  .total = deep->total_quota,
                                  .spot_total = -1,
                                  .instances_max = -1,
                                  .runtime_max_s = -1,
                                  .keep_alive_s = 3600,
                                  .volume_max_gib = -1,
                                  .create_rate = -1};
    ret->training = world_alloc(3 * TYPES * sizeof *ret->training);
    ret->warm = ret->training + TYPES;
    ret->spot = ret->warm + TYPES;
    for (int t = 0; t < TYPES; t++) {
        const int64_t limits[] = {deep->quota[t][0], deep->warm_quota[t], deep->quota[t][1]};
        for (int k = 0; k < 3; k++) {
            struct quota_value *v = &ret->training[k * TYPES + t];
            (void)snprintf(v->instance_type, sizeof v->instance_type, "%s", deep_types[t]);
            v->limit = limits[k];
        }
    }
}

static struct job *some_live(struct rng *r)
{
    struct job *live[64];
    size_t n = 0;
    for (size_t i = 0; i < deep->jobs_n && n < ARRAY_LEN(live); i++) {
        if (!deep->jobs[i].over && !deep->jobs[i].foreign) {
            live[n++] = &deep->jobs[i];
        }
    }
    return n == 0 ? NULL : live[rng_below(r, n)];
}

static void stranger(struct rng *r)
{
    if (deep->jobs_n >= JOBS_MAX / 2) {
        return;
    }
    struct job *j = &deep->jobs[deep->jobs_n++];
    *j = (struct job){.foreign = true,
                      .status = "InProgress",
                      .secondary = "Training",
                      .count = 1,
                      .created = wall_now(),
                      .started = wall_now(),
                      .modified = wall_now(),
                      .life = LIFE_RUNNING};
    (void)snprintf(j->name, sizeof j->name, "%s%lld-s0-%lld-a1-%08llx",
                   rng_chance(r, 0.5) ? DEEP_PREFIX "-" : "x-" DEEP_PREFIX "-",
                   (long long)between(r, 1, 9), (long long)between(r, 0, 40),
                   (unsigned long long)(rng_u64(r) & 0xffffffffu));
    trace("a stranger's job appears: %s", j->name);
}

/* Others who name their jobs as we do, by the hundred at once; most have ended. */
static void crowd(void *ctx, int64_t left)
{
    struct rng *r = &deep->rng_crowds;
    size_t most = deep->jobs_n + (size_t)between(r, 100, 500);
    if (deep->calm) {
        return;
    }
    while (deep->jobs_n < most && deep->jobs_n < JOBS_MAX / 2) {
        stranger(r);
        struct job *j = &deep->jobs[deep->jobs_n - 1];
        if (rng_chance(r, 0.9)) {
            j->over = true;
            j->status = j->secondary = "Completed";
            j->life = LIFE_ENDED;
            j->ended = j->modified;
        }
    }
    if (left > 0) {
        event_at(deep->now_us + between(r, 1, 8) * MINUTE, crowd, ctx, left - 1);
    }
}

void crowds_start(void)
{
    if (deep->crowds) {
        event_at(between(&deep->rng_crowds, 0, 5) * MINUTE, crowd, NULL, 9);
    }
}

static void lose_pool(struct rng *r)
{
    size_t from = rng_below(r, deep->jobs_n + 1);
    for (size_t k = 0; k < deep->jobs_n; k++) {
        struct job *j = &deep->jobs[(from + k) % deep->jobs_n];
        if (!j->foreign && job_end_pool(j)) {
            return;
        }
    }
}

void aws_strike(enum harm f, struct rng *r)
{
    if (f == FAULT_OUTAGE) {
        deep->outage_until_us = deep->now_us + between(r, 10, 1200) * SEC;
        trace("AWS answers nothing for %lld s",
              (long long)((deep->outage_until_us - deep->now_us) / SEC));
    } else if (f == FAULT_THING_VANISHES) {
        rng_chance(r, 0.5) ? fsx_vanish(r) : hosting_vanish(r);
    } else if (f == FAULT_POOL_LOST) {
        lose_pool(r);
    } else if (f == FAULT_HUMAN_STOP) {
        struct job *j = some_live(r);
        if (j != NULL) {
            trace("somebody stops %s by hand", j->name);
            job_stop(j);
        }
    } else {
        stranger(r);
    }
}

void aws_failure_from(const struct aws_reply *r, struct aws_failure *ret)
{
    (void)r;
    (void)ret;
    deep_die("nobody has such a reply here");
}

const char *warm_pool_status_name(enum warm_pool_status s)
{
    static const char *const names[] = {"",       "Available",  "InUse",
                                        "Reused", "Terminated", "Unknown"};
    return names[s];
}
