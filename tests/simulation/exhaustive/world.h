/* A small world around core/protocol/protocol.c for the exhaustive check: a store with a fencing
 * lease, a SageMaker that identifies jobs by name, two controllers that carry out what
 * protocol_* decides, and every way in which a step can be late, lost, refused or interrupted by
 * a crash.
 *
 * Time is relative: a state holds durations, no instants, so that states repeat and the search
 * ends. The back-off is zero; the search chooses every wait. A frozen controller is one that the
 * search does not choose; a zombie believes that it still leads. */
#pragma once
#include "core/protocol/protocol.h"

enum {
    CTLS = 2,
    PARTS = 2,
    TRIES = 2,  /* attempts of a part */
    WINDOW = 1, /* a signature is valid for so many ticks after the one in which it was made */
    LEASE = 1,  /* ticks */
    PAST = -2,  /* the window is over: every Describe counts */
    ROW_NONE = 255
};

/* The states of a job, also used as its LastModifiedTime. FOREIGN: somebody else's job, which
 * never ends. DELETED: it had ended, and its name is free again; nobody deletes one while a Create
 * of its name is under way. */
enum job {
    WORLD_NONE,
    WORLD_STARTING,
    WORLD_RUNNING,
    WORLD_STOPPING,
    WORLD_COMPLETED,
    WORLD_FAILED,
    WORLD_STOPPED,
    WORLD_FOREIGN,
    WORLD_DELETED
};

enum send_stage { SEND_NONE, SEND_SIGNED, SEND_SENT, SEND_ANSWERED };
enum look_stage { LOOK_NONE, LOOK_SENT, LOOK_NOT_FOUND };
enum answer { ANSWER_OK, ANSWER_IN_USE, ANSWER_QUOTA, ANSWER_THROTTLED, ANSWER_DENIED, ANSWER_N };
enum role { ROLE_STANDBY, ROLE_LEADER };

/* What a controller knows of the newest attempt of one part, and its calls under way. All zero when
 * it follows none. */
struct memory {
    uint8_t n; /* 1.. ; 0: none */
    uint8_t state;
    uint8_t flags_lo, flags_hi;
    uint8_t failures; /* 0, 1, 2 = more */
    int8_t window;    /* void_after - now; PAST when long over */
    uint8_t modified, refused;
    uint8_t send, send_valid, answer; /* the Create; valid: ticks + 1 its signature lasts */
    uint8_t look, look_age;           /* the Describe; age: 0 this tick, 1 before */
    uint8_t known; /* UNKNOWN: it has heard from SageMaker that there is a job of this name */
};

struct model_controller {
    uint8_t role;
    uint8_t lease; /* ticks its own lease lasts by its own clock */
    struct memory part[PARTS];
};

struct part {
    uint8_t cancelled, ended;
    uint8_t row[TRIES];    /* committed attempt states; ROW_NONE */
    uint8_t job[TRIES];    /* SageMaker's truth, by name */
    uint8_t fresh[TRIES];  /* made this tick: a Describe may not see it yet */
    uint8_t denied[TRIES]; /* refused permanently: every later send is refused, too */
    /* A Create that was given up and may still arrive: how long it is valid, as send_valid. */
    uint8_t orphan[TRIES];
};

struct world {
    uint8_t holder; /* of the lease; CTLS: nobody yet */
    uint8_t lease;  /* ticks until a standby may take the lease from a silent leader */
    uint8_t held;   /* slots, as the store counts them */
    uint8_t foreign_done;
    struct part part[PARTS];
    struct model_controller ctl[CTLS];
};

struct world_config {
    const char *name;
    int parts, limit; /* parts in play; slots */
    bool crashes;
};

enum move_kind {
    MOVE_TICK,
    MOVE_CANCEL,
    MOVE_FOREIGN,
    MOVE_JOB,   /* v: the state it takes */
    MOVE_LAND,  /* an orphan takes effect; c: attempt */
    MOVE_CRASH, /* and start again as a standby without memory */
    MOVE_TAKE_OVER,
    MOVE_RENEW,
    MOVE_TAKE_CANCEL,
    MOVE_INTEND, /* v 1: committed, but the answer to COMMIT is lost */
    MOVE_ACT,    /* the action of protocol_next; v: the outcome of a call that is one step here */
    MOVE_SEND,   /* v 1: dropped before its first byte */
    MOVE_ARRIVE, /* v: the answer */
    MOVE_TIME_OUT,
    MOVE_REPLY,  /* v 1: lost */
    MOVE_LOOKED, /* v 0 truth, 1 an older truth, 2 fails, 3 found nothing: the answer is late,
                    4 found nothing long after its last possible end */
    MOVE_LIST,
    MOVE_KINDS
};
struct move {
    uint8_t kind, c, p, v;
};

void world_init(struct world *w);
/* Makes the move in *w. False: it is not possible here, and *w is undefined. *ret_wrong: the
 * promise that it breaks; otherwise unchanged. */
bool world_apply(struct world *w, struct move m, const struct world_config *cfg,
                 const char **ret_wrong);
/* Facts, actions and committed edges that occurred in any world. What never occurs is not
 * tested. */
struct world_coverage {
    unsigned facts, actions;
    bool edges[ATTEMPT_STATE_COUNT][ATTEMPT_STATE_COUNT];
};
const struct world_coverage *world_covered(void);
bool world_alive(uint8_t job);
/* No job has this name: none had it, or that one was deleted. */
bool world_free(uint8_t job);
/* A Create that is signed or under way may still make this job. */
bool world_may_land(const struct world *w, int p, int n);
/* Attempts committed of a part. */
int world_newest(const struct part *p);
/* The part has ended, according to the store. */
bool world_part_over(const struct part *p);
/* Which promise the state breaks; NULL: none. */
const char *world_check(const struct world *w, const struct world_config *cfg);
/* Every part has ended, no job of ours is alive, no slot is held. */
bool world_ended(const struct world *w, const struct world_config *cfg);
/* One round without faults: a leader is elected, calls are answered truthfully, jobs run to
 * their end (those of cancelled parts end when stopped), one tick passes. Returns the broken
 * promise, or NULL. */
const char *world_calm_round(struct world *w, const struct world_config *cfg);
/* Sorts what is interchangeable. *ret_swapped: bit 0: controllers were swapped, bit 1: parts. */
void world_canon(struct world *w, const struct world_config *cfg, int *ret_swapped);
/* The k-th of all moves, possible or not. False: k is past the last. */
bool world_move(int k, const struct world_config *cfg, struct move *ret);
/* The move in words; w is the state before it. */
void world_tell(const struct world *before, struct move m, const char *ctl_name,
                const char *part_name, char *out, size_t n);
