/* The listing thread: looks after the listings (listings.h) while this droverd leads, on a
 * connection of its own. */
#pragma once
#include "bridge.h"
#include "status.h"

struct listing_thread;
bool listing_thread_start(const char *conninfo, const struct api_status *status, struct bridge *b,
                          struct listing_thread **ret, struct err *err) MUST_CHECK;
void listing_thread_stop(struct listing_thread *t); /* NULL ignored */
