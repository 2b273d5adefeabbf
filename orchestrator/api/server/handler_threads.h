/* The threads that run handlers. */
#pragma once
#include "request.h"

struct handler_threads;
bool handler_threads_new(struct api *a, int n, struct handler_threads **ret,
                         struct err *err) MUST_CHECK;
/* Run what is queued, end the threads; later pushes are refused. */
void handler_threads_stop(struct handler_threads *w);
void handler_threads_free(struct handler_threads *w);
/* The connection is suspended by the caller, resumed when r is answered. False: stopping. */
bool handler_threads_push(struct handler_threads *w, struct api_req *r) MUST_CHECK;
