/* Detects failures of our own network: when most hosts fall silent at once, no host is at fault.
 * Transfers then hold, except one per second, until a host answers that did not answer when the
 * network went down. Pure: times are parameters, monotonic, 0: never. */
#pragma once
#include "common/units.h"

#define NETWORK_HOSTS_MIN 5 /* this many silent hosts that have answered before ... */
#define NETWORK_SHARE     3 /* ... for each that still answers; or ... */
#define NETWORK_UNKNOWN_MIN                                                                        \
    32 /* ... any silent hosts, when none answers or refuses and rows are left */
#define NETWORK_PROBE_US (1 * USEC_PER_SEC)

/* hosts at one moment; silent ones fell silent at about the time anything was last heard */
struct network_census {
    int64_t known;   /* answered before, silent now */
    int64_t unknown; /* never answered, silent now */
    int64_t heard;   /* answered lately */
    int64_t refused; /* refused a connection lately: packets come and go */
};
struct network_watch { /* value; zeroed: the network is up */
    int64_t away_us;   /* down since; 0: up */
    int64_t probe_us;  /* time of the next probe */
    bool unanswered;   /* it is down because nobody answers, not because most have stopped */
};

/* Update from a census of the hosts. True: the network has just gone down. */
bool network_look(struct network_watch *w, const struct network_census *c, bool rows_left,
                  int64_t now_us);
/* A host has answered; back: it did not answer when the network went down. True: the network is up
 * again. */
bool network_hear(struct network_watch *w, bool back);
/* A host has refused a connection. That is no answer: a firewall may refuse all. But where hosts
 * that never answered are dead or the network is down, it says which. True: the network is up
 * again. */
bool network_refuse(struct network_watch *w);
/* True when a transfer may begin; while the network is down one per second. Counts it. */
bool network_may_ask(struct network_watch *w, int64_t now_us);
