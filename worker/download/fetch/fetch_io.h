/* libcurl's multi handle on an epoll loop, for the fetch thread: sockets and curl's timer go into
 * the loop, and transfers share TLS sessions. */
#pragma once
#include "common/loop.h"
#include <curl/curl.h>

#define FETCH_IO_CONNECTIONS_KEPT 128

struct fetch_io {
    struct loop *loop;
    /* called with CURLINFO_PRIVATE of the handle that received data */
    void (*on_heard)(void *private);
    int64_t heard_n; /* number of calls of on_heard */
    struct loop_timer *timer;
    CURLM *multi;
    CURLSH *share; /* for CURLOPT_SHARE of every handle */
};

/* Set up on a loop of its own; on_heard is called by fetch_io_pass. */
bool fetch_io_init(struct fetch_io *io, void (*on_heard)(void *private),
                   struct err *err) MUST_CHECK;
/* Call after the last easy handle and the resolver are gone. A zeroed struct is ignored. */
void fetch_io_done(struct fetch_io *io);
/* One pass: wait at most max_wait_us for events and let curl handle them. */
void fetch_io_pass(struct fetch_io *io, int64_t max_wait_us);
/* Run passes without waiting until the pending data of that many handles is read. */
void fetch_io_drain(struct fetch_io *io, int handles);
/* Let curl check its timers now; needed after a transfer was unpaused. */
void fetch_io_kick(struct fetch_io *io);
