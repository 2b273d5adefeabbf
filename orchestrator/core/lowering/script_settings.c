/* Hyperparameters that the SageMaker Python SDK adds: see request_parts.h. Each value is JSON text.
 */
#include "request_parts.h"

/* As in the dictionary of the SDK, what is said again replaces what was said: a key that stands
 * twice in JSON is read one way or the other. */
/* NOLINTNEXTLINE(readability-non-const-parameter): ownership moves, see request_done */
static void add(struct request_parts *q, const char *key, char *take_value)
{
    for (int i = 0; i < q->hyper_n; i++) {
        if (strcmp(q->hyper[i].key, key) == 0) {
            free(q->hyper[i].value);
            q->hyper[i].value = take_value;
            return;
        }
    }
    ASSERT(q->hyper_n < HYPER_N_MAX);
    q->hyper[q->hyper_n++] = (struct map_entry){key, take_value};
}

static char *quoted(const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT(8 * SPEC_TEXT_MAX);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_str(&w, NULL, text);
    return buf_take(&b);
}

static void add_text(struct request_parts *q, const char *key, const char *text)
{
    add(q, key, quoted(text));
}

/* An isolated container has no S3: its script comes by a channel. */
static void add_script(struct request_parts *q)
{
    const struct spec_training *t = q->training;
    add_text(q, "sagemaker_submit_directory",
             q->in->stage->network_isolation ? "/opt/ml/input/data/" CODE_CHANNEL
                                               "/sourcedir.tar.gz"
                                             : t->source_dir);
    add_text(q, "sagemaker_program", t->entry_point);
    add(q, "sagemaker_container_log_level", xasprintf("%d", t->log_level));
    add_text(q, "sagemaker_job_name", q->in->name->s);
    add_text(q, "sagemaker_region", q->in->region);
}

static void add_instance_type(struct request_parts *q)
{
    for (int i = 0; i < q->hyper_n; i++) {
        if (strcmp(q->hyper[i].key, "sagemaker_instance_type") == 0) {
            return;
        }
    }
    add_text(q, "sagemaker_instance_type", q->in->instance_type);
}

static void add_data_parallel(struct request_parts *q, const char *enabled, const char *options)
{
    add(q, "sagemaker_distributed_dataparallel_enabled", xstrdup(enabled));
    add_instance_type(q);
    if (strstr(enabled, "true") != NULL) {
        add_text(q, "sagemaker_distributed_dataparallel_custom_mpi_options",
                 options != NULL ? options : "");
    }
}

/* Of MPI alone the number of processes is sent only when it was said; with model parallel all keys
 * are, as the SDK does. */
static bool add_mpi(struct request_parts *q, struct err *err)
{
    const struct spec_training *t = q->training;
    const char *mp = t->distribution[DISTRIBUTION_MODEL_PARALLEL];
    const char *mpi = t->distribution[DISTRIBUTION_MPI];
    if (mpi != NULL) {
        add(q, "sagemaker_mpi_enabled", xstrdup(mpi));
        if (t->mpi_processes > 0) {
            add(q, "sagemaker_mpi_num_of_processes_per_host", xasprintf("%d", t->mpi_processes));
        }
        add_text(q, "sagemaker_mpi_custom_mpi_options",
                 t->mpi_options != NULL ? t->mpi_options : "");
    }
    if (mp == NULL) {
        return true;
    }
    if (t->mp_parameters != NULL) {
        char *text = NULL;
        if (!request_expand(q->in, "mp_parameters", t->mp_parameters, HYPER_VALUE_MAX, &text,
                            err)) {
            return false;
        }
        add(q, "mp_parameters", text);
    }
    add(q, "sagemaker_distributed_dataparallel_enabled", xstrdup("false"));
    add_instance_type(q);
    return true;
}

static bool add_distribution(struct request_parts *q, struct err *err)
{
    const struct spec_training *t = q->training;
    const char *const *on = t->distribution;
    if (on[DISTRIBUTION_DATA_PARALLEL] != NULL) {
        add_data_parallel(q, on[DISTRIBUTION_DATA_PARALLEL], t->dp_options);
    }
    if (!add_mpi(q, err)) {
        return false;
    }
    if (on[DISTRIBUTION_PYTORCHDDP] != NULL && t->ddp_rewrite) {
        add_data_parallel(q, on[DISTRIBUTION_PYTORCHDDP], NULL);
    } else if (on[DISTRIBUTION_PYTORCHDDP] != NULL) {
        add(q, "sagemaker_pytorch_ddp_enabled", xstrdup(on[DISTRIBUTION_PYTORCHDDP]));
        add_instance_type(q);
    }
    if (on[DISTRIBUTION_TORCH] != NULL) {
        add(q, "sagemaker_torch_distributed_enabled", xstrdup(on[DISTRIBUTION_TORCH]));
        add_instance_type(q);
    }
    if (on[DISTRIBUTION_XLA] != NULL) {
        add(q, "sagemaker_pytorch_xla_multi_worker_enabled", xstrdup(on[DISTRIBUTION_XLA]));
    }
    if (on[DISTRIBUTION_PARAMETER_SERVER] != NULL) {
        add(q, "sagemaker_parameter_server_enabled", xstrdup(on[DISTRIBUTION_PARAMETER_SERVER]));
    }
    return true;
}

bool script_settings_add(struct request_parts *q, struct err *err)
{
    const struct spec_training *t = q->training;
    for (int i = 0; i < q->hyper_n; i++) {
        if (t->quoted[i]) {
            char *text = quoted(q->hyper[i].value);
            free(q->hyper[i].value);
            q->hyper[i].value = text;
        }
    }
    if (t->script) {
        add_script(q);
    }
    if (!add_distribution(q, err)) {
        return false;
    }
    if (t->compiler) {
        add(q, "sagemaker_training_compiler_enabled", xstrdup("true"));
        add(q, "sagemaker_training_compiler_debug_mode",
            xstrdup(t->compiler_debug ? "true" : "false"));
    }
    for (int i = 0; i < q->hyper_n; i++) {
        if (strlen(q->hyper[i].value) > HYPER_VALUE_MAX) {
            return err_set(err, ERR_INVALID,
                           "hyperparameter %.64s is %zu bytes long as JSON; CreateTrainingJob "
                           "takes %d",
                           q->hyper[i].key, strlen(q->hyper[i].value), HYPER_VALUE_MAX);
        }
    }
    if (q->hyper_n > SPEC_PAIRS_MAX) {
        return err_set(err, ERR_INVALID,
                       "%d hyperparameters with those of the script; CreateTrainingJob takes %d",
                       q->hyper_n, SPEC_PAIRS_MAX);
    }
    return true;
}
