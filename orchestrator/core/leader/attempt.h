/* An attempt enters the leader's memory: as an intent of this epoch that has just committed, or as
 * a row that a takeover found. Pure. */
#pragma once
#include "leader_state.h"

/* A fresh intent of this epoch. Takes the strings of row. */
struct live_attempt *leader_add_intended(struct leader_state *s, const struct attempt_row *row,
                                         struct live_campaign *lc);
struct attempt_takeover {
    const struct protocol_config *protocol;
    usec_t now_us;        /* wall: a running job is given its patience anew from here */
    int64_t lease_end_us; /* boot: when the older epoch's lease has ended at the latest */
};
/* A row of an older epoch, or of this one when its row says so. Takes the strings of row. The pools
 * are known before. *ret_effect says what of it must be recorded. */
struct live_attempt *leader_take_over_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc,
                                              const struct attempt_takeover *t,
                                              struct protocol_effect *ret_effect);
