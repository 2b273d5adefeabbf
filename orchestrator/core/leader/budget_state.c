/* See budget_state.h. */
#include "budget_state.h"
#include "awake.h"
#include <stdio.h>

#define PPM INT64_C(1000000)

void budget_state_move(struct leader_state *s, struct live_campaign *lc, struct live_stage *ls,
                       musd_t reserved_musd, musd_t spent_musd, musd_t warm_musd)
{
    struct project_row *project = leader_state_project(s, lc->row.project_id);
    struct project_row *all = leader_state_project(s, 0);
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

void budget_state_move_of(struct leader_state *s, int64_t project_id, int64_t campaign_id,
                          int64_t stage_id, musd_t reserved_musd, musd_t spent_musd)
{
    struct live_campaign *lc = leader_state_campaign(s, campaign_id);
    struct live_stage *ls = lc != NULL ? leader_state_stage(lc, stage_id) : NULL;
    if (ls != NULL) {
        budget_state_move(s, lc, ls, reserved_musd, spent_musd, 0);
        return;
    }
    struct project_row *project = leader_state_project(s, project_id);
    struct project_row *all = leader_state_project(s, 0);
    project->reserved_musd += reserved_musd;
    project->spent_musd += spent_musd;
    all->reserved_musd += reserved_musd;
    all->spent_musd += spent_musd;
}

void budget_state_not_short(struct live_campaign *lc)
{
    if (lc->budget_short) {
        lc->budget_short = false;
        campaign_wake(lc);
    }
}

/* Money of its stages is free again. */
static void caps_not_short(struct live_campaign *lc)
{
    for (int k = 0; k < lc->stages_n; k++) {
        if (lc->stages[k].cap_short != WAIT_NONE) {
            lc->stages[k].cap_short = WAIT_NONE;
            campaign_wake(lc);
        }
    }
}

void budget_state_freed(struct leader_state *s, int64_t project_id, const struct live_campaign *lc)
{
    bool all = leader_state_project(s, 0)->cap_musd >= 0;
    bool project = leader_state_project(s, project_id)->cap_musd >= 0;
    for (size_t i = 0; i < s->campaigns_n; i++) {
        struct live_campaign *other = s->campaigns[i];
        if (other == lc || all || (project && other->row.project_id == project_id)) {
            budget_state_not_short(other);
        }
        if (other == lc) {
            caps_not_short(other);
        }
    }
}

void budget_state_prices_moved(struct leader_state *s)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        budget_state_not_short(s->campaigns[i]);
        caps_not_short(s->campaigns[i]);
    }
}

bool budget_state_takes(const struct live_stage *ls, const char *refused, musd_t musd,
                        enum wait_reason *why)
{
    const struct stage_row *r = &ls->row;
    if (strcmp(refused, "money") == 0) {
        musd_t left = budget_state_left(r->cap_musd, r->reserved_musd, r->spent_musd);
        *why = musd > left ? WAIT_STAGE_BUDGET : WAIT_BUDGET;
    }
    return refused[0] == '\0' && *why == WAIT_NONE;
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
        sum -= e[i].from == LEDGER_SPENT ? e[i].amount_musd : 0;
    }
    return sum;
}

/* One cap with what counts against it. */
struct level {
    enum budget_warning_level level;
    int64_t ref_id, campaign_id;
    const char *name;
    musd_t cap_musd, spent_musd;
    const struct warn_at *warn;
};

const char *budget_warning_level_name(enum budget_warning_level level)
{
    static const char *const names[] = {[BUDGET_WARNING_GLOBAL] = "global",
                                        [BUDGET_WARNING_PROJECT] = "project",
                                        [BUDGET_WARNING_CAMPAIGN] = "campaign",
                                        [BUDGET_WARNING_STAGE] = "stage"};
    return names[level];
}

/* The highest threshold that is reached now, 0 none. */
static int64_t reached_ppm(const struct level *l)
{
    const struct budget before = {.cap_musd = l->cap_musd};
    const struct budget now = {.cap_musd = l->cap_musd, .spent_musd = l->spent_musd};
    int i = budget_warns(&before, &now, l->warn->at_ppm, l->warn->n);
    return i < 0 ? 0 : l->warn->at_ppm[i];
}

/* A cap that was raised may be told of again; nothing is said when less is reached than before. */
static bool differs(const struct level *l, struct budget_warning *ret)
{
    int64_t ppm = reached_ppm(l);
    if (ppm == l->warn->warned_ppm) {
        return false;
    }
    *ret = (struct budget_warning){.level = l->level,
                                   .ref_id = l->ref_id,
                                   .campaign_id = l->campaign_id,
                                   .ppm = ppm,
                                   .tell = ppm > l->warn->warned_ppm};
    (void)snprintf(ret->text, sizeof ret->text,
                   "%lld %% of the budget of %s %.100s are spent: %lld.%02lld of %lld.%02lld USD",
                   (long long)(ppm * 100 / PPM), budget_warning_level_name(l->level), l->name,
                   (long long)(l->spent_musd / PPM), (long long)(l->spent_musd % PPM / 10000),
                   (long long)(l->cap_musd / PPM), (long long)(l->cap_musd % PPM / 10000));
    return true;
}

static bool project_differs(const struct project_row *p, struct budget_warning *ret)
{
    const struct level l = {.level = p->id == 0 ? BUDGET_WARNING_GLOBAL : BUDGET_WARNING_PROJECT,
                            .ref_id = p->id,
                            .name = p->name,
                            .cap_musd = p->cap_musd,
                            .spent_musd = p->spent_musd,
                            .warn = &p->warn};
    return differs(&l, ret);
}

static bool campaign_differs(const struct campaign_row *r, struct budget_warning *ret)
{
    const struct level l = {.level = BUDGET_WARNING_CAMPAIGN,
                            .ref_id = r->id,
                            .campaign_id = r->id,
                            .name = r->name,
                            .cap_musd = r->cap_musd,
                            .spent_musd = r->spent_musd,
                            .warn = &r->warn};
    return differs(&l, ret);
}

static bool stage_differs(const struct live_campaign *lc, const struct stage_row *r,
                          struct budget_warning *ret)
{
    const struct level l = {.level = BUDGET_WARNING_STAGE,
                            .ref_id = r->id,
                            .campaign_id = lc->row.id,
                            .name = r->name,
                            .cap_musd = r->cap_musd,
                            .spent_musd = r->spent_musd,
                            .warn = &r->warn};
    return differs(&l, ret);
}

bool leader_plan_budget_warning(const struct leader_state *s, struct budget_warning *ret)
{
    for (size_t i = 0; i < s->projects_n; i++) {
        if (project_differs(&s->projects[i], ret)) {
            return true;
        }
    }
    for (size_t i = 0; i < s->campaigns_n; i++) {
        const struct live_campaign *lc = s->campaigns[i];
        if (campaign_differs(&lc->row, ret)) {
            return true;
        }
        for (int k = 0; k < lc->stages_n; k++) {
            if (stage_differs(lc, &lc->stages[k].row, ret)) {
                return true;
            }
        }
    }
    return false;
}

static struct warn_at *warn_of(struct leader_state *s, const struct budget_warning *w)
{
    struct live_campaign *lc = leader_state_campaign(s, w->campaign_id);
    switch (w->level) {
    case BUDGET_WARNING_GLOBAL:
    case BUDGET_WARNING_PROJECT:
        return &leader_state_project(s, w->ref_id)->warn;
    case BUDGET_WARNING_CAMPAIGN:
        return lc != NULL ? &lc->row.warn : NULL;
    case BUDGET_WARNING_STAGE: {
        struct live_stage *ls = lc != NULL ? leader_state_stage(lc, w->ref_id) : NULL;
        return ls != NULL ? &ls->row.warn : NULL;
    }
    }
    return NULL;
}

void leader_apply_budget_warning(struct leader_state *s, const struct budget_warning *w)
{
    struct warn_at *warn = warn_of(s, w);
    ASSERT(warn != NULL);
    warn->warned_ppm = w->ppm;
}
