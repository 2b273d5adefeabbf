/* See endpoint_served.h. */
#include "endpoint_served.h"
#include "core/capacity/endpoint_report.h"
#include "resource_sight.h"

/* A microsecond before it was made, which tells it from what was seen. */
static usec_t assumed_us(const struct endpoint_row *r)
{
    return MAX(r->created_us, r->intended_us) - 1;
}

void endpoint_served_assume(const struct live_endpoint *e, struct endpoint_row *r)
{
    bool made = r->created_us > 0 || (r->made == (int)HOSTING_ENDPOINT && e->unsure);
    bool unseen = r->in_service_us == 0 && resource_sight_lost(&e->sight);
    if (r->state == ENDPOINT_DELETING && e->gone == 0 && made && unseen && !r->failed) {
        r->in_service_us = assumed_us(r);
    }
}

bool endpoint_served_assumed(const struct endpoint_row *r)
{
    return r->in_service_us == assumed_us(r);
}

bool endpoint_served_guessed(const struct endpoint_row *r)
{
    return r->created_us == 0 && endpoint_served_assumed(r);
}

void endpoint_served_never(const struct live_endpoint *e, struct endpoint_row *r)
{
    if (endpoint_served_guessed(r) && !e->found) {
        r->in_service_us = r->served_us = 0;
    }
}

void endpoint_served(struct endpoint_row *r, usec_t now_us)
{
    r->served_us = r->in_service_us > 0 ? MAX(r->served_us, now_us) : 0;
}
