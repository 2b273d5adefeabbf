/* The fetching threads. One thread feeds about eight processors with pictures, so a large machine
 * has several, each with its own transfers, DNS results and byte budget. Each host is served by one
 * thread, so its DNS results and connections stay together. Limits per host hold for all threads
 * together (hosts.h), also when redirects change the thread. */
#pragma once
#include "fetch.h"

struct fetch_threads;
/* Prepare the threads of a run. The caller frees *ret after fetch_threads_join. */
bool fetch_threads_new(struct pipeline *run, struct fetch_threads **ret,
                       struct err *err) MUST_CHECK;
void fetch_threads_free(struct fetch_threads *l);
void fetch_threads_start(struct fetch_threads *l);
/* Wait for the threads: after fetch_threads_close, or when the run is stopping. */
void fetch_threads_join(struct fetch_threads *l);
/* Queue a row; waits while its thread has enough. False when the run is stopping; the caller then
 * keeps the sample. */
bool fetch_threads_push(struct fetch_threads *l, struct sample *s) MUST_CHECK;
/* No more rows will come. */
void fetch_threads_close(struct fetch_threads *l);
/* Wake all threads; call after stop was set. */
void fetch_threads_wake(struct fetch_threads *l);
/* Call from a decode thread: n bytes fetched by thread `fetch_thread` are no longer held. */
void fetch_threads_release(struct fetch_threads *l, int fetch_thread, size_t n);
