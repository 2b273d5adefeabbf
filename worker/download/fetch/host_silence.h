/* What it means that a host says nothing. A host is quiet while transfers wait for it and nothing
 * has come for a while; quiet for long enough, or with a transfer that ended in nothing, it is
 * silent: its rows wait and one transfer at a time asks. Silent for as long as we are patient, with
 * questions all the while, it is given up and its rows fail. One byte of an answer ends it all. A
 * host that drips (bodies slower than is worth waiting for, not one whole answer between) is taken
 * for silent until a whole answer comes.
 * Pure: times are given. Times are monotonic, 0: never. */
#pragma once
#include "common/units.h"

#define SILENCE_QUIET_MIN_US (2 * USEC_PER_SEC) /* that a host may take to answer, at least */
#define SILENCE_QUIET_FACTOR 2                  /* times what its last answer took */
#define SILENCE_PROBE_US     (1 * USEC_PER_SEC) /* between questions, doubled up to ... */
#define SILENCE_PROBE_MAX_US (5 * USEC_PER_SEC)
#define SILENCE_UNASKED_US   (30 * USEC_PER_SEC) /* nobody asked for so long: it starts again */

struct silence_rules {   /* value */
    int64_t quiet_us;    /* no host is waited for longer before it is silent */
    int64_t patience_us; /* silent for so long, its rows fail */
};
struct silence { /* value; zeroed: nothing is known of the host */
    int64_t heard_us;
    int64_t asked_us;  /* the transfers open now began to be there */
    int64_t answer_us; /* what its last answer took */
    int64_t since_us;  /* silent from then, unless heard later */
    int64_t failed_us; /* a transfer ended in nothing */
    int64_t probe_us;  /* not asked before */
    int64_t given_up_us;
    int64_t answered_us; /* a whole answer */
    int failed_n;        /* questions in vain, in a row */
    bool drips;
};

/* A transfer begins; open_n others are there. */
void silence_begin(struct silence *s, int64_t open_n, int64_t now_us);
/* Bytes of an answer came. */
void silence_hear(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer begun then ended in nothing. True: nothing else has been heard since it began, so it
 * is the host and not the URL. */
bool silence_fail(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer begun then was given up because its body dripped. True as above. */
bool silence_drip(struct silence *s, int64_t begun_us, int64_t now_us);
/* A transfer ended in a whole answer, of whatever status. */
void silence_answer(struct silence *s, int64_t now_us);
/* It was our network. */
void silence_forgive(struct silence *s);
/* Look at it: may notice that it is silent now, and give it up. */
void silence_look(struct silence *s, const struct silence_rules *r, int64_t open_n, int64_t now_us);
bool silence_is_silent(const struct silence *s);
bool silence_is_given_up(const struct silence *s);
/* Silent or not, may it be asked now with open_n transfers there? */
bool silence_may_ask(const struct silence *s, int64_t open_n, int64_t now_us);
