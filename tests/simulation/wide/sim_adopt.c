/* After a failover of the store: jobs without a row are adopted by their name. core/leader/sweep
 * looks for them while its leader goes on; here the leader starts and ends nothing until every
 * Create that an older leader signed has arrived or expired. */
#include "core/leader/awake.h"
#include "core/leader/intents.h"
#include "sim_world.h"
#include <stdio.h>

/* Reads the number that ends at `*end` and moves `*end` before it and its hyphen. -1: there is
 * none. */
static int64_t number_before(const char *s, size_t *end)
{
    int64_t v = 0, scale = 1;
    size_t i = *end;
    while (i > 0 && s[i - 1] >= '0' && s[i - 1] <= '9' && scale < INT64_C(1000000000)) {
        v += (s[--i] - '0') * scale;
        scale *= 10;
    }
    if (i == *end || i == 0) {
        return -1;
    }
    *end = i - 1;
    return v;
}

/* Fills in what the name of attempt n of part seq depends on. */
static void name_of(struct world *w, const struct ctl *c, int stage, int64_t seq, int64_t n,
                    struct intent *ret)
{
    const struct db_stage *ds = STAGE(w, stage);
    uint8_t id[32];
    *ret = (struct intent){.campaign_id = id_of(ds->campaign),
                           .stage_id = id_of(stage),
                           .task_id = id_of(ds->task0 + (int)seq),
                           .seq = (int32_t)seq,
                           .n = (int)n};
    leader_intent_identity(&c->state, "", ret, id);
    protocol_job_name(SIM_PREFIX, ret->campaign_id, w->stage[stage].name, seq, (int)n, id,
                      &ret->name);
}

/* Finds the task whose attempt has this name: <prefix>-<campaign>-<stage>-<task>-a<n>-<hash8>. */
static bool intent_of_name(struct world *w, const struct ctl *c, const char *name,
                           struct intent *ret)
{
    size_t end = strlen(name);
    if (end < 9) {
        return false;
    }
    end -= 9;
    int64_t n = number_before(name, &end); /* leaves the 'a' behind */
    if (n < 1 || end == 0 || name[end] != 'a') {
        return false;
    }
    end--;
    int64_t seq = number_before(name, &end);
    for (int s = 0; seq >= 0 && s < (int)w->db.t[T_STAGE].n; s++) {
        if (seq < STAGE(w, s)->tasks_n) {
            name_of(w, c, s, seq, n, ret);
            if (strcmp(ret->name.s, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool may_adopt(struct world *w, const struct intent *in)
{
    const struct db_task *t = TASK(w, row_of_id(in->task_id));
    return in->n == t->names + 1 &&
           (t->state == TASK_WAITING || t->state == TASK_FAILED || t->state == TASK_HELD);
}

static bool adopt(struct world *w, struct ctl *c, const struct intent *name, const struct job *j)
{
    struct err err = ERR_INIT;
    struct adoption ad = {.intent = *name, .created_us = j->created_us};
    struct intent *in = &ad.intent;
    (void)snprintf(in->instance_type, sizeof in->instance_type, "%s", w->types[j->type]);
    rows_hash_text(j->request, in->identity_hash);
    in->market = market_of(w, j->type);
    in->instances = j->count;
    in->volume_gb = j->volume_gb;
    in->max_runtime_s = j->max_runtime_s;
    in->keep_alive_s = j->keep_alive_s;
    in->price_musd_per_hour = j->price_musd;
    in->subnet_i = -1;
    in->fingerprint = j->match;
    if (!cost_worst_case(j->price_musd, j->count, j->max_runtime_s, j->keep_alive_s,
                         &in->reserve_musd, &err) ||
        !db_begin(w, c)) {
        return false;
    }
    in->attempt_id = id_of((int)w->db.t[T_ATTEMPT].n);
    if (!rows_adopt(w, c->epoch - 1, &ad)) {
        ctl_lose(w, c, "an adoption failed");
        return false;
    }
    if (!db_commit(w, c)) {
        return false;
    }
    SOMETIMES(w, ADOPTED);
    judge_adopted(w, row_of_id(in->attempt_id));
    return true;
}

static bool end_hold(struct world *w, struct ctl *c)
{
    if (!db_begin(w, c)) {
        return false;
    }
    ((struct db_lease *)db_touch(w, T_LEASE, 0))->timeline = w->db.timeline;
    if (!db_commit(w, c)) {
        return false;
    }
    tell(w, -1, "controller %d ends its hold", c->id);
    c->hold = false;
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i]; /* a cancel was only a pause so long */
        lc->row.wanted = CAMPAIGN(w, row_of_id(lc->row.id))->wanted;
        campaign_wake(lc);
    }
    c->state.decide = c->state.look_at_db = true;
    return true;
}

/* A List during the hold: jobs of ours without a row are adopted, oldest first, and everything is
 * read again by a takeover from ourselves. The hold ends with a List sent after every Create an
 * older leader signed has landed or expired, in two readings in a row that leave nothing to adopt
 * (one List may omit a job). */
void adopt_listed(struct world *w, struct ctl *c, struct call *k)
{
    bool left = false;
    int adopted = 0;
    for (size_t i = k->list_n; i-- > 0 && c->leading;) {
        struct intent in;
        const struct job *j = &w->aws.jobs[k->list[i].job];
        const struct intent_seen *known = judge_intent(w, j->name_hash);
        if (known != NULL && !known->lost) { /* it has a row; spares a search */
            continue;
        }
        if (j->intent < 0 || !intent_of_name(w, c, j->name.s, &in) ||
            in.n <= TASK(w, row_of_id(in.task_id))->names) {
            continue; /* somebody else's job, or an attempt with this number exists */
        }
        left = true;
        if (may_adopt(w, &in)) {
            if (!adopt(w, c, &in, j)) {
                return;
            }
            adopted++;
        }
    }
    if (c->leading && adopted > 0) {
        ctl_lose(w, c, "adopted");
        return;
    }
    c->clean_lists = left || k->boot_us < c->hold_until_us ? 0 : c->clean_lists + 1;
    if (c->leading && c->clean_lists >= 2) {
        (void)end_hold(w, c);
    }
}
