/* The judge of what people ask for: how stages and campaigns end, are held and go on, whose jobs
 * are stopped, when a part may be tried again. Computed from rows and from what people asked. */
#include "sim_world.h"

#define CLOCKS_US (11 * SEC) /* two leaders' wall clocks differ by no more */

static bool has_lived(enum stage_state s)
{
    return s != STAGE_BLOCKED && s != STAGE_SKIPPED && s != STAGE_CANCELLED;
}

struct needs { /* of a stage */
    bool met;  /* all have succeeded */
    bool dead; /* one has ended otherwise */
};

static struct needs needs_of(struct world *w, int stage)
{
    const struct db_campaign *dc = CAMPAIGN(w, STAGE(w, stage)->campaign);
    struct needs n = {.met = true};
    for (int i = 0; i < w->stage[stage].needs_n; i++) {
        for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
            if (strcmp(w->stage[s].name, w->stage[stage].needs[i]) == 0) {
                enum stage_state state = STAGE(w, s)->state;
                n.met &= state == STAGE_SUCCEEDED;
                n.dead |= stage_state_terminal(state) && state != STAGE_SUCCEEDED;
            }
        }
    }
    return n;
}

static void check_end(struct world *w, int stage, enum stage_state to)
{
    const struct db_stage *s = STAGE(w, stage);
    int64_t open = s->counts[TASK_WAITING] + s->counts[TASK_ACTIVE] + s->counts[TASK_HELD];
    bool too_many =
        s->counts[TASK_FAILED] * 1000000 > w->stage[stage].allow_failed_ppm * s->tasks_n;
    if (open != 0) {
        wrong(w, "I17", "stage %d is %s with %lld parts open", stage, stage_state_name(to),
              (long long)open);
    } else if (to != STAGE_CANCELLED && too_many != (to == STAGE_FAILED)) {
        wrong(w, "I17", "stage %d is %s with %lld of %d parts failed", stage, stage_state_name(to),
              (long long)s->counts[TASK_FAILED], s->tasks_n);
    } else if (to == STAGE_CANCELLED && CAMPAIGN(w, s->campaign)->wanted != WANTED_CANCEL) {
        wrong(w, "I11", "stage %d is cancelled without a request", stage);
    }
}

/* Before its row is written. */
void judge_stage_moves(struct world *w, int stage, enum stage_state to)
{
    const struct db_stage *s = STAGE(w, stage);
    struct needs n = needs_of(w, stage);
    if (to == STAGE_SUCCEEDED || to == STAGE_FAILED || to == STAGE_CANCELLED) {
        check_end(w, stage, to);
    }
    if (to == STAGE_SKIPPED && !n.dead) {
        wrong(w, "I18", "stage %d is skipped and may still get all it needs", stage);
    }
    if (s->state == STAGE_BLOCKED && to == STAGE_RUNNING && !n.met) {
        wrong(w, "I17", "stage %d runs before what it needs has succeeded", stage);
    }
}

/* Called before the row is written that lets a held stage go on. */
void judge_resumes(struct world *w, int stage)
{
    if (STAGE(w, stage)->resumes <= STAGE(w, stage)->resumes_taken) {
        wrong(w, "I13", "stage %d was held and goes on by itself", stage);
    }
}

/* At the end no work is left that could have been done. */
void judge_skipped(struct world *w, int stage)
{
    if (STAGE(w, stage)->state == STAGE_SKIPPED && !needs_of(w, stage).dead) {
        wrong(w, "I18", "stage %d stays skipped, and all it needs has succeeded", stage);
    }
}

static void check_campaign_end(struct world *w, int campaign, enum campaign_state to)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    int n[STAGE_STATE_COUNT] = {0};
    int64_t active = 0;
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        n[STAGE(w, s)->state]++;
        active += STAGE(w, s)->counts[TASK_ACTIVE];
    }
    int open = n[STAGE_BLOCKED] + n[STAGE_RUNNING] + n[STAGE_HELD];
    enum campaign_state is = n[STAGE_CANCELLED] > 0 ? CAMPAIGN_CANCELLED
                             : n[STAGE_FAILED] > 0  ? CAMPAIGN_FAILED
                                                    : CAMPAIGN_SUCCEEDED;
    if (open > 0 || active > 0) {
        wrong(w, "I17", "campaign %d is %s with %d stages open and %lld parts active", campaign,
              campaign_state_name(to), open, (long long)active);
    } else if (to != is) {
        wrong(w, "I17", "campaign %d is %s, its stages say %s", campaign, campaign_state_name(to),
              campaign_state_name(is));
    }
}

static bool pays_for(const struct world *w, const struct spec_stage *s, int rung, int64_t run_s,
                     musd_t left)
{
    int kind = rows_kind(w, s->instance_type[rung], s->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
    return w->aws.price[kind] * ((run_s + 120 + 900) * s->instance_count) / 3600 + 2 <= left;
}

/* What its campaign's cap leaves does not pay for one attempt of the shortest run time on its
 * cheapest rung, or on any where `all_there_is` (no job holds money): those a part has moved to. */
static bool spent_up(struct world *w, const struct live_campaign *lc, const struct live_stage *ls,
                     bool all_there_is)
{
    const struct spec_stage *s = ls->spec;
    musd_t left = lc->row.cap_musd < 0 ? INT64_MAX : lc->row.cap_musd - lc->row.spent_musd;
    bool any = false;
    bool all = true;
    for (int i = 0; i < s->instance_type_n; i++) {
        bool pays = pays_for(w, s, i, s->min_runtime_s, left);
        any |= pays;
        all &= pays;
    }
    bool longer = false; /* a part that was out of time needs more */
    for (int i = 0; all_there_is && i < (int)w->db.t[T_TASK].n; i++) {
        const struct db_task *t = TASK(w, i);
        bool own = t->stage == row_of_id(ls->row.id) && t->state == TASK_WAITING && t->changed;
        longer |= own && t->max_runtime_s > 0 && !pays_for(w, s, t->type_i, t->max_runtime_s, left);
    }
    return all_there_is ? !all || longer : !any;
}

/* A campaign is held for its budget: the budget is spent, or no job holds money of it any more. */
static void check_budget(struct world *w, const struct live_campaign *lc)
{
    bool any = w->cfg.strength[FAULT_PRICE_CHANGE] > 0 || w->cfg.strength[FAULT_PRICE_UNKNOWN] > 0;
    if (lc->row.at_limit == AT_LIMIT_DRAIN) {
        any = lc->live == 0;
    }
    for (int k = 0; k < lc->stages_n && !any; k++) {
        any = has_lived(lc->stages[k].row.state) && (spent_up(w, lc, &lc->stages[k], false) ||
                                                     (lc->live == 0 && lc->row.reserved_musd == 0 &&
                                                      spent_up(w, lc, &lc->stages[k], true)));
    }
    if (!any) {
        wrong(w, "I18", "campaign %lld is held for its budget, and what is spent leaves enough",
              (long long)lc->row.id);
    }
}

/* Called before the row is written; lc: the campaign in the leader's memory. */
void judge_campaign_moves(struct world *w, const struct live_campaign *lc, enum campaign_state to,
                          bool budget)
{
    int campaign = row_of_id(lc->row.id);
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    if (campaign_state_terminal(to)) {
        check_campaign_end(w, campaign, to);
    }
    for (int s = dc->stage0; to == CAMPAIGN_PAUSED && s < dc->stage0 + dc->stages_n; s++) {
        if (STAGE(w, s)->counts[TASK_ACTIVE] > 0) {
            wrong(w, "I11", "campaign %d is paused with jobs of stage %d alive", campaign, s);
        }
    }
    bool asked = lc->row.version > dc->taken_version; /* a person has said something since */
    if (dc->state == CAMPAIGN_HELD && to == CAMPAIGN_RUNNING && !asked &&
        dc->at_limit != AT_LIMIT_DRAIN && !dc->own_cap_held) {
        wrong(w, "I5", "campaign %d was held and goes on by itself", campaign);
    }
    if (to == CAMPAIGN_HELD && budget) {
        check_budget(w, lc);
    }
}

/* Held for the cap of a stage: nothing of it runs, and no other stage can. */
void judge_own_budget(struct world *w, const struct live_campaign *lc, bool held)
{
    for (int k = 0; held && k < lc->stages_n; k++) {
        const struct live_stage *ls = &lc->stages[k];
        bool capped = ls->row.cap_musd >= 0 || ls->row.per_task_musd >= 0;
        if (lc->live > 0 || (ls->row.state == STAGE_RUNNING && !capped)) {
            wrong(w, "I18", "campaign %lld is held for a stage's budget, and stage %d could run",
                  (long long)lc->row.id, k);
        }
    }
}

/* All jobs of a campaign are to be stopped: people asked for it, as far as the leader has read. */
void judge_unwanted(struct world *w, const struct live_campaign *lc)
{
    const struct db_campaign *dc = CAMPAIGN(w, row_of_id(lc->row.id));
    bool heard = lc->row.version == dc->version;
    bool stops = dc->wanted == WANTED_PAUSE || dc->wanted == WANTED_CANCEL ||
                 (dc->wanted == WANTED_RUN && dc->at_limit == AT_LIMIT_STOP);
    if (heard && !stops) {
        wrong(w, "I11", "the jobs of campaign %lld are stopped, and %s is wanted",
              (long long)lc->row.id, wanted_name(dc->wanted));
    }
}

/* A Stop is sent: the attempt's row says why, or people paused or cancelled the campaign. */
void judge_stop(struct world *w, const struct call *k)
{
    const struct db_attempt *a = ATTEMPT(w, k->attempt);
    int campaign = STAGE(w, TASK_STAGE(w, a->task))->campaign;
    w->judge.about = a->task;
    if (!a->unwanted && !w->judge.stop_wished[campaign]) {
        wrong(w, "I11", "%s is stopped without a request", a->name.s);
    }
}

static int64_t wait_of(const struct spec_stage *s, enum cause cause)
{
    static const int from[CAUSE_COUNT] = {
#define X(c, name, counts, times, from_s, to_s, remedy) [CAUSE_##c] = from_s,
#include "core/failure/cause.def"
#undef X
    };
    return (s->retry[cause].set ? s->retry[cause].wait_from_s : from[cause]) * SEC;
}

/* Called when a part moves because its attempt ended. */
void judge_part_moved(struct world *w, int task, const struct attempt_record *r)
{
    const struct db_attempt *a = ATTEMPT(w, row_of_id(r->attempt_id));
    const struct db_task *t = TASK(w, task);
    enum wanted wanted = CAMPAIGN(w, STAGE(w, t->stage)->campaign)->wanted;
    w->judge.not_before_us[task] = 0;
    if (r->task_to == TASK_CANCELLED && wanted != WANTED_CANCEL) {
        wrong(w, "I11", "part %d is cancelled, and %s is wanted", task, wanted_name(wanted));
    }
    if (a->stop_cause != CAUSE_NONE && r->task_to != TASK_DONE && wanted != WANTED_CANCEL &&
        (r->cause == CAUSE_NONE || r->cause == CAUSE_STOPPED)) {
        wrong(w, "I13", "part %d: its job hung and was stopped for that, and ends with %s", task,
              cause_name(r->cause));
    }
    if (r->task_to == TASK_WAITING && r->cause != CAUSE_NONE) {
        w->judge.not_before_us[task] = w->now_us + wait_of(&w->stage[t->stage], r->cause);
        w->judge.failed_us[task] = w->now_us;
    }
}

/* A person wants it tried at once. */
void judge_person_retries(struct world *w, int task)
{
    w->judge.not_before_us[task] = 0;
}

/* Whatever steps the clock of the leader makes; the next one has only what the row says. */
void judge_back_off(struct world *w, int attempt)
{
    int task = ATTEMPT(w, attempt)->task;
    int64_t early_us = w->judge.not_before_us[task] - w->now_us;
    bool steps = w->cfg.strength[FAULT_CLOCK_STEP] > 0;
    if (early_us > CLOCKS_US && (!steps || w->judge.failed_us[task] > w->judge.led_us)) {
        wrong(w, "I13", "part %d is tried again %lld s before its time", task,
              (long long)(early_us / SEC));
    }
}

/* At most as much is intended as the rate sends in two seconds. */
void judge_unsent(struct world *w, const struct ctl *c, int launches)
{
    int64_t unsent = launches;
    int64_t most = (int64_t)(w->cfg.create_burst + 2 * w->cfg.create_rate) + 1;
    for (size_t i = 0; i < c->state.attempts_n && launches > 0; i++) {
        const struct live_attempt *a = c->state.attempts[i];
        const struct intent_seen *in =
            a->row.state == ATTEMPT_INTENDED ? judge_intent(w, name_hash_of(a->row.name.s)) : NULL;
        unsent += in != NULL && in->sends == 0;
    }
    if (launches > 0 && unsent > most) {
        wrong(w, "I14", "%lld attempts are intended and not sent, the rate sends %lld",
              (long long)unsent, (long long)most);
    }
}
