/* See call_pace.h. */
#include "call_pace.h"
#include "attempt.h"
#include <math.h>

#define CALLS_AT_ONCE     8
#define SEND_AHEAD_S      2 /* no more is intended than can be sent in this time */
#define UNLIMITED_CREATES 1e6
#define CREATES_A_MINUTE  60 /* AWS' default, where Creates are unlimited */

static int64_t a_minute(double rate_per_s)
{
    return (int64_t)fmin(fmax(rate_per_s * 60, 1), 6e7);
}

void call_pace_init(struct call_pace *p, double create_rate, double burst, int64_t mono_us)
{
    memset(p, 0, sizeof *p);
    p->unlimited = create_rate <= 0;
    call_rate_init(&p->throttle, p->unlimited ? CREATES_A_MINUTE : a_minute(create_rate));
    token_bucket_init(&p->creates, p->unlimited ? UNLIMITED_CREATES : create_rate,
                      p->unlimited ? UNLIMITED_CREATES : burst, mono_us);
    call_pace_lead(p, mono_us);
}

void call_pace_lead(struct call_pace *p, int64_t mono_us)
{
    p->calls_fail = false;
    retry_budget_init(&p->retries, RETRY_BUDGET_BURST, RETRY_BUDGET_TRICKLE_US, mono_us);
}

int64_t call_pace_rate_u(const struct call_pace *p, double create_rate)
{
    return create_rate > 0 && !p->unlimited ? (int64_t)(create_rate * 1e6)
                                            : p->creates.rate_per_s_u;
}

void call_pace_rate_read(struct call_pace *p, double create_rate, int64_t mono_us)
{
    if (create_rate > 0 && !p->unlimited) {
        token_bucket_set_rate(&p->creates, create_rate, mono_us);
        call_rate_own(&p->throttle, a_minute(create_rate));
    }
}

static int64_t intents_of_rate(const struct call_pace *p, int64_t unsent, int64_t mono_us)
{
    if (p->unlimited) {
        return SCHED_LAUNCHES_MAX;
    }
    int64_t ahead = SEND_AHEAD_S * p->creates.rate_per_s_u / 1000000;
    return MAX(0, token_bucket_available(&p->creates, mono_us) + ahead - unsent);
}

bool call_pace_room(size_t under_way)
{
    return under_way < CALLS_AT_ONCE;
}

int64_t call_pace_intents(const struct call_pace *p, int64_t unsent, int64_t mono_us)
{
    int64_t n = intents_of_rate(p, unsent, mono_us);
    if (p->throttle.gap_us == 0) {
        return n;
    }
    return MIN(n, MAX(0, 1 + SEND_AHEAD_S * USEC_PER_SEC / p->throttle.gap_us - unsent));
}

bool call_pace_take_create(struct call_pace *p, int64_t mono_us)
{
    if (call_rate_wait_us(&p->throttle, mono_us) > 0 ||
        (!p->unlimited && !token_bucket_take(&p->creates, mono_us))) {
        return false;
    }
    (void)call_rate_take(&p->throttle, 0, mono_us);
    return true;
}

void call_pace_create_answered(struct call_pace *p, bool throttled, int64_t retry_after_us,
                               int64_t sent_us, int64_t mono_us)
{
    if (throttled) {
        call_rate_throttled(&p->throttle, sent_us, retry_after_us, mono_us);
    } else {
        call_rate_answered(&p->throttle, sent_us);
    }
}

void call_pace_first(struct call_pace *p)
{
    retry_budget_first(&p->retries);
}

bool call_pace_answered(struct call_pace *p, int64_t mono_us)
{
    bool failed = p->calls_fail;
    if (failed) {
        call_pace_lead(p, mono_us);
    }
    return failed;
}

static bool sends_create(const struct live_attempt *a)
{
    return a->p.wanted && (a->p.state == ATTEMPT_INTENDED || a->p.state == ATTEMPT_UNKNOWN) &&
           !leader_attempt_unasked(a);
}

/* A Create that may not be sent yet for the rate's sake waits without touching the protocol. */
static bool rate_holds(const struct call_pace *p, struct live_attempt *a, int64_t boot_us,
                       int64_t mono_us)
{
    if (!sends_create(a) || p->unlimited) {
        return false;
    }
    int64_t wait_us = token_bucket_wait_us(&p->creates, mono_us);
    a->wake_us = boot_us + wait_us;
    return wait_us > 0;
}

/* So does one after Creates were throttled. */
static bool throttle_holds(const struct call_pace *p, struct live_attempt *a, int64_t boot_us,
                           int64_t mono_us)
{
    bool sends = sends_create(a);
    int64_t wait_us = call_rate_wait_us(&p->throttle, mono_us);
    if (sends && wait_us > 0) {
        a->wake_us = boot_us + wait_us;
    }
    return sends && wait_us > 0;
}

static bool retry_holds(struct call_pace *p, struct live_attempt *a,
                        const struct protocol_config *protocol, int64_t again_us, int64_t boot_us,
                        int64_t mono_us)
{
    struct protocol_attempt copy = a->p;
    int64_t wake_us;
    enum protocol_action next = protocol_next(&copy, boot_us, protocol, &wake_us);
    if (next != ACT_CREATE && next != ACT_DESCRIBE && next != ACT_STOP) {
        return false;
    }
    if (a->p.failures == 0) {
        retry_budget_first(&p->retries);
        return false;
    }
    p->calls_fail = true;
    if (retry_budget_take(&p->retries, mono_us)) {
        return false;
    }
    a->wake_us = boot_us + MIN(retry_budget_wait_us(&p->retries, mono_us), again_us);
    return true;
}

bool call_pace_holds(struct call_pace *p, struct live_attempt *a,
                     const struct protocol_config *protocol, int64_t again_us, int64_t boot_us,
                     int64_t mono_us)
{
    return rate_holds(p, a, boot_us, mono_us) || throttle_holds(p, a, boot_us, mono_us) ||
           retry_holds(p, a, protocol, again_us, boot_us, mono_us);
}

bool call_pace_holds_pool(struct call_pace *p, struct live_pool *pool, int64_t again_us,
                          int64_t boot_us, int64_t mono_us)
{
    if (pool->failures == 0 || retry_budget_take(&p->retries, mono_us)) {
        return false;
    }
    p->calls_fail = true;
    pool->next_us = boot_us + again_us;
    return true;
}
