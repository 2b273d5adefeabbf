/* Fields of CreateTrainingJob that only training stages have: see request_parts.h. */
#include "request_parts.h"

static const struct request_volume *volume_of(const struct training_request_input *in,
                                              const char *stage)
{
    for (int i = 0; i < in->volumes_n; i++) {
        if (strcmp(in->volumes[i].stage, stage) == 0) {
            return &in->volumes[i];
        }
    }
    return NULL;
}

bool training_fields_expand(struct request_parts *q, struct err *err)
{
    const struct spec_training *t = q->training;
    for (int i = 0; i < t->channels_n; i++) {
        const struct spec_channel *c = &t->channels[i];
        if (c->lustre_stage != NULL && volume_of(q->in, c->lustre_stage) == NULL) {
            return err_set(err, ERR_UNAVAILABLE, "the file system of stage '%s' is not there",
                           c->lustre_stage);
        }
        if (c->from != NULL &&
            !request_expand(q->in, c->name, c->from, S3_URI_MAX, &q->channel_from[i], err)) {
            return false;
        }
    }
    return debug_fields_expand(q, err) &&
           (t->checkpoint == NULL ||
            request_expand(q->in, "checkpoint", t->checkpoint, S3_URI_MAX, &q->checkpoint, err));
}

static void write_image_config(struct json_out *w, const struct spec_training *t)
{
    if (t->image_access == NULL) {
        return;
    }
    json_out_object(w, "TrainingImageConfig");
    json_out_str(w, "TrainingRepositoryAccessMode", t->image_access);
    if (t->image_credentials != NULL) {
        json_out_object(w, "TrainingRepositoryAuthConfig");
        json_out_str(w, "TrainingRepositoryCredentialsProviderArn", t->image_credentials);
        json_out_end_object(w);
    }
    json_out_end_object(w);
}

void training_fields_algorithm(const struct request_parts *q, struct json_out *w)
{
    const struct spec_training *t = q->training;
    if (t->entrypoint_n > 0) {
        json_out_array(w, "ContainerEntrypoint");
        for (int i = 0; i < t->entrypoint_n; i++) {
            json_out_str(w, NULL, t->entrypoint[i]);
        }
        json_out_end_array(w);
    }
    if (t->metrics_n > 0) {
        json_out_array(w, "MetricDefinitions");
        for (int i = 0; i < t->metrics_n; i++) {
            json_out_object(w, NULL);
            json_out_str(w, "Name", t->metrics[i].name);
            json_out_str(w, "Regex", t->metrics[i].regex);
            json_out_end_object(w);
        }
        json_out_end_array(w);
    }
    if (t->metrics_series) {
        json_out_bool(w, "EnableSageMakerMetricsTimeSeries", true);
    }
    write_image_config(w, t);
}

static void write_optional(struct json_out *w, const char *key, const char *value)
{
    if (value != NULL) {
        json_out_str(w, key, value);
    }
}

static void write_s3_source(struct json_out *w, const struct spec_channel *c, const char *from)
{
    json_out_object(w, "S3DataSource");
    json_out_str(w, "S3DataType", c->type);
    json_out_str(w, "S3Uri", from);
    json_out_str(w, "S3DataDistributionType", c->spread);
    if (c->attributes_n > 0) {
        json_out_array(w, "AttributeNames");
        for (int i = 0; i < c->attributes_n; i++) {
            json_out_str(w, NULL, c->attributes[i]);
        }
        json_out_end_array(w);
    }
    json_out_end_object(w);
}

/* v: of a channel that names a stage, else NULL. */
static void write_file_system(struct json_out *w, const struct spec_channel *c,
                              const struct request_volume *v)
{
    json_out_object(w, "FileSystemDataSource");
    json_out_str(w, "FileSystemId", v != NULL ? v->aws_id : c->file_system);
    json_out_str(w, "FileSystemAccessMode", c->access);
    json_out_str(w, "FileSystemType", c->file_system_type);
    if (v != NULL) {
        AUTO_FREE char *path = xasprintf("/%s%s", v->mount, c->directory);
        json_out_str(w, "DirectoryPath", path);
    } else {
        json_out_str(w, "DirectoryPath", c->directory);
    }
    json_out_end_object(w);
}

static void write_channel(struct json_out *w, const struct spec_channel *c, const char *from,
                          const struct request_volume *v)
{
    json_out_object(w, NULL);
    json_out_str(w, "ChannelName", c->name);
    json_out_object(w, "DataSource");
    if (from != NULL) {
        write_s3_source(w, c, from);
    } else {
        write_file_system(w, c, v);
    }
    json_out_end_object(w);
    write_optional(w, "ContentType", c->content_type);
    write_optional(w, "CompressionType", c->compression);
    write_optional(w, "RecordWrapperType", c->record_wrapper);
    write_optional(w, "InputMode", c->mode);
    if (c->shuffle_seed >= 0) {
        json_out_object(w, "ShuffleConfig");
        json_out_i64(w, "Seed", c->shuffle_seed);
        json_out_end_object(w);
    }
    json_out_end_object(w);
}

void training_fields_channels(const struct request_parts *q, struct json_out *w)
{
    const struct spec_training *t = q->training;
    bool code = t->script && q->in->stage->network_isolation;
    if (t->channels_n == 0 && !code) {
        return; /* an empty list is refused */
    }
    json_out_array(w, "InputDataConfig");
    for (int i = 0; i < t->channels_n; i++) {
        const struct spec_channel *c = &t->channels[i];
        write_channel(w, c, q->channel_from[i],
                      c->lustre_stage != NULL ? volume_of(q->in, c->lustre_stage) : NULL);
    }
    if (code) {
        const struct spec_channel c = {.name = CODE_CHANNEL,
                                       .type = "S3Prefix",
                                       .spread = "FullyReplicated",
                                       .mode = "File",
                                       .shuffle_seed = -1};
        write_channel(w, &c, t->source_dir, NULL);
    }
    json_out_end_array(w);
}

static void write_switch(struct json_out *w, const char *key, const char *name, bool on)
{
    if (on) {
        json_out_object(w, key);
        json_out_bool(w, name, true);
        json_out_end_object(w);
    }
}

void training_fields_switches(const struct request_parts *q, struct json_out *w)
{
    const struct spec_training *t = q->training;
    if (q->in->stage->encrypt_traffic) {
        json_out_bool(w, "EnableInterContainerTrafficEncryption", true);
    }
    if (q->checkpoint != NULL) {
        json_out_object(w, "CheckpointConfig");
        json_out_str(w, "S3Uri", q->checkpoint);
        write_optional(w, "LocalPath", t->checkpoint_path);
        json_out_end_object(w);
    }
    if (t->retry_strategy > 0) {
        json_out_object(w, "RetryStrategy");
        json_out_i64(w, "MaximumRetryAttempts", t->retry_strategy);
        json_out_end_object(w);
    }
    debug_fields_write(q, w);
    write_switch(w, "InfraCheckConfig", "EnableInfraCheck", t->infra_check);
    write_switch(w, "RemoteDebugConfig", "EnableRemoteDebug", t->remote_debug);
    write_switch(w, "SessionChainingConfig", "EnableSessionTagChaining",
                 q->in->stage->session_tags);
}
