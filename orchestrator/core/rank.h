/* Which stage goes next: strict priority, then the project and in it the campaign that holds the
 * fewest instances for its weight, then the earlier stage; ties by id. */
#pragma once
#include "common/base.h"

struct rank_share {
    int64_t id;
    int64_t held;   /* instances, what the plan starts included */
    int64_t weight; /* >= 1 */
};
struct rank_key {
    int priority; /* larger first */
    struct rank_share project, campaign;
    int64_t stage_id;
};
/* Does a go before b? A strict order: never true both ways, never false both ways for two stages.
 */
bool rank_before(const struct rank_key *a, const struct rank_key *b);
