/* Campaigns as people write them for one model: copies, an index of them, a matrix whose rows are
 * tried and judged by a gate, the training, and an endpoint that serves its model until nobody asks
 * it. And the person who overrides a gate. */
#include "core/spec/spec.h"
#include "deep.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"
#include <stdio.h>

static void write_jobs(struct buf *b, struct rng *r, const char *image, const char *role)
{
    buf_addf(b,
             "    image: \"%s\"\n    role: %s\n    instance_type: %s\n    max_runtime: %lldm\n"
             "    breaker: off\n",
             image, role, deep_types[rng_below(r, TYPES)], (long long)between(r, 30, 90));
}

static void write_data(struct buf *b, struct rng *r, const char *image, const char *role,
                       bool has_index)
{
    buf_add_cstr(b, "  - name: copy\n    worker: copy\n");
    if (rng_chance(r, 0.5)) {
        buf_addf(
            b,
            "    fan_out: {count: %lld}\n    from: \"https://example.com/{part:03d}.parquet\"\n"
            "    to: \"s3://bbb/out/{campaign}/{stage}/{part}/{file_name}\"\n",
            (long long)between(r, 2, 4));
    } else {
        buf_add_cstr(b, "    from: \"https://example.com/[000-003].parquet\"\n"
                        "    to: \"s3://bbb/out/{campaign}/copy/0/{file_name}\"\n");
    }
    write_jobs(b, r, image, role);
    if (has_index) {
        buf_add_cstr(b, "  - name: index\n    needs: copy\n    worker: index\n"
                        "    from: \"s3://bbb/out/{campaign}/copy/\"\n"
                        "    output: \"s3://bbb/out/{campaign}/{stage}/0/\"\n");
        write_jobs(b, r, image, role);
    }
}

/* many: it has parts. */
static void write_training(struct buf *b, struct rng *r, bool many)
{
    const char *part = many ? "{part}" : "0";
    buf_addf(b, "    output: \"s3://bbb/out/{campaign}/{stage}/%s/\"\n", part);
    if (rng_chance(r, 0.3)) {
        buf_addf(b, "    verify: {exists: \"s3://bbb/out/{campaign}/{stage}/%s/done\"}\n", part);
    } else {
        buf_addf(b, "    verify: %s\n", rng_chance(r, 0.5) ? "none" : "artifacts");
    }
    if (many) {
        buf_addf(b, "    fan_out: {count: %lld}\n", (long long)between(r, 2, 3));
    }
    if (rng_chance(r, 0.4)) {
        buf_add_cstr(b, "    spot: true\n    resumable: true\n");
    }
}

/* Good: a loss below 5, an accuracy above 5. */
static void write_gate(struct buf *b, struct rng *r)
{
    buf_add_cstr(b, "    metrics:\n      - {name: step, regex: 'step=([0-9]+)'}\n"
                    "      - {name: loss, regex: 'loss=([0-9.]+)'}\n"
                    "      - {name: accuracy, regex: 'accuracy=([0-9.]+)'}\n");
    buf_addf(b, "    gate: {metric: %s",
             rng_chance(r, 0.5) ? "loss, below: 5.0" : "accuracy, above: 5.0");
    buf_add_cstr(b, rng_chance(r, 0.5) ? ", of: {instance_count: 1}}\n" : "}\n");
}

void pipeline_write(struct buf *b, struct rng *r, const char *image, const char *role)
{
    bool has_index = rng_chance(r, 0.5);
    write_data(b, r, image, role, has_index);
    buf_addf(b, "  - name: try\n    needs: %s\n    matrix: {instance_count: [1, 2]}\n",
             has_index ? "index" : "copy");
    write_jobs(b, r, image, role);
    write_training(b, r, rng_chance(r, 0.4));
    write_gate(b, r);
    buf_add_cstr(b, "  - name: full\n    needs: try\n");
    write_jobs(b, r, image, role);
    write_training(b, r, false);
    if (rng_chance(r, 0.5)) {
        int64_t idle = between(r, 5, 40);
        buf_addf(b,
                 "  - name: serve\n    kind: endpoint\n    needs: full\n"
                 "    model: {stage: full, image: \"%s\"}\n    role: %s\n    instance_type: %s\n"
                 "    ttl: %lldm\n",
                 image, role, deep_types[rng_below(r, TYPES)], (long long)between(r, 40, 600));
        if (rng_chance(r, 0.8)) {
            buf_addf(b, "    idle: %lldm\n", (long long)idle);
        }
        wish_test(b, r);
    }
}

static uint32_t needs_of(const struct spec *s, const struct spec_stage *sp)
{
    uint32_t needs = 0;
    for (int i = 0; i < sp->needs_n; i++) {
        for (int k = 0; k < s->stages_n; k++) {
            needs |= strcmp(s->stages[k]->name, sp->needs[i]) == 0 ? 1u << k : 0;
        }
    }
    return needs;
}

void pipeline_tell(struct campaign *c, const struct spec *s)
{
    ASSERT(s->stages_n <= STAGES_MAX);
    c->told_n = s->stages_n;
    for (int i = 0; i < s->stages_n; i++) {
        const struct spec_stage *sp = s->stages[i];
        struct told_stage *t = &c->told[i];
        *t = (struct told_stage){
            .needs = needs_of(s, sp),
            .all_good = sp->kind == SPEC_KIND_JOBS && sp->allow_failed_ppm == 0 &&
                        sp->fan_out != FAN_OUT_API,
            .gated = sp->gate.metric != NULL,
            .asks_before = sp->done_if != NULL && strstr(sp->done_if, "/before/") != NULL};
        (void)snprintf(t->name, sizeof t->name, "%s", sp->name);
        if (sp->endpoint != NULL && sp->endpoint->model_stage != NULL) {
            (void)snprintf(t->model_of, sizeof t->model_of, "%s", sp->endpoint->model_stage);
        }
    }
}

/* As api/handlers/override.c does. */
static bool override_stage(struct campaign *c, struct told_stage *t, bool *ret_held,
                           struct err *err)
{
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    struct apidb_gate gate;
    *ret_held = false;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err) ||
        !apidb_stage_gate(tx, c->id, t->name, &gate, err)) {
        return false;
    }
    *ret_held = gate.held && !gate.overridden;
    if (!*ret_held) {
        return true;
    }
    t->overridden = true;
    trace("people override the gate of c-%lld/%s: %s", (long long)c->id, t->name, gate.reason);
    return apidb_stage_gate_override(tx, c->id, t->name, err) && apidb_notify(tx, err) &&
           tx_commit(tx, err);
}

bool pipeline_override(struct campaign *c, struct err *err)
{
    judge_gates();
    for (int i = 0; i < c->told_n; i++) {
        bool held = false;
        if (c->told[i].gated && !override_stage(c, &c->told[i], &held, err)) {
            return false;
        }
        if (held) {
            break;
        }
    }
    return true;
}
