/* See filesystem_time.h. */
#include "filesystem_time.h"

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
