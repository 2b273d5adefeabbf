/* The order between stages; inside a stage the ready queue decides. */
#include "rank.h"

/* < 0: a first. Held over weight, by cross products: no division, no rounding. */
static int share_compare(const struct rank_share *a, const struct rank_share *b)
{
    __int128 x = (__int128)a->held * b->weight;
    __int128 y = (__int128)b->held * a->weight;
    return x != y ? (x < y ? -1 : 1) : (a->id > b->id) - (a->id < b->id);
}

bool rank_before(const struct rank_key *a, const struct rank_key *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    int by = share_compare(&a->project, &b->project);
    by = by != 0 ? by : share_compare(&a->campaign, &b->campaign);
    return by != 0 ? by < 0 : a->stage_id < b->stage_id;
}
