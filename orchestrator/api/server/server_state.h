/* State shared by the server's modules; handlers see it through request.h alone. */
#pragma once
#include "request.h"

struct stream_hub;
struct response_cache;
struct handler_threads;
struct head_timeout;
struct proxies;
struct sign_in;
struct api {
    struct api_config cfg;
    struct handler_threads *workers;
    struct handler_threads *probe_workers; /* one thread that runs nothing else */
    struct proxies *proxies;
    _Atomic int64_t bodies;  /* bytes of request bodies in memory */
    _Atomic int64_t spooled; /* and in files */
    struct bridge *bridge;
    struct MHD_Daemon *daemon;
    struct MHD_Daemon *proxy_daemon; /* of the socket of a proxy; NULL: there is none */
    struct auth *auth;
    struct sign_in *sign_in;
    struct stream_hub *streams;
    struct response_cache *answers;
    struct head_timeout *conns, *proxy_conns;
    uint16_t port;
    int64_t started_us;
    json_t *schemas;    /* by name, see schemas.h */
    struct buf openapi; /* the document */
    struct buf campaign_schema;
    int threads;
    atomic_int asking; /* handler threads that wait for the bridge */
};
