/* What is reserved and spent in memory, level by level, moved when a transaction has committed; and
 * the thresholds of caps that people are told of, each once. */
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

#define PPM INT64_C(1000000)

void budget_state_move(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                       musd_t reserved_musd, musd_t spent_musd, musd_t warm_musd)
{
    struct project_row *project = leader_state_project(&c->state, lc->row.project_id);
    struct project_row *all = leader_state_project(&c->state, 0);
    lc->row.reserved_musd += reserved_musd;
    lc->row.spent_musd += spent_musd;
    lc->row.warm_musd += warm_musd;
    ls->row.reserved_musd += reserved_musd;
    ls->row.spent_musd += spent_musd;
    project->reserved_musd += reserved_musd;
    project->spent_musd += spent_musd;
    all->reserved_musd += reserved_musd;
    all->spent_musd += spent_musd;
}

void budget_state_freed(struct controller *c, const struct live_campaign *lc)
{
    bool all = leader_state_project(&c->state, 0)->cap_musd >= 0;
    bool project = leader_state_project(&c->state, lc->row.project_id)->cap_musd >= 0;
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *other = c->state.campaigns[i];
        if (other == lc || all || (project && other->row.project_id == lc->row.project_id)) {
            other->budget_short = false;
        }
    }
}

musd_t budget_state_left(musd_t cap_musd, musd_t reserved_musd, musd_t spent_musd)
{
    return budget_left(&(struct budget){
        .cap_musd = cap_musd, .reserved_musd = reserved_musd, .spent_musd = spent_musd});
}

musd_t budget_state_reserved_by(const struct ledger_entry *e, int n)
{
    musd_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += e[i].to == LEDGER_RESERVED ? e[i].amount_musd : 0;
        sum -= e[i].from == LEDGER_RESERVED ? e[i].amount_musd : 0;
    }
    return sum;
}

musd_t budget_state_spent_by(const struct ledger_entry *e, int n)
{
    musd_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += e[i].to == LEDGER_SPENT ? e[i].amount_musd : 0;
    }
    return sum;
}

/* --- thresholds --- */

struct level { /* one cap with what counts against it */
    const char *word;
    int64_t ref_id, campaign_id;
    const char *name;
    musd_t cap_musd, spent_musd;
    struct warn_at *warn;
};

/* The highest threshold that is reached now, 0 none. */
static int64_t reached_ppm(const struct level *l)
{
    const struct budget before = {.cap_musd = l->cap_musd};
    const struct budget now = {.cap_musd = l->cap_musd, .spent_musd = l->spent_musd};
    int i = budget_warns(&before, &now, l->warn->at_ppm, l->warn->n);
    return i < 0 ? 0 : l->warn->at_ppm[i];
}

struct warn_arg {
    const struct level *level;
    int64_t ppm;
    bool tell;
};

static bool write_warning(struct controller *c, void *arg, struct err *err)
{
    const struct warn_arg *w = arg;
    const struct level *l = w->level;
    char text[400];
    (void)snprintf(text, sizeof text,
                   "%lld %% of the budget of %s %.100s are spent: %lld.%02lld of %lld.%02lld USD",
                   (long long)(w->ppm * 100 / PPM), l->word, l->name,
                   (long long)(l->spent_musd / PPM), (long long)(l->spent_musd % PPM / 10000),
                   (long long)(l->cap_musd / PPM), (long long)(l->cap_musd % PPM / 10000));
    return (!w->tell || store_alert(c->store, l->campaign_id, text, err)) &&
           store_money_warned(c->store, l->word, l->ref_id, w->ppm, err);
}

/* A cap that was raised may be told of again; nothing is said when less is reached than before. */
static bool check_level(struct controller *c, const struct level *l)
{
    if (l->warn->n == 0 && l->warn->warned_ppm == 0) {
        return true;
    }
    struct warn_arg w = {.level = l, .ppm = reached_ppm(l)};
    w.tell = w.ppm > l->warn->warned_ppm;
    if (w.ppm == l->warn->warned_ppm) {
        return true;
    }
    if (!leader_tx(c, write_warning, &w)) {
        return false;
    }
    l->warn->warned_ppm = w.ppm;
    if (w.tell) {
        log_event(LOG_WARN, "budget_threshold", LF_S("level", l->word), LF_I("ref", l->ref_id),
                  LF_I("ppm", w.ppm));
    }
    return true;
}

bool budget_state_tick(struct controller *c)
{
    for (size_t i = 0; i < c->state.projects_n; i++) {
        struct project_row *p = &c->state.projects[i];
        const struct level l = {.word = p->id == 0 ? "global" : "project",
                                .ref_id = p->id,
                                .name = p->name,
                                .cap_musd = p->cap_musd,
                                .spent_musd = p->spent_musd,
                                .warn = &p->warn};
        if (!check_level(c, &l)) {
            return false;
        }
    }
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        const struct level l = {.word = "campaign",
                                .ref_id = lc->row.id,
                                .campaign_id = lc->row.id,
                                .name = lc->row.name,
                                .cap_musd = lc->row.cap_musd,
                                .spent_musd = lc->row.spent_musd,
                                .warn = &lc->row.warn};
        if (!check_level(c, &l)) {
            return false;
        }
        for (int k = 0; k < lc->stages_n; k++) {
            struct stage_row *s = &lc->stages[k].row;
            const struct level ls = {.word = "stage",
                                     .ref_id = s->id,
                                     .campaign_id = lc->row.id,
                                     .name = s->name,
                                     .cap_musd = s->cap_musd,
                                     .spent_musd = s->spent_musd,
                                     .warn = &s->warn};
            if (!check_level(c, &ls)) {
                return false;
            }
        }
    }
    return true;
}
