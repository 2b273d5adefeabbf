/* See filesystem_time.h. */
#include "filesystem_time.h"

#define EXPORT_TRIES 3
#define LISTED_US    (30 * USEC_PER_SEC) /* older, a person may have begun a task since */

usec_t leader_filesystem_until(const struct filesystem_row *r)
{
    int64_t life_us = r->ttl_s * USEC_PER_SEC;
    return r->created_us > 0 ? r->created_us + life_us
                             : r->intended_us + FILESYSTEM_CREATE_MAX_US + life_us;
}

usec_t leader_filesystem_deadline(const struct filesystem_row *r)
{
    return MAX(leader_filesystem_until(r), r->ending_us) + FILESYSTEM_EXPORT_MAX_US;
}

bool leader_filesystem_in_vain(const struct live_filesystem *f)
{
    return f->in_vain && f->tasks_failed + f->tasks_refused >= EXPORT_TRIES;
}

const char *leader_filesystem_given_up(const struct leader_state *s,
                                       const struct live_filesystem *f, usec_t now_us)
{
    const struct live_campaign *lc = leader_state_campaign(s, f->row.campaign_id);
    int64_t tried_us = now_us - f->row.ending_us;
    if (s->clock.unsure || !leader_filesystem_in_vain(f) || tried_us < FILESYSTEM_EXPORT_MAX_US ||
        now_us >= f->tasks_us + LISTED_US) {
        return NULL;
    }
    if (f->row.delete_asked) {
        return "a person asked for its end";
    }
    if (lc != NULL && (lc->row.wanted == WANTED_CANCEL || lc->row.state == CAMPAIGN_CANCELLED)) {
        return "its campaign was cancelled";
    }
    bool ended = lc != NULL && campaign_state_terminal(lc->row.state);
    return ended && tried_us >= USEC_PER_DAY ? "its campaign has ended" : NULL;
}

int64_t leader_filesystem_left_us(const struct leader_state *s, const struct filesystem_row *r,
                                  usec_t now_us)
{
    usec_t end = r->state == FILESYSTEM_EXPORTING ? leader_filesystem_deadline(r)
                                                  : leader_filesystem_until(r);
    return MAX(s->clock.unsure ? USEC_PER_SEC : 0, end - now_us);
}

usec_t leader_filesystem_made_us(const struct filesystem_row *r)
{
    return MAX(r->created_us, r->intended_us);
}

void leader_filesystem_created(struct live_filesystem *f, usec_t told_us, usec_t now_us)
{
    struct filesystem_row *r = &f->row;
    if (r->created_us > 0 && r->created_us <= r->intended_us && told_us > 0) {
        r->created_us = MIN(told_us, now_us);
    }
}
