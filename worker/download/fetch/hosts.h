/* Manners towards web servers, one entry a host and port: how many transfers it may have at once,
 * until when it asked to be left alone (Retry-After), and whether it has stopped answering. Rows
 * whose host is busy are parked here, so that they hold no transfer that a neighbour could use.
 * Shared by the fetch threads: every call locks. */
#pragma once
#include "common/units.h"
#include "io/queue.h"

#define HOSTS_MAX           16384 /* idle ones beyond are forgotten */
#define HOST_NAME_BYTES_MAX 300
#define HOST_PAUSE_MAX_US                                                                          \
    (30 * USEC_PER_SEC)        /* of a Retry-After; whoever asks more is not obeyed longer */
#define HOST_PAUSE_PARKED 1024 /* rows of one pausing host that wait; more fail */
#define HOST_PAUSES_MAX   4    /* in a row, nothing served between; then nobody waits for it */
#define HOST_DOWN_AFTER   8    /* failures in a row, not one answer between */
#define HOST_DOWN_US      (10 * USEC_PER_SEC)

struct hosts;
struct host;
enum host_turn {
    HOST_GO,   /* counted in: leave with hosts_leave */
    HOST_WAIT, /* as many transfers as it may have */
    HOST_REST, /* it asked for a pause */
    HOST_AWAY, /* it asked for a pause, and enough rows wait for its end, or it does nothing else */
    HOST_DOWN, /* it has not answered for long: no use to try now */
};

struct hosts *hosts_new(int64_t per_host);
/* Frees parked items with free_item. */
void hosts_free(struct hosts *hs, void (*free_item)(struct queue_item *i));
/* May a transfer to it begin? HOST_GO: *ret is written, valid while counted in. HOST_WAIT and
 * HOST_REST: item, if not NULL, is parked until the host has room, and no longer the caller's. */
enum host_turn hosts_enter(struct hosts *hs, const char *name, int port, int64_t now_us,
                           struct queue_item *item, struct host **ret);
/* The transfer is over. answered: with any HTTP status; failed: nothing, or too slowly. */
enum host_outcome { HOST_ANSWERED, HOST_FAILED, HOST_UNDECIDED };
void hosts_leave(struct hosts *hs, struct host *h, enum host_outcome outcome, int64_t now_us);
/* It asked for that long without us; bounded by HOST_PAUSE_MAX_US. */
void hosts_pause(struct hosts *hs, struct host *h, int64_t now_us, int64_t pause_us);
/* A parked item whose host has room now, or NULL. */
struct queue_item *hosts_unpark(struct hosts *hs, int64_t now_us);
size_t hosts_parked(struct hosts *hs);
