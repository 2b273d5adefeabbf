/* When a call of AWS may be made: Creates follow the account's rate, more slowly after AWS has
 * throttled them, and calls that failed before
 * are made again only as far as the budget of all retries goes, so that an AWS in trouble is not
 * asked more than one that is well. Pure; mono_us is CLOCK_MONOTONIC, boot_us CLOCK_BOOTTIME. */
#pragma once
#include "common/token_bucket.h"
#include "core/capacity/call_rate.h"
#include "core/failure/retry_budget.h"
#include "leader_state.h"

struct call_pace {
    struct token_bucket creates;
    bool unlimited;            /* Creates */
    struct call_rate throttle; /* of Creates: holds nothing until AWS throttles one */
    struct retry_budget retries;
    bool calls_fail; /* since the last good List */
};
/* create_rate: a second; <= 0: unlimited. */
void call_pace_init(struct call_pace *p, double create_rate, double burst, int64_t mono_us);
/* A new leader may retry at once. */
void call_pace_lead(struct call_pace *p, int64_t mono_us);
/* Micro-Creates a second, once Service Quotas has said create_rate. */
int64_t call_pace_rate_u(const struct call_pace *p, double create_rate);
/* Service Quotas says how many Creates a second the account may make; <= 0: it does not say. What
 * was set to be unlimited stays so. */
void call_pace_rate_read(struct call_pace *p, double create_rate, int64_t mono_us);
/* How many may be intended now: no more than can be sent soon, `unsent` of which wait already. */
int64_t call_pace_intents(const struct call_pace *p, int64_t unsent, int64_t mono_us);
/* One more call of its kind may be under way: about a pool, an endpoint, a file system, a model, or
 * of a progress object. Its answer brings the next. */
bool call_pace_room(size_t under_way);
/* One Create is sent. False: the rate does not allow it. */
bool call_pace_take_create(struct call_pace *p, int64_t mono_us);
/* A Create sent at sent_us was answered, well or not, or throttled: the next ones come more rarely,
 * until it is answered well again. retry_after_us: as AWS asks for, or 0. */
void call_pace_create_answered(struct call_pace *p, bool throttled, int64_t retry_after_us,
                               int64_t sent_us, int64_t mono_us);
/* A first try of something else. */
void call_pace_first(struct call_pace *p);
/* AWS answers. True: it did not before, so what has waited may be tried at once. */
bool call_pace_answered(struct call_pace *p, int64_t mono_us);
/* The attempt's next call has to wait: until a->wake_us, which is set. again_us: it asks again
 * after this long at the latest. Takes a retry from the budget when it need not. */
bool call_pace_holds(struct call_pace *p, struct live_attempt *a,
                     const struct protocol_config *protocol, int64_t again_us, int64_t boot_us,
                     int64_t mono_us);
/* The same for a pool's call: until pool->next_us. */
bool call_pace_holds_pool(struct call_pace *p, struct live_pool *pool, int64_t again_us,
                          int64_t boot_us, int64_t mono_us);
