/* A fetching thread: hundreds of transfers on one curl multi handle. Each URL has one deadline for
 * everything (name, connection, redirects, body) and a limit on its body. It is checked against the
 * address rules at each hop, and again with the address the socket is opened to. */
#pragma once
#include "download/part/pipeline.h"

#define FETCH_REDIRECTS_MAX 10
/* maximum of all transfers, those that yield included, as a multiple of thread_count */
#define FETCH_YIELDING_FACTOR 3
#define FETCH_PROBES_SHARE    2    /* one of this many places of a thread may probe silent hosts */
#define FETCH_FILES_SPARE     512  /* descriptors for everything else */
#define FETCH_EXCUSED_FACTOR  5    /* maximum extension, in timeouts, for delays of this thread */
#define FETCH_SPEED_MIN       1024 /* minimum bytes per second of a body ... */
#define FETCH_SPEED_AFTER_US  (3 * USEC_PER_SEC) /* ... measured from here on */
/* bytes of headers, including those of 1xx answers */
#define FETCH_HEADERS_MAX (128u << 10)
/* pieces of a body, when they are smaller on average than ... */
#define FETCH_PIECES_MAX      100000
#define FETCH_PIECE_BYTES_MIN 64
#define FETCH_DISCARD_MAX     (64u << 10) /* of an error page, to keep its connection */
#define FETCH_NETWORK_TRIED   50 /* this many URLs without any connection: the network is down */

struct fetch;
struct hosts;
struct fetch_shared { /* shared by all fetching threads of a run */
    struct hosts *hosts;
    _Atomic bool reached; /* some host answered: the network works */
    _Atomic int unreached_n;
    _Atomic int running; /* threads */
};
/* Prepare fetch thread number `fetch_thread`. run and shared are borrowed; the caller owns *ret. */
bool fetch_new(struct pipeline *run, int fetch_thread, struct fetch_shared *shared,
               struct fetch **ret, struct err *err) MUST_CHECK;
void fetch_free(struct fetch *f);
/* The thread's function, arg: struct fetch. Takes its rows from queue_rows until that ends,
 * and feeds queue_bodies and (failures) queue_results. The last thread closes queue_bodies. */
void *fetch_main(void *arg);
/* Call from any thread when rows arrived or stop was set. Cheap when the thread is busy. always:
 * wake it even then. */
void fetch_wake(struct fetch *f, bool always);
/* Call from a decode thread: n bytes of bodies are no longer held. */
void fetch_release(struct fetch *f, size_t n);
