/* See lease_watch.h. */
#include "lease_watch.h"
#include "common/retry.h"
#include "core/protocol/protocol.h"

#define HELD_PAUSE_US      (400 * USEC_PER_MSEC)
#define REFUSED_PAUSE_US   (5 * USEC_PER_SEC)
#define LEASE_AGAIN_US     (200 * USEC_PER_MSEC)
#define LEASE_AGAIN_MAX_US (8 * LEASE_AGAIN_US)  /* it doubles from the third failure on */
#define LONGEST_US         (3600 * USEC_PER_SEC) /* well above what a setting allows */

int64_t lease_end_us(const struct lease_terms *t, int64_t asked_us)
{
    return asked_us + t->length_us;
}

int64_t lease_renew_again_us(const struct lease_terms *t)
{
    return t->renew_us / 4;
}

int64_t lease_longest_us(const struct lease_terms *t, int64_t longest_us, int64_t alone_us,
                         int64_t boot_us)
{
    return boot_us < alone_us ? longest_us : t->length_us;
}

int64_t lease_told_us(const struct lease_terms *t, int64_t row_length_us)
{
    return row_length_us > 0 && row_length_us <= LONGEST_US ? row_length_us : t->length_us;
}

bool lease_renewal_due(const struct lease_terms *t, int64_t end_us, int64_t boot_us)
{
    return boot_us >= end_us - t->length_us + t->renew_us;
}

bool lease_outlives_renewal(enum tx_meaning failed)
{
    return failed == TX_BUSY;
}

bool lease_lapsed(int64_t end_us, int64_t boot_us)
{
    return !protocol_may_sign(end_us, boot_us);
}

enum lease_step lease_watch_step(struct lease_watch *w, const struct lease_look *l,
                                 const struct lease_terms *t)
{
    if (l->locked) {
        return LEASE_STEP_TAKE;
    }
    if (w->renewals_at_us == 0 || l->renewals != w->renewals) {
        w->renewals = l->renewals;
        w->renewals_at_us = l->answered_us;
        return LEASE_STEP_WAIT;
    }
    int64_t told_us = lease_told_us(t, l->length_us);
    bool frozen = l->asked_us - w->renewals_at_us > MAX(told_us, t->length_us);
    return frozen ? LEASE_STEP_TAKE_FROM_FROZEN : LEASE_STEP_WAIT;
}

int64_t lease_watch_pause_us(struct lease_watch *w, enum lease_try how, const struct lease_terms *t)
{
    switch (how) {
    case LEASE_TRY_NO_DATABASE:
        w->failures = MIN(w->failures + 1, 1000);
        return retry_step_us(LEASE_AGAIN_US, LEASE_AGAIN_MAX_US, MAX(0, w->failures - 2));
    case LEASE_TRY_NOT_DURABLE:
        return REFUSED_PAUSE_US;
    case LEASE_TRY_FAILED:
        return LEASE_AGAIN_US;
    case LEASE_TRY_HELD:
        return MIN(HELD_PAUSE_US, t->length_us / 4);
    case LEASE_TRY_LOST:
        w->renewals_at_us = 0; /* what was seen before we led says nothing */
        return LEASE_AGAIN_US;
    case LEASE_TRY_LEADS:
        w->failures = 0;
        return -1;
    }
    return LEASE_AGAIN_US;
}
