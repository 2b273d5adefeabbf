/* The order between stages; inside a stage the ready queue decides. */
#include "rank.h"

bool rank_before(const struct rank_key *a, const struct rank_key *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->live != b->live) {
        return a->live < b->live;
    }
    if (a->campaign_id != b->campaign_id) {
        return a->campaign_id < b->campaign_id;
    }
    return a->stage_id < b->stage_id;
}
