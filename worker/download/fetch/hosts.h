/* Limits per host and port: how many transfers at once, until when it asked for a pause
 * (Retry-After), and whether it is silent. Rows that cannot be requested now are parked here with
 * their state (sample.h), so that they occupy no transfer. Shared by the fetch threads: every call
 * locks. Times are monotonic. */
#pragma once
#include "common/units.h"
#include "host_silence.h"
#include "io/queue.h"
#include "network_watch.h"

#define HOSTS_MAX           16384 /* idle entries beyond this are dropped */
#define HOST_NAME_BYTES_MAX 300
#define HOST_PAUSE_MAX_US   (30 * USEC_PER_SEC) /* of a Retry-After; longer ones are cut to this */
#define HOST_PAUSES_MAX     4 /* pauses in a row without an answer; then its rows fail */
/* nobody has answered for this long: our network may be at fault */
#define HOST_NETWORK_QUIET_MAX (5 * USEC_PER_SEC)
#define HOST_STALLED_US        (1 * USEC_PER_SEC)  /* without progress for this long: stalled */
#define HOST_REFUSED_US        (10 * USEC_PER_SEC) /* a refusal is lately: two probes of a host */
#define HOSTS_LOOK_US          (100 * USEC_PER_MSEC)
#define HOSTS_PARKED_BYTES_MAX ((size_t)48 << 20)

struct hosts;
struct host;
enum host_turn {
    HOST_GO,   /* counted in; call hosts_leave at the end */
    HOST_WAIT, /* at its limit of transfers */
    HOST_REST, /* it asked for a pause, or it is silent and being probed */
    HOST_AWAY, /* it only asks for pauses */
    HOST_DOWN, /* silent for so long that it was given up */
};
struct hosts_rules {  /* value */
    int64_t per_host; /* transfers at once per host */
    int64_t timeout_us;
    int64_t patience_us; /* wait for a silent host */
    int probes_max;      /* silent hosts probed at once, of those that have answered before */
    bool retries;        /* rows have retries left: wait for pauses as long as for silence */
};

/* The caller frees it with hosts_free. */
struct hosts *hosts_new(const struct hosts_rules *r);
/* Free parked items with free_item. */
void hosts_free(struct hosts *hs, void (*free_item)(struct queue_item *i));
/* Ask for a transfer to name:port. HOST_GO: *ret is valid until hosts_leave. HOST_WAIT and
 * HOST_REST: item, if not NULL, is parked until the host has room and no longer the caller's; its
 * bytes count against the park. */
enum host_turn hosts_enter(struct hosts *hs, const char *name, int port, int64_t now_us,
                           struct queue_item *item, struct host **ret);
/* Bytes of an answer arrived for a transfer begun at begun_us. */
void hosts_heard(struct hosts *hs, struct host *h, int64_t begun_us, int64_t now_us);
/* Bytes arrived, too slowly to be of use: the network works. */
void hosts_dripped(struct hosts *hs, struct host *h, int64_t now_us);
/* A connection was refused: the network reaches this host, so others may be dead. Call before
 * hosts_failed. */
void hosts_refused(struct hosts *hs, struct host *h, int64_t now_us);
/* A transfer failed without an answer, or its body dripped. Returns who is at fault; call
 * hosts_leave as well. */
enum host_fault {
    HOST_FAULT_URL,     /* it has served others since the transfer began */
    HOST_FAULT_HOST,    /* it has served nobody */
    HOST_FAULT_NETWORK, /* our network: most hosts serve nobody, or did not for part of that time */
};
enum host_fault hosts_failed(struct hosts *hs, struct host *h, bool dripped, int64_t begun_us,
                             int64_t now_us);
/* The transfer is over. answered: with any HTTP status. back, if not NULL, is parked behind the
 * host's other rows and no longer the caller's. */
void hosts_leave(struct hosts *hs, struct host *h, bool answered, struct queue_item *back,
                 int64_t now_us);
/* The host asked for a pause; cut to HOST_PAUSE_MAX_US. */
void hosts_pause(struct hosts *hs, struct host *h, int64_t now_us, int64_t pause_us);
/* Take a parked item whose host has room now or whose row must fail; NULL: none. */
struct queue_item *hosts_unpark(struct hosts *hs, int64_t now_us);

/* What to do with a transfer that receives nothing. */
enum host_stall {
    HOST_STALL_COUNTS, /* wait: it counts as open like any other */
    HOST_STALL_YIELDS, /* wait, but another may begin: the only one of a host that never answered */
    HOST_STALL_GIVE,   /* park the row: the host is silent, and it or enough others are probed */
    HOST_STALL_OVER,   /* fail the row: the host was given up */
};
/* Once its host is silent, the transfer becomes the probe or gives its place up. */
enum host_stall hosts_stalled(struct hosts *hs, struct host *h, int64_t begun_us);

/* Detect silence, give hosts up, judge the network; call often. rows_left: more rows will come.
 * Returns how long the network has been down, 0: it is up. */
int64_t hosts_look(struct hosts *hs, bool rows_left, int64_t now_us);
/* True while the network is down. */
bool hosts_network_is_away(struct hosts *hs);
/* True when nobody has answered for a moment, so that a failure may be the network's. */
bool hosts_is_still(struct hosts *hs, int64_t now_us);
/* True when a transfer may begin; while the network is down only one now and then. */
bool hosts_may_begin(struct hosts *hs, int64_t now_us);

struct hosts_parked {
    size_t n, bytes; /* rows parked in all */
    size_t most;     /* rows of one busy host that answers; "" none */
    char most_name[HOST_NAME_BYTES_MAX];
    size_t silent_n; /* rows of silent hosts */
};
/* For progress messages; O(hosts). */
void hosts_count(struct hosts *hs, struct hosts_parked *ret);
size_t hosts_parked(struct hosts *hs);
/* True when parked items use up their bytes. */
bool hosts_is_full(struct hosts *hs);
