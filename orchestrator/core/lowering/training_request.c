/* CreateTrainingJob for one attempt, written field by field in one order, maps sorted by key: the
 * same input gives the same bytes. */
#include "training_request.h"
#include "common/hash.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_read.h"
#include "core/spec/spec_worker.h"
#include "request_parts.h"
#include "worker_protocol.h"
#include <assert.h>
#include <stdio.h>

#define SPOT_WAIT_S     3600 /* besides the run time: what a spot job may wait for instances */
#define SPOT_LIFE_S_MAX (INT64_C(28) * 86400)
#define OUTPUT_FOLDER   "_sagemaker/" /* beside the parts: SageMaker's own model.tar.gz */

static void request_done(struct request_parts *q)
{
    for (int i = 0; i < q->hyper_n; i++) {
        free(q->hyper[i].value);
    }
    for (int i = 0; i < q->env_n; i++) {
        free(q->env[i].value);
    }
    for (int i = 0; i < q->arguments_n; i++) {
        free(q->arguments[i]);
    }
    for (int i = 0; i < SPEC_CHANNELS_MAX; i++) {
        free(q->channel_from[i]);
    }
    free(q->checkpoint);
    free(q->output);
}

static bool expand_pairs(const struct training_request_input *in, const struct spec_pair *pairs,
                         int n, size_t value_max, struct map_entry *ret, int *ret_n,
                         struct err *err)
{
    for (int i = 0; i < n; i++) {
        char *value = NULL;
        if (!request_expand(in, pairs[i].key, pairs[i].value, value_max, &value, err)) {
            return false;
        }
        ret[(*ret_n)++] = (struct map_entry){pairs[i].key, value};
    }
    return true;
}

/* Where SageMaker uploads /opt/ml/model. drover-worker writes nothing there; its jobs share one
 * folder beside the parts, so that a listing of a part has only the part's files. */
static bool output_place(const struct training_request_input *in, char **ret, struct err *err)
{
    const struct spec_stage *s = in->stage;
    if (s->output == NULL) {
        return err_set(err, ERR_INVALID, "stage '%s' has no output", s->name);
    }
    if (s->worker == WORKER_NONE) {
        return request_expand(in, "output", s->output, S3_URI_MAX, ret, err);
    }
    size_t fixed = strcspn(s->output, "{");
    while (fixed > 0 && s->output[fixed - 1] != '/') {
        fixed--;
    }
    if (fixed <= strlen("s3://")) {
        return err_set(err, ERR_INVALID, "output '%.200s' has no fixed bucket", s->output);
    }
    if (fixed + strlen(OUTPUT_FOLDER) > S3_URI_MAX) {
        return err_set(err, ERR_INVALID, "output '%.200s' is too long", s->output);
    }
    *ret = xasprintf("%.*s" OUTPUT_FOLDER, (int)fixed, s->output);
    return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): ownership moves, see its free */
static void add_env(struct request_parts *q, const char *key, char *take_value)
{
    q->env[q->env_n++] = (struct map_entry){key, take_value};
}

/* Own images upload as they like: SageMaker's own uploads alone have the key. NULL, too, when a
 * file of an earlier release leaves no room for it: S3 encrypts as the bucket does. */
static const char *worker_key(const struct request_parts *q)
{
    const struct spec_stage *s = q->in->stage;
    const char *key = s->worker != WORKER_NONE ? q->training->output_kms_key : NULL;
    bool room = key != NULL && strlen(key) <= ENV_VALUE_MAX &&
                s->environment_n < ENVIRONMENT_N_MAX - WP_ENV_N;
    return room ? key : NULL;
}

static bool prepare(struct request_parts *q, struct err *err)
{
    const struct training_request_input *in = q->in;
    const struct spec_stage *s = in->stage;
    const char *key = worker_key(q);
    if (s->hyperparameters_n > SPEC_PAIRS_MAX || s->environment_n > ENVIRONMENT_N_MAX - WP_ENV_N) {
        return err_set(err, ERR_INVALID, "stage '%s' has more than 100 settings of one kind",
                       s->name);
    }
    if (!expand_pairs(in, s->hyperparameters, s->hyperparameters_n, HYPER_VALUE_MAX, q->hyper,
                      &q->hyper_n, err) ||
        !expand_pairs(in, s->environment, s->environment_n, ENV_VALUE_MAX, q->env, &q->env_n,
                      err) ||
        !output_place(in, &q->output, err)) {
        return false;
    }
    for (int i = 0; i < s->command_n; i++) {
        if (!request_expand(in, "command", s->command[i], ARGUMENT_MAX, &q->arguments[i], err)) {
            return false;
        }
        q->arguments_n++;
    }
    if (!script_settings_add(q, err) || !training_fields_expand(q, err)) {
        return false;
    }
    if (s->worker != WORKER_NONE) {
        q->arguments[q->arguments_n++] = xstrdup(spec_worker_verb(s->worker));
    }
    add_env(q, WP_ENV_ATTEMPT, xasprintf("%lld", (long long)in->attempt_id));
    add_env(q, WP_ENV_TASK, xasprintf("%lld", (long long)in->task->task_id));
    add_env(q, WP_ENV_PART, xasprintf("%s/%lld", in->task->stage_name, (long long)in->task->seq));
    if (key != NULL) {
        add_env(q, WP_ENV_OUTPUT_KMS_KEY, xstrdup(key));
    }
    request_map_sort(q->hyper, q->hyper_n);
    request_map_sort(q->env, q->env_n);
    return true;
}

/* SageMaker refuses less than the run time. Interruptions use up waiting time, so it grows with the
 * run time. */
int64_t training_request_spot_wait_s(int64_t max_runtime_s)
{
    int64_t wait_s = max_runtime_s + MAX(max_runtime_s, (int64_t)SPOT_WAIT_S);
    return MAX(max_runtime_s, MIN(wait_s, SPOT_LIFE_S_MAX));
}

static void write_resources(struct json_out *w, const struct training_request_input *in,
                            const struct spec_training *t)
{
    const struct spec_stage *s = in->stage;
    json_out_object(w, "ResourceConfig");
    json_out_str(w, "InstanceType", in->instance_type);
    json_out_i64(w, "InstanceCount", s->instance_count);
    json_out_i64(w, "VolumeSizeInGB", in->volume_gb);
    if (s->volume_kms_key != NULL) {
        json_out_str(w, "VolumeKmsKeyId", s->volume_kms_key);
    }
    if (in->keep_alive_s > 0) {
        json_out_i64(w, "KeepAlivePeriodInSeconds", in->keep_alive_s);
    }
    if (t->training_plan != NULL) {
        json_out_str(w, "TrainingPlanArn", t->training_plan);
    }
    json_out_end_object(w);
    json_out_object(w, "StoppingCondition");
    json_out_i64(w, "MaxRuntimeInSeconds", in->max_runtime_s);
    if (s->spot) {
        json_out_i64(w, "MaxWaitTimeInSeconds", training_request_spot_wait_s(in->max_runtime_s));
    }
    if (t->max_pending_s > 0) {
        json_out_i64(w, "MaxPendingTimeInSeconds", t->max_pending_s);
    }
    json_out_end_object(w);
    if (s->spot) {
        json_out_bool(w, "EnableManagedSpotTraining", true);
    }
    request_vpc(w, s, in->subnet);
    json_out_bool(w, "EnableNetworkIsolation", s->network_isolation);
}

static void write_request(const struct request_parts *q, struct buf *out)
{
    const struct training_request_input *in = q->in;
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "TrainingJobName", in->name->s);
    json_out_object(&w, "AlgorithmSpecification");
    json_out_str(&w, "TrainingImage", in->stage->image);
    json_out_str(&w, "TrainingInputMode",
                 q->training->input_mode != NULL ? q->training->input_mode : "File");
    if (q->arguments_n > 0) {
        json_out_array(&w, "ContainerArguments");
        for (int i = 0; i < q->arguments_n; i++) {
            json_out_str(&w, NULL, q->arguments[i]);
        }
        json_out_end_array(&w);
    }
    training_fields_algorithm(q, &w);
    json_out_end_object(&w);
    json_out_str(&w, "RoleArn", in->stage->role);
    if (q->hyper_n > 0) {
        request_map(&w, "HyperParameters", q->hyper, q->hyper_n);
    }
    request_map(&w, "Environment", q->env, q->env_n);
    training_fields_channels(q, &w);
    json_out_object(&w, "OutputDataConfig");
    json_out_str(&w, "S3OutputPath", q->output);
    if (q->training->output_kms_key != NULL) {
        json_out_str(&w, "KmsKeyId", q->training->output_kms_key);
    }
    if (q->training->uncompressed) {
        json_out_str(&w, "CompressionType", "NONE");
    }
    json_out_end_object(&w);
    write_resources(&w, in, q->training);
    training_fields_switches(q, &w);
    request_tags(&w, &(struct request_tags){.spec = in->spec,
                                            .install_id = in->install_id,
                                            .stage = in->stage->name,
                                            .campaign_id = in->task->campaign_id,
                                            .part = in->task->seq,
                                            .attempt_id = in->attempt_id,
                                            .own = q->training->tags,
                                            .own_n = q->training->tags_n});
    json_out_end_object(&w);
}

bool training_request_make(const struct training_request_input *in, struct buf *ret_request,
                           char ret_identity[static HASH_HEX_N], struct err *err)
{
    static const struct spec_training none = {0};
    CLEANUP(request_done)
    struct request_parts q = {
        .in = in, .training = in->stage->training != NULL ? in->stage->training : &none};
    char identity[HASH_HEX_N];
    static_assert(HASH_HEX_N == SHA256_HEX_N, "one form of a hash");
    ASSERT(in->stage->image != NULL && in->stage->role != NULL);
    ASSERT(in->task->campaign_id > 0 && in->max_runtime_s > 0 && in->volume_gb > 0);
    ASSERT(in->keep_alive_s >= 0 && in->keep_alive_s <= SPEC_KEEP_ALIVE_MAX_S);
    ASSERT(!in->stage->spot || in->keep_alive_s == 0);
    if (strlen(in->install_id) > REQUEST_TAG_VALUE_MAX) {
        return err_set(err, ERR_INVALID, "the install id is too long for a tag");
    }
    if (!prepare(&q, err)) {
        return false;
    }
    AUTO_BUF struct buf bare = BUF_INIT(REQUEST_BYTES_MAX);
    write_request(&q, &bare);
    hash_sha256_hex(buf_cstr(&bare), bare.n, identity);
    add_env(&q, WP_ENV_REQUEST, xstrdup(identity));
    request_map_sort(q.env, q.env_n);
    buf_reset(ret_request);
    write_request(&q, ret_request);
    if (bare.overflow || ret_request->overflow) {
        return err_set(err, ERR_INVALID, "the request of '%s' is longer than %zu bytes",
                       in->name->s, MIN((size_t)REQUEST_BYTES_MAX, ret_request->max));
    }
    memcpy(ret_identity, identity, sizeof identity);
    return true;
}
