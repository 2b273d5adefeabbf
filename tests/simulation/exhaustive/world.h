/* A small world around core/protocol/protocol.c for the exhaustive check: a store with a fencing
 * lease, a SageMaker that knows jobs by name, two controllers that carry what protocol_* decides,
 * and every way in which a step can be late, lost, refused or cut off by a crash.  Time is
 * relative: a state holds spans, never instants, so that states repeat and the search ends. The
 * back-off is zero and every wait is a choice of the search instead. A frozen controller is one
 * that the search does not choose; a zombie is one that still leads in its own memory. */
#pragma once
#include "core/protocol/protocol.h"

enum {
    CTLS = 2,
    PARTS = 2,
    TRIES = 2,  /* attempts of a part */
    WINDOW = 1, /* ticks a signature is honoured after the one in which it was made */
    LEASE = 1,  /* ticks */
    PAST = -2,  /* a window that is over: every Describe from now on counts */
    ROW_NONE = 255
};

/* A job's life; the number is its LastModifiedTime too. FOREIGN is somebody else's, for ever. */
enum job {
    WORLD_NONE,
    WORLD_STARTING,
    WORLD_RUNNING,
    WORLD_STOPPING,
    WORLD_COMPLETED,
    WORLD_FAILED,
    WORLD_STOPPED,
    WORLD_FOREIGN
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
    uint8_t denied[TRIES]; /* refused for good: every later send meets it again */
    /* A Create nobody waits for any more that may still land; as send_valid. */
    uint8_t orphan[TRIES];
};

struct world {
    uint8_t holder; /* of the lease; CTLS: nobody yet */
    uint8_t lease;  /* ticks until a standby may take it from a leader that is silent */
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
    MOVE_CRASH, /* and come back as a standby that remembers nothing */
    MOVE_TAKE_OVER,
    MOVE_RENEW,
    MOVE_TAKE_CANCEL,
    MOVE_INTEND, /* v 1: committed, but the answer to COMMIT is lost */
    MOVE_ACT,    /* what protocol_next says; v: how a call that is one step here ends */
    MOVE_SEND,   /* v 1: dropped before its first byte */
    MOVE_ARRIVE, /* v: the answer */
    MOVE_TIME_OUT,
    MOVE_REPLY,  /* v 1: lost */
    MOVE_LOOKED, /* v 0 truth, 1 an older truth, 2 fails, 3 found nothing: the answer is late */
    MOVE_LIST,
    MOVE_KINDS
};
struct move {
    uint8_t kind, c, p, v;
};

void world_init(struct world *w);
/* Make the move; false when it is not possible here (w is then spoilt). A promise broken on the way
 * is left in *ret_wrong, else untouched. */
bool world_apply(struct world *w, struct move m, const struct world_config *cfg,
                 const char **ret_wrong);
/* Which facts, actions and committed edges
 * ever occurred, over all worlds: a search in which something never happens shows nothing about
 * it. */
struct world_coverage {
    unsigned facts, actions;
    bool edges[ATTEMPT_STATE_COUNT][ATTEMPT_STATE_COUNT];
};
const struct world_coverage *world_covered(void);
bool world_alive(uint8_t job);
/* Attempts committed of a part. */
int world_newest(const struct part *p);
/* Nothing more is to be done for the part, as the store sees it. */
bool world_part_over(const struct part *p);
/* Which promise the state breaks; NULL: none. */
const char *world_check(const struct world *w, const struct world_config *cfg);
/* Every part has ended, nothing of ours lives, nothing is held. */
bool world_ended(const struct world *w, const struct world_config *cfg);
/* One round without faults: leader elected, calls answered truly, jobs run to their end (those of
 * cancelled parts only when stopped), one tick. Gives the promise broken on the way; NULL: none. */
const char *world_calm_round(struct world *w, const struct world_config *cfg);
/* Sort what is interchangeable (controllers, parts). *ret_swapped: bit 0 controllers, bit 1
 * parts. */
void world_canon(struct world *w, const struct world_config *cfg, int *ret_swapped);
/* The k-th of all thinkable moves; false past the last. */
bool world_move(int k, const struct world_config *cfg, struct move *ret);
/* The move in words, seen from the state before it. */
void world_tell(const struct world *before, struct move m, const char *ctl_name,
                const char *part_name, char *out, size_t n);
