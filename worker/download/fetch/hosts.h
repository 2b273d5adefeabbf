/* Manners towards web servers, one entry a host and port: how many transfers it may have at once,
 * until when it asked to be left alone (Retry-After), and whether it is silent. Rows that cannot be
 * asked for now are parked here with their place (sample.h), so that they hold no transfer that a
 * neighbour could use. Shared by the fetch threads: every call locks. Times are monotonic. */
#pragma once
#include "common/units.h"
#include "host_silence.h"
#include "io/queue.h"
#include "network_watch.h"

#define HOSTS_MAX           16384 /* idle entries beyond this are dropped */
#define HOST_NAME_BYTES_MAX 300
#define HOST_PAUSE_MAX_US                                                                          \
    (30 * USEC_PER_SEC)          /* of a Retry-After; whoever asks more is not obeyed longer */
#define HOST_PAUSES_MAX        4 /* in a row, nothing served between; then nobody waits for it */
#define HOST_NETWORK_QUIET_MAX (5 * USEC_PER_SEC) /* no answer from anybody: it may be us */
#define HOSTS_LOOK_US          (100 * USEC_PER_MSEC)
#define HOSTS_PARKED_BYTES_MAX ((size_t)48 << 20)

struct hosts;
struct host;
enum host_turn {
    HOST_GO,   /* counted in: leave with hosts_leave */
    HOST_WAIT, /* as many transfers as it may have */
    HOST_REST, /* it asked for a pause, or it is silent and another asks */
    HOST_AWAY, /* it does nothing but ask for pauses */
    HOST_DOWN, /* silent for so long that it is given up */
};
struct hosts_rules {  /* value */
    int64_t per_host; /* transfers at once */
    int64_t timeout_us;
    int64_t patience_us; /* with a silent host */
    bool retries;        /* rows have tries left: pauses are waited for as long as silence */
};

struct hosts *hosts_new(const struct hosts_rules *r);
/* Frees parked items with free_item. */
void hosts_free(struct hosts *hs, void (*free_item)(struct queue_item *i));
/* May a transfer to it begin? HOST_GO: *ret is written, valid while counted in. HOST_WAIT and
 * HOST_REST: item, if not NULL, is parked until the host has room, and no longer the caller's. Its
 * bytes count against the park. */
enum host_turn hosts_enter(struct hosts *hs, const char *name, int port, int64_t now_us,
                           struct queue_item *item, struct host **ret);
/* Bytes of an answer have come, to a transfer begun then. */
void hosts_heard(struct hosts *hs, struct host *h, int64_t begun_us, int64_t now_us);
/* The transfer ended in nothing, or its body dripped; it is left all the same. */
enum host_fault {
    HOST_FAULT_URL,     /* the host has served others since it began */
    HOST_FAULT_HOST,    /* it has served nobody */
    HOST_FAULT_NETWORK, /* most hosts serve nobody, or did not for a part of that time */
};
enum host_fault hosts_failed(struct hosts *hs, struct host *h, bool dripped, int64_t begun_us,
                             int64_t now_us);
/* The transfer is over. answered: with any HTTP status. back, if not NULL, is parked behind the
 * host's other rows and no longer the caller's. */
void hosts_leave(struct hosts *hs, struct host *h, bool answered, struct queue_item *back,
                 int64_t now_us);
/* It asked for that long without us; bounded by HOST_PAUSE_MAX_US. */
void hosts_pause(struct hosts *hs, struct host *h, int64_t now_us, int64_t pause_us);
/* A parked item whose host has room now, or whose row has to fail; or NULL. */
struct queue_item *hosts_unpark(struct hosts *hs, int64_t now_us);

/* What becomes of a transfer that gets nothing from its host. */
enum host_stall {
    HOST_STALL_LIVES, /* the host answers others, or this one is all that asks it */
    HOST_STALL_HOLDS, /* the host may be silent: the transfer is one of several that wait for it */
    HOST_STALL_GIVE,  /* it is silent and others ask: park the row */
    HOST_STALL_OVER,  /* it was given up since: the row is not waited for */
};
enum host_stall hosts_stalled(struct hosts *hs, const struct host *h, int64_t begun_us);

/* Notice silence, give hosts up, judge the network: call often. rows_left: rows are still to come.
 * How long the network has been away, 0: it is there. */
int64_t hosts_look(struct hosts *hs, bool rows_left, int64_t now_us);
bool hosts_network_is_away(struct hosts *hs);
/* Has nobody answered for a moment? Then a failure may be the network's. */
bool hosts_is_still(struct hosts *hs, int64_t now_us);
/* May a transfer begin? Not while the network is away, except one now and then. */
bool hosts_may_begin(struct hosts *hs, int64_t now_us);

struct hosts_parked { /* value */
    size_t n, bytes;  /* of all */
    size_t most;      /* of one host that answers and is busy: "" none */
    char most_name[HOST_NAME_BYTES_MAX];
    size_t silent_n; /* of hosts that are silent */
};
/* O(hosts): for people. */
void hosts_count(struct hosts *hs, struct hosts_parked *ret);
size_t hosts_parked(struct hosts *hs);
bool hosts_is_full(struct hosts *hs);
