/* The state of a silent host is three times; anything heard later cancels them. */
#include "host_silence.h"
#include "common/retry.h"

bool silence_is_silent(const struct silence *s)
{
    return s->since_us != 0 && (s->drips || s->heard_us <= s->since_us);
}

bool silence_is_given_up(const struct silence *s)
{
    return silence_is_silent(s) && s->given_up_us != 0;
}

void silence_begin(struct silence *s, int64_t open_n, int64_t now_us)
{
    if (open_n == 0) {
        s->asked_us = now_us;
        if (silence_is_silent(s) && now_us - MAX(s->failed_us, s->since_us) > SILENCE_UNASKED_US) {
            silence_forgive(s);
        }
    }
}

void silence_hear(struct silence *s, int64_t begun_us, int64_t now_us)
{
    if (silence_is_silent(s) && !s->drips) {
        silence_forgive(s);
    }
    s->answer_us = MAX(now_us - MAX(begun_us, s->heard_us), 0);
    s->heard_us = now_us;
}

static void failed(struct silence *s, int64_t since_us, int64_t now_us)
{
    if (!silence_is_silent(s)) {
        silence_forgive(s);
        s->since_us = MAX(since_us, (int64_t)1);
    }
    s->probe_us = now_us + retry_step_us(SILENCE_PROBE_US, SILENCE_PROBE_MAX_US, s->failed_n);
    s->failed_n++;
    s->failed_us = now_us;
}

bool silence_fail(struct silence *s, int64_t begun_us, int64_t now_us)
{
    if (s->heard_us >= begun_us && !silence_is_silent(s)) {
        return false;
    }
    failed(s, MAX(s->heard_us, MIN(s->asked_us, begun_us)), now_us);
    return true;
}

bool silence_drip(struct silence *s, int64_t begun_us, int64_t now_us)
{
    if (s->answered_us >= begun_us) {
        return false;
    }
    failed(s, begun_us, now_us);
    s->drips = true;
    return true;
}

void silence_answer(struct silence *s, int64_t now_us)
{
    s->answered_us = now_us;
    if (s->drips) {
        silence_forgive(s);
    }
}

void silence_forgive(struct silence *s)
{
    s->since_us = 0;
    s->failed_us = 0;
    s->probe_us = 0;
    s->given_up_us = 0;
    s->failed_n = 0;
    s->drips = false;
}

void silence_look(struct silence *s, const struct silence_rules *r, int64_t open_n, int64_t now_us)
{
    if (!silence_is_silent(s) && open_n > 0) {
        int64_t from_us = MAX(s->heard_us, s->asked_us);
        int64_t quiet_us = MAX(SILENCE_QUIET_FACTOR * s->answer_us, SILENCE_QUIET_MIN_US);
        if (now_us - from_us >= MIN(quiet_us, r->quiet_us)) {
            silence_forgive(s);
            s->since_us = MAX(from_us, (int64_t)1);
        }
    }
    if (silence_is_silent(s) && s->given_up_us == 0 && s->failed_n > 0 &&
        now_us - s->since_us >= r->patience_us &&
        (open_n > 0 || now_us - s->failed_us <= SILENCE_UNASKED_US)) {
        s->given_up_us = now_us;
    }
}

bool silence_may_ask(const struct silence *s, int64_t open_n, int64_t now_us)
{
    return !silence_is_silent(s) || (open_n == 0 && now_us >= s->probe_us);
}
