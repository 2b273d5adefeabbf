/* What follows when the protocol moved an attempt: the values of its record, what its job cost,
 * what becomes of its pool and money, and whether its task is tried again or fails. plan makes the
 * record from what is known, apply changes memory once the record is committed. Pure. */
#pragma once
#include "leader_state.h"

/* Conclusions of a plan that people should read in the log. */
struct outcome_notes {
    bool at_cap;        /* the part's own cap does not pay for another attempt: it fails */
    int64_t goes_on_s;  /* the run goes on in its next attempt, for this long at most; 0: no */
    bool set_aside;     /* the part alone fails in this way: it fails */
    int same;           /* how often in a row it has failed so */
    musd_t spent_musd;  /* by all attempts of the task, what is still reserved included */
    bool cost_overflow; /* of the job or its pool: booked as 0 */
    bool not_booked;    /* entries that the ledger refused */
    struct err cost_error, book_error;
};

/* The record of what effect `e` says of `a`, at wall time now_us. The jitter of a retry is drawn
 * from s->rng. Strings of ret are its own; nothing else of `s` or `a` changes. */
void leader_plan_record(struct leader_state *s, const struct live_attempt *a,
                        const struct protocol_effect *e, usec_t now_us, struct pending_record *ret,
                        struct outcome_notes *ret_notes);
/* The row to write, with pointers into *p: valid until the queue changes. */
struct attempt_record leader_record_row(const struct pending_record *p);
/* Why a person must look at it, for the event that goes with the record. */
void leader_alert_text(const struct leader_state *s, const struct pending_record *p, char *ret,
                       size_t size);
/* What follows of a record besides what moves in memory. */
struct record_applied {
    struct live_pool *ended_pool; /* over, to be removed by the caller; NULL: none */
    bool ended;                   /* the attempt's task has moved: the caller removes the attempt */
    bool trips;                   /* its stage's breaker trips by this end */
};
/* The record is committed: state, slots, money, pools and the task's place move, and the stage
 * learns from it. The manifest is freed. now_us: wall. */
void leader_apply_record(struct leader_state *s, struct pending_record *p, usec_t now_us,
                         int64_t boot_us, struct record_applied *ret);
