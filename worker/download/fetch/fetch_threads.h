/* The fetching threads. One feeds some eight processors with pictures, so a large machine has
 * several, each with transfers, names and a byte budget of its own. Hosts are shared out among
 * them, that a host's names and connections be in one place; what hosts may be asked for counts for
 * all of them together (hosts.h), also when redirects cross over. */
#pragma once
#include "fetch.h"

struct lanes;
bool lanes_new(struct run *run, struct lanes **ret, struct err *err) MUST_CHECK;
void lanes_free(struct lanes *l);
void lanes_start(struct lanes *l);
/* Wait for the threads: after lanes_close, or when the run is stopping. */
void lanes_join(struct lanes *l);
/* A row to be fetched; waits while its lane has enough. False when the run is stopping: the sample
 * stays the caller's. */
bool lanes_push(struct lanes *l, struct sample *s) MUST_CHECK;
/* No more rows. */
void lanes_close(struct lanes *l);
/* stop was set. */
void lanes_wake(struct lanes *l);
/* From a decode thread: that many bytes of body, fetched by that lane, are no longer held. */
void lanes_release(struct lanes *l, int lane, size_t n);
