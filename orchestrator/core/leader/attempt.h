/* Live attempts. One enters the leader's memory as an intent of this epoch that has just committed,
 * or as a row that a takeover found; from then on facts move it. Pure. */
#pragma once
#include "leader_state.h"

/* Attempts of a part have numbers up to MAX, void ones included. It is tried again by itself while
 * they are below RETRIED: the rest are for retries of people. */
#define ATTEMPT_N_MAX     32000
#define ATTEMPT_N_RETRIED 31000

/* A fresh intent of this epoch. Takes the strings of row. */
struct live_attempt *leader_add_intended(struct leader_state *s, const struct attempt_row *row,
                                         struct live_campaign *lc);
struct attempt_takeover {
    const struct protocol_config *protocol;
    usec_t now_us;        /* wall: the time a running job may be silent starts here */
    int64_t lease_end_us; /* boot: when the older epoch's lease has ended at the latest */
    bool again;           /* an attempt of this very leader, read again from its row */
};
/* A row of an older epoch, or of this one when its row says so. Takes the strings of row. The pools
 * are known before. *ret_effect says what of it must be recorded. */
struct live_attempt *leader_take_over_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc,
                                              const struct attempt_takeover *t,
                                              struct protocol_effect *ret_effect);

/* The protocol's times. signature_window_us: how long SageMaker accepts a signature. */
void leader_protocol_config(int64_t signature_window_us, struct protocol_config *ret);

/* Feeds a fact to the protocol of `a`. While a record of it waits for its transaction the fact is
 * kept instead, because a batch of records has at most one of each attempt; *ret is then zero. */
void leader_attempt_fact(struct leader_state *s, struct live_attempt *a, const struct fact *f,
                         const struct protocol_config *cfg, struct protocol_effect *ret);
/* Nothing is asked of AWS about it: a record of it waits, or its row has to be read first, or it is
 * parked and its time has not come. */
bool leader_attempt_waits(const struct leader_state *s, const struct live_attempt *a,
                          int64_t boot_us);
/* True when it heeds a fact: not while the database does not take what it was told of it: then the
 * row is read again first, and what is heard meanwhile is heard again after. A List says nothing
 * new. */
bool leader_attempt_hears(const struct leader_state *s, struct live_attempt *a,
                          const struct fact *f, int64_t boot_us);
/* No Create is sent of it, as far as is known: it has ATTEMPT_NO_REQUEST, and waits for no rate. */
bool leader_attempt_unasked(const struct live_attempt *a);
/* With this the reason begins of an attempt of whose part no request can be made. */
#define ATTEMPT_NO_REQUEST_WHY "no request can be made of it: "
/* The fact of a Create that the protocol asks for: signed only when its exact bytes are known
 * (request is not empty), the account's rate has room and the lease holds; else it was not sent,
 * and the protocol asks for it again. Without a fact it would count as under way for ever. An
 * adopted attempt has ATTEMPT_NO_REQUEST, which SageMaker could only refuse: it is not sent, and
 * from then on only a Describe tells of its job. */
struct fact leader_create_fact(struct str request, bool rate_allows, bool lease_holds,
                               int64_t boot_us);
/* How a job that has ended is verified. */
enum verify_step {
    VERIFY_STEP_EXAMINE, /* it failed and says nothing: its log is read */
    VERIFY_STEP_LOOK,
    VERIFY_STEP_PLACE, /* an older droverd saw its end and did not write where its output is: a
                          Describe tells */
    VERIFY_STEP_LATER, /* without a readable spec or its part's input nobody knows where it is */
    VERIFY_STEP_LEAVE, /* its campaign is cancelled, and a look has failed, or nobody knows where it
                          is: it ends unseen. A pause waits for the next look, since its part would
                          be paid once more */
};
enum verify_step leader_verify_step(const struct live_attempt *a);
/* Its log was not read in time: it is concluded without. */
bool leader_examined_long_enough(const struct live_attempt *a, int64_t boot_us);
/* True when a stop of it may be sent: its row says that nobody wants it. A leader that takes over
 * after a resume must know whose stop it sees. After a takeover of a stopped campaign the row may
 * not say so yet. It is noted, so that its end counts as stopped by us. */
bool leader_attempt_stop(struct live_attempt *a);
/* Nobody wants it any more; a parked one is tried at once. True: *ret is the fact to hear. */
bool leader_attempt_unwant(struct leader_state *s, struct live_attempt *a, int64_t boot_us,
                           struct fact *ret);
/* Decides whether it is wanted, as far as memory knows, before the protocol is asked what is
 * next. One of a campaign that goes on is, unless its row says otherwise. But a job that nobody
 * has seen is not started when the file system that it would mount goes or has gone: its part
 * waits again. */
void leader_attempt_weigh(struct leader_state *s, struct live_attempt *a);
/* True when its row is read again now: no record of it waits and its pause is over. That of one
 * whose part is lost is read to see whether the part is back. */
bool leader_attempt_reread_due(const struct leader_state *s, const struct live_attempt *a,
                               int64_t boot_us);
/* An effect that must be recorded: the attempt moved, its task ends, its slots are free, or a
 * person must look. */
bool leader_attempt_records(const struct protocol_effect *e);
/* Takes the oldest kept fact, once no record of `a` waits any more. False: there is none. */
bool leader_attempt_kept_fact(struct live_attempt *a, struct fact *ret);
