/* libcurl's multi handle on an epoll loop, for the fetch thread: sockets and curl's timer go into
 * the loop, and transfers share TLS sessions. */
#pragma once
#include "common/loop.h"
#include <curl/curl.h>

#define FETCH_IO_CONNECTIONS_KEPT 128

struct fetch_io {
    struct loop *loop;
    void (*on_heard)(void *private); /* something came for the handle of this CURLINFO_PRIVATE */
    int64_t heard_n;                 /* so often */
    struct loop_timer *timer;
    CURLM *multi;
    CURLSH *share; /* for CURLOPT_SHARE of every handle */
};

bool fetch_io_init(struct fetch_io *io, void (*on_heard)(void *private),
                   struct err *err) MUST_CHECK;
/* After the last easy handle and the resolver are gone. A zeroed struct is ignored. */
void fetch_io_done(struct fetch_io *io);
/* One pass: wait at most max_wait_us for something to do and let curl do it. */
void fetch_io_pass(struct fetch_io *io, int64_t max_wait_us);
/* Passes without waiting until what has come for that many handles is taken. */
void fetch_io_drain(struct fetch_io *io, int handles);
/* Let curl look at its timers now: after a transfer was unpaused. */
void fetch_io_kick(struct fetch_io *io);
