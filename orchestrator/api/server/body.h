/* The bodies of requests: in memory or spooled, bounded each and in total. */
#pragma once
#include "request.h"

/* A little too much is read and thrown away, so that the client is there to hear the answer. */
#define BODY_THROWN_AWAY_MAX (8 * 1024 * 1024)
/* All bodies in memory at once; what comes on top is answered with 503. */
#define BODIES_MAX (INT64_C(64) * 1024 * 1024)
/* All spooled ones at once, the same way: what they may take of the disk. */
#define SPOOLED_MAX (INT64_C(4) * 1024 * 1024 * 1024)

/* The largest body that the request's route takes; 0: it takes none, what comes is thrown away. */
int64_t body_max(const struct api_req *r);
bool body_is_empty(const struct api_req *r); /* by the head */
/* Takes data as it comes. False: end the connection; it is too slow, or takes too long in all. Sets
 * too_large or busy. */
bool body_take(struct api_req *r, const char *data, size_t n) MUST_CHECK;
/* Forget the body and give its memory back to the total. */
void body_done(struct api_req *r);
