/* See awake.h. */
#include "awake.h"

/* Where the campaign is in the list, which is in order of id, or would be. */
static size_t place_of(const struct leader_awake *w, const struct live_campaign *lc)
{
    size_t lo = 0;
    size_t hi = w->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (w->campaigns[mid]->row.id < lc->row.id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

void campaign_wake(struct live_campaign *lc)
{
    struct leader_awake *w = lc->awake;
    if (!lc->rests) {
        return;
    }
    ARRAY_ROOM(w->campaigns, w->n, w->cap);
    size_t at = place_of(w, lc);
    memmove(&w->campaigns[at + 1], &w->campaigns[at], (w->n - at) * sizeof(struct live_campaign *));
    w->campaigns[at] = lc;
    w->n++;
    lc->rests = false;
}

void campaign_rest(struct live_campaign *lc)
{
    struct leader_awake *w = lc->awake;
    if (lc->rests) {
        return;
    }
    size_t at = place_of(w, lc);
    ASSERT(at < w->n && w->campaigns[at] == lc);
    w->n--;
    memmove(&w->campaigns[at], &w->campaigns[at + 1], (w->n - at) * sizeof(struct live_campaign *));
    lc->rests = true;
}
