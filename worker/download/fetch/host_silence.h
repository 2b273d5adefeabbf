/* When a host does not answer. A host is quiet while transfers wait for it and nothing has arrived
 * for a while. Quiet for long enough, or with a transfer that failed, it is silent: its rows wait
 * and one transfer at a time probes it. Silent for our whole patience despite probes, it is given
 * up and its rows fail. One byte of an answer ends the silence. A host that drips (bodies below the
 * minimum speed, no complete answer in between) counts as silent until a complete answer arrives.
 * Pure: times are parameters, monotonic, 0: never. */
#pragma once
#include "common/units.h"

#define SILENCE_QUIET_MIN_US (2 * USEC_PER_SEC) /* minimum time a host may take to answer */
#define SILENCE_QUIET_FACTOR 2                  /* multiple of its last answer time */
#define SILENCE_PROBE_US     (1 * USEC_PER_SEC) /* between probes, doubled up to ... */
#define SILENCE_PROBE_MAX_US (5 * USEC_PER_SEC)
#define SILENCE_UNASKED_US   (30 * USEC_PER_SEC) /* not asked for this long: start again */

struct silence_rules {   /* value */
    int64_t quiet_us;    /* maximum wait before a host is silent */
    int64_t patience_us; /* silent for this long, its rows fail */
};
struct silence { /* value; zeroed: nothing known about the host */
    int64_t heard_us;
    int64_t asked_us;  /* the open transfers began */
    int64_t answer_us; /* duration of its last answer */
    int64_t since_us;  /* silent since, unless heard later */
    int64_t failed_us; /* a transfer failed without an answer */
    int64_t probe_us;  /* not probed before */
    int64_t given_up_us;
    int64_t answered_us; /* a complete answer */
    int failed_n;        /* failed probes in a row */
    bool drips;
};

/* A transfer begins while open_n others are open. */
void silence_begin(struct silence *s, int64_t open_n, int64_t now_us);
/* Bytes of an answer arrived. */
void silence_hear(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer begun at begun_us failed without an answer. True: nothing else was heard since it
 * began, so the host is at fault and not the URL. */
bool silence_fail(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer begun at begun_us was given up because its body dripped. True as above. */
bool silence_drip(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer ended with a complete answer of any status. */
void silence_answer(struct silence *s, int64_t now_us);
/* Our network was at fault: forget the silence. */
void silence_forgive(struct silence *s);
/* Update: the host may become silent or be given up. */
void silence_look(struct silence *s, const struct silence_rules *r, int64_t open_n, int64_t now_us);
bool silence_is_silent(const struct silence *s);
/* True when its rows fail. */
bool silence_is_given_up(const struct silence *s);
/* True when it may be asked now while open_n transfers are open. */
bool silence_may_ask(const struct silence *s, int64_t open_n, int64_t now_us);
