/* The threads that run handlers. */
#pragma once
#include "request.h"

struct handler_threads;
/* Start n threads, which call run for each request; the caller owns *ret. ERR_INTERNAL. */
bool handler_threads_new(struct api *a, int n, void (*run)(struct api_req *r),
                         struct handler_threads **ret, struct err *err) MUST_CHECK;
/* Finish the queued requests and end the threads. Later pushes are refused. */
void handler_threads_stop(struct handler_threads *w);
void handler_threads_free(struct handler_threads *w);
/* Queue r; dear: at most half of the threads (or the only one) run such at once, those of one route
 * one less, so that however many ask for one dear answer, others are made. The caller has suspended
 * its connection; it is resumed when r is answered. False when
 * stopping. */
bool handler_threads_push(struct handler_threads *w, struct api_req *r, bool dear) MUST_CHECK;
