/* Is it our network? When most hosts fall silent at once it is, and no host is to blame: everything
 * holds, and once a second something is asked, until a host that was silent answers. Pure: times
 * are given, monotonic, 0: never. */
#pragma once
#include "common/units.h"

#define NETWORK_HOSTS_MIN   5  /* silent hosts that have answered before ... */
#define NETWORK_SHARE       3  /* ... for each that still answers; or ... */
#define NETWORK_UNKNOWN_MIN 32 /* ... of any, with not one that answers and rows left to ask */
#define NETWORK_PROBE_US    (1 * USEC_PER_SEC)

struct network_census { /* value: hosts at one moment; silent ones are those that fell silent at
                         * about the time anything was last heard */
    int64_t known;      /* that have answered before and are silent now */
    int64_t unknown;    /* that never have and are silent now */
    int64_t heard;      /* that have answered lately */
};
struct network_watch { /* value; zeroed: it is there */
    int64_t away_us;   /* since then it is away; 0: it is there */
    int64_t probe_us;  /* the next question */
};

void network_look(struct network_watch *w, const struct network_census *c, bool rows_left,
                  int64_t now_us);
/* A host has answered; anew: it was silent, or had never answered. True: the network is back. */
bool network_hear(struct network_watch *w, bool anew);
/* May a transfer begin? While it is away one a second may; counts it. */
bool network_may_ask(struct network_watch *w, int64_t now_us);
