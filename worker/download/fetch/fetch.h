/* A fetching thread: hundreds of transfers on one curl multi handle. Each URL has a deadline for
 * everything (name, connection, redirects, body), a limit on its body, and is checked against the
 * address rules at each hop, again by the very address the socket is opened to. */
#pragma once
#include "download/part/pipeline.h"

#define FETCH_REDIRECTS_MAX   10
#define FETCH_STALLED_FACTOR  3 /* so many times as many, counting those that stall */
#define FETCH_STALLED_US      (1 * USEC_PER_SEC)
#define FETCH_FILES_SPARE     512  /* descriptors for everything else */
#define FETCH_EXCUSED_FACTOR  5    /* maximum extension, in timeouts, for delays of this thread */
#define FETCH_SPEED_MIN       1024 /* bytes a second of a body ... */
#define FETCH_SPEED_AFTER_US  (3 * USEC_PER_SEC) /* ... measured from then on */
#define FETCH_HEADERS_MAX     (128u << 10)       /* bytes of headers, those of 1xx answers too */
#define FETCH_PIECES_MAX      100000 /* of a body, when they are smaller on average than ... */
#define FETCH_PIECE_BYTES_MIN 64
#define FETCH_DISCARD_MAX     (64u << 10) /* of an error page, to keep its connection */
#define FETCH_NETWORK_TRIED   50 /* this many URLs without any connection: the network is down */

struct fetch;
struct hosts;
struct fetch_shared { /* by all fetching threads of a run */
    struct hosts *hosts;
    _Atomic bool reached; /* some host answered: the network works */
    _Atomic int unreached_n;
    _Atomic int running; /* threads */
};
/* shared is borrowed. */
bool fetch_new(struct pipeline *run, int lane, struct fetch_shared *shared, struct fetch **ret,
               struct err *err) MUST_CHECK;
void fetch_free(struct fetch *f);
/* The thread: takes its lane of queue_rows until that ends, feeds queue_bodies and (failures)
 * queue_results; the last one closes queue_bodies at its end. arg: struct fetch. */
void *fetch_main(void *arg);
/* From any thread: rows arrived or stop was set. Cheap when the thread is busy. */
void fetch_wake(struct fetch *f, bool always);
/* From a decode thread: n bytes of bodies are no longer held. */
void fetch_release(struct fetch *f, size_t n);
