/* The calls to AWS under way for live attempts and pools. Removing one cancels its calls. */
#pragma once
#include "shell.h"

/* A copy of what a callback was given, so that the next tick can take it. Malloc'd, never NULL. */
struct job_summary *job_summaries_dup(const struct job_summary *jobs, size_t n);

struct progress_look { /* outlives its attempt when that ends while the answer is under way */
    struct live_attempt *attempt; /* NULL: nobody waits for it any more */
    struct controller *c;
};
/* An attempt or a pool that has just come into memory has none under way. */
void attempt_attach_io(struct controller *c, struct live_attempt *a);
void pool_attach_io(struct controller *c, struct live_pool *p);
void attempt_remove(struct controller *c, struct live_attempt *a);
void pool_remove(struct controller *c, struct live_pool *p);
