/* How often one operation of AWS may be called. AWS does not publish most rates, so nothing is held
 * until it throttles. Then the calls are spaced: twice as far apart as before with each throttle, a
 * sixteenth closer with each call that is answered, until they are as close as at the beginning.
 *
 * Rules:
 *  1. The first throttle halves the rate of the last seconds or the operation's own, the higher of
 *     both: a slow caller is not slowed without need.
 *  2. A throttle of a call that was sent before the rate was lowered lowers it no further: calls
 *     under way together are one sign.
 *  3. The rate does not fall below an eighth of the operation's own.
 * Pure; now_us is CLOCK_MONOTONIC. */
#pragma once
#include "common/units.h"

struct call_rate {
    int64_t own_us;     /* between two calls at the operation's own rate */
    int64_t full_us;    /* between two calls where nothing is held again */
    int64_t gap_us;     /* between two calls now; 0: nothing is held */
    int64_t next_us;    /* the next place */
    int64_t lowered_us; /* last time; INT64_MIN: never */
    int64_t window_us;  /* since when `n` are counted; `before`: in the window before */
    int64_t n, before;
};
/* per_minute: the operation's own rate, > 0. */
void call_rate_init(struct call_rate *r, int64_t per_minute);
/* The operation's own rate is another one from now on. */
void call_rate_own(struct call_rate *r, int64_t per_minute);
/* How long a call that comes now has to wait, 0: not at all. Its place is taken if that is at most
 * most_us; otherwise nothing has changed and it must not be sent. */
int64_t call_rate_take(struct call_rate *r, int64_t most_us, int64_t now_us);
/* What call_rate_take would say. */
int64_t call_rate_wait_us(const struct call_rate *r, int64_t now_us);
/* A call sent at sent_us was throttled. retry_after_us: as AWS asks for, or 0. */
void call_rate_throttled(struct call_rate *r, int64_t sent_us, int64_t retry_after_us,
                         int64_t now_us);
/* It was answered, well or not. */
void call_rate_answered(struct call_rate *r, int64_t sent_us);
