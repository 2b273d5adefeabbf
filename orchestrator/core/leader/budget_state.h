/* What is reserved and spent in memory, level by level, moved when a transaction has committed; and
 * the thresholds of caps that people are told of, each once. Pure. */
#pragma once
#include "leader_state.h"

/* Moves what a campaign, the stage, its project and everything together have reserved, spent and
 * spent on idle pools. warm_musd is part of spent_musd. */
void budget_state_move(struct leader_state *s, struct live_campaign *lc, struct live_stage *ls,
                       musd_t reserved_musd, musd_t spent_musd, musd_t warm_musd);
/* The same, of a thing whose campaign may have left memory. */
void budget_state_move_of(struct leader_state *s, int64_t project_id, int64_t campaign_id,
                          int64_t stage_id, musd_t reserved_musd, musd_t spent_musd);
/* A campaign of the project gave money back: it, and each campaign below a cap that it shares, may
 * start again. lc NULL: it has left memory, as one that is over whose endpoint still served.
 * project_id 0: what gave it back counts in the sum of everything alone. */
void budget_state_freed(struct leader_state *s, int64_t project_id, const struct live_campaign *lc);
/* Its parts wait for money no longer, as far as is known. */
void budget_state_not_short(struct live_campaign *lc);
/* What a part costs may fit below each cap now, its own and its stage's too. */
void budget_state_prices_moved(struct leader_state *s);
/* What the transaction of an intent of so much has come to: `refused` is "" or what its rows refuse
 * it for. Money short sets *why: the stage's own cap, or one above it. True: it is taken. */
bool budget_state_takes(const struct live_stage *ls, const char *refused, musd_t musd,
                        enum wait_reason *why);
/* What a cap still allows; INT64_MAX without a cap (-1). */
musd_t budget_state_left(musd_t cap_musd, musd_t reserved_musd, musd_t spent_musd);
/* The sum that n entries move into reserved, and into spent (negative: out of it). */
musd_t budget_state_reserved_by(const struct ledger_entry *e, int n);
musd_t budget_state_spent_by(const struct ledger_entry *e, int n);

enum budget_warning_level {
    BUDGET_WARNING_GLOBAL,
    BUDGET_WARNING_PROJECT,
    BUDGET_WARNING_CAMPAIGN,
    BUDGET_WARNING_STAGE
};
struct budget_warning { /* a level whose highest reached threshold differs from the one told */
    enum budget_warning_level level;
    int64_t ref_id;      /* of the project (0: everything together), campaign or stage */
    int64_t campaign_id; /* whose event it is; 0: nobody's */
    int64_t ppm;         /* of the cap; 0: no threshold is reached any more */
    bool tell;           /* more is reached than was told; false: only the row moves */
    char text[400];      /* for people */
};
/* As the level is written in rows. */
const char *budget_warning_level_name(enum budget_warning_level level);
/* The first level that has to be written, in the order projects, campaigns, each with its stages.
 * False: none. To be written, applied and asked again. */
bool leader_plan_budget_warning(const struct leader_state *s, struct budget_warning *ret);
void leader_apply_budget_warning(struct leader_state *s, const struct budget_warning *w);
