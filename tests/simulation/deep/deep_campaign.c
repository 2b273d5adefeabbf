/* The campaign files that people write. */
#include "common/cleanup.h"
#include "deep.h"
#include <stdio.h>

#define PLACE "s3://bbb/out/{campaign}/{stage}/{part}/"

static void write_retry(struct buf *b, struct rng *r)
{
    buf_addf(b, "retry:\n  - {cause: [capacity, quota, throttled], wait: 30s..5m, times: forever, "
                "counts: no}\n");
    if (rng_chance(r, 0.7)) {
        buf_addf(b,
                 "  - {cause: [user_code, unknown, timeout, short_output], wait: 10s..2m, times: "
                 "%lld}\n",
                 (long long)between(r, 1, 6));
    }
}

static void write_types(struct buf *b, struct rng *r)
{
    int first = (int)rng_below(r, TYPES);
    if (rng_chance(r, 0.4)) {
        buf_addf(b, "    instance_type: [%s, %s]\n", deep_types[first],
                 deep_types[(first + 1) % TYPES]);
    } else {
        buf_addf(b, "    instance_type: %s\n", deep_types[first]);
    }
}

/* vars: its parts may bring some. */
static void write_user(struct buf *b, struct rng *r, bool vars)
{
    static const char *const verify[] = {"none", "{exists: \"" PLACE "done\"}",
                                         "{count: 1, prefix: \"" PLACE "\"}", "artifacts"};
    buf_addf(b, "    image: \"" DEEP_IMAGE "\"\n    output: \"" PLACE "\"\n    verify: %s\n",
             verify[rng_below(r, ARRAY_LEN(verify))]);
    if (rng_chance(r, 0.2)) {
        buf_add_cstr(b, "    instance_count: 2\n");
    }
    (void)outputs_done_if(b, false);
    secrets_job(b, vars);
}

static void write_download(struct buf *b, struct rng *r)
{
    buf_add_cstr(b, "    worker: download\n    image: \"" DEEP_IMAGE
                    "\"\n    hyperparameters: {url_list: "
                    "\"{uri}\", output_folder: \"" PLACE "\"}\n    verify: manifest\n");
    if (rng_chance(r, 0.2) && !deep->outputs) {
        buf_add_cstr(b, "    done_if: {manifest: \"" PLACE "\"}\n");
    }
    (void)outputs_done_if(b, true);
}

static void write_guards(struct buf *b, struct rng *r)
{
    if (rng_chance(r, 0.5)) {
        buf_add_cstr(b, "    breaker: off\n    canary: off\n");
    }
    if (rng_chance(r, 0.3)) {
        buf_addf(b, "    allow_failed: %lld%%\n", (long long)between(r, 5, 60));
    }
    if (rng_chance(r, 0.2)) {
        buf_addf(b, "    limits: {parts: %lld}\n", (long long)between(r, 1, 6));
    }
    if (rng_chance(r, 0.25)) {
        buf_add_cstr(b, "    spot: true\n    resumable: true\n");
    } else if (rng_chance(r, 0.7)) {
        buf_addf(b, "    warm_pool: {keep_alive: %lldm}\n", (long long)between(r, 2, 30));
    }
}

static void write_stage(struct buf *b, struct rng *r, int i, bool open, bool volume)
{
    bool needs = i > 0 && rng_chance(r, 0.7), mounts = volume && rng_chance(r, 0.7);
    buf_addf(b, "  - name: s%d\n", i);
    if (needs && mounts) {
        buf_addf(b, "    needs: [s%d, vol]\n", i - 1);
    } else if (needs || mounts) {
        buf_addf(b, needs ? "    needs: s%d\n" : "    needs: vol\n", i - 1);
    }
    if (mounts) {
        write_user(b, r, open);
        wish_mount(b);
    } else if (rng_chance(r, 0.6)) {
        write_download(b, r);
    } else {
        write_user(b, r, open);
    }
    buf_add_cstr(b, "    fan_out: {from: ");
    if (open || !listing_pattern(b)) {
        buf_add_cstr(b, open ? "api" : "\"s3://bbb/meta/*.bin\"");
        buf_add_cstr(b, open ? secrets_vars_word() : "");
    }
    buf_addf(b, "}\n    max_runtime: %lldm\n    role: " DEEP_ROLE "\n",
             (long long)between(r, 30, 90));
    write_types(b, r);
    write_guards(b, r);
}

/* In worlds of people who ask anything: a stage that fails at once beside the others, and one that
 * is skipped for it. */
static void write_doomed(struct buf *b)
{
    static const char *const names[] = {"doomed", "left\n    needs: doomed"};
    struct rng *r = &deep->rng_doomed;
    if (!deep->operators || !deep->doomed || deep->days > 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_addf(b,
                 "  - name: %s\n    image: \"" DEEP_IMAGE "\"\n    output: \"" PLACE
                 "\"\n    verify: none\n    fan_out: {count: 1}\n    max_runtime: 30m\n    role: "
                 "" DEEP_ROLE "\n    instance_type: %s\n    breaker: off\n    canary: off\n",
                 names[i], deep_types[rng_below(r, TYPES)]);
    }
}

char *campaign_write(struct campaign *c, int i)
{
    struct rng *r = &deep->rng_people;
    AUTO_BUF struct buf b = BUF_INIT(65536);
    static const char *const at_limit[] = {"drain", "stop", "hold"};
    c->pipeline = rng_chance(r, 0.35) && !deep->restores && !deep->large;
    c->stages = (int)between(r, 1, 3);
    bool volume = rng_chance(r, 0.35) && !deep->restores;
    bool serves = rng_chance(r, 0.4) && !deep->restores;
    c->parts = (int)(deep->large           ? between(r, 20, 40)
                     : volume || serves    ? between(r, 3, 9)
                     : rng_chance(r, 0.15) ? between(r, 20, 40)
                                           : between(r, 6, 14));
    c->open_stage = !c->pipeline && rng_chance(r, 0.25);
    (void)snprintf(c->project, sizeof c->project, "p%lld", (long long)between(r, 0, 1));
    buf_addf(&b, "version: 1\nname: c%d\nproject: %s\nlimits: {parts: %lld, priority: %lld}\n", i,
             c->project, (long long)between(r, 2, 20), (long long)between(r, 1, 3) * 25);
    if (rng_chance(r, 0.4)) {
        buf_addf(&b, "budget: {total: %lld USD, at_limit: %s}\n", (long long)between(r, 5, 60),
                 at_limit[rng_below(r, 3)]);
    }
    write_retry(&b, r);
    buf_add_cstr(&b, "stages:\n");
    write_doomed(&b);
    if (c->pipeline) {
        pipeline_write(&b, r, DEEP_IMAGE, DEEP_ROLE);
        return xstrdup(buf_cstr(&b));
    }
    if (volume) {
        wish_volume(&b, r);
    }
    for (int k = 0; k < c->stages; k++) {
        bool open = c->open_stage && k == c->stages - 1;
        if (open) {
            (void)snprintf(c->open_name, sizeof c->open_name, "s%d", k);
        }
        write_stage(&b, r, k, open, volume);
    }
    if (serves) {
        wish_endpoint(&b, r, DEEP_IMAGE, c->stages - 1);
    }
    return xstrdup(buf_cstr(&b));
}
