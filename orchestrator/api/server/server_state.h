/* State shared by the server's modules and the handlers. */
#pragma once
#include "request.h"

struct stream_hub;
struct response_cache;
struct handler_threads;
struct head_timeout;
struct api {
    struct api_config cfg;
    struct handler_threads *workers;
    struct bridge *bridge;
    struct MHD_Daemon *daemon;
    struct auth *auth;
    struct stream_hub *streams;
    struct response_cache *answers;
    struct head_timeout *conns;
    uint16_t port;
    int64_t started_us;
    int threads;
    atomic_int asking; /* handler threads that wait for the bridge */
};
/* Run r's handler (or only its check) and answer. Called by handler threads and for inline
 * routes. */
void req_run(struct api_req *r);
