/* People: they submit campaigns, then pause, resume, drain, cancel, retry, scale, change budgets
 * and add parts, each in one transaction of store/api, as api/handlers do. In the calm they
 * resume what waits for a person. */
#include "common/cleanup.h"
#include "core/spec/spec_json.h"
#include "core/spec/spec_parse.h"
#include "deep_verbs.h"
#include "store/api/campaigns.h"
#include "store/api/input_listings.h"
#include "store/api/limits.h"
#include "store/api/operations.h"
#include "store/api/part_load.h"
#include "store/api/parts.h"
#include "store/api/quotas.h"
#include "store/pg/tx.h"
#include <stdarg.h>
#include <stdio.h>

#define CARE_US   (10 * MINUTE)
#define PRODS_MAX 40

/* from_s3: each has an object as its input. */
static bool load(struct campaign *c, int64_t stage_id, int64_t n, bool from_s3, bool vars,
                 bool last, struct err *err)
{
    CLEANUP(apidb_load_freep)
    struct apidb_load *l = NULL;
    if (!apidb_load_begin(deep->api, c->id, stage_id, n, &l, err)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        char uri[64] = "";
        int64_t size = from_s3 ? between(&deep->rng_people, 1, 500) * 1000000 : 0;
        if (from_s3) {
            (void)snprintf(uri, sizeof uri, "s3://bbb/meta/%05lld.bin", (long long)i);
        }
        AUTO_BUF struct buf with = BUF_INIT(4096);
        if (vars) {
            secrets_vars(&with);
        }
        if (!apidb_load_row(l, str_of(uri), size, buf_str(&with), err)) {
            return false;
        }
    }
    return apidb_load_end(l, last, err);
}

static const char *at_limit_word(enum at_limit a)
{
    return a == AT_LIMIT_DRAIN ? "drain" : a == AT_LIMIT_STOP ? "stop" : "hold";
}

static bool is_listed(const struct spec_stage *sp)
{
    return sp->fan_out == FAN_OUT_S3 && strstr(sp->fan_out_from, "/listed/") != NULL;
}

static int64_t parts_of(const struct campaign *c, const struct spec *s, int i)
{
    const struct spec_stage *sp = s->stages[i];
    return sp->kind != SPEC_KIND_JOBS     ? 0
           : sp->fan_out == FAN_OUT_NONE  ? 1
           : sp->fan_out == FAN_OUT_COUNT ? sp->fan_out_count
           : is_listed(sp)                ? listing_parts(sp->fan_out_from)
                                          : MAX(1, c->parts / s->stages_n);
}

static bool insert_stages(struct campaign *c, const struct spec *s, struct err *err)
{
    for (int i = 0; i < s->stages_n; i++) {
        const struct spec_stage *sp = s->stages[i];
        const struct apidb_stage row = {.campaign_id = c->id,
                                        .seq = i,
                                        .name = sp->name,
                                        .kind = spec_kind_word(sp->kind),
                                        .cap_musd = sp->budget_musd,
                                        .per_task_musd = sp->per_task_musd,
                                        .parts_limit = sp->parts_limit,
                                        .at_limit = at_limit_word(s->at_limit),
                                        .warn_at_ppm = s->warn_at_ppm,
                                        .warn_at_n = s->warn_at_n};
        int64_t id;
        bool of_jobs = sp->kind == SPEC_KIND_JOBS;
        c->told[i].parts = parts_of(c, s, i);
        if (!apidb_stage_insert(deep->api, &row, &id, err)) {
            return false;
        }
        if (of_jobs && is_listed(sp)) {
            if (!apidb_input_listing_insert(deep->api, id, c->id, sp->fan_out_from, 1, "people",
                                            err)) {
                return false;
            }
        } else if (((!of_jobs || sp->fan_out != FAN_OUT_API) &&
                    !load(c, id, parts_of(c, s, i), sp->fan_out == FAN_OUT_S3, false, true, err))) {
            return false;
        }
    }
    return true;
}

/* Random in the product: no campaign has the nonce of one that is lost. */
static const char *nonce_of(const struct campaign *c, char ret[static 16])
{
    (void)snprintf(ret, 16, c->lost_n > 0 ? "deep%d" : "deep", c->lost_n);
    return ret;
}

static bool insert(struct campaign *c, const struct spec *s, struct err *err)
{
    AUTO_JSON json_t *v = spec_to_json(s);
    AUTO_FREE char *text = json_text(v);
    char nonce[16];
    const struct apidb_campaign row = {.project = s->project,
                                       .name = s->name,
                                       .spec_text = str_of(c->yaml),
                                       .spec_json = text,
                                       .priority = s->priority,
                                       .weight = s->weight,
                                       .parts_limit = s->parts_limit,
                                       .cap_musd = s->budget_musd,
                                       .at_limit = at_limit_word(s->at_limit),
                                       .warn_at_ppm = s->warn_at_ppm,
                                       .warn_at_n = s->warn_at_n,
                                       .created_by = "people",
                                       .nonce = nonce_of(c, nonce)};
    AUTO_TX struct store *tx = deep->api;
    return tx_begin(tx, TX_WRITE, err) && apidb_campaign_insert(tx, &row, &c->id, err) &&
           insert_stages(c, s, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}

static void submit(void *ctx, int64_t arg)
{
    struct campaign *c = ctx;
    struct err err = ERR_INIT;
    struct faults *faults = xcalloc(1, sizeof *faults);
    struct arena a;
    struct spec *spec;
    const struct spec_defaults d = {
        .role = DEEP_ROLE, .worker_image = DEEP_IMAGE, .bucket = "s3://bbb"};
    if (deep->now_us < deep->db_down_until_us) {
        event_at(deep->db_down_until_us + SEC, submit, ctx, arg);
        return;
    }
    arena_init(&a, SPEC_ARENA_BYTES);
    if (!spec_parse(str_of(c->yaml), &d, &a, &spec, faults)) {
        deep_die("a campaign of ours is not valid: %s: %s\n%s", faults->at[0].pointer,
                 faults->at[0].message, c->yaml);
    }
    c->id = 0;
    pipeline_tell(c, spec);
    if (!insert(c, spec, &err)) {
        c->id = 0;
        trace("a submit fails: %s", err.message);
        event_at(deep->now_us + 5 * SEC, submit, ctx, arg);
    } else {
        listing_begin();
        verbs_soon(c);
        trace("campaign c-%lld is submitted: %d stages, %d parts", (long long)c->id, c->stages,
              c->parts);
    }
    arena_done(&a);
    free(faults);
}

void people_submit_again(struct campaign *c)
{
    c->id = 0;
    event_at(deep->now_us + between(&deep->rng_restores, 1, 600) * SEC, submit, c, 0);
}

/* Some types may be used only in part, from the start. */
static void limit_use(void)
{
    struct rng *r = &deep->rng_people;
    struct err err = ERR_INIT;
    for (int t = 0; t < TYPES; t++) {
        int64_t n = rng_chance(r, 0.3) ? between(r, 1, 6) : -1;
        if (n > 0 && apidb_slot_limit(deep->api, deep_types[t], n, &err)) {
            judge_limit_set(t, n);
        }
    }
}

void people_start(void)
{
    limit_use();
    for (int i = 0; i < deep->campaigns_n; i++) {
        struct campaign *c = &deep->campaigns[i];
        c->yaml = campaign_write(c, i);
        int64_t until_us = deep->days > 0 ? deep->calm_us - 4 * 24 * HOUR : deep->calm_us / 2;
        event_at(i == 0 ? 0 : between(&deep->rng_people, 0, until_us), submit, c, 0);
    }
}

static enum wanted wanted_by(enum verb verb)
{
    return verb == VERB_PAUSE    ? WANTED_PAUSE
           : verb == VERB_DRAIN  ? WANTED_DRAIN
           : verb == VERB_CANCEL ? WANTED_CANCEL
                                 : WANTED_RUN;
}

static bool want_in_tx(struct campaign *c, enum verb verb, struct err *err)
{
    enum wanted wanted = wanted_by(verb);
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err)) {
        return false;
    }
    verbs_met(c, verb, &now, 0);
    if (!verbs_allow(verb, &now, err)) {
        return false;
    }
    bool again = wanted == WANTED_RUN && now.state == CAMPAIGN_HELD;
    return (!(now.wanted != wanted || again) || apidb_campaign_want(tx, c->id, wanted, err)) &&
           (wanted != WANTED_RUN || apidb_stages_resume(tx, c->id, err)) && apidb_notify(tx, err) &&
           tx_commit(tx, err);
}

bool people_want(struct campaign *c, enum verb verb, struct err *err)
{
    bool ok = want_in_tx(c, verb, err);
    if (ok) {
        c->cancelled |= verb == VERB_CANCEL; /* for good */
        verb == VERB_RESUME && !c->cancelled ? judge_wanted(c) : judge_stopped(c);
    }
    return ok;
}

static bool retry(struct campaign *c, struct err *err)
{
    const struct apidb_selector sel = {.campaign_id = c->id};
    struct apidb_match m = {.sample = BUF_INIT(4096)};
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    int64_t id;
    const char *changes = rng_chance(&deep->rng_people, 0.5) ? "{}" : "{\"volume_gb\":100}";
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err)) {
        return false;
    }
    verbs_met(c, VERB_RETRY, &now, 0);
    if (!verbs_allow(VERB_RETRY, &now, err)) {
        return false;
    }
    bool ok =
        apidb_retry_count(tx, &sel, &m, err) &&
        apidb_operation_insert(tx, c->id, "retry", "{}", changes, m.parts, "people", &id, err) &&
        apidb_notify(tx, err) && tx_commit(tx, err);
    buf_done(&m.sample);
    return ok;
}

static bool patch(struct campaign *c, const struct apidb_patch *p, struct err *err)
{
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    return tx_begin(tx, TX_WRITE, err) && apidb_campaign_lock(tx, c->id, &now, err) &&
           apidb_campaign_patch(tx, c->id, p, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}

static bool add_parts(struct campaign *c, bool last, struct err *err)
{
    struct apidb_stage_row stage;
    if (!apidb_stage_find(deep->api, c->id, c->open_name, &stage, err)) {
        return false;
    }
    AUTO_TX struct store *tx = deep->api;
    return tx_begin(tx, TX_WRITE, err) &&
           load(c, stage.id, between(&deep->rng_people, 1, 6), true, true, last, err) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}

static bool scale(struct campaign *c, struct err *err)
{
    struct rng *r = &deep->rng_people;
    AUTO_TX struct store *tx = deep->api;
    const struct apidb_limits_patch l = {.weight = between(r, 1, 500),
                                         .budget_musd = -1,
                                         .set_parts = rng_chance(r, 0.5),
                                         .parts = between(r, 1, 12)};
    int type = rng_chance(r, 0.3) ? (int)rng_below(r, TYPES) : -1;
    int64_t n = between(r, 0, 6);
    bool ok = tx_begin(tx, TX_WRITE, err) &&
              (type >= 0 ? apidb_slot_limit(tx, deep_types[type], n, err)
                         : apidb_project_patch(tx, c->project, &l, err)) &&
              apidb_notify(tx, err) && tx_commit(tx, err);
    if (ok && type >= 0) {
        judge_limit_set(type, n);
    }
    return ok;
}

static bool set_budget(struct campaign *c, int64_t musd, struct err *err)
{
    bool ok = patch(c,
                    &(struct apidb_patch){
                        .priority = -1, .weight = -1, .set_budget = true, .budget_musd = musd},
                    err);
    judge_budget_set(c);
    return ok;
}

static const char *const verb_words[] = {"pause", "resume", "resume", "drain",        "cancel",
                                         "retry", "retry",  "scale",  "budget",       "add parts",
                                         "close", "limits", "extend", "end endpoint", "end volume"};

static bool act(struct campaign *c, int verb, struct err *err)
{
    struct rng *r = &deep->rng_people;
    switch (verb) {
    case 0:
        return people_want(c, VERB_PAUSE, err);
    case 1:
    case 2:
        return people_want(c, VERB_RESUME, err) &&
               (!c->pipeline || rng_chance(r, 0.5) || pipeline_override(c, err));
    case 3:
        return people_want(c, VERB_DRAIN, err);
    case 4:
        return rng_chance(r, 0.4) ? people_want(c, VERB_CANCEL, err) : true;
    case 5:
    case 6:
        return retry(c, err);
    case 7:
        return patch(c,
                     &(struct apidb_patch){.priority = (int)between(r, 0, 100),
                                           .weight = between(r, 1, 500),
                                           .set_parts = true,
                                           .parts_limit = between(r, 0, 12)},
                     err);
    case 8:
        return set_budget(c, between(r, 0, 60) * 1000000, err);
    case 9:
    case 10:
        return !c->open_stage || add_parts(c, verb == 10, err);
    case 12:
    case 13:
    case 14:
        return rng_chance(r, verb == 12 ? 1.0 : 0.3) ? wish_act(verb - 12, err) : true;
    default:
        return scale(c, err);
    }
}

static void verb_on(struct campaign *c, int verb)
{
    struct err err = ERR_INIT;
    bool ok = act(c, verb, &err);
    deep->verbs++;
    deep->verbs_refused += !ok;
    trace("people: %s c-%lld%s%s", verb_words[verb], (long long)c->id, ok ? "" : ": ",
          ok ? "" : err.message);
}

void people_verb(void)
{
    struct rng *r = &deep->rng_people;
    if (verbs_verb() || holds_verb()) {
        return;
    }
    struct campaign *c = &deep->campaigns[rng_below(r, (uint64_t)deep->campaigns_n)];
    int verb = (int)rng_below(r, ARRAY_LEN(verb_words));
    if (c->id > 0 && deep->now_us >= deep->db_down_until_us) {
        verb_on(c, verb);
    }
}

void people_cancel(struct campaign *c)
{
    struct err err = ERR_INIT;
    if (c->id > 0 && deep->now_us >= deep->db_down_until_us) {
        bool ok = people_want(c, VERB_CANCEL, &err);
        trace("people cancel c-%lld%s%s", (long long)c->id, ok ? "" : ": ", ok ? "" : err.message);
    }
}

static void resume(void *ctx, int64_t arg)
{
    struct campaign *c = ctx;
    (void)arg;
    if (deep->now_us < deep->db_down_until_us) {
        event_at(deep->db_down_until_us + SEC, resume, ctx, arg);
        return;
    }
    verb_on(c, 1);
}

void people_pause_resume(void)
{
    struct rng *r = &deep->rng_people;
    struct campaign *c = wish_to_pause(r);
    int64_t us = between(r, 1, 120) * SEC;
    if (c->id > 0 && !c->stopped && deep->now_us >= deep->db_down_until_us) {
        verb_on(c, 0);
        event_at(deep->now_us + us, resume, c, 0);
    }
}

static void resume_all(void)
{
    for (int i = 0; i < deep->campaigns_n && deep->now_us >= deep->db_down_until_us; i++) {
        if (deep->campaigns[i].id > 0 && deep->campaigns[i].stopped) {
            verb_on(&deep->campaigns[i], 1);
        }
    }
}

void people_between(struct proc *p)
{
    deep->cur = NULL;
    if (fault(FAULT_MEANWHILE)) {
        if (rng_chance(&deep->rng_people, 0.5)) {
            people_verb();
        } else {
            people_pause_resume();
        }
    }
    if (p->loaded && fault(FAULT_RESUME_LOADED)) {
        resume_all();
    }
    p->loaded = false;
    seldom_between();
    deep->cur = p;
}

void people_free_limits(void)
{
    struct err err = ERR_INIT;
    AUTO_TX struct store *tx = deep->api;
    bool ok = tx_begin(tx, TX_WRITE, &err);
    for (int t = 0; t < TYPES && ok; t++) {
        ok = apidb_slot_limit(tx, deep_types[t], -1, &err);
    }
    const struct apidb_limits_patch l = {
        .weight = 100, .set_parts = true, .parts = -1, .set_budget = true, .budget_musd = -1};
    for (int i = 0; i < deep->campaigns_n && ok; i++) {
        ok = deep->campaigns[i].id == 0 ||
             apidb_project_patch(tx, deep->campaigns[i].project, &l, &err);
    }
    if (!ok || !apidb_notify(tx, &err) || !tx_commit(tx, &err)) {
        trace("limits stay: %s", err.message);
        return;
    }
    for (int t = 0; t < TYPES; t++) {
        judge_limit_set(t, -1);
    }
}

static bool waits_for_people(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64(
               "people_waited",
               "SELECT (c.wanted <> 'run' OR r.state <> 'running' OR EXISTS (SELECT FROM "
               "stage_run s WHERE s.campaign_id = c.id AND s.state = 'held'))::int::bigint "
               "FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id WHERE c.id = "
               "$1",
               &p) != 0;
}

/* Resumes what waits for a person; cancels what keeps failing. */
static void care(struct campaign *c)
{
    struct err err = ERR_INIT;
    const struct apidb_patch free_it = {.priority = -1,
                                        .weight = -1,
                                        .set_parts = true,
                                        .parts_limit = -1,
                                        .set_budget = true,
                                        .budget_musd = -1};
    if (!waits_for_people(c) && c->prods > 0 &&
        (c->prods < PRODS_MAX || (c->prods == PRODS_MAX && judge_others_first(c)))) {
        c->prods = MIN(c->prods + 1, PRODS_MAX);
        return;
    }
    if (poison_keeps(c) && c->prods == PRODS_MAX) {
        c->prods--; /* people first mend it */
    }
    if (c->prods++ == PRODS_MAX) {
        judge_gives_up(c);
    }
    bool ok = c->prods > PRODS_MAX
                  ? people_want(c, VERB_CANCEL, &err)
                  : (c->prods > 1 || patch(c, &free_it, &err)) && people_want(c, VERB_RESUME, &err);
    if (ok && c->pipeline && c->prods <= PRODS_MAX && rng_chance(&deep->rng_people, 0.35)) {
        ok = rng_chance(&deep->rng_people, 0.9) ? pipeline_override(c, &err)
                                                : people_want(c, VERB_CANCEL, &err);
    }
    if (ok && c->open_stage && c->prods == 1) {
        ok = add_parts(c, true, &err);
        c->prods -= !ok && poison_keeps(c); /* its stage may have another name: again, later */
    }
    trace("people care for c-%lld%s%s", (long long)c->id, ok ? "" : ": ", ok ? "" : err.message);
}

static bool ended(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("people_ended",
                         "SELECT (state IN ('succeeded', 'failed', 'cancelled'))::int::bigint FROM "
                         "campaign_run WHERE campaign_id = $1",
                         &p) != 0;
}

static void care_all(void *ctx, int64_t arg)
{
    if (arg == 0) {
        people_free_limits();
    }
    for (int i = 0; i < deep->campaigns_n; i++) {
        if (deep->campaigns[i].id > 0 && !ended(&deep->campaigns[i])) {
            care(&deep->campaigns[i]);
            holds_care(&deep->campaigns[i]);
        }
    }
    judge_things_time();
    judge_gates();
    event_at(deep->now_us + CARE_US, care_all, ctx, arg + 1);
}

void people_care(void)
{
    event_at(deep->now_us + SEC, care_all, NULL, 0);
}
