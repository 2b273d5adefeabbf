/* The submit, observe, stop and recover protocol of one attempt: facts in, actions out. Pure: no
 * clock, no I/O, no allocation. The controller and the simulator execute the actions; the
 * exhaustive model links this same object file.
 *
 * SageMaker has no client token: the job name is the idempotency key. Promises that hold across
 * crashes and lost replies:
 *  P1. A Create is requested only for an attempt whose intent is committed, always with the same
 *      name and the same bytes.
 *  P2. After one send of unknown outcome, only success, our own job found under the name, or the
 *      void rule ends UNKNOWN. A refusal (quota, throttle, 4xx, credentials) then proves nothing.
 *  P3. Void rule: the attempt is no longer wanted, no Create is in flight, Describe says not found,
 *      and the signature window has passed since the last signature of this epoch and since the
 *      lease end of any older epoch. Until then slot and money stay held.
 *  P4. A job found under our name is adopted only when its DROVER_REQUEST is our hash, or when it
 *      has kept silent about whose it is so often that its name is believed; one that says another
 *      owner makes the attempt CONFLICT.
 *  P5. At takeover every INTENDED attempt becomes UNKNOWN.
 *  P6. An attempt's state moves only along attempt_edge(); an older or contradictory observation
 *      never moves it back.
 *  P7. When no longer wanted, an intent that was never signed is voided; any other is resolved
 *      first and then stopped.
 *  P8. A slot is held from intent until a Describe shows the end (or void, or P9), and is released
 *      exactly once.
 *  P9. A job that was seen and that AWS knows no more, long after its last possible end, was
 *      deleted: the attempt failed. Until then not found is a stale answer. Nothing more is sent
 *      under a name that a List, a Describe or a Create has shown to be in use.
 *
 * Times are CLOCK_BOOTTIME microseconds unless named otherwise. */
#pragma once
#include "core/model.h"

#define PROTOCOL_ALERT_FAILURES 12
#define PROTOCOL_SIGN_MARGIN_US INT64_C(200000)
/* An output that could not be read is looked at again after at most this long. */
#define PROTOCOL_VERIFY_AGAIN_US (10 * USEC_PER_SEC)
/* How long a failed job's fate waits for its log to be read. */
#define PROTOCOL_EXAMINE_US (60 * USEC_PER_SEC)

struct protocol_config {
    int64_t
        signature_window_us; /* how long a signature may be honoured after signing: 15 min at AWS */
    int64_t describe_stale_us;             /* Describe a live job at least this often (10 min) */
    int64_t resend_base_us, resend_cap_us; /* back-off between sends of one name */
};

/* One attempt as the protocol sees it. A value; the controller keeps one per live attempt. */
struct protocol_attempt {
    enum attempt_state state; /* as committed, or about to be by the step that returned it */
    bool wanted;              /* campaign and task still want this attempt to run */
    bool ambiguous;           /* a Create of this name may have taken effect unnoticed */
    bool signed_ever;         /* this epoch signed a Create of it, or an older epoch may have */
    bool create_in_flight, describe_in_flight, stop_in_flight, verify_in_flight;
    bool stop_sent;  /* a stop was accepted by SageMaker */
    bool look_first; /* the last stop failed: SageMaker may know the job no more */
    bool look_now;   /* a List or an event differs from what we hold */
    bool not_found;  /* the last Describe, sent after void_after_us, found nothing */
    bool was_there; /* UNKNOWN only: List, Describe or a name in use has shown a job of this name */
    int failures;   /* failed calls in a row, for the back-off */
    int64_t next_us;       /* no call before this */
    int64_t void_after_us; /* P3: window after the newest signature that may exist */
    int64_t described_us;  /* when SageMaker last confirmed it (Create or Describe); 0 never */
    usec_t modified;       /* newest LastModifiedTime seen (AWS' wall clock) */
    /* UNKNOWN only: a permanent refusal (ACCESS_DENIED, BAD_REQUEST, BAD_IMAGE, BAD_INPUT). Nothing
     * more is sent; a job that is found is adopted, else P3 ends the attempt with this cause. NONE:
     * not refused */
    enum cause refused;
    /* VERIFYING only: the job failed, of this cause as far as its FailureReason tells, and its log
     * is being read. NONE: it completed, and its output is being checked */
    enum cause failed_as;
    int64_t examine_until_us; /* then it is what failed_as says */
};

enum protocol_action {
    ACT_NONE,   /* nothing until ret_wake_us */
    ACT_CREATE, /* sign and send the stored bytes, after the lease check */
    ACT_DESCRIBE,
    ACT_STOP,
    ACT_VERIFY, /* state VERIFYING: check the output, or with failed_as read the log; once
                   examine_until_us has come: answer FACT_VERIFIED with UNKNOWN */
    ACT_VOID    /* answer with FACT_VOID; ending the attempt needs no call */
};

enum fact_kind {
    FACT_CREATE_SIGNED,   /* about to be handed to the socket, lease checked: at_us */
    FACT_CREATE_UNSENT,   /* no byte left this machine (lease lapsed, connection refused) */
    FACT_CREATE_OK,       /* 200 with an ARN */
    FACT_CREATE_IN_USE,   /* ResourceInUse: some job has this name */
    FACT_CREATE_REFUSED,  /* clean 4xx. cause QUOTA, CAPACITY: void, the task waits on;
                             ACCESS_DENIED, BAD_REQUEST, BAD_IMAGE, BAD_INPUT: void with that cause;
                             any other (THROTTLED; NETWORK also for our own expired or unreadable
                             credentials; UNKNOWN): same name again after a back-off */
    FACT_CREATE_UNKNOWN,  /* time-out, reset, 5xx, unreadable */
    FACT_DESCRIBED,       /* job: what Describe said */
    FACT_NOT_FOUND,       /* Describe: no such job; at_us is when that Describe was SENT */
    FACT_GONE,            /* the same, long after its last possible end: protocol_may_be_gone */
    FACT_DESCRIBE_FAILED, /* Describe failed, or (seen) does not say whose the job is */
    FACT_LISTED, /* job: a List summary (status, modified only); a hint to Describe, never moves the
                    state */
    FACT_STOP_OK, /* stop accepted, or the job had ended already */
    FACT_STOP_FAILED,
    FACT_VERIFIED,      /* ok or cause SHORT_OUTPUT etc.; with failed_as what the log says, or
                           UNKNOWN */
    FACT_VERIFY_FAILED, /* the check itself could not be made: try again */
    FACT_UNWANTED,      /* cancel, pause with stop, or a lost race: no longer wanted */
    FACT_VOID,          /* answer to ACT_VOID */
    FACT_HINT           /* look now (event, operator) */
};
enum job_status {
    JOB_IN_PROGRESS,
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_STOPPING,
    JOB_STOPPED,
    JOB_STATUS_UNKNOWN
};
enum job_phase {
    PHASE_PENDING,
    PHASE_STARTING,
    PHASE_RUNNING,
    PHASE_UPLOADING,
    PHASE_INTERRUPTED,
    PHASE_STOPPING,
    PHASE_MAX_RUNTIME,
    PHASE_MAX_WAIT,
    PHASE_ENDED,
    PHASE_OTHER
};
struct job_seen {
    enum job_status status;
    enum job_phase phase;
    bool ours;       /* DROVER_REQUEST echoed = our hash (P4); meaningless for a List */
    usec_t modified; /* LastModifiedTime */
};
struct fact {
    enum fact_kind kind;
    int64_t at_us;    /* now, unless the kind says otherwise */
    enum cause cause; /* REFUSED; jobs that ended: classified FailureReason (NONE: the protocol's
                         own word for that end); VERIFIED: NONE = good */
    struct job_seen job;
    bool bare; /* the job failed, and why is to be looked for in its log */
    bool seen; /* DESCRIBE_FAILED: a job of this name is there */
};
/* What the record transaction must write for a step. */
struct protocol_effect {
    bool changed; /* state moved from `from` to a->state */
    enum attempt_state from;
    /* slots released, money settled (or reservation voided) in the same transaction */
    bool release_slot;
    /* with release_slot: settle from billable seconds; otherwise the whole reservation is
     * released */
    bool settle;
    bool
        task_ends; /* the attempt is terminal: the task moves on (done, retry, failed, cancelled) */
    enum cause cause; /* why, for failed, stopped, void, conflict */
    /* needs attention: conflict, unknown status, or PROTOCOL_ALERT_FAILURES failed calls in a
     * row */
    bool alert;
};

/* A fresh intent, committed by this epoch at now_us. */
void protocol_intended(struct protocol_attempt *ret);
/* An attempt found at takeover in `state`; failed_as of its row counts when it is VERIFYING.
 * lease_end_us: when the older epoch's lease ended at the latest (boot clock of this host).
 * ret_effect says what to record (INTENDED becomes UNKNOWN). */
void protocol_taken_over(enum attempt_state state, enum cause failed_as, bool wanted,
                         int64_t lease_end_us, const struct protocol_config *cfg,
                         struct protocol_attempt *ret, struct protocol_effect *ret_effect);
/* Apply one fact. Facts that do not fit the state change nothing. */
void protocol_step(struct protocol_attempt *a, const struct fact *f,
                   const struct protocol_config *cfg, struct protocol_effect *ret);
/* Return the next action and mark its call as in flight. *ret_wake_us: when to ask again at the
 * latest (INT64_MAX: only after a fact). */
enum protocol_action protocol_next(struct protocol_attempt *a, int64_t now_us,
                                   const struct protocol_config *cfg, int64_t *ret_wake_us);

/* It was there, and no Create of it can take effect any more at at_us (boot), when AWS did not know
 * it. With a job's last possible end in the past that is FACT_GONE. */
bool protocol_may_be_gone(const struct protocol_attempt *a, int64_t at_us);

/* True when the leader may sign now: until PROTOCOL_SIGN_MARGIN_US before the lease ends.
 * lease_end_us and now_us are CLOCK_BOOTTIME. Also checked between signing and sending. */
bool protocol_may_sign(int64_t lease_end_us, int64_t now_us);

#define JOB_PREFIX_MAX 24
/* The prefix as jobs carry it: letters, digits, inner hyphens, at most JOB_PREFIX_MAX. What lists
 * are asked for. */
void protocol_job_prefix(const char *prefix, char ret[static JOB_PREFIX_MAX + 1]);
/* <prefix>-<campaign>-<stage>-<task>-a<n>-<hash8>: <= 63 characters, letters, digits, inner
 * hyphens. hash8 is the first 8 hex digits of SHA-256(install, nonce, campaign, stage, task, n),
 * passed in, so this module needs no library. Other characters of prefix and stage become
 * hyphens; the stage is cut first, then the prefix. campaign_id, task_seq >= 0, n >= 1. */
void protocol_job_name(const char *prefix, int64_t campaign_id, const char *stage_name,
                       int64_t task_seq, int n, const uint8_t identity_sha256[32],
                       struct job_name *ret);
