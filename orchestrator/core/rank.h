/* Which stage goes next: strict priority, then the campaign with the fewest live jobs, ties by id.
 */
#pragma once
#include "common/base.h"

struct rank_key {
    int priority; /* larger first */
    int64_t live; /* of the campaign, what the plan starts included; fewer first */
    int64_t campaign_id;
    int64_t stage_id;
};
/* Does a go before b? A strict order: never true both ways. */
bool rank_before(const struct rank_key *a, const struct rank_key *b);
