/* See request_preview.h. */
#include "request_preview.h"
#include "common/arena.h"
#include "endpoint_request.h"
#include "filesystem_request.h"
#include "request_parts.h"
#include <stdio.h>

#define PLACEHOLDER "0"
#define ZEROS       "00000"

struct spec_task request_preview_task(const struct spec_stage *stage, struct arena *a)
{
    struct spec_task task = {
        .campaign_id = 1, .stage_name = stage->name, .task_id = 1, .attempt_n = 1};
    if (stage->fan_out_from == NULL) {
        return task;
    }
    AUTO_BUF struct buf uri = BUF_INIT(8192);
    for (const char *c = stage->fan_out_from; *c != '\0'; c++) {
        if (*c != '*') {
            buf_add_char(&uri, *c);
        } else if (c[1] != '*') {
            buf_add_cstr(&uri, ZEROS);
        }
    }
    task.uri = arena_strndup(a, buf_cstr(&uri), uri.n);
    return task;
}

static void preview_name(int64_t campaign_id, const char *stage, int64_t seq, int attempt_n,
                         struct job_name *ret)
{
    (void)snprintf(ret->s, sizeof ret->s, "drover-%lld-%.24s-%lld-a%d-00000000",
                   (long long)campaign_id, stage, (long long)seq, attempt_n);
}

/* File systems that no stage has made yet. */
static int preview_volumes(const struct spec_stage *stage,
                           struct request_volume ret[static SPEC_CHANNELS_MAX])
{
    const struct spec_training *t = stage->training;
    int n = 0;
    for (int i = 0; t != NULL && i < t->channels_n; i++) {
        if (t->channels[i].lustre_stage != NULL) {
            ret[n++] = (struct request_volume){t->channels[i].lustre_stage, "fs-00000000000000000",
                                               "mountnme"};
        }
    }
    return n;
}

bool request_preview(const struct spec *s, const struct spec_stage *stage,
                     const struct spec_task *task, const struct preview_attempt *attempt,
                     const char *region, struct buf *ret, struct err *err)
{
    char identity[HASH_HEX_N];
    struct job_name name = {""};
    bool given = attempt->instance_type != NULL;
    if (attempt->name != NULL) {
        (void)snprintf(name.s, sizeof name.s, "%s", attempt->name);
    } else {
        preview_name(task->campaign_id, stage->name, task->seq, task->attempt_n, &name);
    }
    struct request_volume volumes[SPEC_CHANNELS_MAX];
    const struct training_request_input in = {
        .volumes = volumes,
        .volumes_n = preview_volumes(stage, volumes),
        .spec = s,
        .stage = stage,
        .task = task,
        .name = &name,
        .attempt_id = attempt->id > 0 ? attempt->id : 1,
        .instance_type = given ? attempt->instance_type : stage->instance_type[0],
        .volume_gb = given && attempt->volume_gb > 0 ? attempt->volume_gb : stage->volume_gb,
        .max_runtime_s = given ? attempt->max_runtime_s : stage->max_runtime_s,
        .keep_alive_s = stage->spot ? 0 : MAX(stage->warm.keep_alive_s, INT64_C(0)),
        .install_id = PLACEHOLDER,
        .region = region};
    return training_request_make(&in, ret, identity, err);
}

/* OUTPUT/JOB/output/model.tar.gz of the stage's only task. The caller frees *ret. */
static bool preview_model(const struct spec_stage *from, char **ret, struct err *err)
{
    const struct spec_task task = {
        .campaign_id = 1, .stage_name = from->name, .task_id = 1, .attempt_n = 1};
    const struct training_request_input in = {.stage = from, .task = &task};
    AUTO_FREE char *output = NULL;
    struct job_name job = {""};
    if (!request_expand(&in, "output", from->output, S3_URI_MAX, &output, err)) {
        return false;
    }
    preview_name(1, from->name, 0, 1, &job);
    *ret = xasprintf("%s%s%s/output/model.tar.gz", output, str_ends(str_of(output), "/") ? "" : "/",
                     job.s);
    return true;
}

bool request_preview_endpoint(const struct spec *s, const struct spec_stage *stage,
                              const char *region, struct buf *ret, struct err *err)
{
    struct job_name name = {""};
    AUTO_FREE char *model = NULL;
    const char *from = stage->endpoint->model_stage;
    int from_i = from != NULL ? spec_stage_find(s, from) : -1;
    if (from_i >= 0 && !preview_model(s->stages[from_i], &model, err)) {
        return false;
    }
    preview_name(1, stage->name, 0, 1, &name);
    const struct endpoint_request_input in = {.spec = s,
                                              .stage = stage,
                                              .campaign_id = 1,
                                              .name = &name,
                                              .attempt_id = 1,
                                              .model_data = model,
                                              .install_id = PLACEHOLDER,
                                              .region = region};
    CLEANUP(endpoint_requests_done)
    struct endpoint_requests r;
    endpoint_requests_init(&r);
    if (!endpoint_request_make(&in, &r, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    json_out_raw(&w, "CreateModel", buf_str(&r.model));
    json_out_raw(&w, "CreateEndpointConfig", buf_str(&r.config));
    json_out_raw(&w, "CreateEndpoint", buf_str(&r.endpoint));
    json_out_end_object(&w);
    return true;
}

bool request_preview_filesystem(const struct spec *s, const struct spec_stage *stage,
                                struct buf *ret, struct err *err)
{
    AUTO_BUF struct buf request = BUF_INIT(64 * 1024);
    struct job_name token = {""};
    preview_name(1, stage->name, 0, 1, &token);
    const struct filesystem_request_input in = {.spec = s,
                                                .stage = stage,
                                                .campaign_id = 1,
                                                .token = &token,
                                                .attempt_id = 1,
                                                .install_id = PLACEHOLDER};
    if (!filesystem_request_make(&in, &request, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, ret);
    json_out_object(&w, NULL);
    json_out_raw(&w, "CreateFileSystem", buf_str(&request));
    json_out_end_object(&w);
    return true;
}
