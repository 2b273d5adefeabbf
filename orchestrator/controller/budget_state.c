/* See budget_state.h. */
#include "budget_state.h"
#include "common/log.h"
#include "core/leader/budget_state.h"
#include "lease.h"
#include "output_check.h"
#include "store/leader/campaigns.h"

static bool write_warning(struct controller *c, void *arg, struct err *err)
{
    const struct budget_warning *w = arg;
    return (!w->tell || store_alert(c->store, w->campaign_id, w->text, err)) &&
           store_money_warned(c->store, budget_warning_level_name(w->level), w->ref_id, w->ppm,
                              err);
}

bool budget_state_tick(struct controller *c)
{
    struct budget_warning w;
    while (leader_plan_budget_warning(&c->state, &w)) {
        if (!leader_tx(c, write_warning, &w) && !c->leading) {
            return false;
        } /* not written: only the log has it, and the next leader tries again */
        leader_apply_budget_warning(&c->state, &w);
        if (w.tell) {
            log_event(LOG_WARN, "budget_threshold",
                      LF_S("level", budget_warning_level_name(w.level)), LF_I("ref", w.ref_id),
                      LF_I("ppm", w.ppm));
        }
    }
    return true;
}
