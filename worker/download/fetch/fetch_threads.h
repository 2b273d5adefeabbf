/* The fetching threads. One feeds some eight processors with pictures, so a large machine has
 * several, each with transfers, names and a byte budget of its own. Hosts are shared out among
 * them, that a host's names and connections be in one place; what hosts may be asked for counts for
 * all of them together (hosts.h), also when redirects cross over. */
#pragma once
#include "fetch.h"

struct fetch_threads;
bool fetch_threads_new(struct pipeline *run, struct fetch_threads **ret,
                       struct err *err) MUST_CHECK;
void fetch_threads_free(struct fetch_threads *l);
void fetch_threads_start(struct fetch_threads *l);
/* Wait for the threads: after fetch_threads_close, or when the run is stopping. */
void fetch_threads_join(struct fetch_threads *l);
/* A row to be fetched; waits while its lane has enough. False when the run is stopping: the sample
 * stays the caller's. */
bool fetch_threads_push(struct fetch_threads *l, struct sample *s) MUST_CHECK;
/* No more rows. */
void fetch_threads_close(struct fetch_threads *l);
/* stop was set. */
void fetch_threads_wake(struct fetch_threads *l);
/* From a decode thread: that many bytes of body, fetched by that lane, are no longer held. */
void fetch_threads_release(struct fetch_threads *l, int lane, size_t n);
