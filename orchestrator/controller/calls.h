/* The calls to AWS under way for live attempts and pools. Removing one cancels its calls. */
#pragma once
#include "shell.h"

/* A copy of what the callback of a List was given, so that the next tick can take it. */
struct listed_page {
    bool failed;
    struct aws_failure failure;
    struct job_summary *jobs;
    size_t n;
    char *next;
    int64_t at_us; /* boot */
};
/* Never NULL. */
struct listed_page *listed_page_new(const struct job_summary *jobs, size_t n, const char *next,
                                    const struct aws_failure *f);
void listed_page_free(struct listed_page *p);

/* Outlives its attempt when that ends while the answer is under way: nobody waits for it unless the
 * attempt of this id still has it as its look. */
struct progress_look {
    int64_t attempt_id;
    struct controller *c;
};
/* An attempt or a pool that has just come into memory has none under way. */
void attempt_attach_io(struct controller *c, struct live_attempt *a);
void pool_attach_io(struct controller *c, struct live_pool *p);
void attempt_remove(struct controller *c, struct live_attempt *a);
void pool_remove(struct controller *c, struct live_pool *p);
