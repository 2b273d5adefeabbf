/* Between fetch.c and curl: the fetch thread's state, and curl's options and results of one
 * transfer. Private to the fetch thread. */
#pragma once
#include "fetch.h"
#include "fetch_io.h"
#include "own_time.h"
#include "transfer.h"

#define USER_AGENT_BYTES 400

struct fetch {
    struct pipeline *run;
    struct fetch_io io;
    int fetch_thread;
    struct fetch_shared *shared;
    struct hosts *hosts; /* shared */
    struct resolver *resolver;
    struct transfer *transfers; /* transfers[transfers_n] */
    int transfers_n;
    struct transfer *free;
    int active, active_max;
    int shown;                   /* of active, as shown in the progress of the run */
    int yielding;                /* of active, at the last tick: another may begin meanwhile */
    struct transfer *privileged; /* may exceed the byte budget */
    _Atomic size_t bytes;        /* bodies held by any stage */
    size_t mean_body;            /* moving average */
    _Atomic size_t handed;       /* of these, complete ones that decoders will release */
    size_t plenty;               /* so much of these keeps the decoders busy for long */
    _Atomic size_t freed;        /* released since the last wake */
    _Atomic bool idle;
    _Atomic bool full;        /* the byte budget is used up */
    bool unpark;              /* a host may have room for a parked row */
    struct queue_item *later; /* rows with a time before which they must wait */
    struct queue_item *due;   /* of these, the ones whose time has come */
    int64_t next_tick_us, last_tick_us, next_count_us, next_say_us;
    struct own_time own;
    /* SSL_CERT_FILE, as OpenSSL's own programs read it; NULL: the system's certificates */
    const char *ca_file;
    char user_agent[USER_AGENT_BYTES];
};

/* True when a transfer may exceed the byte budget: all held bytes are parts of bodies, so no other
 * transfer can end. */
bool fetch_curl_may_go_over(const struct fetch *f, const struct transfer *t);
/* Start the transfer of t->url from t->addrs[t->addr_i]. */
void fetch_curl_start(struct fetch *f, struct transfer *t);
