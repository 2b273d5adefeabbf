/* See endpoint_request.h. Fields are written in one order and maps sorted by key: the same input
 * gives the same bytes. Source: Amazon SageMaker API reference, CreateModel, CreateEndpointConfig,
 * CreateEndpoint; what the SageMaker Python SDK sends for its HuggingFaceModel and PyTorchModel. */
#include "endpoint_request.h"
#include "request_parts.h"

static const char *const server_settings[] = SPEC_SERVER_SETTINGS;

#define ENV_N_MAX (SPEC_PAIRS_MAX + (int)ARRAY_LEN(server_settings))

struct model_env {
    struct map_entry at[ENV_N_MAX];
    int n;
};

void endpoint_requests_init(struct endpoint_requests *r)
{
    r->model = (struct buf)BUF_INIT(REQUEST_BYTES_MAX);
    r->config = (struct buf)BUF_INIT(REQUEST_BYTES_MAX);
    r->endpoint = (struct buf)BUF_INIT(REQUEST_BYTES_MAX);
}

void endpoint_requests_done(struct endpoint_requests *r)
{
    buf_done(&r->model);
    buf_done(&r->config);
    buf_done(&r->endpoint);
}

static void env_done(struct model_env *env)
{
    for (int i = 0; i < env->n; i++) {
        free(env->at[i].value);
    }
}

static void env_add(struct model_env *env, const char *key, const char *value)
{
    for (int i = 0; i < env->n; i++) {
        if (strcmp(env->at[i].key, key) == 0) {
            return; /* the user's own wins */
        }
    }
    env->at[env->n++] = (struct map_entry){key, xstrdup(value)};
}

/* The stage's own, and of AWS's images those that their toolkit reads. A script lies in the model:
 * nothing is packed or uploaded here. */
static bool env_make(const struct endpoint_request_input *in, struct model_env *env,
                     struct err *err)
{
    const struct spec_stage *s = in->stage;
    const struct spec_endpoint *e = s->endpoint;
    for (int i = 0; i < s->environment_n; i++) {
        env_add(env, s->environment[i].key, s->environment[i].value);
    }
    if (e->framework) {
        bool script = e->entry_point != NULL;
        const char *const values[ARRAY_LEN(server_settings)] = {
            script ? e->entry_point : "", script ? "/opt/ml/model/code" : "", "20", in->region};
        for (size_t i = 0; i < ARRAY_LEN(server_settings); i++) {
            env_add(env, server_settings[i], values[i]);
        }
    }
    if (env->n > ENVIRONMENT_N_MAX) {
        return err_set(err, ERR_INVALID,
                       "%d variables with those of the image; CreateModel takes %d", env->n,
                       ENVIRONMENT_N_MAX);
    }
    request_map_sort(env->at, env->n);
    return true;
}

static void write_tags(const struct endpoint_request_input *in, struct json_out *w)
{
    const struct spec_endpoint *e = in->stage->endpoint;
    request_tags(w, &(struct request_tags){.spec = in->spec,
                                           .install_id = in->install_id,
                                           .stage = in->stage->name,
                                           .campaign_id = in->campaign_id,
                                           .attempt_id = in->attempt_id,
                                           .own = e->tags,
                                           .own_n = e->tags_n});
}

static void write_data(struct json_out *w, const struct spec_endpoint *e, const char *data)
{
    if (e->model_type == NULL) {
        json_out_str(w, "ModelDataUrl", data);
        return;
    }
    json_out_object(w, "ModelDataSource");
    json_out_object(w, "S3DataSource");
    json_out_str(w, "S3Uri", data);
    json_out_str(w, "S3DataType", e->model_type);
    json_out_str(w, "CompressionType", str_ends(str_of(data), ".tar.gz") ? "Gzip" : "None");
    json_out_end_object(w);
    json_out_end_object(w);
}

static void write_model(const struct endpoint_request_input *in, const struct model_env *env,
                        const char *data, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "ModelName", in->name->s);
    json_out_object(&w, "PrimaryContainer");
    json_out_str(&w, "Image", in->stage->image);
    write_data(&w, in->stage->endpoint, data);
    if (env->n > 0) {
        request_map(&w, "Environment", env->at, env->n);
    }
    json_out_end_object(&w);
    json_out_str(&w, "ExecutionRoleArn", in->stage->role);
    request_vpc(&w, in->stage, NULL);
    json_out_bool(&w, "EnableNetworkIsolation", in->stage->network_isolation);
    write_tags(in, &w);
    json_out_end_object(&w);
}

static void write_config(const struct endpoint_request_input *in, struct buf *out)
{
    const struct spec_stage *s = in->stage;
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "EndpointConfigName", in->name->s);
    json_out_array(&w, "ProductionVariants");
    json_out_object(&w, NULL);
    json_out_str(&w, "VariantName", ENDPOINT_VARIANT);
    json_out_str(&w, "ModelName", in->name->s);
    json_out_i64(&w, "InitialInstanceCount", s->instance_count);
    json_out_str(&w, "InstanceType", s->instance_type[0]);
    json_out_i64(&w, "InitialVariantWeight", 1);
    if (s->endpoint->volume_gb > 0) {
        json_out_i64(&w, "VolumeSizeInGB", s->endpoint->volume_gb);
    }
    if (s->endpoint->download_timeout_s > 0) {
        json_out_i64(&w, "ModelDataDownloadTimeoutInSeconds", s->endpoint->download_timeout_s);
    }
    if (s->endpoint->startup_timeout_s > 0) {
        json_out_i64(&w, "ContainerStartupHealthCheckTimeoutInSeconds",
                     s->endpoint->startup_timeout_s);
    }
    json_out_end_object(&w);
    json_out_end_array(&w);
    if (s->volume_kms_key != NULL) {
        json_out_str(&w, "KmsKeyId", s->volume_kms_key);
    }
    write_tags(in, &w);
    json_out_end_object(&w);
}

static void write_endpoint(const struct endpoint_request_input *in, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "EndpointName", in->name->s);
    json_out_str(&w, "EndpointConfigName", in->name->s);
    write_tags(in, &w);
    json_out_end_object(&w);
}

bool endpoint_request_make(const struct endpoint_request_input *in, struct endpoint_requests *ret,
                           struct err *err)
{
    const struct spec_stage *s = in->stage;
    ASSERT(s->kind == SPEC_KIND_ENDPOINT && s->endpoint != NULL && s->role != NULL);
    ASSERT(s->image != NULL && s->instance_type_n == 1 && in->campaign_id > 0);
    const char *data = in->model_data != NULL ? in->model_data : s->endpoint->model_data;
    CLEANUP(env_done)
    struct model_env env = {.n = 0};
    if (strlen(in->install_id) > REQUEST_TAG_VALUE_MAX) {
        return err_set(err, ERR_INVALID, "the install id is too long for a tag");
    }
    if (data == NULL) {
        return err_set(err, ERR_INVALID, "stage '%s': the model of stage '%s' is not known yet",
                       s->name, s->endpoint->model_stage);
    }
    if (strlen(data) > S3_URI_MAX) {
        return err_set(err, ERR_INVALID,
                       "the place of the model is %zu bytes long; CreateModel "
                       "takes %d",
                       strlen(data), S3_URI_MAX);
    }
    if (!env_make(in, &env, err)) {
        return false;
    }
    buf_reset(&ret->model);
    buf_reset(&ret->config);
    buf_reset(&ret->endpoint);
    write_model(in, &env, data, &ret->model);
    write_config(in, &ret->config);
    write_endpoint(in, &ret->endpoint);
    if (ret->model.overflow || ret->config.overflow || ret->endpoint.overflow) {
        return err_set(err, ERR_INVALID, "a request of '%s' is longer than %d bytes", in->name->s,
                       REQUEST_BYTES_MAX);
    }
    return true;
}
