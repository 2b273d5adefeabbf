/* See request_preview.h. */
#include "request_preview.h"
#include "common/arena.h"
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

bool request_preview(const struct spec *s, const struct spec_stage *stage,
                     const struct spec_task *task, const struct preview_attempt *attempt,
                     const char *region, struct buf *ret, struct err *err)
{
    char identity[HASH_HEX_N];
    struct job_name name;
    bool given = attempt->instance_type != NULL;
    if (attempt->name != NULL) {
        (void)snprintf(name.s, sizeof name.s, "%s", attempt->name);
    } else {
        (void)snprintf(name.s, sizeof name.s, "drover-%lld-%.24s-%lld-a%d-00000000",
                       (long long)task->campaign_id, stage->name, (long long)task->seq,
                       task->attempt_n);
    }
    const struct training_request_input in = {
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
