/* What ties a request to those before it: its id and its place in a trace. */
#pragma once
#include "request.h"

/* Fills request_id with the client's own X-Request-Id when it is a word of 64 characters at most,
 * else with a random one; and traceparent (W3C Trace Context) when the client sent a valid one. */
void trace_request(struct api_req *r);
