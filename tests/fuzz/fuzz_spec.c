/* Campaign files from outside: parse, and what was accepted must survive its stored form and lower
 * without a crash. */
#include "core/lowering/request_preview.h"
#include "core/spec/spec_expand.h"
#include "core/spec/spec_json.h"
#include "core/spec/spec_parse.h"
#include "fuzz.h"

static bool price_of(void *ctx, const struct spec_stage *s, musd_t *ret)
{
    (void)ctx;
    *ret = (musd_t)strlen(s->instance_type[0]) * 100000;
    return true;
}

static void lower_endpoint(const struct spec *s, const struct spec_stage *stage)
{
    AUTO_BUF struct buf requests = BUF_INIT(4 << 20);
    struct err err = ERR_INIT;
    if (request_preview_endpoint(s, stage, "us-east-1", &requests, &err)) {
        AUTO_JSON json_t *v = NULL;
        ASSERT(json_parse(buf_str(&requests), 4 << 20, &v, &err));
    }
}

static void lower_filesystem(const struct spec *s, const struct spec_stage *stage)
{
    AUTO_BUF struct buf request = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;
    if (request_preview_filesystem(s, stage, &request, &err)) {
        AUTO_JSON json_t *v = NULL;
        ASSERT(json_parse(buf_str(&request), 1 << 20, &v, &err));
    }
}

static void lower_all(const struct spec *s)
{
    const struct job_name name = {"fuzz-1-a1"};
    for (int i = 0; i < s->stages_n; i++) {
        if (s->stages[i]->kind == SPEC_KIND_ENDPOINT) {
            lower_endpoint(s, s->stages[i]);
            continue;
        }
        if (s->stages[i]->kind == SPEC_KIND_LUSTRE) {
            lower_filesystem(s, s->stages[i]);
            continue;
        }
        const struct spec_task task = {.campaign_id = 1,
                                       .stage_name = s->stages[i]->name,
                                       .task_id = 2,
                                       .seq = 3,
                                       .uri = "s3://bucket/part.parquet",
                                       .attempt_n = 1};
        const struct training_request_input in = {.spec = s,
                                                  .stage = s->stages[i],
                                                  .task = &task,
                                                  .name = &name,
                                                  .attempt_id = 4,
                                                  .instance_type = s->stages[i]->instance_type[0],
                                                  .volume_gb = s->stages[i]->volume_gb,
                                                  .max_runtime_s = s->stages[i]->max_runtime_s,
                                                  .install_id = "i",
                                                  .region = "us-east-1"};
        AUTO_BUF struct buf request = BUF_INIT(1 << 20);
        char id[HASH_HEX_N];
        struct err err = ERR_INIT;
        if (training_request_make(&in, &request, id, &err)) {
            AUTO_JSON json_t *v = NULL;
            ASSERT(json_parse(buf_str(&request), 1 << 20, &v, &err));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct spec_defaults defaults = {"arn:aws:iam::111122223333:role/sm",
                                                  "r/worker:1",
                                                  "acme",
                                                  "us-east-1",
                                                  false,
                                                  "alias/acme"};
    static struct faults faults;
    CLEANUP(arena_done)
    struct arena a;
    CLEANUP(arena_done)
    struct arena b;
    struct spec *s = NULL;
    arena_init(&a, SPEC_ARENA_BYTES);
    arena_init(&b, SPEC_ARENA_BYTES);
    memset(&faults, 0, sizeof faults);
    bool good = spec_parse((struct str){(const char *)data, size}, &defaults, &a, &s, &faults);
    ASSERT(good == (faults.n == 0));
    if (!good) {
        return 0;
    }
    ASSERT(spec_check_budget(s, price_of, NULL, &faults) == (faults.n == 0));
    spec_warn(s, &faults);
    AUTO_JSON json_t *stored = spec_to_json(s);
    struct spec *back = NULL;
    struct err err = ERR_INIT;
    ASSERT(spec_from_json(stored, &b, &back, &err));
    AUTO_JSON json_t *again = spec_to_json(back);
    ASSERT(json_equal(stored, again));
    lower_all(back);
    return 0;
}
