/* From a campaign file to rows; see submit.h. */
#include "submit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/scope.h"
#include "api/server/server.h"
#include "common/clock.h"
#include "common/rng.h"
#include "common/yaml.h"
#include "core/leader/input_listing.h"
#include "core/lowering/request_check.h"
#include "core/money/cost.h"
#include "core/spec/spec_json.h"
#include "core/spec/spec_parse.h"
#include "default_bucket.h"
#include "image_pins.h"
#include "listed_parts.h"
#include "sources.h"
#include "store/api/campaigns.h"
#include "store/api/input_listings.h"
#include "store/api/part_load.h"
#include "store/api/quotas.h"
#include <stdio.h>

#define SUBMIT_ARENA_MAX (32 * 1024 * 1024)
#define LIST_WAIT_US     (1 * USEC_PER_SEC) /* what is not listed then goes on in the background */
#define LIST_WAIT_MIN_US (100 * USEC_PER_MSEC) /* of each stage */
#define DRY_LIST_WAIT_US (10 * USEC_PER_SEC)

void submit_done(struct submit *s)
{
    for (size_t i = 0; i < ARRAY_LEN(s->stages); i++) {
        bridge_listing_done(&s->stages[i].listing);
    }
    arena_done(&s->arena);
}

/* Position of stages.NAME in the file, or of its fan_out.from; {0, 0} when unknown. */
static struct position stage_pos(const struct api_req *r, const char *stage, bool from)
{
    struct position pos = {0, 0};
    struct faults *ignored = xcalloc(1, sizeof *ignored);
    CLEANUP(yaml_freep)
    struct yaml_doc *doc = NULL;
    if (yaml_parse(buf_str(&r->body), &doc, ignored)) {
        const struct yaml_node *stages = yaml_get(yaml_root(doc), "stages");
        for (size_t i = 0; stages != NULL && stages->kind == YAML_LIST && i < stages->n; i++) {
            const struct yaml_node *name = yaml_get(stages->items[i], "name");
            const struct yaml_node *fan_out = yaml_get(stages->items[i], "fan_out");
            const struct yaml_node *at = from && fan_out != NULL ? yaml_get(fan_out, "from") : NULL;
            at = from ? at : name;
            if (name != NULL && name->text != NULL && strcmp(name->text, stage) == 0 &&
                at != NULL) {
                pos = at->pos;
            }
        }
    }
    free(ignored);
    return pos;
}

static void fan_out_fault(struct api_req *r, const struct spec_stage *sp, const char *code,
                          const char *hint, const char *message)
{
    r->faults = arena_alloc(&r->arena, sizeof *r->faults);
    faults_add(r->faults, stage_pos(r, sp->name, true),
               arena_printf(&r->arena, "stages.%s.fan_out.from", sp->name), code, hint, "%s",
               message);
}

/* Its listing did not end in time, or not for good: a submit leaves it to the listing thread, a dry
 * run shows what was found so far. */
static void list_unfinished(const struct submit *s, const struct spec_stage *sp,
                            const struct bridge_progress *found, struct submit_stage *st)
{
    st->unfinished = true;
    st->parts = s->dry_run ? input_listing_parts(found->objects, sp->per_part) : -1;
}

static bool list_refused(struct api_req *r, const struct spec_stage *sp, const struct err *why,
                         struct err *err)
{
    fan_out_fault(r, sp, "unreadable", input_listing_next_step(why), why->message);
    return err_set(err, ERR_INVALID, "%s", why->message);
}

static bool stage_list(struct api_req *r, const struct submit *s, const struct spec_stage *sp,
                       struct submit_stage *st, struct err *err)
{
    struct bridge_question q = {
        .kind = BRIDGE_S3_LIST, .max = BRIDGE_OBJECTS_MAX, .patient = !s->dry_run};
    size_t n = strlen(sp->fan_out_from);
    if (n >= sizeof q.uri) {
        return err_set(err, ERR_INVALID, "stage '%s': fan_out.from is too long", sp->name);
    }
    memcpy(q.uri, sp->fan_out_from, n);
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct bridge_progress found = {0};
    struct err why = ERR_INIT;
    int64_t wait_us = MAX(s->list_until_us - clock_mono_us(), LIST_WAIT_MIN_US);
    switch (req_bridge_look(r, &q, wait_us, &reply, &found, &why)) {
    case BRIDGE_WAITS:
        list_unfinished(s, sp, &found, st);
        return true;
    case BRIDGE_REFUSED:
        if (input_listing_final(&why)) {
            return list_refused(r, sp, &why, err);
        }
        if (s->dry_run) {
            *err = why;
            return false;
        }
        list_unfinished(s, sp, &found, st);
        return true;
    case BRIDGE_ANSWERED:
        break;
    }
    st->listing = reply.listing;
    reply.listing = (struct bridge_listing){0};
    if (st->listing.n == 0) {
        fan_out_fault(r, sp, "no_input", input_listing_next_step(NULL),
                      arena_printf(&r->arena, "no object matches %s", sp->fan_out_from));
        return err_set(err, ERR_INVALID, "no object matches %s", sp->fan_out_from);
    }
    st->parts = input_listing_parts((int64_t)st->listing.n, sp->per_part);
    return true;
}

static bool stage_input(struct api_req *r, const struct submit *s, const struct spec_stage *sp,
                        struct submit_stage *st, struct err *err)
{
    switch (sp->fan_out) {
    case FAN_OUT_NONE:
        st->parts = 1;
        return true;
    case FAN_OUT_API:
        st->parts = -1;
        return true;
    case FAN_OUT_COUNT:
        st->parts = sp->fan_out_count;
        return true;
    case FAN_OUT_S3:
        return stage_list(r, s, sp, st, err);
    }
    BUG("a kind of fan_out");
}

/* What the whole ttl of an endpoint costs, by the price that the leader takes: of hosting, else of
 * the type. */
static bool endpoint_price(struct api_req *r, const struct spec_stage *sp, struct submit_stage *st,
                           struct err *err)
{
    const char *type = sp->instance_type[0];
    struct apidb_rate own;
    AUTO_FREE char *hosting = xasprintf("hosting:%s", type);
    if (!apidb_rate(r->db, hosting, &own, err) || !apidb_rate(r->db, type, &st->rate[0], err)) {
        return false;
    }
    st->rate[0].limit = -1; /* of training */
    st->rate[0].held = st->rate[0].foreign = 0;
    if (own.price_musd_per_hour >= 0) {
        st->rate[0].price_musd_per_hour = own.price_musd_per_hour;
    }
    st->parts = 0;
    st->worst_musd = -1;
    bool ok = st->rate[0].price_musd_per_hour < 0 ||
              cost_worst_case(st->rate[0].price_musd_per_hour, sp->instance_count,
                              sp->endpoint->ttl_s, 0, &st->worst_musd, err);
    st->worst_all_musd = st->worst_musd;
    return ok;
}

/* What the whole ttl of a file system costs; its price is that of a GB and month, of
 * its throughput where that is known, as the leader takes it. */
static bool filesystem_price(struct api_req *r, const struct spec_stage *sp,
                             struct submit_stage *st, struct err *err)
{
    const struct spec_filesystem *f = sp->filesystem;
    char tier[SPEC_STORAGE_TIER_MAX];
    spec_storage_tier(f->deployment, f->throughput, tier);
    AUTO_FREE char *key = xasprintf(SPEC_STORAGE_PREFIX "%s", tier);
    if (!apidb_rate(r->db, key, &st->rate[0], err) ||
        (st->rate[0].price_musd_per_hour < 0 &&
         !apidb_rate(r->db, sp->instance_type[0], &st->rate[0], err))) {
        return false;
    }
    st->rate[0].limit = -1; /* of training */
    st->rate[0].held = st->rate[0].foreign = 0;
    st->parts = 0;
    st->worst_musd = -1;
    bool ok = st->rate[0].price_musd_per_hour < 0 ||
              cost_storage_worst_case(st->rate[0].price_musd_per_hour, f->capacity_gib, f->ttl_s,
                                      &st->worst_musd, err);
    st->worst_all_musd = st->worst_musd;
    return ok;
}

static bool stage_price(struct api_req *r, const struct spec_stage *sp, struct submit_stage *st,
                        struct err *err)
{
    for (int i = 0; i < sp->instance_type_n; i++) {
        if (!apidb_rate(r->db, sp->instance_type[i], &st->rate[i], err)) {
            return false;
        }
    }
    st->worst_musd = st->worst_all_musd = -1;
    if (st->rate[0].price_musd_per_hour >= 0 &&
        !cost_worst_case(st->rate[0].price_musd_per_hour, sp->instance_count, sp->max_runtime_s, 0,
                         &st->worst_musd, err)) {
        return false;
    }
    if (st->worst_musd >= 0 && st->parts >= 0 &&
        !muldiv_i64(st->worst_musd, st->parts, 1, &st->worst_all_musd)) {
        return err_set(err, ERR_OVERFLOW, "stage '%s': its worst case exceeds any budget",
                       sp->name);
    }
    return true;
}

/* The price of a stage's first instance type as last read. */
static bool price_of(void *ctx, const struct spec_stage *sp, musd_t *ret)
{
    const struct submit *s = ctx;
    for (int i = 0; i < s->spec->stages_n; i++) {
        const struct apidb_rate *rate = &s->stages[i].rate[0];
        if (s->spec->stages[i] == sp && rate->price_musd_per_hour >= 0) {
            *ret = rate->price_musd_per_hour;
            return true;
        }
    }
    return false;
}

static bool budget_check(struct api_req *r, struct submit *s, struct err *err)
{
    struct faults *faults = arena_alloc(&r->arena, sizeof *faults);
    if (spec_check_budget(s->spec, price_of, s, faults)) {
        return true;
    }
    r->faults = faults;
    return err_set(err, ERR_BUDGET, "%s",
                   faults->n > 0 ? faults->at[0].message
                                 : "one job may cost more than a cap allows");
}

static bool refused(struct api_req *r, struct faults *faults, struct err *err)
{
    r->faults = faults;
    return err_set(err, ERR_INVALID, "the campaign has %d fault%s", faults->n + faults->dropped,
                   faults->n == 1 ? "" : "s");
}

/* Each part that is known: the others are checked when they come, or by the leader. */
static bool parts_check(struct request_checks *c, const struct submit_stage *st, int64_t *ret_part,
                        struct err *err)
{
    const struct bridge_listing *listing = &st->listing;
    int64_t step = c->stage->per_part, n = (int64_t)listing->n;
    for (*ret_part = 0; *ret_part * step < n; ++*ret_part) {
        const struct bridge_object *at = &listing->at[*ret_part * step];
        if (!request_check_part(c, *ret_part, str_of(at->uri), at->size, STR(""), err)) {
            return false;
        }
    }
    return true;
}

/* What no request can be made of would be accepted, and fail. */
static bool requests_check(struct api_req *r, const struct spec *spec, const struct spec_stage *sp,
                           const struct submit_stage *st, struct err *err)
{
    int64_t part = -1;
    struct err why = ERR_INIT;
    CLEANUP(request_check_done)
    struct request_checks c;
    request_check_begin(&c, spec, sp, req_config(r)->defaults.region);
    if (request_check_stage(&c, &why) && parts_check(&c, st, &part, &why)) {
        return true;
    }
    const char *what = part < 0 ? "" : arena_printf(&r->arena, "part %lld: ", (long long)part);
    r->faults = arena_alloc(&r->arena, sizeof *r->faults);
    faults_add(r->faults, stage_pos(r, sp->name, false),
               arena_printf(&r->arena, "stages.%s", sp->name), "request",
               "drover request --dry shows the request", "%s%s", what, why.message);
    return err_set(err, ERR_INVALID, "no request can be made of stage '%s': %s%s", sp->name, what,
                   why.message);
}

static bool stage_prepare(struct api_req *r, const struct submit *s, const struct spec_stage *sp,
                          struct submit_stage *st, struct err *err)
{
    if (sp->kind == SPEC_KIND_ENDPOINT) {
        return endpoint_price(r, sp, st, err);
    }
    if (sp->kind == SPEC_KIND_LUSTRE) {
        return filesystem_price(r, sp, st, err);
    }
    return stage_input(r, s, sp, st, err) && stage_price(r, sp, st, err);
}

/* The file with droverd's defaults. A default bucket that is not known is a fault only of a file
 * that is not valid without it. */
static bool parse(struct api_req *r, struct submit *s, struct err *err)
{
    struct faults *faults = arena_alloc(&r->arena, sizeof *faults);
    struct spec_defaults defaults = req_config(r)->defaults;
    struct err why = ERR_INIT;
    bool known = default_bucket(r, &defaults.bucket, &why);
    if (spec_parse(buf_str(&r->body), &defaults, &s->arena, &s->spec, faults)) {
        return true;
    }
    if (!known) {
        faults_add(faults, (struct position){0, 0}, "vars.bucket", "unknown", "set DROVER_BUCKET",
                   "%s", why.message);
    }
    return refused(r, faults, err);
}

bool submit_prepare(struct api_req *r, struct submit *s, struct err *err)
{
    arena_init(&s->arena, SUBMIT_ARENA_MAX);
    if (!parse(r, s, err)) {
        return false;
    }
    if (!scope_has(r, s->spec->project)) {
        return err_set(err, ERR_FORBIDDEN, "project '%.64s': the token counts in %s",
                       s->spec->project, r->who.projects);
    }
    if ((!s->dry_run && !sources_check(r, s->spec, err)) ||
        !images_pin(r, s->spec, &s->arena, err)) {
        return false;
    }
    s->list_until_us = clock_mono_us() + (s->dry_run ? DRY_LIST_WAIT_US : LIST_WAIT_US);
    for (int i = 0; i < s->spec->stages_n; i++) {
        struct submit_stage *st = &s->stages[i];
        if (!stage_prepare(r, s, s->spec->stages[i], st, err) ||
            !requests_check(r, s->spec, s->spec->stages[i], st, err)) {
            return false;
        }
        s->parts += MAX(st->parts, 0);
        bool known = st->worst_all_musd >= 0 && s->worst_all_musd >= 0;
        if (!known || !add_i64(s->worst_all_musd, st->worst_all_musd, &s->worst_all_musd)) {
            s->worst_all_musd = -1;
        }
    }
    return budget_check(r, s, err);
}

static bool stage_write(struct api_req *r, const struct submit *s, int i, int64_t campaign_id,
                        struct err *err)
{
    const struct spec_stage *sp = s->spec->stages[i];
    const struct submit_stage *st = &s->stages[i];
    struct apidb_stage row = {.campaign_id = campaign_id,
                              .seq = i,
                              .name = sp->name,
                              .kind = spec_kind_word(sp->kind),
                              .closed = false,
                              .cap_musd = sp->budget_musd,
                              .per_task_musd = sp->per_task_musd,
                              .parts_limit = sp->parts_limit,
                              .at_limit = at_limit_name(s->spec->at_limit),
                              .warn_at_ppm = s->spec->warn_at_ppm,
                              .warn_at_n = s->spec->warn_at_n};
    int64_t id;
    if (!apidb_stage_insert(r->db, &row, &id, err)) {
        return false;
    }
    if (sp->fan_out == FAN_OUT_API) {
        return true;
    }
    if (st->unfinished) {
        return apidb_input_listing_insert(r->db, id, campaign_id, sp->fan_out_from, sp->per_part,
                                          r->who.token_id, err);
    }
    if (sp->fan_out == FAN_OUT_S3) {
        return listed_parts_load(r->db, campaign_id, id, &st->listing, sp->per_part, err);
    }
    CLEANUP(apidb_load_freep)
    struct apidb_load *load = NULL;
    if (!apidb_load_begin(r->db, campaign_id, id, st->parts, &load, err)) {
        return false;
    }
    bool ok = true;
    for (int64_t k = 0; ok && k < st->parts; k++) {
        ok = apidb_load_row(load, STR(""), 0, STR(""), err);
    }
    return ok && apidb_load_end(load, true, err);
}

bool submit_write(struct api_req *r, struct submit *s, int64_t *ret_id, struct err *err)
{
    AUTO_JSON json_t *spec_json = spec_to_json(s->spec);
    AUTO_FREE char *text = json_text(spec_json);
    uint8_t raw[16];
    char nonce[2 * sizeof raw + 1];
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, nonce);
    struct apidb_campaign c = {.project = s->spec->project,
                               .name = s->spec->name,
                               .spec_text = buf_str(&r->body),
                               .spec_json = text,
                               .priority = s->spec->priority,
                               .deadline_us = s->spec->deadline_us,
                               .weight = s->spec->weight,
                               .parts_limit = s->spec->parts_limit,
                               .cap_musd = s->spec->budget_musd,
                               .at_limit = at_limit_name(s->spec->at_limit),
                               .warn_at_ppm = s->spec->warn_at_ppm,
                               .warn_at_n = s->spec->warn_at_n,
                               .created_by = r->who.token_id,
                               .nonce = nonce};
    int64_t id;
    if (!apidb_campaign_insert(r->db, &c, &id, err)) {
        return false;
    }
    for (int i = 0; i < s->spec->stages_n; i++) {
        if (!stage_write(r, s, i, id, err)) {
            return false;
        }
    }
    *ret_id = id;
    return true;
}
