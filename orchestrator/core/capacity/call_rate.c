/* See call_rate.h. */
#include "call_rate.h"

#define WINDOW_US      (5 * USEC_PER_SEC)
#define LOWER          2  /* a throttle: the rate is divided by this */
#define RAISE          16 /* an answer: so much of the space between two calls goes */
#define LOWEST         8  /* so much below the operation's own rate at most */
#define RETRY_AFTER_US (60 * USEC_PER_SEC)

void call_rate_own(struct call_rate *r, int64_t per_minute)
{
    ASSERT(per_minute > 0);
    r->own_us = MAX(1, 60 * USEC_PER_SEC / per_minute);
}

void call_rate_init(struct call_rate *r, int64_t per_minute)
{
    *r = (struct call_rate){.lowered_us = INT64_MIN};
    call_rate_own(r, per_minute);
}

/* Counts one that is sent now. */
static void count(struct call_rate *r, int64_t now_us)
{
    int64_t age_us = now_us - r->window_us;
    if (age_us >= WINDOW_US) {
        r->before = age_us < 2 * WINDOW_US ? r->n : 0;
        r->n = 0;
        r->window_us = age_us < 2 * WINDOW_US ? r->window_us + WINDOW_US : now_us;
    }
    r->n++;
}

/* Between two calls of the last seconds. */
static int64_t measured_us(const struct call_rate *r)
{
    return WINDOW_US / MAX(1, MAX(r->n, r->before));
}

int64_t call_rate_wait_us(const struct call_rate *r, int64_t now_us)
{
    return r->gap_us == 0 ? 0 : MAX(0, r->next_us - now_us);
}

int64_t call_rate_take(struct call_rate *r, int64_t most_us, int64_t now_us)
{
    int64_t wait_us = call_rate_wait_us(r, now_us);
    if (wait_us <= most_us) {
        r->next_us = now_us + wait_us + r->gap_us;
        count(r, now_us);
    }
    return wait_us;
}

void call_rate_throttled(struct call_rate *r, int64_t sent_us, int64_t retry_after_us,
                         int64_t now_us)
{
    int64_t pause_us = MIN(MAX(retry_after_us, 0), RETRY_AFTER_US);
    if (sent_us >= r->lowered_us) {
        if (r->gap_us == 0) {
            r->full_us = MIN(r->own_us, measured_us(r));
            r->gap_us = r->full_us;
        }
        r->gap_us = MIN(LOWER * r->gap_us, LOWEST * r->own_us);
        r->lowered_us = now_us;
        pause_us = MAX(pause_us, r->gap_us);
    }
    r->next_us = MAX(r->next_us, now_us + pause_us);
}

void call_rate_answered(struct call_rate *r, int64_t sent_us)
{
    if (r->gap_us == 0 || sent_us < r->lowered_us) {
        return;
    }
    r->gap_us -= MAX(1, r->gap_us / RAISE);
    if (r->gap_us <= r->full_us) {
        r->gap_us = 0;
    }
}
